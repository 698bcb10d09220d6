//! A model of another program: with a corpus, with sums alone, with neither.

use std::path::PathBuf;

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::{Attention, ImportedModel, ImportedOptions};
use serde_json::{Value, json};

use super::Running;
use super::answers::{array, floats};
use crate::Limits;

/// Random weights of the package e2k's names; see `crosslens-nets/tests/golden/make_e2k.py`. The shipped mapping gives it four heads.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-nets/tests/golden/imported/tiny.safetensors");
const N_HEADS: usize = 4;
/// The place of residual × residual among nine terms.
const REST: usize = 8;

/// A folder with fifty made-up words, one a line.
fn corpus() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let letter = |number: u32, i: u32| char::from(b'a' + ((number * 7 + i * i * 5 + i) % 26) as u8);
    let words: String = (0..50).map(|number| (0..2 + number % 8).map(|i| letter(number, i)).collect::<String>() + "\n").collect();
    let path = folder.path().join("words.txt");
    std::fs::write(&path, words).expect("sources");
    (folder, path)
}

fn serve(imported: ImportedOptions) -> Running {
    Running::with(&[WEIGHTS.into()], imported, "127.0.0.1", Limits::default())
}

/// Attention is the softmax of the pieces' sum.
fn assert_adds_up(site: &Value) {
    let shape: Vec<usize> = serde_json::from_value(site["shape"].clone()).expect("a shape");
    let [n_pieces, n_queries, n_keys] = shape[..] else { panic!("{shape:?}") };
    let (pieces, attention) = (floats(&site["pieces"]), floats(&site["attention"]));
    for query in 0..n_queries {
        let score = |key: usize| (0..n_pieces).map(|piece| pieces[(piece * n_queries + query) * n_keys + key]).sum::<f64>().exp();
        let total: f64 = (0..n_keys).map(score).sum();
        for key in 0..n_keys {
            assert!((score(key) / total - attention[query * n_keys + key]).abs() < 1e-5, "query {query}, key {key}");
        }
    }
}

/// The sum of the sizes of one piece.
fn size(site: &Value, piece: usize) -> f64 {
    let (pieces, n) = (floats(&site["pieces"]), floats(&site["attention"]).len());
    pieces[piece * n..(piece + 1) * n].iter().map(|x| x.abs()).sum()
}

#[test]
fn without_a_corpus_scores_are_whole_and_that_is_said() {
    let server = serve(ImportedOptions::default());
    let model = server.get("/api/models/0").json();
    assert_eq!((&model["kind"], &model["live"], &model["task"]), (&json!("model"), &json!(true), &Value::Null));
    let asks = json!({ "take": null, "sentences": null, "fitted": false, "feeding": true, "words": true, "files": null });
    assert_eq!(model["asks"], asks);
    assert!(model["words"]["source"].as_array().is_some_and(|words| words.contains(&json!("a"))));
    let report = server.get("/api/reports/0").json();
    assert_eq!((&report["report"]["corpus"]["pairs"], &report["samples"]), (&json!(0), &json!([])));
    let verdict = &report["report"]["sites"][0]["verdict"];
    assert!(verdict["label"] == "not fitted" && verdict["text"].as_str().is_some_and(|text| text.contains("--corpus")), "{verdict}");

    let explained = server.post("/api/models/0/explain", &json!({ "sentence": { "source": "abc" } })).json();
    assert_eq!(explained["sample"]["source"], json!(["<sos>", "a", "b", "c", "<eos>"]));
    assert_eq!(explained["sample"]["target"], Value::Null);
    assert_eq!(explained["sites"].as_array().map(Vec::len), Some(N_HEADS));
    for site in explained["sites"].as_array().expect("heads") {
        assert_adds_up(site);
        assert!(size(site, REST) > 0.0);
        // Nothing is known of tokens.
        [1, 3, 4, 5, 7].iter().for_each(|&piece| assert_eq!(size(site, piece), 0.0, "{piece}"));
    }

    let take = server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } }));
    assert!(take.status == 422 && take.error().contains("--corpus"), "{take:?}");
    let job = server.post("/api/jobs", &json!({ "model": 0 }));
    assert!(job.status == 409 && job.error().contains("--corpus"), "{job:?}");
}

#[test]
fn with_a_corpus_a_sentence_is_explained_as_in_its_report() {
    let (_folder, corpus) = corpus();
    let server = serve(ImportedOptions { corpus: Some(corpus), ..ImportedOptions::default() });
    let asks = server.get("/api/reports").json()[0]["asks"].clone();
    assert_eq!(asks, json!({ "take": "corpus", "sentences": 50, "fitted": true, "feeding": true, "words": true, "files": null }));
    let (report, arrays) = (server.get("/api/reports/0").json(), server.get("/api/reports/0/samples/1").body);
    let explain = |request: Value| server.post("/api/models/0/explain", &request).json();
    let explained = &report["report"]["corpus"];
    assert_eq!((&explained["pairs"], &explained["held_out"]), (&json!(25), &json!(true)), "one half is explained");
    let number = report["samples"][1]["number"].as_u64().expect("its place in the corpus");
    let taken = explain(json!({ "sentence": { "sample": number } }));
    assert_eq!(explain(json!({ "sentence": { "sample": number + 50 } }))["sites"], taken["sites"], "sentences are counted round");
    for field in ["source", "fed", "predicted", "target"] {
        assert_eq!(taken["sample"][field], report["samples"][1][field], "{field}");
    }
    for (number, site) in taken["sites"].as_array().expect("heads").iter().enumerate() {
        assert_adds_up(site);
        for (a, b) in array(&arrays, &format!("sites.{number}.pieces")).iter().zip(floats(&site["pieces"])) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} and {b}");
        }
    }
    assert!(size(&taken["sites"][0], 4) > 0.0, "tokens are known now");

    // The same by its words, at one head alone.
    let source = json!({ "source": taken["sample"]["source"] });
    let one = explain(json!({ "sentence": source, "sites": [2] }));
    assert_eq!((&one["sites"][0], one["sites"].as_array().map(Vec::len)), (&taken["sites"][2], Some(1)));
    let none = server.post("/api/models/0/explain", &json!({ "sentence": source, "sites": [0, N_HEADS] }));
    assert!(none.status == 422 && none.error().contains("there is no head 4"), "{none:?}");
    let unknown = server.post("/api/models/0/explain", &json!({ "sentence": { "source": "a☃" } }));
    assert!(unknown.status == 422 && unknown.error().contains('☃'), "{unknown:?}");

    // Everything on: it writes what it wrote.
    let again = server.post("/api/models/0/rerun", &json!({ "sentence": source, "site": 0, "off": [] })).json();
    assert_eq!((&again["predicted"], &again["before"]), (&taken["sample"]["predicted"], &taken["sample"]["predicted"]));
    let all: Vec<usize> = (0..9).collect();
    let blind = server.post("/api/models/0/rerun", &json!({ "sentence": source, "site": 0, "off": all }));
    assert_eq!(blind.status, 200);
    let long = server.post("/api/models/0/explain", &json!({ "sentence": { "source": "a".repeat(Limits::WORDS) } }));
    assert!(long.status == 422 && long.error().contains("at most 256"), "{long:?}");
}

#[test]
fn sums_alone_split_what_is_typed() {
    let (folder, corpus) = corpus();
    let model = ImportedModel::open(WEIGHTS.as_ref(), Attention::Cross).expect("a model");
    let sentences = model.sentences(&corpus, 1, &mut |_| ()).expect("sentences");
    let sums = folder.path().join("x.stats.safetensors");
    let halved = Options { held_out: true, causal: 0, keep_totals: true, n_threads: 1, ..Options::default() };
    let explained = model.explain(&sentences, None, &halved, None, &mut |_| ()).expect("an explanation");
    explained.totals.expect("they are kept").first.stats(model.description()).save(&sums).expect("a file");
    let fitted = serve(ImportedOptions { corpus: Some(corpus), ..ImportedOptions::default() });
    let given = serve(ImportedOptions { components: Some(sums), ..ImportedOptions::default() });
    let asks = given.get("/api/models/0").json()["asks"].clone();
    assert_eq!((&asks["take"], &asks["fitted"]), (&Value::Null, &json!(true)));
    let question = json!({ "sentence": { "source": "abc" }, "estimator": "joint" });
    let [a, b] = [&fitted, &given].map(|server| server.post("/api/models/0/explain", &question).json()["sites"][3]["pieces"].clone());
    assert_eq!(a, b);
}
