//! `crosslens figure` as a user sees it.

use std::path::Path;

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
    for kind in ["attention", "terms", "atlas", "components", "shares", "training"] {
        for (format, begins) in [("svg", "<svg"), ("pdf", "%PDF"), ("png", "\u{fffd}PNG")] {
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
    refused(&["run", "attention", "-o", "x.png", "--dpi", "5"], 2, &["30 to 2400"]);
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
