//! The tools beside the compiler: which are there, and how a missing one is got.

use std::process::Command;

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

/// cargo-nextest runs tests of all crates side by side; `cargo test` does as well, more slowly.
pub(crate) fn has_nextest() -> bool {
    CargoCall::new("nextest --version").works()
}

/// cargo-deny takes minutes to build, so it is used where it is and never installed.
pub(crate) fn has_deny() -> bool {
    CargoCall::new("deny --version").works()
}
