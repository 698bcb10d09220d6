//! The published network that tests can have: in the package e2k of PyPI, whose weights are not ours to ship.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};

use crate::python;
use crate::steps::Outcome;

/// Names its folder; the tests read it too, and say that they test nothing where it is missing.
pub(crate) const NAMED: &str = "CROSSLENS_E2K";
/// What golden values were made of.
pub(crate) const PACKAGE: &str = "e2k==0.8.1";

/// Where the package is: the folder that is named, or the one it is installed in.
pub(crate) fn folder() -> Result<PathBuf> {
    match env::var_os(NAMED) {
        Some(named) => Ok(PathBuf::from(named)),
        None => Ok(installed()?.join("e2k")),
    }
}

/// The folder of this version in the user's cache.
fn installed() -> Result<PathBuf> {
    Ok(python::cache_folder()?.join(PACKAGE.replace("==", "-")))
}

/// Installs the package where it is missing, without what it depends on: its weights are read, none of its code is run. Where it cannot be
/// had, a few tests of thousands are skipped.
pub(crate) fn ensure(root: &Path, offline: bool) -> Result<Outcome> {
    if folder()?.is_dir() {
        return Ok(Outcome::Passed);
    }
    let skipped = |why: String| Ok(Outcome::Skipped(format!("{why}: no published network is tested")));
    if env::var_os(NAMED).is_some() {
        return skipped(format!("{NAMED} names no folder"));
    }
    let folder = installed()?;
    if offline {
        return skipped(format!("{} is not there and --offline downloads nothing", folder.display()));
    }
    println!("a published network is tested, and its weights are not here; installing them in {} (once, 13 MB)", folder.display());
    // A folder of another name, this process' own, until it is whole.
    let begun = folder.with_extension(format!("part-{}", std::process::id()));
    let made = python::install_files(root, PACKAGE, &begun);
    let renamed = made.and_then(|()| fs::rename(&begun, &folder).with_context(|| format!("cannot rename `{}`", begun.display())));
    match renamed {
        Ok(()) => Ok(Outcome::Passed),
        Err(error) => {
            // It may be half there, or not at all.
            let _ = fs::remove_dir_all(&begun);
            if folder.is_dir() { Ok(Outcome::Passed) } else { skipped(format!("{error:#}")) }
        }
    }
}
