//! Bad input: exit code and message of each, as a user sees them.

use std::collections::BTreeMap;
use std::path::Path;

use super::common::{TINY, crosslens, metrics, run, shown, succeed, train};

/// Snapshots what the program says, with paths that change from run to run made equal.
fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    let seen = shown(&run(folder, arguments)).replace(&folder.display().to_string(), "[folder]");
    insta::assert_snapshot!(name, seen);
}

/// Writes the tiny configuration with one line changed.
fn changed(folder: &Path, line: &str, by: &str) -> String {
    let text = std::fs::read_to_string(TINY).expect("the tiny configuration");
    assert!(text.contains(line), "`{line}` is not in tiny.toml");
    std::fs::write(folder.join("run.toml"), text.replace(line, by)).expect("a writable folder");
    "run.toml".to_owned()
}

#[test]
fn names_nobody_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    snapshot("unknown task", folder, &["train", "one-two-one"]);
    snapshot("unknown architecture", folder, &["train", "one-to-one", "--arch", "bahdano"]);
    snapshot("unknown score", folder, &["train", "one-to-one", "--score", "generall"]);
    snapshot("unknown key", folder, &["train", &changed(folder, "batch = 48", "bacth = 48")]);
    snapshot("unknown family in a file", folder, &["train", &changed(folder, "\"aed\"", "\"aedd\"")]);
    snapshot("unknown task in a file", folder, &["train", &changed(folder, "\"one-to-one\"", "\"one-to-two\"")]);
    assert!(!folder.join("runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn configurations_that_make_no_sense() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    snapshot("dot score and two directions", folder, &["train", "one-to-one", "--arch", "bahdanau", "--score", "dot"]);
    snapshot("attention without attention", folder, &["train", "one-to-one", "--arch", "ved", "--score", "dot"]);
    snapshot("length 0", folder, &["train", &changed(folder, "min_length = 3", "min_length = 0")]);
    snapshot("one word", folder, &["train", &changed(folder, "n_words = 2", "n_words = 1")]);
    snapshot("no words", folder, &["train", &changed(folder, "n_words = 2", "n_words = 0")]);
    snapshot("no units", folder, &["train", &changed(folder, "hidden = 24", "hidden = 0")]);
    snapshot("learning rate nan", folder, &["train", &changed(folder, "learning_rate = 5e-3", "learning_rate = nan")]);
    snapshot("learning rate inf", folder, &["train", &changed(folder, "learning_rate = 5e-3", "learning_rate = inf")]);
    snapshot("not toml", folder, &["train", &changed(folder, "seed = 7", "seed = = 7")]);
    snapshot("no such file", folder, &["train", "nowhere.toml"]);
    let huge = changed(folder, "hidden = 24", "hidden = 65536\nlayers = 64\ncell = \"lstm\"");
    snapshot("too many parameters", folder, &["train", &huge]);
    let wide = changed(folder, "batch = 48", "batch = 1000000");
    snapshot("too large a batch", folder, &["train", &wide, "--out", "wide"]);
    assert!(!folder.join("wide").exists(), "a refused run leaves nothing behind");
    assert!(!folder.join("runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn folders_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("file"), "text").expect("a writable folder");
    snapshot("folder is a file", folder, &["train", TINY, "--out", "file"]);
    snapshot("folder is not there to be made", folder, &["train", TINY, "--out", "/proc/crosslens"]);
    snapshot("folder below a file", folder, &["train", TINY, "--out", "file/run"]);
    std::fs::create_dir(folder.join("mine")).expect("a writable folder");
    std::fs::write(folder.join("mine/model.safetensors"), "precious").expect("a writable folder");
    snapshot("folder of something else", folder, &["train", TINY, "--out", "mine", "--overwrite"]);
    assert_eq!(std::fs::read_to_string(folder.join("mine/model.safetensors")).expect("still there"), "precious");
    succeed(folder, &["train", TINY, "--steps", "1", "--out", "run"]);
    snapshot("folder of another run", folder, &["train", TINY, "--out", "run"]);
    snapshot("resume nothing", folder, &["train", "mine", "--resume"]);
    snapshot("train a folder", folder, &["train", "run"]);
    snapshot("resume two", folder, &["train", "run", "--resume", "--out", "mine"]);
    snapshot("resume for less", folder, &["train", "run", "--resume", "--steps", "0"]);
    snapshot("overwrite nothing", folder, &["train", TINY, "--overwrite"]);
    snapshot("resume as another", folder, &["train", "run", "--resume", "--seed", "8"]);
    snapshot("eval nothing", folder, &["eval", "mine"]);
}

/// The message names the path, the hint what could stand there and the command that makes it.
#[test]
fn paths_where_nothing_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    snapshot("explain no file", folder, &["explain", "nothing.json"]);
    snapshot("report no file", folder, &["report", "nothing.json"]);
    snapshot("report no folder", folder, &["report", "nothing"]);
    snapshot("serve no file", folder, &["serve", "nothing.json"]);
    snapshot("figure of no file", folder, &["figure", "nothing.json", "attention", "-o", "x.svg"]);
    snapshot("figure of no run", folder, &["figure", "nothing", "training", "-o", "x.svg"]);
    snapshot("fit no file", folder, &["fit", "nothing.npz", "-o", "x.stats.safetensors"]);
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 0, "a refusal leaves nothing behind");
}

/// Every file of a folder by name.
fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file"))).collect()
}

/// `--overwrite` gives up the old run only for a new one that begins.
#[cfg(unix)]
#[test]
fn overwriting_keeps_the_old_run_until_the_new_one_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--steps", "5", "--out", "run"]);
    let before = files_of(&folder.join("run"));
    assert!(before.len() >= 5, "{:?}", before.keys());
    for (line, by) in [
        ("batch = 48", "bacth = 48"),
        ("seed = 7", "seed = = 7"),
        ("hidden = 24", "hidden = 0"),
        ("n_words = 2", "n_words = 0"),
        ("learning_rate = 5e-3", "learning_rate = nan"),
        ("batch = 48", "batch = 1000000"),
    ] {
        let refused = run(folder, &["train", &changed(folder, line, by), "--out", "run", "--overwrite"]);
        assert!(!refused.status.success(), "{by}: {}", shown(&refused));
        assert!(files_of(&folder.join("run")) == before, "{by}: the old run is touched");
    }
    // The new run's first checkpoint does not fit on the disk.
    let output = with_little_room(folder, &format!("train '{TINY}' --seed 8 --out run --overwrite"));
    assert!(shown(&output).contains("checkpoint.safetensors"), "{}", shown(&output));
    assert!(files_of(&folder.join("run")) == before, "the old run is touched: {}", shown(&output));

    succeed(folder, &["train", TINY, "--seed", "8", "--steps", "5", "--out", "run", "--overwrite"]);
    let after = files_of(&folder.join("run"));
    assert!(after.keys().eq(before.keys()) && after["model.safetensors"] != before["model.safetensors"]);
}

#[test]
fn files_that_are_damaged_or_foreign() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let train = |out: &str, more: &[&str]| {
        succeed(folder, &[&["train", TINY, "--steps", "1", "--out", out], more].concat());
    };
    train("run", &[]);
    train("other", &["--cell", "lstm"]);
    for name in ["checkpoint.safetensors", "model.safetensors"] {
        let path = folder.join("run").join(name);
        let good = std::fs::read(&path).expect("a run has it");
        let check = |what: &str, bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writable");
            let arguments: &[&str] =
                if name.starts_with("model") { &["eval", "run"] } else { &["train", "run", "--resume", "--steps", "2"] };
            snapshot(&format!("{what} {name}"), folder, arguments);
        };
        check("truncated", &good[..good.len() / 2]);
        check("empty", &[]);
        let header = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        check("somebody else's", &[&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat());
        check("foreign", &std::fs::read(folder.join("other").join(name)).expect("a run has it"));
        let mut lying = good.clone();
        lying[..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        check("lying", &lying);
        let mut nan = good.clone();
        let end = nan.len();
        nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        check("nan", &nan);
        std::fs::write(&path, &good).expect("writable");
    }
    std::fs::write(folder.join("run/vocab.json"), r#"{"source":["a","a"],"target":["b"]}"#).expect("writable");
    snapshot("doubled word in vocab", folder, &["eval", "run"]);
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let wild = changed(folder, "learning_rate = 5e-3", "learning_rate = 1e38\nschedule = { kind = \"constant\" }\nwarm_up = 0");
    snapshot("diverged", folder, &["train", &wild, "--out", "run"]);
    assert!(folder.join("run/checkpoint.safetensors").exists());
    assert!(!folder.join("run/model.safetensors").exists(), "no half-trained model is offered");
}

/// Decay far beyond sense multiplies every weight by −10 a step: after some steps and checkpoints a number overflows.
#[test]
fn a_run_that_diverges_later_keeps_a_checkpoint_that_opens_and_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = std::fs::read_to_string(TINY).expect("the tiny configuration").replace("evaluate_every = 10", "evaluate_every = 2");
    std::fs::write(folder.join("wild.toml"), format!("{text}\n[optimizer]\ndecay = 2200.0\n")).expect("a writable folder");
    let diverged = shown(&run(folder, &["train", "wild.toml", "--out", "run", "--threads", "1"]));
    let said = diverged.split("error: ").nth(1).unwrap_or_else(|| panic!("it does not diverge: {diverged}"));
    let number = |before: &str| -> u64 {
        let digits = said.split(before).nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no number after `{before}`: {said}"))
    };
    let (step, kept) = (number("at step "), number("checkpoint of step "));
    assert!(kept >= 2 && kept.is_multiple_of(2) && kept < step, "{said}");
    assert_eq!(metrics(&folder.join("run")).len() as u64, kept / 2, "one line for every checkpoint kept");

    let judged = run(folder, &["eval", "run", "--samples", "5"]);
    assert!(judged.status.success(), "{}", shown(&judged));
    let again = shown(&run(folder, &["train", "run", "--resume", "--threads", "1"]));
    assert_eq!(again.split("error: ").nth(1), Some(said), "the same end from the checkpoint kept");
    assert!(!folder.join("run/model.safetensors").exists(), "no half-trained model is offered");
}

/// Runs the program where no file may grow beyond 16 blocks, which stands in for a full disk.
#[cfg(unix)]
fn with_little_room(folder: &Path, arguments: &str) -> std::process::Output {
    let program = crosslens(folder, &[]).get_program().to_string_lossy().into_owned();
    let script = format!("trap '' XFSZ; ulimit -f 16; exec '{program}' {arguments} --threads 1");
    std::process::Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("a shell")
}

/// Names in a folder that begin with a point: temporary files.
#[cfg(unix)]
fn temporary(folder: &Path) -> Vec<String> {
    files_of(folder).into_keys().filter(|name| name.starts_with('.')).collect()
}

/// A network of two units has small files, but a line of metrics a step fills the disk in the middle of one of 120.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_with_metrics_keeps_whole_lines_and_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = std::fs::read_to_string(TINY).expect("the tiny configuration");
    let text = text.replace("hidden = 24", "hidden = 2").replace("evaluate_every = 10", "evaluate_every = 1");
    std::fs::write(folder.join("run.toml"), text.replace("evaluate_samples = 50", "evaluate_samples = 2")).expect("a writable folder");
    let output = with_little_room(folder, "train run.toml --steps 120 --out run");
    let said = shown(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: cannot write `run/metrics.jsonl`") && said.contains("hint: make room on that disk"), "{said}");
    let lines = std::fs::read_to_string(folder.join("run/metrics.jsonl")).expect("metrics");
    assert!(lines.ends_with("}\n") && (5..119).contains(&lines.lines().count()), "{lines}");
    assert_eq!(temporary(&folder.join("run")), Vec::<String>::new());

    succeed(folder, &["train", "run", "--resume"]);
    succeed(folder, &["train", "run.toml", "--steps", "120", "--out", "whole"]);
    let result = |name: &str| (std::fs::read(folder.join(name).join("model.safetensors")).expect("a model"), metrics(&folder.join(name)));
    assert!(result("run") == result("whole"), "the run ends as one that never lacked room");
}

/// Of a network of many layers and one unit the model, which names every parameter, is larger than the checkpoint.
#[cfg(unix)]
#[test]
fn a_disk_too_full_for_the_model_keeps_the_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let deep = changed(folder, "hidden = 24", "hidden = 1\nlayers = 24\ncell = \"vanilla\"");
    let output = with_little_room(folder, &format!("train {deep} --steps 2 --out run"));
    let said = shown(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: cannot write `run/model.safetensors`"), "{said}");
    assert_eq!(temporary(&folder.join("run")), Vec::<String>::new());
    assert!(!folder.join("run/model.safetensors").exists());
    succeed(folder, &["eval", "run", "--samples", "2"]);
    succeed(folder, &["train", "run", "--resume"]);
    assert!(folder.join("run/model.safetensors").exists(), "once there is room the model is written");
}

/// A limit on the size of files stands in for a full disk: the write fails in the middle of the checkpoint.
#[cfg(unix)]
#[test]
fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--steps", "5", "--out", "run"]);
    let before = std::fs::read(folder.join("run/checkpoint.safetensors")).expect("a checkpoint");
    let output = with_little_room(folder, "train run --resume --steps 10");
    insta::assert_snapshot!("full disk", shown(&output));
    assert_eq!(std::fs::read(folder.join("run/checkpoint.safetensors")).expect("still there"), before, "the old checkpoint is untouched");
    let names: Vec<_> = std::fs::read_dir(folder.join("run")).expect("the run").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with('.')), "no temporary file is left: {names:?}");
}

/// `/dev/full` is a disk without room; a pipe whose reader has gone wants no more.
#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_a_failure_unless_nobody_reads_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "1");
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    for arguments in [&["eval", "run", "--samples", "2"][..], &["explain", "run", "--samples", "2", "--causal", "0", "--json"]] {
        let output = crosslens(folder, arguments).stdout(full()).output().expect("the program starts");
        insta::assert_snapshot!("no room for results", shown(&output));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = crosslens(folder, arguments).stdout(writer).output().expect("the program starts");
        assert_eq!((output.status.code(), output.stderr.is_empty()), (Some(0), true), "{}", shown(&output));
    }
}
