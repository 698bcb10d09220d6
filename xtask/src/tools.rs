//! The tools beside the compiler: which are there, and how a missing one is got.

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
        let works = |program: &&str| {
            let mut version = Command::new(program);
            version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        };
        std::env::var_os(Self::NAMED).is_some() || Self::PROGRAMS.iter().any(works)
    }

    /// Installs the Debian package if there is no Chromium, and then Firefox's too, without which one test is skipped. `Ok(Some(reason))`
    /// means that nothing is tested in a browser.
    pub(crate) fn ensure(offline: bool) -> Result<Option<String>> {
        if std::env::var_os(Self::OFF).is_some() {
            return Ok(Some(format!("{} is set: nothing is tested in a browser", Self::OFF)));
        }
        if Self::is_there() {
            return Ok(None);
        }
        if offline {
            return Ok(Some("Chromium is not installed and --offline installs nothing: nothing is tested in a browser".to_owned()));
        }

        println!("the page is tested in real browsers and there is none; installing them: apt-get install chromium firefox-esr");
        apt_get(&["update"]);
        if !apt_install("chromium") {
            let (named, off) = (Self::NAMED, Self::OFF);
            bail!("`apt-get install chromium` failed: install Chromium by hand, name it in {named}, or set {off}=1 to do without");
        }
        // One test needs it, which says when it is skipped.
        if !apt_install("firefox-esr") {
            println!("`apt-get install firefox-esr` failed: the page is opened in Chromium alone");
        }
        Ok(None)
    }
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
