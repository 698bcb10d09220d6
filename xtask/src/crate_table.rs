//! The crate table of `docs/architecture.md`, made from the manifests so that it cannot rot.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::direction;
use crate::metadata::{Package, Workspace};

const BEGIN: &str = "<!-- crates:begin -->";
const END: &str = "<!-- crates:end -->";

/// Rewrites the part of the page between the markers; the rest stays as it is.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let (page, fresh) = page_and_fresh(workspace)?;
    if page == fresh {
        println!("the crate table of docs/architecture.md is fresh already");
        return Ok(());
    }
    let path = path(workspace);
    fs::write(&path, fresh).with_context(|| format!("cannot write `{}`", path.display()))?;
    println!("the crate table of docs/architecture.md is written");
    Ok(())
}

/// Fails if `write` would change the page.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let (page, fresh) = page_and_fresh(workspace)?;
    if page != fresh {
        bail!("the crate table of docs/architecture.md does not match the manifests: run `cargo xtask crates` and commit the result");
    }
    println!("the crate table of docs/architecture.md matches the manifests");
    Ok(())
}

fn page_and_fresh(workspace: &Workspace) -> Result<(String, String)> {
    let path = path(workspace);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let fresh =
        with_table(&page, &table(&workspace.packages)).with_context(|| format!("cannot place the table in `{}`", path.display()))?;
    Ok((page, fresh))
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join("docs/architecture.md")
}

/// One line a crate, lowest layer first; dev-dependencies are left out.
fn table(packages: &[Package]) -> String {
    let mut packages: Vec<&Package> = packages.iter().collect();
    packages.sort_by_key(|package| (direction::layer(&package.name), &package.name));

    let mut table = String::from("| crate | what it is | uses |\n|---|---|---|\n");
    for package in &packages {
        let uses: Vec<String> = packages
            .iter()
            .filter(|other| package.dependencies.iter().any(|dependency| !dependency.is_dev && dependency.name == other.name))
            .map(|other| format!("`{}`", other.name))
            .collect();
        let uses = if uses.is_empty() { "nothing of the workspace".to_owned() } else { uses.join(", ") };
        let description = package.description.as_deref().unwrap_or("").replace('|', "\\|");
        table += &format!("| `{}` | {} | {uses} |\n", package.name, description.trim());
    }
    table
}

/// The page with `table` as all that stands between its markers.
fn with_table(page: &str, table: &str) -> Result<String> {
    let begin = page.find(BEGIN).with_context(|| format!("the line `{BEGIN}` is missing"))? + BEGIN.len();
    let length = page[begin..].find(END).with_context(|| format!("the line `{END}` is missing after `{BEGIN}`"))?;
    Ok(format!("{}\n\n{table}\n{}", &page[..begin], &page[begin + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let fresh = with_table(&page, "new\n").expect("both markers are there");
        assert_eq!(fresh, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(with_table(&fresh, "new\n").expect("both markers are there"), fresh);
    }

    #[test]
    fn a_missing_marker_is_named() {
        let complaint = |page: &str| with_table(page, "").expect_err("a marker is missing").to_string();
        assert_eq!(complaint("no table here"), format!("the line `{BEGIN}` is missing"));
        assert_eq!(complaint(&format!("{END} {BEGIN}")), format!("the line `{END}` is missing after `{BEGIN}`"));
    }

    #[test]
    fn lower_layers_come_first_and_dev_dependencies_are_left_out() {
        let dependency = |name: &str, is_dev| Dependency { name: name.to_owned(), is_dev };
        let nets = Package {
            name: "crosslens-nets".to_owned(),
            description: Some("networks".to_owned()),
            dependencies: vec![dependency("crosslens-kernels", false), dependency("crosslens-analysis", true), dependency("serde", false)],
            ..Package::default()
        };
        let named = |name: &str| Package { name: name.to_owned(), ..Package::default() };

        let table = table(&[nets, named("crosslens-analysis"), named("crosslens-kernels")]);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `crosslens-kernels` |  | nothing of the workspace |",
                "| `crosslens-analysis` |  | nothing of the workspace |",
                "| `crosslens-nets` | networks | `crosslens-kernels` |",
            ]
        );
    }
}
