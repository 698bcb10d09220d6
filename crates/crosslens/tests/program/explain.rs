//! `crosslens explain` as a user sees it.

use std::path::Path;

use serde_json::Value;

use super::common::{TINY, assert_alike, explain, run, shown, succeed};
use super::schema::Schema;

/// Trains the tiny network into `run`.
fn tiny(folder: &Path) {
    succeed(folder, &["train", TINY, "--out", "run"]);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is on the screen without what depends on the last bits of a number: numbers, shades, the verdict.
fn outline(seen: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_verdict = false;
    for line in seen.lines() {
        let is_heading = line.contains(" attention, layer ");
        let line = match line.split_once("): ") {
            Some((heading, _)) if is_heading => format!("{heading}): VERDICT"),
            _ if is_verdict => "  the verdict".to_owned(),
            _ => line.to_owned(),
        };
        is_verdict = is_heading;
        let line: String = line.chars().filter(|shade| !"░▒▓█".contains(*shade)).collect();
        let words = line.split_whitespace().map(|word| {
            let is_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-') && word.chars().any(|c| c.is_ascii_digit());
            if is_number { "#".to_owned() } else { word.to_owned() }
        });
        lines.push(words.collect::<Vec<_>>().join(" "));
    }
    lines.join("\n")
}

#[test]
fn the_screen_shows_shares_rebuilt_attention_verdict_and_heatmaps() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let output = succeed(folder, &["explain", "run", "--samples", "200", "--control"]);
    insta::assert_snapshot!("explained", outline(&text(&output.stdout)));
    assert!(text(&output.stderr).contains("next: crosslens explain run"), "{}", shown(&output));
    let top = text(&succeed(folder, &["explain", "run", "--samples", "50", "--shares", "topk", "--k", "2"]).stdout);
    assert!(top.contains("share at the 2 highest scores, %"), "{top}");
}

#[test]
fn the_screen_shows_intervals_beside_the_shares() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let seen = text(&succeed(folder, &["explain", "run", "--samples", "50", "--bootstrap", "20", "--causal", "0"]).stdout);
    let table: Vec<&str> = seen.lines().skip_while(|line| !line.contains("share of")).take(5).collect();
    insta::assert_snapshot!("intervals", outline(&table.join("\n").replace('(', "( ").replace(')', " )")));
    assert!(table[2..].iter().all(|line| line.chars().count() <= 84 && line.matches(" to ").count() == 3), "{table:#?}");
}

#[test]
fn json_keeps_to_the_schema_and_is_what_is_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let arguments = ["explain", "run", "--samples", "150", "--bootstrap", "10", "--control", "--rank", "loss", "--geometry", "--json"];
    let printed = text(&succeed(folder, &arguments).stdout);
    assert_eq!(printed.lines().count(), 1, "one line of JSON");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(Schema::of_reports().faults(&printed), Vec::<String>::new());
    assert_eq!((&printed["corpus"]["pairs"], &printed["model"]["path"], &printed["samples"]), (&150.into(), &"run".into(), &Value::Null));

    succeed(folder, &[&arguments[..], &["--save", "found.json"]].concat());
    let mut saved: Value = serde_json::from_slice(&std::fs::read(folder.join("found.json")).expect("the report")).expect("JSON");
    assert_eq!(Schema::of_reports().faults(&saved), Vec::<String>::new());
    let samples = saved["samples"].take();
    assert_eq!(samples, "found.samples.safetensors");
    assert!(folder.join("found.samples.safetensors").metadata().expect("the samples").len() > 1000);
    assert_eq!(saved, printed, "the same sentences give the same report");
}

/// Bahdanau's context enters the decoder: changed attention changes the states that `--live` rebuilds it from.
#[test]
fn live_rebuilds_attention_from_the_states_of_the_changed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--arch", "bahdanau", "--steps", "60", "--out", "run", "--quiet"]);
    let report = |more: &[&str]| explain(folder, &[&["run", "--samples", "60"], more].concat());
    let (recorded, live) = (report(&[]), report(&["--live"]));
    assert_eq!(Schema::of_reports().faults(&live), Vec::<String>::new());
    assert_eq!((&recorded["rerun"], &live["rerun"]), (&"recorded".into(), &"live".into()));
    let loss = |report: &Value, name: &str| report["sites"][0]["rebuilt"][name]["loss"].as_f64().expect("the model was run again");
    for name in ["temporal", "input", "temporal+input", "no-temporal"] {
        assert!((loss(&live, name) - loss(&recorded, name)).abs() > 1e-6, "{name}: {} both ways", loss(&live, name));
    }
    // What comes from no state, and what is not run again, is the same.
    assert_eq!(loss(&live, "uniform"), loss(&recorded, "uniform"));
    let causal = ["accuracy", "phrase_accuracy", "content_word_accuracy", "loss", "changed", "rerun", "verdict"];
    assert_alike(&live, &recorded, 0.0, &causal);
    let seen = text(&succeed(folder, &["explain", "run", "--samples", "60", "--live"]).stdout);
    assert!(seen.contains("attention rebuilt from"), "{seen}");
}

/// With nothing changed it writes what it wrote, whoever feeds it; what is not run again stays as it is.
#[test]
fn free_lets_the_decoder_feed_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--arch", "bahdanau", "--steps", "60", "--out", "run", "--quiet"]);
    let report = |more: &[&str]| explain(folder, &[&["run", "--samples", "60"], more].concat());
    let (recorded, free) = (report(&[]), report(&["--free"]));
    assert_eq!(Schema::of_reports().faults(&free), Vec::<String>::new());
    assert_eq!((&recorded["rerun"], &free["rerun"]), (&"recorded".into(), &"free".into()));
    assert_eq!(free["unchanged"]["changed"], 0.0, "with nothing changed it writes what it wrote");
    let causal = ["accuracy", "phrase_accuracy", "content_word_accuracy", "loss", "changed", "rerun", "verdict"];
    assert_alike(&free, &recorded, 0.0, &causal);
}

#[test]
fn options_of_the_fit_reach_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let report = |more: &[&str]| explain(folder, &[&["run", "--samples", "60", "--causal", "0"], more].concat());
    let number = |value: &Value| value.as_f64().expect("a number");
    let plain = report(&[]);
    assert_eq!((&plain["components"]["estimator"], &plain["components"]["shrunk"]), (&"paper".into(), &false.into()));
    assert!(plain["streams"][0]["condition"].is_null() && number(&plain["streams"][0]["shrinkage"]) == 0.0);
    let joint = report(&["--estimator", "joint"]);
    assert_eq!(joint["components"]["estimator"], "joint");
    assert!(number(&joint["streams"][0]["condition"]) >= 1.0, "{}", joint["streams"][0]);
    let three = report(&["--shrink", "3"]);
    assert_eq!(three["components"]["shrunk"], true);
    assert!(three["streams"].as_array().expect("streams").iter().all(|stream| number(&stream["shrinkage"]) == 3.0));
    let auto = report(&["--shrink", "auto"]);
    assert!(auto["components"]["shrunk"] == true && number(&auto["streams"][0]["shrinkage"]) > 0.0, "{}", auto["streams"][0]);
    let held_out = report(&["--held-out"]);
    let corpus = &held_out["corpus"];
    assert_eq!(corpus["held_out"], true);
    assert!(corpus["pairs"].as_u64().zip(corpus["fitted_pairs"].as_u64()).is_some_and(|(a, b)| a > 0 && b > 0 && a + b == 60), "{corpus}");
    for report in [plain, joint, three, auto, held_out] {
        assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
    }
}

/// Untrained weights are fitted and explained as the model is, and the report says on what.
#[test]
fn the_control_says_what_it_was_made_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let control = |more: &[&str]| {
        let report = explain(folder, &[&["run", "--samples", "250", "--causal", "0", "--control"], more].concat());
        assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
        assert!(report["sites"][0]["control"].is_object());
        report["corpus"]["control"].clone()
    };
    assert_eq!(control(&[]), serde_json::json!({ "pairs": 200, "fitted_pairs": 200, "held_out": false }));
    let held_out = control(&["--held-out"]);
    assert_eq!(held_out["held_out"], true);
    assert_eq!(held_out["pairs"].as_u64().zip(held_out["fitted_pairs"].as_u64()).map(|(a, b)| a + b), Some(200), "{held_out}");
}

#[test]
fn attention_is_rebuilt_from_the_pieces_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let report = explain(folder, &["run", "--samples", "60", "--subset", "rr,tr,rt,tt", "--subset", "tt"]);
    assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
    let rebuilt = &report["sites"][0]["rebuilt"];
    assert_eq!(rebuilt["tt"], rebuilt["temporal"], "one term, by either name");
    assert!(rebuilt["tt,tr,rt,rr"]["accuracy"].is_number(), "{rebuilt}");
    let seen = text(&succeed(folder, &["explain", "run", "--samples", "60", "--subset", "ti,it"]).stdout);
    assert!(seen.lines().any(|line| line.trim_start().starts_with("ti,it ")), "{seen}");
    for (subset, code, says) in [("tx", 2, "terms such as tt,ti"), ("qt", 1, "no score is additive")] {
        let output = run(folder, &["explain", "run", "--samples", "5", "--subset", subset]);
        assert!(output.status.code() == Some(code) && shown(&output).contains(says), "{}", shown(&output));
    }
}

/// The dump that docs/format.md makes with NumPy.
const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/npz/good-numpy.npz");

#[test]
fn a_dump_of_numpy_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = explain(folder.path(), &[DUMP]);
    assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
    assert_eq!((&report["corpus"]["pairs"], &report["sites"][0]["map"]), (&2.into(), &"dot".into()));
    assert_eq!(report["sites"][0]["verdict"]["label"], "not rerun");
    // Nothing was written by it, so that no loss is known.
    let output = run(folder.path(), &["explain", DUMP, "--rank", "loss"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(shown(&output).contains("sentences cannot be ranked by loss"), "{}", shown(&output));
}

#[test]
fn broken_files_end_in_a_message_with_their_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--steps", "1", "--out", "run", "--quiet"]);
    succeed(folder, &["record", "run", "--samples", "5", "-o", "rec"]);
    succeed(folder, &["fit", "run", "--samples", "5", "-o", "good.stats.safetensors"]);
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("a file");
    let (shard, stats, dump) =
        (bytes("rec/shard-00000.safetensors"), bytes("good.stats.safetensors"), std::fs::read(DUMP).expect("a file"));
    let cut = |name: &str, bytes: &[u8], n: usize| std::fs::write(folder.join(name), &bytes[..n]).expect("writable");
    cut("rec/shard-00000.safetensors", &shard, shard.len() - 7);
    cut("cut.npz", &dump, dump.len() / 2);
    cut("empty.npz", &dump, 0);
    cut("cut.stats.safetensors", &stats, stats.len() - 7);
    cut("empty.stats.safetensors", &stats, 0);
    let components = |file| vec!["explain", "run", "--samples", "5", "--components", file];
    for (arguments, path) in [
        (vec!["explain", "rec"], "rec/shard-00000.safetensors"),
        (vec!["explain", "cut.npz"], "cut.npz"),
        (vec!["explain", "empty.npz"], "empty.npz"),
        (components("cut.stats.safetensors"), "cut.stats.safetensors"),
        (components("empty.stats.safetensors"), "empty.stats.safetensors"),
        (vec!["merge", "good.stats.safetensors", "empty.stats.safetensors", "-o", "x.stats.safetensors"], "empty.stats.safetensors"),
    ] {
        let output = run(folder, &arguments);
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {seen}");
        assert!(seen.contains(path) && !seen.contains("panicked"), "{arguments:?}: {seen}");
    }
}

/// The broken files that fuzzing starts from, each through the command that reads it.
#[test]
fn every_broken_seed_exits_1_with_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut n_refused = 0;
    for (target, ending) in [("npz", ".npz"), ("recording_manifest_and_shard", ""), ("stats", ".stats.safetensors")] {
        let entries = std::fs::read_dir(seeds.join(target)).expect("a folder of seeds").map(|entry| entry.expect("a seed").path());
        for seed in entries.filter(|seed| !seed.file_name().is_some_and(|name| name.to_string_lossy().starts_with("good"))) {
            let bytes = std::fs::read(&seed).expect("a seed");
            let name = format!("{target}-{n_refused}{ending}");
            match target {
                "recording_manifest_and_shard" => unpack(&folder.join(&name), &bytes),
                _ => std::fs::write(folder.join(&name), &bytes).expect("writable"),
            }
            let arguments = if target == "stats" { vec!["merge", name.as_str(), "-o", "merged"] } else { vec!["explain", name.as_str()] };
            let output = run(folder, &arguments);
            let seen = shown(&output);
            assert_eq!(output.status.code(), Some(1), "{}: {seen}", seed.display());
            assert!(seen.contains(&name) && !seen.contains("panicked"), "{}: {seen}", seed.display());
            n_refused += 1;
        }
    }
    assert!(n_refused >= 18, "{n_refused} broken seeds");
}

/// A recording as the fuzz target has it: the lengths of manifest and maps, both files, the shard.
fn unpack(folder: &Path, bytes: &[u8]) {
    let length = |place: usize| usize::from(u16::from_le_bytes([bytes[place], bytes[place + 1]]));
    let (manifest, rest) = bytes[4..].split_at(length(0));
    let (maps, shard) = rest.split_at(length(2));
    std::fs::create_dir(folder).expect("writable");
    for (name, bytes) in [("recording.json", manifest), ("maps.safetensors", maps), ("shard-00000.safetensors", shard)] {
        std::fs::write(folder.join(name), bytes).expect("writable");
    }
}

#[test]
fn a_network_without_attention_has_its_states_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--arch", "ved", "--steps", "20", "--out", "run"]);
    let output = succeed(folder, &["explain", "run", "--samples", "50"]);
    assert!(text(&output.stdout).contains("this network has no attention"), "{}", shown(&output));
    let json: Value = serde_json::from_slice(&succeed(folder, &["explain", "run", "--samples", "50", "--json"]).stdout).expect("JSON");
    assert_eq!(Schema::of_reports().faults(&json), Vec::<String>::new());
    assert_eq!(json["sites"], Value::Array(Vec::new()));
    let output = run(folder, &["explain", "run", "--samples", "50", "--rank", "drift"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(shown(&output).contains("sentences cannot be ranked by drift: the network has no attention"), "{}", shown(&output));
}

#[test]
fn rank_lists_the_worst_sentences_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    for by in ["drift", "coverage", "entropy", "loss"] {
        let seen = text(&succeed(folder, &["explain", "run", "--samples", "60", "--causal", "0", "--rank", by]).stdout);
        let (_, list) = seen.split_once(&format!("sentences by {by}, the worst first\n")).expect("a list");
        let values: Vec<f64> = list.lines().map(|line| line.split_whitespace().nth(1).and_then(|x| x.parse().ok()).expect(line)).collect();
        assert_eq!(values.len(), 20);
        assert!(values.is_sorted_by(|a, b| a >= b), "{by}: {values:?}");
    }
}

#[test]
fn a_corpus_of_ones_own_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    let words: Value = serde_json::from_slice(&std::fs::read(folder.join("run/vocab.json")).expect("words")).expect("JSON");
    let word = |side: &str, number: usize| words[side][number].as_str().expect("a word").to_owned();
    let line = |first: usize, then: usize| {
        let side = |side: &str| format!("{} {} {}", word(side, first), word(side, then), word(side, first));
        format!("{}\t{}\n", side("source"), side("target"))
    };
    std::fs::write(folder.join("pairs.tsv"), [line(0, 1), line(1, 0), line(0, 0)].concat()).expect("writable");
    let json: Value =
        serde_json::from_slice(&succeed(folder, &["explain", "run", "--corpus", "pairs.tsv", "--json"]).stdout).expect("JSON");
    assert_eq!(Schema::of_reports().faults(&json), Vec::<String>::new());
    assert_eq!(json["corpus"]["pairs"], 3);
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--steps", "1", "--out", "run"]);
    std::fs::write(folder.join("unknown.tsv"), "banana\tI0\n").expect("writable");
    std::fs::write(folder.join("empty.tsv"), "\n").expect("writable");
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let output = run(folder, &[&["explain"], arguments].concat());
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {seen}");
        assert!(seen.contains(says) && output.stdout.is_empty(), "{arguments:?}: {seen}");
    };
    refused(&["nowhere"], 1, "there is no `nowhere`");
    refused(&["run", "--corpus", "unknown.tsv"], 1, "banana");
    refused(&["run", "--corpus", "empty.tsv"], 1, "`empty.tsv` holds no pair");
    refused(&["run", "--corpus", "missing.tsv"], 1, "missing.tsv");
    refused(&["run", "--save", "no/such/folder/report.json", "--samples", "5", "--json"], 1, "cannot write");
    refused(&["run", "--shrink", "x"], 2, "a number from 0, or `auto`");
    refused(&["run", "--shrink", "-1"], 2, "");
    refused(&["run", "--k", "0"], 2, "--k");
    refused(&["run", "--samples", "0"], 2, "--samples");
    refused(&["run", "--rank", "size"], 2, "drift");
    refused(&["run", "--estimator", "mine"], 2, "joint");
    refused(&["run", "--corpus", "empty.tsv", "--samples", "5"], 2, "cannot be used with");
    refused(&["run", "--live", "--free"], 2, "cannot be used with");
    refused(&[], 2, "<DIR|REC|MODEL>");
}
