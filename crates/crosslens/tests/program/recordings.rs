//! Recordings: made, replaced, killed in the middle, explained.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::common::{assert_alike, crosslens, explain, seen, succeed, train};
use serde_json::Value;

fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    insta::assert_snapshot!(name, seen(folder, arguments));
}

#[test]
fn a_recording_is_explained_as_the_run_is_but_for_what_needs_the_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "100");
    snapshot("record", folder, &["record", "run", "--samples", "300", "-o", "rec"]);
    let live = explain(folder, &["run", "--samples", "300", "--causal", "0"]);
    let recorded = explain(folder, &["rec"]);
    assert_alike(&live, &recorded, 1e-5, &["path", "source", "can_rerun", "verdict"]);
    assert_eq!(recorded["task"]["can_rerun"], false);
    assert_eq!(recorded["values"], Value::Null);
    let site = &recorded["sites"][0];
    assert_eq!(site["verdict"]["label"], "not rerun");
    assert!(site["shares"].is_object() && site["rebuilt"]["temporal"]["accuracy"].is_null(), "{site}");

    let first = explain(folder, &["rec", "--samples", "70"]);
    assert_eq!((&first["corpus"]["pairs"], &recorded["corpus"]["pairs"]), (&70.into(), &300.into()));
    assert_alike(&explain(folder, &["run", "--samples", "70", "--causal", "0"]), &first, 1e-5, &["path", "source", "can_rerun", "verdict"]);
}

#[test]
fn records_a_file_of_pairs_and_replaces_only_when_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "1");
    let vocabularies: Value = serde_json::from_slice(&std::fs::read(folder.join("run/vocab.json")).expect("words")).expect("JSON");
    let word = |side: &str, place: usize| vocabularies[side][place].as_str().expect("a word").to_owned();
    let pair = format!("{} {}\t{} {}\n", word("source", 0), word("source", 1), word("target", 1), word("target", 0));
    std::fs::write(folder.join("pairs.tsv"), pair.repeat(3)).expect("a file");
    succeed(folder, &["record", "run", "--corpus", "pairs.tsv", "-o", "rec", "--forced", "--keep-attention"]);
    assert_eq!(explain(folder, &["rec"])["corpus"]["pairs"], 3);
    snapshot("record over a recording", folder, &["record", "run", "--samples", "5", "-o", "rec"]);
    succeed(folder, &["record", "run", "--samples", "5", "-o", "rec", "--overwrite"]);
    assert_eq!(explain(folder, &["rec"])["corpus"]["pairs"], 5);
    std::fs::write(folder.join("rec/thesis.tex"), "ten years").expect("a file");
    snapshot("record over something else", folder, &["record", "run", "--samples", "5", "-o", "rec", "--overwrite"]);
    snapshot("help of record", folder, &["record", "--help"]);
    snapshot("record nothing", folder, &["record", "run", "-o", "rec2"]);
    snapshot("record a recording", folder, &["record", "rec", "--samples", "5", "-o", "rec2"]);
    snapshot("recording and control", folder, &["explain", "rec", "--control"]);
    snapshot("recording and causal", folder, &["explain", "rec", "--causal", "10"]);
    snapshot("recording and corpus", folder, &["explain", "rec", "--corpus", "pairs.tsv"]);
    snapshot("explain nothing", folder, &["explain", "nowhere"]);
    std::fs::create_dir(folder.join("empty")).expect("a folder");
    snapshot("explain an empty folder", folder, &["explain", "empty"]);
}

#[test]
fn a_recording_killed_in_the_middle_opens_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "1");
    let mut command = crosslens(folder, &["record", "run", "--samples", "100000000", "-o", "rec"]);
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
    while !folder.join("rec/maps.safetensors").exists() {
        assert!(child.try_wait().expect("a child can be asked").is_none(), "the program ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(50));
    child.kill().expect("SIGKILL");
    child.wait().expect("a killed child ends");
    snapshot("unfinished recording", folder, &["explain", "rec"]);
    succeed(folder, &["record", "run", "--samples", "5", "-o", "rec", "--overwrite"]);
    assert_eq!(explain(folder, &["rec"])["corpus"]["pairs"], 5);
}
