//! Runs the program as a user would.
use std::path::Path;
use std::process::{Command, Output};

pub(crate) const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny.toml");

/// The program, to be run in `folder`.
pub(crate) fn crosslens(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosslens"));
    command.current_dir(folder).args(arguments).env("NO_COLOR", "1");
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    crosslens(folder, arguments).output().expect("the program starts")
}

/// Everything a user sees of a run: exit code, standard output, standard error.
pub(crate) fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    format!("exit {}\n--- stdout\n{}\n--- stderr\n{}", output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Fails with what was seen unless the run succeeded.
pub(crate) fn succeed(folder: &Path, arguments: &[&str]) -> Output {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
    output
}

/// The metrics of a run without their timings.
pub(crate) fn metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("a run has metrics");
    let mut lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    lines.iter_mut().for_each(|line| {
        line.as_object_mut().expect("an object").remove("seconds").expect("with its seconds");
    });
    lines
}
