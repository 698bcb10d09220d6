//! Runs the program as a user would.
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

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
pub(crate) fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("a run has metrics");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    lines.iter_mut().for_each(|line| {
        line.as_object_mut().expect("an object").remove("seconds").expect("with its seconds");
    });
    lines
}

/// Everything a user sees of a run in `folder`, with paths that change from run to run made equal.
pub(crate) fn seen(folder: &Path, arguments: &[&str]) -> String {
    shown(&run(folder, arguments)).replace(&folder.display().to_string(), "[folder]")
}

/// Trains a tiny run in `folder`.
pub(crate) fn train(folder: &Path, steps: &str) {
    succeed(folder, &["train", TINY, "--steps", steps, "--out", "run", "--quiet"]);
}

/// The report of an explanation.
pub(crate) fn explain(folder: &Path, arguments: &[&str]) -> Value {
    let output = succeed(folder, &[&["explain", "--json"], arguments].concat());
    serde_json::from_slice(&output.stdout).expect("a report")
}

/// Asserts that two reports say the same, numbers up to `tolerance`, but for the fields named.
pub(crate) fn assert_alike(a: &Value, b: &Value, tolerance: f64, but: &[&str]) {
    assert_alike_at("", a, b, tolerance, but);
}

fn assert_alike_at(path: &str, a: &Value, b: &Value, tolerance: f64, but: &[&str]) {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = |map: &Map<String, Value>| map.keys().filter(|key| !but.contains(&key.as_str())).cloned().collect::<Vec<_>>();
            assert_eq!(keys(left), keys(right), "{path}");
            keys(left).iter().for_each(|key| assert_alike_at(&format!("{path}.{key}"), &left[key], &right[key], tolerance, but));
        }
        (Value::Array(left), Value::Array(right)) => {
            assert_eq!(left.len(), right.len(), "{path}");
            left.iter().zip(right).for_each(|(a, b)| assert_alike_at(path, a, b, tolerance, but));
        }
        (Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.as_f64().expect("a number"), right.as_f64().expect("a number"));
            assert!((left - right).abs() <= tolerance * (1.0 + left.abs()), "{path}: {left} and {right}");
        }
        _ => assert_eq!(a, b, "{path}"),
    }
}

/// What a page says of its first report: the report, its sentences and codes.
pub(crate) fn page_report(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).expect("a page");
    let (_, rest) = html.split_once("id=\"crosslens-report-0\">").expect("a report");
    let packed = STANDARD.decode(rest.split_once("</script>").expect("its end").0).expect("base64");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}
