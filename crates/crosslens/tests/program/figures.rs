//! `crosslens figure` as a user sees it.

use std::path::Path;

#[cfg(feature = "pictures")]
use crosslens_lab::analysis::explain::Explained;
use serde_json::Value;

use super::common::{TINY, run, seen, shown, succeed};

/// A short run with its report.
fn explained(folder: &Path) {
    succeed(folder, &["train", TINY, "--steps", "60", "--out", "run", "--quiet"]);
    succeed(folder, &["explain", "run", "--samples", "60", "--causal", "0", "--geometry", "--save", "run/report.json", "--json"]);
}

#[test]
fn every_kind_is_written_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    explained(folder);
    let formats = [("svg", "<svg"), ("pdf", "%PDF"), ("png", "\u{fffd}PNG")];
    let formats = if cfg!(feature = "pictures") { &formats[..] } else { &formats[..1] };
    for kind in ["attention", "terms", "atlas", "components", "shares", "training"] {
        for &(format, begins) in formats {
            let out = format!("{kind}.{format}");
            let from = if format == "svg" { "run" } else { "run/report.json" };
            let output = succeed(folder, &["figure", from, kind, "-o", &out, "--dpi", "60", "--width", "80", "--json"]);
            let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let bytes = std::fs::read(folder.join(&out)).expect("the figure");
            assert!(String::from_utf8_lossy(&bytes).starts_with(begins), "{out}");
            assert_eq!((&told["path"], &told["format"], &told["bytes"]), (&out.into(), &format.into(), &bytes.len().into()));
            assert_eq!((&told["width_mm"], &told["missing"]), (&80.0.into(), &Value::Null));
        }
    }
    let svg = std::fs::read_to_string(folder.join("attention.svg")).expect("text");
    assert!(svg.contains(">&lt;eos&gt;</text>"), "words stand at the axes");
    insta::assert_snapshot!("help of figure", seen(folder, &["figure", "--help"]));
}

#[test]
fn what_cannot_be_drawn_names_the_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    explained(folder);
    let refused = |arguments: &[&str], code: i32, says: &[&str]| {
        let output = run(folder, &[&["figure"], arguments].concat());
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {seen}");
        assert!(says.iter().all(|says| seen.contains(says)) && output.stdout.is_empty(), "{arguments:?}: {seen}");
    };
    refused(&["run", "attention", "-o", "x.jpg"], 2, &["ends in none of .svg, .pdf and .png"]);
    refused(&["run", "portrait", "-o", "x.svg"], 2, &["attention"]);
    refused(&["run", "attention", "-o", "x.svg", "--width", "1"], 2, &["30 to 1000 mm"]);
    if cfg!(feature = "pictures") {
        refused(&["run", "attention", "-o", "x.png", "--dpi", "5"], 2, &["30 to 2400"]);
    }
    refused(&["run", "attention", "-o", "x.svg", "--site", "one"], 2, &["LAYER.HEAD"]);
    refused(&["run", "attention", "-o", "x.svg", "--sample", "-1"], 2, &[]);
    refused(&["run", "attention", "-o", "x.svg", "--site", "5.0"], 1, &["there is no site 5.0", "hint: --site"]);
    refused(&["run", "attention", "-o", "x.svg", "--sample", "99"], 1, &["there is no sample 99", "--sample 0 to 7"]);
    refused(&["run", "attention", "-o", "no/such/x.svg"], 1, &["cannot write `no/such/x.svg`", "hint"]);
    refused(&["nowhere.json", "attention", "-o", "x.svg"], 1, &["cannot read `nowhere.json`"]);
    refused(&["run/run.toml", "attention", "-o", "x.svg"], 1, &["is no report", "crosslens explain DIR --save"]);
    std::fs::remove_file(folder.join("run/report.samples.safetensors")).expect("it was there");
    refused(&["run", "terms", "-o", "x.svg"], 1, &["run/report.samples.safetensors", "is not there", "put it back beside the report"]);
    std::fs::remove_file(folder.join("run/report.json")).expect("it was there");
    refused(&["run", "shares", "-o", "x.svg"], 1, &["holds no report.json", "crosslens explain run --geometry --save run/report.json"]);
    std::fs::create_dir(folder.join("empty")).expect("a folder");
    refused(&["empty", "training", "-o", "x.svg"], 1, &["holds no metrics.jsonl"]);
    succeed(folder, &["explain", "run", "--samples", "60", "--causal", "0", "--save", "plain.json", "--json"]);
    refused(&["plain.json", "components", "-o", "x.svg"], 1, &["the report has no geometry", "--geometry --save"]);
    assert!(!folder.join("x.svg").exists() && !folder.join("x.png").exists(), "nothing was written");
}

/// Where a path that was typed leads to depends on the folder one stands in: a report finds the run it lies in, and never another's.
#[test]
fn a_report_finds_its_run_from_any_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    explained(folder);
    succeed(folder, &["explain", "run", "--samples", "60", "--causal", "0", "--save", "elsewhere.json", "--json"]);
    let other = folder.join("other");
    std::fs::create_dir(&other).expect("a folder");
    let training = |from: &str| {
        succeed(&other, &["figure", from, "training", "-o", "x.svg"]);
        std::fs::read_to_string(other.join("x.svg")).expect("text")
    };
    let own = training("../run");
    assert_eq!(training("../run/report.json"), own, "there is no `run` in here");
    succeed(&other, &["train", TINY, "--steps", "20", "--out", "run", "--quiet"]);
    assert_eq!(training("../run/report.json"), own, "the `run` in here is another");
    let refused = run(&other, &["figure", "../elsewhere.json", "training", "-o", "y.svg"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(shown(&refused).contains("the run that `../elsewhere.json` explains is not where it was"), "{}", shown(&refused));
    succeed(folder, &["figure", "elsewhere.json", "training", "-o", "z.svg"]);
    assert_eq!(std::fs::read_to_string(folder.join("z.svg")).expect("text"), own, "where it was typed, it is found");
}

#[test]
fn the_figure_of_training_shows_what_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--out", "run", "--steps", "20", "--record-every", "10", "--quiet"]);
    succeed(folder, &["figure", "run", "training", "-o", "x.svg"]);
    let svg = std::fs::read_to_string(folder.join("x.svg")).expect("text");
    assert!(svg.contains(">Scores made of</text>") && svg.contains(">position</text>"), "{svg}");
    let refused = run(folder, &["figure", "run", "training", "-o", "y.svg", "--site", "4.2"]);
    assert!(!refused.status.success() && shown(&refused).contains("there is no site 4.2"), "{}", shown(&refused));
}

/// Gives every word of a report's sentences another name.
#[cfg(feature = "pictures")]
fn rename(report: &Path, name: &str) {
    let mut explained = Explained::load(report, 100).expect("a report");
    let samples = &mut explained.samples;
    samples.source.names.values_mut().chain(samples.target.names.values_mut()).for_each(|word| name.clone_into(word));
    explained.save(report).expect("writable");
}

/// What no font has is warned of, and the figure is written all the same. Which of the three scripts that are depends on the machine; the
/// last character, for private use, is in no font.
#[cfg(feature = "pictures")]
#[test]
fn scripts_without_a_font_are_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    explained(folder);
    let word = "你好שלוםسلام\u{10fffd}";
    rename(&folder.join("run/report.json"), word);
    succeed(folder, &["figure", "run", "attention", "-o", "x.svg"]);
    let svg = std::fs::read_to_string(folder.join("x.svg")).expect("text");
    assert!(svg.contains(&format!(">{word}</text>")), "{svg}");
    for out in ["x.pdf", "x.png"] {
        let output = succeed(folder, &["figure", "run", "attention", "-o", out, "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let missing = told["missing"].as_str().expect("something is missing");
        assert!(missing.contains("U+10FFFD"), "{missing}");
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(warned.contains(&format!("warning: no font here has {missing}; they are drawn as boxes")), "{warned}");
        assert!(warned.contains("hint: install a font of these scripts"), "{warned}");
        assert!(folder.join(out).metadata().expect("the figure").len() > 1000);
    }
}

#[cfg(not(feature = "pictures"))]
#[test]
fn a_program_without_pictures_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    explained(folder);
    for out in ["x.pdf", "x.png"] {
        let output = run(folder, &["figure", "run", "attention", "-o", out]);
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{seen}");
        assert!(seen.contains("the feature `pictures` is missing") && seen.contains("hint: -o x.svg, or build it"), "{seen}");
        assert!(!folder.join(out).exists());
    }
}
