//! Licences and origins of all dependencies, compared with `deny.toml`.
//!
//! The same file configures `cargo deny`, which looks deeper (licence texts, duplicate versions) but takes minutes to build.
//! The check here needs nothing but cargo, so that it runs everywhere; `cargo deny` follows it where it is installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::cargo::CargoCall;
use crate::metadata::{self, Package, Workspace};
use crate::steps::Outcome;
use crate::{spdx, tools};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The part of `deny.toml` that is read here.
#[derive(Debug, Default)]
struct Allowed {
    licences: Vec<String>,
    exceptions: Vec<Exception>,
}

/// Further licences for one crate.
#[derive(Debug)]
struct Exception {
    name: String,
    licences: Vec<String>,
}

/// Fails with every package whose licence is not allowed or that does not come from crates.io.
pub(crate) fn check(workspace: &Workspace, offline: bool) -> Result<Outcome> {
    let flag = if offline { "--offline" } else { "" };
    let packages = match metadata::all_packages(flag) {
        Err(error) if offline => return Ok(Outcome::Skipped(format!("the manifests of all platforms are not here: {error:#}"))),
        packages => packages?,
    };
    check_packages(&packages, &Allowed::load(&workspace.root.join("deny.toml"))?)?;

    if !tools::has_deny() {
        println!("cargo-deny is not installed: duplicate versions and licence texts are not looked at");
        return Ok(Outcome::Passed);
    }
    let call = CargoCall::new(&format!("deny {flag} check licenses bans sources"));
    println!("$ {call}");
    call.run(&workspace.root)?;
    Ok(Outcome::Passed)
}

fn check_packages(packages: &[Package], allowed: &Allowed) -> Result<()> {
    let violations: Vec<String> = packages.iter().filter_map(|package| complaint(package, allowed)).collect();
    if !violations.is_empty() {
        bail!("{}\n(what is allowed stands in deny.toml)", violations.join("\n"));
    }

    println!("{} packages have an allowed licence and come from crates.io or from here:", packages.len());
    for (licence, count) in counts(packages) {
        println!("  {count:>4}  {licence}");
    }
    Ok(())
}

impl Allowed {
    fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot understand `{}`", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let file: Table = text.parse()?;
        let section = file.get("licenses").and_then(Value::as_table).context("the section `[licenses]` is missing")?;
        let exceptions = match section.get("exceptions") {
            Some(list) => list.as_array().context("`exceptions` is not a list")?.iter().map(Exception::read).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        Ok(Self { licences: names(section)?, exceptions })
    }

    fn permits(&self, package: &str, licence: &str) -> bool {
        let exceptions = self.exceptions.iter().filter(|exception| exception.name == package).flat_map(|exception| &exception.licences);
        self.licences.iter().chain(exceptions).any(|allowed| allowed == licence)
    }
}

impl Exception {
    fn read(value: &Value) -> Result<Self> {
        let table = value.as_table().context("an exception is not a table")?;
        let name = table.get("crate").and_then(Value::as_str).context("an exception names no `crate`")?;
        Ok(Self { name: name.to_owned(), licences: names(table)? })
    }
}

/// The licences in the list `allow` of a table.
fn names(table: &Table) -> Result<Vec<String>> {
    let list = table.get("allow").and_then(Value::as_array).context("the list `allow` is missing")?;
    list.iter().map(|name| Ok(name.as_str().context("a licence in `allow` is not a text")?.to_owned())).collect()
}

fn complaint(package: &Package, allowed: &Allowed) -> Option<String> {
    let Package { name, version, license, source, .. } = package;
    if let Some(source) = source.as_deref().filter(|source| *source != CRATES_IO) {
        return Some(format!("{name} {version} comes from `{source}`, not from crates.io"));
    }
    let Some(license) = license else {
        return Some(format!("{name} {version} states no licence expression"));
    };
    match spdx::is_satisfied(license, |licence| allowed.permits(name, licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version} has the licence `{license}`, which is not allowed")),
        Err(error) => Some(format!("{name} {version} has the licence `{license}`, which cannot be read: {error}")),
    }
}

fn counts(packages: &[Package]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for package in packages {
        *counts.entry(package.license.as_deref().unwrap_or("none")).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: "thing".to_owned(),
            version: "1.2.3".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            ..Package::default()
        }
    }

    fn only_mit() -> Allowed {
        Allowed { licences: vec!["MIT".to_owned()], exceptions: Vec::new() }
    }

    #[test]
    fn an_allowed_licence_from_crates_io_passes() {
        assert_eq!(complaint(&package(Some("MIT OR Apache-2.0"), Some(CRATES_IO)), &only_mit()), None);
        assert_eq!(complaint(&package(Some("MIT"), None), &only_mit()), None);
    }

    #[test]
    fn other_licences_and_missing_ones_are_named() {
        assert_eq!(
            complaint(&package(Some("GPL-3.0-only"), None), &only_mit()).as_deref(),
            Some("thing 1.2.3 has the licence `GPL-3.0-only`, which is not allowed")
        );
        assert_eq!(complaint(&package(None, None), &only_mit()).as_deref(), Some("thing 1.2.3 states no licence expression"));
        assert!(complaint(&package(Some("MIT OR"), None), &only_mit()).is_some());
    }

    #[test]
    fn other_sources_than_crates_io_are_named() {
        assert_eq!(
            complaint(&package(Some("MIT"), Some("git+https://example.org/thing")), &only_mit()).as_deref(),
            Some("thing 1.2.3 comes from `git+https://example.org/thing`, not from crates.io")
        );
    }

    #[test]
    fn an_exception_holds_for_its_crate_alone() {
        let text = r#"licenses = { allow = ["MIT"], exceptions = [{ crate = "thing", allow = ["MPL-2.0"] }] }"#;
        let allowed = Allowed::parse(text).expect("nothing is missing");
        let thing = package(Some("MPL-2.0"), None);
        let other = Package { name: "other".to_owned(), ..thing.clone() };
        assert_eq!(complaint(&thing, &allowed), None);
        assert!(complaint(&other, &allowed).is_some());
    }

    #[test]
    fn a_file_without_an_allow_list_is_refused() {
        let complaint = |text: &str| Allowed::parse(text).expect_err("something is missing").to_string();
        assert_eq!(complaint("[bans]"), "the section `[licenses]` is missing");
        assert_eq!(complaint("[licenses]"), "the list `allow` is missing");
    }
}
