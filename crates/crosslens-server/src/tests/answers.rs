use std::collections::BTreeSet;

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::{AttentionRow, Existing, Fed, Intervene, Pair, Recording};
use crosslens_lab::{RecordOptions, Sentences, TrainedModel, explain_recording};
use serde_json::{Value, json};

use super::{N_SENTENCES, Running, soon, tiny_run};
use crate::Limits;
use crate::api::OPENAPI;
use crate::library::Source;
use crate::routes::ROUTES;

#[test]
fn every_route_is_described_and_every_description_has_its_route() {
    let described: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let paths = described["paths"].as_object().expect("paths");
    let methods = |path: &String, all: &Value| -> Vec<String> {
        all.as_object().expect("methods").keys().map(|method| format!("{} {path}", method.to_uppercase())).collect()
    };
    let described: BTreeSet<String> = paths.iter().flat_map(|(path, all)| methods(path, all)).collect();
    let answered = ROUTES.iter().map(|(method, path, _)| format!("{method} {path}")).filter(|route| !route.ends_with("panic"));
    assert_eq!(described, answered.collect());
}

#[test]
fn every_schema_that_is_referred_to_is_there() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| match value.as_str().filter(|_| key == "$ref") {
                Some(name) => found.push(name.to_owned()),
                None => references(value, found),
            }),
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let described: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let mut found = Vec::new();
    references(&described, &mut found);
    assert!(!found.is_empty());
    let server = Running::usual();
    for reference in found {
        // Another file is served beside this one.
        let is_there = match reference.strip_prefix('#') {
            Some(place) => described.pointer(place).is_some(),
            None => server.get(&format!("/api/{reference}")).json()["$schema"].is_string(),
        };
        assert!(is_there, "{reference}");
    }
}

#[test]
fn the_page_and_its_files_come_under_a_strict_policy() {
    let server = Running::usual();
    let page = server.get("/");
    let text = String::from_utf8_lossy(&page.body).into_owned();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(text.contains("\"api\":\"api/\"") && text.contains("Crosslens: tiny"), "{text}");
    for file in crosslens_lab::analysis::page::files().iter().filter(|file| file.name != "index.html") {
        let answer = server.get(&format!("/{}", file.name));
        assert_eq!((answer.status, answer.body.as_slice()), (200, file.text.as_bytes()), "{}", file.name);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    let policy = page.header("content-security-policy").expect("a policy");
    for rule in
        ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "media-src data:", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn files_of_the_machine_have_no_address() {
    let server = Running::usual();
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "//etc/passwd",
        "/index.html",
        "/api/reports/..",
        "/api/reports/0/samples/../0",
        "/api/reports/%30",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}");
        answer.error();
    }
    let report = server.get("/api/reports/0").json();
    assert_eq!(report["report"]["model"]["path"], Value::Null, "where a run lies is not told");
}

#[test]
fn models_and_reports_are_listed_and_given() {
    let server = Running::usual();
    let models = server.get("/api/models").json();
    assert_eq!(models[0]["name"], "tiny");
    assert_eq!((&models[0]["kind"], &models[0]["live"], &models[0]["task"]), (&json!("run"), &json!(true), &json!("one-to-one")));
    let words = server.get("/api/models/0").json()["words"]["source"].clone();
    assert!(words.as_array().is_some_and(|words| words.contains(&json!("<eos>"))), "{words}");
    let reports = server.get("/api/reports").json();
    assert_eq!((&reports[0]["n_sites"], &reports[0]["n_samples"], &reports[0]["of"]), (&json!(1), &json!(3), &json!(0)));
    let report = server.get("/api/reports/0").json();
    assert_eq!(report["report"]["schema"], "crosslens-report/1");
    assert_eq!(report["report"]["corpus"]["pairs"], N_SENTENCES);
    assert!(server.get("/api/reports/0/averages").body.len() > 8);
    let missing = ["/api/models/1", "/api/reports/1", "/api/reports/0/samples/3", "/api/jobs/0"];
    for path in missing {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let head = server.request("HEAD", "/api/models", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

pub(super) fn floats(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|value| value.as_f64().expect("a number")).collect()
}

/// Safetensors: the length of a JSON head, the head, the numbers.
pub(super) fn array(bytes: &[u8], name: &str) -> Vec<f64> {
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let head: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let range = floats(&head[name]["data_offsets"]);
    let data = &bytes[8 + length..][range[0] as usize..range[1] as usize];
    data.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")).into()).collect()
}

/// The first sentence of the report and the same sentence asked for are explained by the same components: number for number.
#[test]
fn a_sentence_asked_for_is_explained_as_in_the_report() {
    let server = Running::usual();
    let answer = server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } }));
    assert_eq!(answer.status, 200, "{answer:?}");
    let explained = answer.json();
    let reported = server.get("/api/reports/0").json();
    for field in ["source", "fed", "predicted", "target", "special"] {
        assert_eq!(explained["sample"][field], reported["samples"][0][field], "{field}");
    }
    let site = &explained["sites"][0];
    assert_eq!(site["verdict"], reported["report"]["sites"][0]["verdict"]);
    let arrays = server.get("/api/reports/0/samples/0").body;
    for (name, field) in [("sites.0.pieces", "pieces"), ("sites.0.value_norms", "value_norms")] {
        let (expected, found) = (array(&arrays, name), floats(&site[field]));
        assert_eq!(expected.len(), found.len());
        for (a, b) in expected.iter().zip(&found) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{name}: {a} and {b}");
        }
    }
    // The same sentence by its words.
    let typed = json!({ "sentence": { "source": explained["sample"]["source"], "target": explained["sample"]["target"] } });
    let again = server.post("/api/models/0/explain", &typed).json();
    assert_eq!(again["sites"][0]["pieces"], site["pieces"]);
}

/// attention = softmax of the sum of nine pieces, by hand.
#[test]
fn pieces_add_up_to_the_scores_behind_the_attention() {
    let server = Running::usual();
    let words = server.get("/api/models/0").json()["words"]["source"].clone();
    let text = format!("{0} {0} {1}", words[0].as_str().expect("a word"), words[1].as_str().expect("a word"));
    for estimator in ["paper", "joint"] {
        let answer = server.post("/api/models/0/explain", &json!({ "sentence": { "source": text }, "estimator": estimator }));
        assert_eq!(answer.status, 200, "{answer:?}");
        let explained = answer.json();
        assert_eq!((&explained["estimator"], &explained["sample"]["target"]), (&json!(estimator), &Value::Null));
        assert_eq!(explained["sample"]["source"].as_array().map(Vec::len), Some(4), "the end word is added");
        let site = &explained["sites"][0];
        let (pieces, attention, shape) = (floats(&site["pieces"]), floats(&site["attention"]), floats(&site["shape"]));
        let (n_queries, n_keys) = (shape[1] as usize, shape[2] as usize);
        assert_eq!((shape[0], n_keys, pieces.len()), (9.0, 4, 9 * n_queries * n_keys));
        for query in 0..n_queries {
            let score = |key: usize| (0..9).map(|piece| pieces[(piece * n_queries + query) * n_keys + key]).sum::<f64>();
            let all: f64 = (0..n_keys).map(|key| score(key).exp()).sum();
            for key in 0..n_keys {
                assert!((attention[query * n_keys + key] - score(key).exp() / all).abs() < 1e-5);
            }
        }
    }
}

/// Every key weighs the same.
struct Uniform;

impl Intervene for Uniform {
    fn weights(&self, _: AttentionRow<'_>, weights: &mut [f32]) {
        let n = weights.len() as f32;
        weights.fill(1.0 / n);
    }
}

#[test]
fn decoding_again_is_the_model_with_those_terms_off() {
    let server = Running::usual();
    let Source::Live(live) = server.state.library.models[0].source().expect("it is ready") else { panic!("a run") };
    let sentence = json!({ "sample": 5 });
    for feeding in ["own", "target"] {
        let rerun = |off: &[usize]| {
            let answer = server.post("/api/models/0/rerun", &json!({ "sentence": sentence, "feeding": feeding, "site": 0, "off": off }));
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.json()
        };
        let untouched = rerun(&[]);
        assert_eq!(untouched["predicted"], untouched["before"], "nothing is off");
        // Without any term all scores are zero, so that every key weighs the same.
        let without = rerun(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let pair: Pair = live.run().expect("a run").task.pair(crosslens_lab::tasks::Split::Test, 1_000_003, 5);
        let fed = if feeding == "own" { Fed::Own } else { Fed::Target };
        let answers = live.subject().run(&[pair], fed, &Uniform).expect("a sentence of its own task");
        let words = &live.subject().description().target;
        let names: Vec<String> = answers[0].predicted.iter().map(|&token| words.name(token).into_owned()).collect();
        assert_eq!(without["predicted"], json!(names));
        let loss = without["loss"].as_f64().expect("there is a target");
        assert!((loss - answers[0].loss).abs() < 1e-5 && (loss - untouched["loss"].as_f64().expect("a loss")).abs() > 1e-6);
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let server = Running::usual();
    let explain = "/api/models/0/explain";
    let rerun = |site: usize, off: &[usize]| json!({ "sentence": { "sample": 0 }, "site": site, "off": off });
    let cases = [
        (explain, json!({ "sentence": { "source": "nonsense" } }), 422, "`nonsense` is not in the model's vocabulary"),
        (explain, json!({ "sentence": { "source": "   " } }), 422, "the source is empty"),
        (explain, json!({ "sentence": { "source": [] } }), 422, "the source is empty"),
        (explain, json!({ "sentence": { "source": "x ".repeat(300) } }), 422, "at most 256"),
        (explain, json!({ "sentence": {} }), 422, "a sentence is a source"),
        (explain, json!({ "sentence": { "source": "x", "sample": 1 } }), 422, "a sentence is a source"),
        (explain, json!({ "sentence": { "source": ["<eos>"] }, "feeding": "target" }), 422, "only if one is given"),
        (explain, json!({ "sentence": { "source": 7 } }), 400, "a text or a list of texts"),
        (explain, json!({ "sentence": { "sample": -1 } }), 400, "not what is expected"),
        (explain, json!({ "sentence": { "sample": 1 }, "estimater": "paper" }), 400, "estimater"),
        (explain, json!({ "sentence": { "sample": 1 }, "estimator": "median" }), 400, "median"),
        ("/api/models/0/rerun", rerun(4, &[]), 422, "there is no head 4"),
        ("/api/models/0/rerun", rerun(0, &[9]), 422, "there is no piece 9"),
        ("/api/models/7/explain", json!({ "sentence": { "sample": 1 } }), 404, "no such model"),
        ("/api/jobs", json!({ "model": 7 }), 422, "no such model"),
        ("/api/jobs", json!({ "model": 0, "sentences": 0 }), 422, "from 1 to"),
        ("/api/jobs", json!({ "model": 0, "samples": 51 }), 422, "at most 50"),
    ];
    for (path, body, status, words) in cases {
        let answer = server.post(path, &body);
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(answer.error().contains(words), "{body}: {}", answer.error());
    }
    assert_eq!(server.request("PUT", "/api/models", &[], "").status, 405);
}

/// Neither can be asked; of a recording more can be explained. Where anything lies on the machine is not told.
#[test]
fn a_recording_and_a_saved_report_are_served() {
    const N_RECORDED: u64 = 40;
    let folder = tempfile::tempdir().expect("a folder");
    let [run, recorded, saved] = ["tiny", "rec", "found.json"].map(|name| folder.path().join(name));
    tiny_run(&run);
    let model = TrainedModel::open(&run).expect("a run just made");
    let sentences = Sentences::Task { seed: 1, n_samples: N_RECORDED };
    let how = RecordOptions { fed: Fed::Own, n_kept: N_RECORDED, existing: Existing::Refuse, n_threads: 1 };
    model.record(&sentences, &recorded, &how, &mut |_| ()).expect("a recording");
    let recording = Recording::open(&recorded).expect("just made");
    let options = Options { samples: 2, n_threads: 1, ..Options::default() };
    let mut explained = explain_recording(&recording, N_RECORDED, None, &options, &mut |_| ()).expect("an explanation");
    explained.save(&saved).expect("writable");

    let server = Running::of(&[recorded, saved], "127.0.0.1", Limits::default());
    assert!(String::from_utf8_lossy(&server.get("/").body).contains("Crosslens: rec, found"));
    let (models, reports) = (server.get("/api/models").json(), server.get("/api/reports").json());
    for (number, (name, kind, n_samples)) in [("rec", "recording", 3), ("found", "report", 2)].into_iter().enumerate() {
        let model = &models[number];
        assert_eq!((&model["name"], &model["kind"], &model["live"]), (&json!(name), &json!(kind), &json!(false)));
        assert_eq!((&reports[number]["n_samples"], &reports[number]["live"]), (&json!(n_samples), &json!(false)));
        let question = json!({ "sentence": { "sample": 0 }, "site": 0, "off": [] });
        for asked in ["explain", "rerun"] {
            let answer = server.post(&format!("/api/models/{number}/{asked}"), &question);
            assert_eq!(answer.status, 409, "{answer:?}");
            assert!(answer.error().contains("no running model"));
        }
        let report = server.get(&format!("/api/reports/{number}")).json();
        assert_eq!(
            (&report["report"]["corpus"]["pairs"], &report["report"]["sites"][0]["verdict"]["label"]),
            (&json!(N_RECORDED), &json!("not rerun"))
        );
        assert_eq!(report["report"]["corpus"]["source"], "a recording");
        assert!(!report.to_string().contains(&*folder.path().to_string_lossy()), "where it lies is not told");
        let pieces = array(&server.get(&format!("/api/reports/{number}/samples/1")).body, "sites.0.pieces");
        let expected = &explained.samples.sentences[1].pieces[0];
        assert_eq!(pieces.len(), expected.len());
        assert!(pieces.iter().zip(expected).all(|(found, &expected)| (found - f64::from(expected)).abs() < 1e-5));
    }

    assert_eq!(server.post("/api/jobs", &json!({ "model": 1 })).status, 409);
    assert_eq!(server.post("/api/jobs", &json!({ "model": 0, "sentences": 10 })).status, 202);
    assert!(soon(|| server.get("/api/jobs/0").json()["state"] == "done"), "{:?}", server.get("/api/jobs/0"));
    assert_eq!(server.get("/api/reports/2").json()["report"]["corpus"]["pairs"], 10);
}
