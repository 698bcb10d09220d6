//! One call of cargo: how it is run, and how it is shown so that it can be repeated by hand.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Arguments and environment of one `cargo` call. Displays as the line a user would type.
#[derive(Clone, Debug, Default)]
pub(crate) struct CargoCall {
    environment: Vec<(&'static str, String)>,
    arguments: Vec<String>,
}

impl CargoCall {
    /// A call from its arguments in one line; no argument of ours contains a space.
    pub(crate) fn new(line: &str) -> Self {
        Self { environment: Vec::new(), arguments: line.split_whitespace().map(str::to_owned).collect() }
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs it in `folder`, its output going where ours goes.
    pub(crate) fn run(&self, folder: &Path) -> Result<()> {
        let status = self.command().current_dir(folder).status().with_context(|| format!("cannot start `{self}`"))?;
        if !status.success() {
            bail!("`{self}` ended with {status}");
        }
        Ok(())
    }

    /// Whether it runs at all, all output discarded: the way to ask if a subcommand is installed.
    pub(crate) fn works(&self) -> bool {
        self.command().stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// What it writes to standard output.
    pub(crate) fn output(&self) -> Result<Vec<u8>> {
        let output = self.command().stderr(Stdio::piped()).output().with_context(|| format!("cannot start `{self}`"))?;
        if !output.status.success() {
            bail!("`{self}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl fmt::Display for CargoCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}=\"{value}\" ")?;
        }
        write!(f, "cargo {}", self.arguments.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_as_it_would_be_typed() {
        let call = CargoCall::new("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(call.to_string(), r#"RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps"#);
    }
}
