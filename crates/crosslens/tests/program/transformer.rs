//! A Transformer through the program: trained, judged, resumed, explained, and refused what it cannot have.

use super::common::{explain, run, shown, succeed};

#[test]
fn a_transformer_trains_resumes_and_is_explained_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", "reverse", "--arch", "transformer", "--steps", "3", "--out", "run", "--quiet"]);
    succeed(folder, &["train", "run", "--resume", "--steps", "5", "--quiet"]);
    succeed(folder, &["eval", "run", "--json"]);
    let resolved = std::fs::read_to_string(folder.join("run/run.toml")).expect("run.toml");
    assert!(resolved.contains("[network.transformer]") && !resolved.contains("cell"), "{resolved}");

    let report = explain(folder, &["run", "--samples", "20", "--causal", "5"]);
    let sites = report["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), 2, "two heads across");
    assert!(sites.iter().all(|site| site["map"] == "projected" && site["error"]["attention"].as_f64().is_some_and(|error| error < 1e-4)));

    let heads = |arguments: &[&str]| {
        let output = succeed(folder, &[&["heads", "run", "--causal-samples", "5", "--bootstrap", "0", "--json"], arguments].concat());
        let heads: serde_json::Value = serde_json::from_slice(&output.stdout).expect("heads");
        heads["heads"].as_array().expect("a list").len()
    };
    assert_eq!((heads(&[]), heads(&["--self-attention"])), (2, 6));
    succeed(folder, &["attend", "run", "-o", "x.npz"]);
}

#[test]
fn what_a_transformer_cannot_have_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str], reason: &str| {
        let output = run(folder.path(), &[&["train", "reverse", "--arch", "transformer"], arguments].concat());
        assert!(!output.status.success() && shown(&output).contains(reason), "{}", shown(&output));
    };
    refused(&["--cell", "lstm"], "transformer networks cannot have cell = \"lstm\"");
    refused(&["--score", "dot"], "transformer networks cannot have score = \"dot\"");
}
