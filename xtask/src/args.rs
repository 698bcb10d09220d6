//! The command line, and what is said when it is wrong.

use crate::python::Wanted;

pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  test [--offline] [--slow] [--without heavy]
                              everything: format, lints, tests, Python package, documentation, dependencies, licences
                              --offline  install and download nothing; say what is skipped for it
                              --slow     run the ignored tests too
                              --without heavy  leave out what tests the Python package with PyTorch, transformers, JAX, Ray and
                              VS Code, some gigabytes that are kept in the user's cache folder; say what is skipped for it
  python [--offline] [--without heavy]
                              build, test and type-check the Python package alone, what is heavy included
  check                       the quick part of it: format, lints, dependencies
  crates [--check]            write the crate table of docs/architecture.md, or only see that it is fresh
  golden [PROGRAM …]          make the golden files of the tests anew (crates/*/tests/golden/make*.py), or those of some programs, in a
                              virtual environment in target/ with the pinned versions; then say what changed
  direction                   see that crates depend on each other in the permitted direction only
  pages                       see that what README.md, CONTRIBUTING.md and docs/ link to and name is there
  licences                    see that every dependency has a permitted licence and comes from crates.io
  help                        this text";

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Test(TestOptions),
    Check,
    Golden(Vec<String>),
    CratesWrite,
    CratesCheck,
    Direction,
    Pages,
    Licences,
    Python(Wanted),
    Help,
}

/// The flags of `cargo xtask test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestOptions {
    pub(crate) offline: bool,
    pub(crate) slow: bool,
    /// Whether the Python package is tested with PyTorch, transformers and Ray too.
    pub(crate) heavy: bool,
}

/// Reads the arguments after `xtask`; the error says which one is wrong.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let Some((command, flags)) = arguments.split_first() else {
        return Err("a command is missing".to_owned());
    };

    match (command.as_str(), flags) {
        ("test", flags) => test_options(flags).map(Command::Test),
        ("python", flags) => match test_options(flags)? {
            TestOptions { slow: true, .. } => Err("`python` does not take `--slow`".to_owned()),
            TestOptions { offline, heavy, .. } => Ok(Command::Python(Wanted { offline, heavy })),
        },
        ("check", []) => Ok(Command::Check),
        ("crates", []) => Ok(Command::CratesWrite),
        ("crates", [flag]) if flag == "--check" => Ok(Command::CratesCheck),
        ("golden", programs) => match programs.iter().find(|program| program.starts_with('-')) {
            Some(flag) => Err(format!("`golden` does not take `{flag}`")),
            None => Ok(Command::Golden(programs.to_vec())),
        },
        ("direction", []) => Ok(Command::Direction),
        ("pages", []) => Ok(Command::Pages),
        ("licences", []) => Ok(Command::Licences),
        ("help" | "--help" | "-h", _) => Ok(Command::Help),
        ("check" | "crates" | "direction" | "pages" | "licences", flags) => Err(format!("`{command}` does not take `{}`", flags.join(" "))),
        _ => Err(format!("there is no command `{command}`")),
    }
}

fn test_options(flags: &[String]) -> Result<TestOptions, String> {
    let mut options = TestOptions { offline: false, slow: false, heavy: true };
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--offline" => options.offline = true,
            "--slow" => options.slow = true,
            "--without" => match flags.next().map(String::as_str) {
                Some("heavy") => options.heavy = false,
                other => return Err(format!("`{flag}` takes `heavy`, not `{}`", other.unwrap_or("nothing"))),
            },
            _ => return Err(format!("`test` does not take `{flag}`")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_of_test_come_in_any_order() {
        let both = Command::Test(TestOptions { offline: true, slow: true, heavy: true });
        assert_eq!(parsed("test --slow --offline"), Ok(both.clone()));
        assert_eq!(parsed("test --offline --slow"), Ok(both));
    }

    #[test]
    fn what_is_heavy_can_be_left_out() {
        let test = |heavy| Ok(Command::Test(TestOptions { offline: false, slow: false, heavy }));
        assert_eq!([parsed("test"), parsed("test --without heavy")], [test(true), test(false)]);
        assert_eq!(parsed("python --without heavy"), Ok(Command::Python(Wanted { offline: false, heavy: false })));
        assert_eq!(parsed("python"), Ok(Command::Python(Wanted { offline: false, heavy: true })));
        assert_eq!(parsed("test --without"), Err("`--without` takes `heavy`, not `nothing`".to_owned()));
        assert!(parsed("python --slow").is_err());
    }

    #[test]
    fn crates_writes_unless_told_to_check() {
        assert_eq!(parsed("crates"), Ok(Command::CratesWrite));
        assert_eq!(parsed("crates --check"), Ok(Command::CratesCheck));
    }

    #[test]
    fn golden_takes_names_of_programs() {
        assert_eq!(parsed("golden"), Ok(Command::Golden(Vec::new())));
        assert_eq!(parsed("golden make_align make"), Ok(Command::Golden(vec!["make_align".to_owned(), "make".to_owned()])));
        assert_eq!(parsed("golden --all"), Err("`golden` does not take `--all`".to_owned()));
    }

    #[test]
    fn wrong_usage_names_what_is_wrong() {
        assert_eq!(parsed(""), Err("a command is missing".to_owned()));
        assert_eq!(parsed("tests"), Err("there is no command `tests`".to_owned()));
        assert_eq!(parsed("test --fast"), Err("`test` does not take `--fast`".to_owned()));
        assert_eq!(parsed("check --slow"), Err("`check` does not take `--slow`".to_owned()));
    }
}
