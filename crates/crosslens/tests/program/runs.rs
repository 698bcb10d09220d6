//! Runs from start to end, stopped in the middle, and judged.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::common::{TINY, crosslens, metrics, run, shown, succeed};
use serde_json::Value;

fn json_line(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line of JSON: {text}");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn train_ends_with_the_promised_line_and_eval_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let trained = json_line(&succeed(folder, &["train", TINY, "--json", "--out", "run"]).stdout);
    let keys: Vec<&str> = trained.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut promised = ["out", "steps", "seconds", "phrase_accuracy", "word_accuracy", "loss", "parameters"];
    promised.sort_unstable();
    assert_eq!(keys, promised);
    assert_eq!(trained["steps"], 400);
    assert!(trained["phrase_accuracy"].as_f64().expect("a number") > 0.9, "{trained}");

    // The run's own seed and number of samples draw the sentences of its log.
    let judged = json_line(&succeed(folder, &["eval", "run", "--json", "--samples", "50", "--seed", "7"]).stdout);
    assert_eq!(judged["free"]["phrase_accuracy"], trained["phrase_accuracy"]);
    assert_eq!(judged["free"]["loss"], trained["loss"]);
    assert!(judged["forced"]["word_accuracy"].as_f64().expect("a number") > 0.9, "{judged}");
    let table = shown(&succeed(folder, &["eval", "run"]));
    assert!(table.contains("free-running") && table.contains("teacher-forced"), "{table}");
}

#[test]
fn a_second_run_takes_a_new_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for out in ["runs/one-to-one-aed", "runs/one-to-one-aed-2"] {
        let trained = json_line(&succeed(folder, &["train", TINY, "--json", "--steps", "1"]).stdout);
        assert_eq!(trained["out"], out);
        assert!(folder.join(out).join("run.toml").exists());
    }
}

#[test]
fn a_folder_or_file_of_a_tasks_name_does_not_hide_the_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("sort")).expect("a folder");
    std::fs::copy(TINY, folder.join("reverse")).expect("a file");
    for (what, out) in [("sort", "runs/sort-aed"), ("reverse", "runs/reverse-aed"), ("./reverse", "runs/one-to-one-aed")] {
        let trained = json_line(&succeed(folder, &["train", what, "--json", "--steps", "1"]).stdout);
        assert_eq!(trained["out"], out, "{what}");
    }
}

#[test]
fn runs_that_begin_at_once_take_a_folder_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let begin = |seed: &str| {
        let arguments = ["train", TINY, "--json", "--quiet", "--steps", "1", "--threads", "1", "--seed", seed];
        crosslens(folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    };
    let children: Vec<_> = ["1", "2", "3", "4"].into_iter().map(|seed| (seed, begin(seed))).collect();
    for (seed, child) in children {
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{}", shown(&output));
        let out = json_line(&output.stdout)["out"].as_str().expect("a folder").to_owned();
        let saved = std::fs::read_to_string(folder.join(&out).join("run.toml")).expect("run.toml");
        assert!(saved.contains(&format!("seed = {seed}\n")), "{out} is of another run:\n{saved}");
    }
}

#[test]
fn flags_win_over_the_file_and_are_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let flags = ["--arch", "luong", "--cell", "ugrnn", "--score", "concat", "--seed", "3", "--steps", "2"];
    succeed(folder, &[&["train", TINY, "--out", "run"][..], &flags].concat());
    let saved = std::fs::read_to_string(folder.join("run/run.toml")).expect("run.toml");
    for line in ["family = \"luong\"", "cell = \"ugrnn\"", "score = \"additive\"", "seed = 3", "steps = 2", "hidden = 24"] {
        assert!(saved.contains(line), "no `{line}` in\n{saved}");
    }
}

#[test]
fn every_progress_line_is_json_when_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = succeed(folder.path(), &["train", TINY, "--steps", "20", "--progress", "json"]);
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stderr).lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().expect("its name")).collect();
    assert_eq!(events, ["started", "evaluated", "evaluated"]);
}

fn n_lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// What a run leaves that must not depend on how often it was stopped.
fn result(run: &Path) -> (Vec<u8>, Vec<Value>) {
    (std::fs::read(run.join("model.safetensors")).expect("a model"), metrics(run))
}

#[test]
fn a_run_killed_at_random_moments_ends_as_one_never_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--threads", "2", "--out", "whole"]);
    let whole = result(&folder.join("whole"));

    // Killed once a few more lines of metrics are there, at a moment of that step that differs from kill to kill.
    let mut arguments = vec!["train", TINY, "--threads", "1", "--out", "killed"];
    let mut n_kills = 0;
    loop {
        let had = n_lines(&folder.join("killed/metrics.jsonl"));
        let mut child = crosslens(folder, &arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
        let ended = loop {
            let ended = child.try_wait().expect("a child can be asked").is_some();
            if ended || n_lines(&folder.join("killed/metrics.jsonl")) > had + n_kills % 3 {
                break ended;
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        std::thread::sleep(Duration::from_micros(n_kills as u64 * 777 % 5000));
        child.kill().expect("SIGKILL");
        child.wait().expect("a killed child ends");
        arguments = vec!["train", "killed", "--resume", "--threads", "3"];
        if ended {
            break;
        }
        n_kills += 1;
    }
    assert!(n_kills >= 3, "the run was killed only {n_kills} times");
    assert!(result(&folder.join("killed")) == whole, "killed {n_kills} times, the run ended differently");
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut command = crosslens(folder, &["train", TINY, "--steps", "100000", "--out", "run"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    while n_lines(&folder.join("run/metrics.jsonl")) < 2 {
        assert!(child.try_wait().expect("a child can be asked").is_none(), "the program ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(interrupt.success());
    let output = child.wait_with_output().expect("the program ends");
    let seen = shown(&output);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(seen.contains("stopped after step") && seen.contains("crosslens train run --resume"), "{seen}");
    let judged = run(folder, &["eval", "run", "--samples", "10"]);
    assert!(judged.status.success(), "an interrupted run can be judged: {}", shown(&judged));
    let steps = seen.split("after step ").nth(1).and_then(|rest| rest.split(';').next()).expect("the step").to_owned();
    let further = (steps.parse::<u64>().expect("a number") + 10).to_string();
    let resumed = json_line(&succeed(folder, &["train", "run", "--resume", "--steps", &further, "--json"]).stdout);
    assert_eq!(resumed["steps"].to_string(), further);
}
