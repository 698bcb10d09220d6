//! The tools beside the compiler: which are there, and how a missing one is got.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo::CargoCall;

/// A component of the toolchain without which a step cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    Rustfmt,
    Clippy,
}

impl Component {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt",
            Self::Clippy => "clippy",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Rustfmt => CargoCall::new("fmt --version").works(),
            Self::Clippy => CargoCall::new("clippy --version").works(),
        }
    }

    /// Installs the component with rustup if it is missing. `Ok(false)` means that it stays missing because we are offline.
    pub(crate) fn ensure(self, offline: bool) -> Result<bool> {
        let name = self.name();
        if self.is_there() {
            return Ok(true);
        }
        if offline {
            return Ok(false);
        }

        println!("this step needs {name}, which the toolchain lacks; installing it: rustup component add {name}");
        let is_installed = Command::new("rustup").args(["component", "add", name]).status().is_ok_and(|status| status.success());
        if !is_installed {
            bail!("`rustup component add {name}` failed: install {name} for this toolchain by hand");
        }
        Ok(true)
    }
}

/// The browser the page is tested in.
pub(crate) struct Chromium;

impl Chromium {
    /// Names the program where it is not on the path; the tests read it too.
    const NAMED: &'static str = "CROSSLENS_CHROMIUM";
    /// Switches off what needs a browser; the tests read it too.
    pub(crate) const OFF: &'static str = "CROSSLENS_NO_BROWSER";
    /// The names it has, as the tests look for it.
    const PROGRAMS: [&'static str; 3] = ["chromium", "chromium-browser", "google-chrome"];

    pub(crate) fn is_there() -> bool {
        std::env::var_os(Self::NAMED).is_some() || Self::PROGRAMS.iter().any(|program| works(program))
    }

    /// Installs the Debian package if there is no Chromium, and what else the page is tested with if that is missing. `Ok(Some(reason))`
    /// means that nothing is tested in a browser.
    pub(crate) fn ensure(offline: bool) -> Result<Option<String>> {
        if std::env::var_os(Self::OFF).is_some() {
            return Ok(Some(format!("{} is set: nothing is tested in a browser", Self::OFF)));
        }
        let is_there = Self::is_there();
        if offline {
            let why = "Chromium is not installed and --offline installs nothing: nothing is tested in a browser";
            return Ok((!is_there).then(|| why.to_owned()));
        }
        let missing: Vec<&Beside> = Beside::ALL.iter().filter(|beside| !(beside.is_there)()).collect();
        if !is_there || !missing.is_empty() {
            apt_get(&["update"]);
        }
        if !is_there {
            println!("the page is tested in a real browser and there is none; installing it: apt-get install chromium");
            if !apt_install("chromium") {
                let (named, off) = (Self::NAMED, Self::OFF);
                bail!("`apt-get install chromium` failed: install Chromium by hand, name it in {named}, or set {off}=1 to do without");
            }
        }
        missing.into_iter().for_each(Beside::install);
        Ok(None)
    }
}

/// A Debian package with which more of the page is seen; the tests do without it as well.
struct Beside {
    package: &'static str,
    /// What it is for.
    why: &'static str,
    /// What is not seen without it.
    without: &'static str,
    is_there: fn() -> bool,
}

impl Beside {
    const ALL: [Self; 2] = [
        Self {
            package: "firefox-esr",
            why: "the page is opened in a second browser",
            without: "the page is opened in Chromium alone",
            is_there: || std::env::var_os("CROSSLENS_FIREFOX").is_some() || works("firefox-esr") || works("firefox"),
        },
        Self {
            package: "fonts-droid-fallback",
            why: "pictures of the page show Chinese, Japanese and Korean tokens, for which no font is here",
            without: "such tokens are boxes in the pictures of the page",
            // The character 猫.
            is_there: || prints_something("fc-list", ":charset=732b"),
        },
    ];

    fn install(&self) {
        let Self { package, why, without, .. } = self;
        println!("{why}: apt-get install {package}");
        if !apt_install(package) {
            println!("`apt-get install {package}` failed: {without}");
        }
    }
}

/// Whether a program can be started.
pub(crate) fn works(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Gigabytes that are free where `folder` will be; `None` where the system does not tell.
pub(crate) fn free_gigabytes(folder: &Path) -> Option<f64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let output = Command::new("df").arg("-Pk").arg(there).stderr(Stdio::null()).output().ok()?;
    parse_free(&String::from_utf8_lossy(&output.stdout))
}

/// The fourth column of the second line of `df -Pk`, which counts kilobytes.
fn parse_free(table: &str) -> Option<f64> {
    let kilobytes: f64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e9)
}

fn prints_something(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).stderr(Stdio::null()).output().is_ok_and(|output| !output.stdout.is_empty())
}

/// Installs a Debian package; gives whether that worked.
fn apt_install(package: &str) -> bool {
    apt_get(&["install", "--yes", "--no-install-recommends", package])
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut call = Command::new("apt-get");
    call.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status().is_ok_and(|status| status.success())
}

/// cargo-nextest runs tests of all crates side by side; `cargo test` does as well, more slowly.
pub(crate) fn has_nextest() -> bool {
    CargoCall::new("nextest --version").works()
}

/// cargo-deny takes minutes to build, so it is used where it is and never installed.
pub(crate) fn has_deny() -> bool {
    CargoCall::new("deny --version").works()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_room_is_read_from_the_table_of_df() {
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 250000000 10000000 80000000 13% /\n";
        assert_eq!(parse_free(table), Some(81.92));
        assert_eq!(parse_free("df: no such file\n"), None);
    }
}
