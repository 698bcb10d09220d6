//! What `cargo metadata` knows of the workspace, reduced to what the checks read.
//!
//! Read by hand: deriving it would make a clean clone compile the derive machinery once for this crate and again, with other
//! features, for the rest of the workspace.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::CargoCall;

/// The workspace: its folder and its own crates.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A crate, ours or foreign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    /// Where it was fetched from; `None` for a crate of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a dependency section, under the crate's real name even if it is renamed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests, examples and benchmarks see it.
    pub(crate) is_dev: bool,
}

impl Workspace {
    /// Our own crates; reads manifests only, so it works without a network.
    pub(crate) fn load() -> Result<Self> {
        let metadata = metadata("--no-deps")?;
        Ok(Self { root: PathBuf::from(text(&metadata, "workspace_root")?), packages: packages(&metadata)? })
    }
}

/// Every crate of the dependency tree, for every platform, with an extra flag of cargo or none.
pub(crate) fn all_packages(flag: &str) -> Result<Vec<Package>> {
    packages(&metadata(&format!("--all-features {flag}"))?)
}

fn metadata(flags: &str) -> Result<Value> {
    let call = CargoCall::new(&format!("metadata --format-version 1 {flags}"));
    serde_json::from_slice(&call.output()?).with_context(|| format!("`{call}` did not answer in JSON"))
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    list(metadata, "packages")?.iter().map(package).collect()
}

fn package(json: &Value) -> Result<Package> {
    Ok(Package {
        name: text(json, "name")?,
        version: text(json, "version")?,
        description: optional_text(json, "description"),
        license: optional_text(json, "license"),
        source: optional_text(json, "source"),
        dependencies: list(json, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
    })
}

fn dependency(json: &Value) -> Result<Dependency> {
    Ok(Dependency { name: text(json, "name")?, is_dev: json["kind"] == "dev" })
}

fn list<'a>(json: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    json[key].as_array().with_context(|| format!("`cargo metadata` gives no list `{key}`"))
}

fn text(json: &Value, key: &str) -> Result<String> {
    optional_text(json, key).with_context(|| format!("`cargo metadata` gives no text `{key}`"))
}

fn optional_text(json: &Value, key: &str) -> Option<String> {
    json[key].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_is_read_with_the_kinds_of_its_dependencies() {
        let json = json!({ "packages": [{
            "name": "thing", "version": "1.2.3", "description": null, "license": "MIT", "source": null,
            "dependencies": [{ "name": "serde", "kind": null }, { "name": "insta", "kind": "dev" }, { "name": "cc", "kind": "build" }],
        }]});
        let dependency = |name: &str, is_dev| Dependency { name: name.to_owned(), is_dev };
        let thing = Package {
            name: "thing".to_owned(),
            version: "1.2.3".to_owned(),
            license: Some("MIT".to_owned()),
            dependencies: vec![dependency("serde", false), dependency("insta", true), dependency("cc", false)],
            ..Package::default()
        };
        assert_eq!(packages(&json).expect("nothing is missing"), [thing]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = packages(&json!({ "packages": [{ "name": "thing" }] })).expect_err("the version is missing");
        assert_eq!(error.to_string(), "`cargo metadata` gives no text `version`");
    }
}
