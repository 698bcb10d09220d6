//! The pages people read: what they link to and the files they name are there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Folders that work leaves in a clone; they are no part of the repository.
const MADE: [&str; 4] = ["target", "runs", "crosslens-demo", "crosslens-reproduction"];

/// Fails if a page links to or names a file that is not there.
pub(crate) fn check(root: &Path) -> Result<()> {
    let pages = pages(root)?;
    let places = Places::of(root)?;
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| format!("cannot read `{}`", page.display()))?;
        let name = page.strip_prefix(root).unwrap_or(page).display();
        broken.extend(places.broken(page, &text).into_iter().map(|(line, what)| format!("{name}:{line}: there is no {what}")));
    }
    if !broken.is_empty() {
        bail!("pages name what is not there:\n{}", broken.join("\n"));
    }
    println!("links and paths of {} pages lead somewhere", pages.len());
    Ok(())
}

/// `README.md` and its neighbours, and `docs/`.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for folder in [root.to_owned(), root.join("docs")] {
        pages.extend(entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    pages.sort();
    Ok(pages)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read `{}`", folder.display());
    fs::read_dir(folder).with_context(cannot)?.map(|entry| Ok(entry.with_context(cannot)?.path())).collect()
}

/// Folders from which a page may name a file: the repository, its crates, and the sources of each.
struct Places(Vec<PathBuf>);

impl Places {
    fn of(root: &Path) -> Result<Self> {
        let crates = entries(&root.join("crates"))?;
        let sources: Vec<PathBuf> = crates.iter().map(|folder| folder.join("src")).collect();
        Ok(Self([root.to_owned(), root.join("crates")].into_iter().chain(crates).chain(sources).collect()))
    }

    /// The lines of a page that name what is not there, and what that is. What stands between fences is not looked at.
    fn broken(&self, page: &Path, text: &str) -> Vec<(usize, String)> {
        let beside = page.parent().unwrap_or(Path::new("."));
        let mut is_fenced = false;
        let mut broken = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
            } else if !is_fenced {
                let links = links(line).filter(|link| !beside.join(link).exists()).map(|link| format!("`{link}` to link to"));
                let paths = quoted(line).filter(|path| self.lacks(path)).map(|path| format!("`{path}`"));
                broken.extend(links.chain(paths).map(|what| (number + 1, what)));
            }
        }
        broken
    }

    /// Whether this is a path into the repository that leads nowhere. It is one if its first folder is in one of the places.
    fn lacks(&self, path: &str) -> bool {
        let is_plain = path.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-./".contains(sign));
        let Some((first, rest)) = path.split_once('/') else { return false };
        let is_ours = || self.0.iter().any(|place| place.join(first).is_dir());
        let is_path = is_plain && !rest.is_empty() && !first.is_empty() && !first.starts_with('.') && !MADE.contains(&first) && is_ours();
        is_path && !self.0.iter().any(|place| place.join(path).exists())
    }
}

/// Where the links of a line lead that stay in the repository, without the place within the page.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    files.filter_map(|target| target.split('#').next()).filter(|file| !file.is_empty())
}

/// What stands between back quotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
    }

    fn broken(text: &str) -> Vec<(usize, String)> {
        Places::of(root()).expect("a workspace").broken(&root().join("docs/any.md"), text)
    }

    #[test]
    fn the_pages_of_this_repository_lead_somewhere() {
        check(root()).expect("no page names what is not there");
    }

    #[test]
    fn links_are_followed_from_their_page() {
        let text = "[a](../README.md#tests) [b](https://example.org/x.md) [c](#below)\n[d](README.md)";
        assert_eq!(broken(text), [(2, "`README.md` to link to".to_owned())]);
    }

    #[test]
    fn paths_are_looked_for_in_the_repository_and_its_crates() {
        let there = "`xtask/src/pages.rs`, `crosslens-nets/src/train/folder.rs`, `train/folder.rs`, `tests/networks/laws.rs`, `docs/`";
        assert_eq!(broken(there), []);
        let elsewhere = "`runs/one/run.toml` `target/tmp/learning.md` `crates/*/tests/nothing` `a.en,b.fr` `../shared/data` `yours.rs`";
        assert_eq!(broken(elsewhere), []);
        assert_eq!(
            broken("so\n`tests/gradients.rs` and `docs/nothing.md`"),
            [(2, "`tests/gradients.rs`".to_owned()), (2, "`docs/nothing.md`".to_owned())]
        );
        assert_eq!(broken("```sh\n`docs/nothing.md`\n```"), [], "between fences");
    }

    /// What a test says that did nothing is seen only where `.config/nextest.toml` names the test.
    #[test]
    fn every_file_with_a_test_that_may_be_skipped_has_one_that_nextest_shows() {
        let shown = fs::read_to_string(root().join(".config/nextest.toml")).expect("the settings of nextest");
        let names: Vec<&str> = shown.split("test(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        let mut folders = entries(&root().join("crates")).expect("crates");
        let mut n_files = 0;
        while let Some(path) = folders.pop() {
            if path.is_dir() {
                folders.extend(entries(&path).expect("a folder"));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("source");
                // The browser's own step of `cargo xtask test` says that it is missing.
                if text.contains("SKIPPED: ") && !text.contains("SKIPPED: CROSSLENS_NO_BROWSER") {
                    n_files += 1;
                    assert!(names.iter().any(|name| text.contains(&format!("fn {name}("))), "no test of {} is shown", path.display());
                }
            }
        }
        assert!(n_files >= 4, "{n_files} files");
    }
}
