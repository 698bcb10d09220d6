//! The server answers before anything is explained, and says how far that is.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crosslens_lab::ImportedOptions;
use serde_json::{Value, json};

use super::described::keeps;
use super::jobs::Events;
use super::{Running, tiny_run};
use crate::{Limits, Preparing};

/// A server whose explanations stand still after their first step until the sender is dropped.
fn held(folder: &std::path::Path) -> (Running, Sender<()>) {
    let run = folder.join("tiny");
    tiny_run(&run);
    held_at(&[run])
}

fn held_at(paths: &[std::path::PathBuf]) -> (Running, Sender<()>) {
    let (go, wait) = channel();
    let told = move |_: Preparing<'_>| {
        wait.recv().ok();
    };
    (Running::begin(paths, ImportedOptions::default(), "127.0.0.1", Limits::default(), told), go)
}

#[test]
fn the_server_answers_while_its_models_are_still_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, go) = held(folder.path());
    let mut events = Events::at(&server, "/api/models/0");
    let seen = std::iter::from_fn(|| events.next()).find(|(_, data)| data["state"] == "running").expect("it is told that it runs");
    assert_eq!(seen.0, "progress");
    assert!(seen.1["done"].as_u64() <= seen.1["total"].as_u64() && seen.1["phase"].is_string(), "{seen:?}");

    // The page and the lists are there, and name what will be.
    assert_eq!(server.get("/").status, 200);
    let model = server.get("/api/models").json()[0].clone();
    assert_eq!(
        (&model["name"], &model["kind"], &model["live"], &model["ready"]),
        (&json!("tiny"), &json!("run"), &json!(true), &json!(false))
    );
    let report = server.get("/api/reports").json()[0].clone();
    assert_eq!(
        (&report["name"], &report["of"], &report["ready"], &report["asks"]),
        (&json!("tiny"), &json!(0), &json!(false), &Value::Null)
    );
    assert!(report["model"].as_str().is_some_and(|words| !words.is_empty()), "{report}");

    // What needs the explanation is asked to come back.
    let refused = [
        server.get("/api/reports/0"),
        server.get("/api/reports/0/averages"),
        server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } })),
        server.post("/api/jobs", &json!({ "model": 0 })),
    ];
    for answer in refused {
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert!(answer.error().contains("`tiny` is still being explained"), "{}", answer.error());
    }
    assert_eq!(server.get("/api/reports/1").status, 404);
    for path in ["/api/models", "/api/reports"] {
        keeps("get", path, &server.get(path), 200);
    }
    keeps("get", "/api/reports/{id}", &server.get("/api/reports/0"), 503);

    drop(go);
    assert_eq!(events.last(), ("done".to_owned(), json!({ "state": "done", "report": 0 })));
    assert_eq!(server.get("/api/reports/0").json()["report"]["schema"], "crosslens-report/1");
    assert_eq!(server.get("/api/reports").json()[0]["ready"], true);
    let answer = server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } }));
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn the_first_explanation_of_a_model_can_be_cancelled_and_one_that_waits_never_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["running", "other", "waiting"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| tiny_run(path));
    let (server, go) = held_at(&paths);
    let mut events = Events::at(&server, "/api/models/0");
    std::iter::from_fn(|| events.next()).find(|(_, data)| data["state"] == "running").expect("it is told that it runs");
    for model in [2, 0] {
        let answer = server.request("DELETE", &format!("/api/models/{model}/explanation"), &[], "");
        keeps("delete", "/api/models/{id}/explanation", &answer, 200);
        assert_eq!((&answer.json()["id"], &answer.json()["ready"]), (&json!(model), &json!(false)));
    }
    assert_eq!(Events::at(&server, "/api/models/2").last(), ("cancelled".to_owned(), json!({ "state": "cancelled" })));
    drop(go);
    assert_eq!(events.last().0, "cancelled");
    assert_eq!(Events::at(&server, "/api/models/1").last().0, "done", "the one between is explained all the same");
    for (model, name) in [(0, "running"), (2, "waiting")] {
        let refused = server.get(&format!("/api/reports/{model}"));
        let why = format!("`{name}` cannot be shown: its explanation was cancelled; start the server again to have it");
        assert_eq!((refused.status, refused.error()), (409, why));
    }
    // What is there stays.
    assert_eq!(server.request("DELETE", "/api/models/1/explanation", &[], "").json()["ready"], true);
    assert_eq!(server.get("/api/reports/1").status, 200);
    assert_eq!(server.request("DELETE", "/api/models/3/explanation", &[], "").status, 404);
}

#[test]
fn a_server_stops_in_the_middle_of_an_explanation() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut server, _go) = held(folder.path());
    let mut events = Events::at(&server, "/api/models/0");
    assert_eq!(events.next().expect("an event").0, "progress");
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    while let Some((name, data)) = events.next() {
        assert_eq!(name, "progress", "{data}");
    }
}

#[test]
fn what_cannot_be_explained_says_why_and_leaves_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["bad", "good"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| tiny_run(path));
    // Opened well, but what belongs on its page cannot be read.
    std::fs::write(paths[0].join("timeline.json"), "no timeline").expect("writable");
    let server = Running::of(&paths, "127.0.0.1", Limits::default());
    let (name, data) = Events::at(&server, "/api/models/0").last();
    assert_eq!((name.as_str(), &data["state"]), ("failed", &json!("failed")), "{data}");
    let refused = server.get("/api/reports/0");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(refused.error(), "`bad` cannot be shown: the terminal of the server says why");
    assert_eq!(server.get("/api/models").json()[0]["ready"], false);
    assert_eq!(server.get("/api/reports/1").status, 200);
}

/// It breaks where its report is made and kept, after everything is computed.
#[test]
fn what_breaks_off_while_it_is_kept_leaves_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["bad", "good"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| tiny_run(path));
    let told = |told: Preparing<'_>| assert!(!matches!(told, Preparing::Ready { name: "bad", .. }), "this one breaks");
    let server = Running::begin(&paths, ImportedOptions::default(), "127.0.0.1", Limits::default(), told);
    assert_eq!(Events::at(&server, "/api/models/0").last().0, "failed");
    assert_eq!(Events::at(&server, "/api/models/1").last().0, "done");
    let refused = server.get("/api/reports/0");
    assert_eq!((refused.status, refused.error()), (409, "`bad` cannot be shown: the terminal of the server says why".to_owned()));
    assert_eq!(server.get("/api/reports/1").status, 200);
}
