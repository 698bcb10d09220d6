//! The protocol of the benchmarks, as a program that takes turns speaks it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the small training benchmark with these lines on its standard input.
fn train(lines: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosslens-bench"));
    command.args(["train", "--size", "S", "--threads", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // Dropped after the lines, so that standard input ends.
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("lines that are read");
    child.wait_with_output().expect("the program ends")
}

fn answers(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn keys(answer: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn training_is_ready_once_and_answers_every_turn() {
    let output = train("go 0.01\ngo 0.01\n");
    assert!(output.status.success(), "{output:?}");
    let answers = answers(&output);
    let [ready, turns @ ..] = &answers[..] else { panic!("no answer") };
    assert_eq!(keys(ready), ["losses", "name", "ready"]);
    assert_eq!((&ready["ready"], &ready["name"]), (&Value::Bool(true), &Value::from("crosslens")));
    // Before the first update each of 8 words is as likely as the next: the loss is near ln 8 = 2.08.
    let losses: Vec<f64> = ready["losses"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    assert!(losses.len() == 4 && (losses[0] - 2.08).abs() < 0.5, "{losses:?}");
    assert_eq!(turns.len(), 2);
    for turn in turns {
        assert_eq!(keys(turn), ["loss", "peak_rss_mb", "steps_per_second"]);
        assert!(turn["steps_per_second"].as_f64().is_some_and(|speed| speed > 0.0), "{turn}");
        assert!(turn["loss"].as_f64().is_some_and(f64::is_finite), "{turn}");
    }
}

#[test]
fn a_turn_without_its_seconds_is_refused() {
    let output = train("go\n");
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(answers(&output).len(), 1, "it was ready");
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected `go SECONDS`, got `go`"), "{output:?}");
}
