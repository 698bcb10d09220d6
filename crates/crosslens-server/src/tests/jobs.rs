use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Running, soon};
use crate::Limits;

/// The events of a job or a model, one by one: name and data.
pub(super) struct Events(BufReader<TcpStream>);

impl Events {
    fn of(server: &Running, job: &Value) -> Self {
        Self::at(server, &format!("/api/jobs/{job}"))
    }

    pub(super) fn at(server: &Running, place: &str) -> Self {
        let mut stream = server.connect();
        write!(stream, "GET {place}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
        Self(BufReader::new(stream))
    }

    /// The next; `None` at the end.
    pub(super) fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(event) = line.trim().strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(data) = line.trim().strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).expect("JSON")));
            }
        }
    }

    pub(super) fn last(&mut self) -> (String, Value) {
        let mut last = None;
        while let Some((name, data)) = self.next() {
            let has_ended = name != "progress";
            last = Some((name, data));
            if has_ended {
                break;
            }
        }
        last.expect("an event")
    }
}

#[test]
fn long_work_tells_how_far_it_is_and_leaves_a_report() {
    let server = Running::usual();
    let started = server.post("/api/jobs", &json!({ "model": 0, "sentences": 200, "samples": 2, "estimator": "joint" }));
    assert_eq!(started.status, 202, "{started:?}");
    let mut events = Events::of(&server, &started.json()["id"]);
    let (name, data) = events.last();
    assert_eq!((name.as_str(), &data["state"], &data["report"]), ("done", &json!("done"), &json!(1)));
    let report = server.get("/api/reports/1").json();
    assert_eq!((&report["report"]["corpus"]["pairs"], &report["report"]["components"]["estimator"]), (&json!(200), &json!("joint")));
    assert_eq!(server.get("/api/reports").json()[1]["live"], true);
    assert_eq!(server.get("/api/jobs").json()[0]["state"], "done");
    // Whoever comes late is told how it ended.
    assert_eq!(Events::of(&server, &json!(0)).last().0, "done");
}

#[test]
fn long_work_can_be_cancelled_and_one_that_waits_never_starts() {
    let server = Running::usual();
    let start = || server.post("/api/jobs", &json!({ "model": 0, "sentences": Limits::JOB_SENTENCES })).json()["id"].clone();
    let (running, waiting) = (start(), start());
    let mut events = Events::of(&server, &running);
    loop {
        let (name, data) = events.next().expect("it goes on");
        assert_eq!(name, "progress", "{data}");
        if data["state"] == "running" {
            assert!(data["done"].as_u64() <= data["total"].as_u64());
            break;
        }
    }
    assert_eq!(server.get(&format!("/api/jobs/{waiting}")).json()["state"], "waiting");
    for job in [&waiting, &running] {
        assert_eq!(server.request("DELETE", &format!("/api/jobs/{job}"), &[], "").status, 200);
    }
    assert_eq!(events.last().0, "cancelled");
    assert_eq!(Events::of(&server, &waiting).last().0, "cancelled");
    assert_eq!(server.get("/api/reports").json().as_array().map(Vec::len), Some(1), "nothing is left of them");
}

#[test]
fn only_so_many_jobs_wait() {
    let server = Running::start("127.0.0.1", Limits { jobs: 2, ..Limits::default() });
    let start = || server.post("/api/jobs", &json!({ "model": 0, "sentences": Limits::JOB_SENTENCES }));
    assert_eq!((start().status, start().status), (202, 202));
    let refused = start();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.error().contains("2 jobs"), "{}", refused.error());
    server.still_serves();
}

/// The status of a stream of events, which is left at once.
fn watched(server: &Running, job: &Value) -> String {
    let mut stream = server.connect();
    write!(stream, "GET /api/jobs/{job}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    String::from_utf8_lossy(&status[9..]).into_owned()
}

#[test]
fn only_so_many_watch() {
    let server = Running::start("127.0.0.1", Limits { streams: 1, ..Limits::default() });
    let job = server.post("/api/jobs", &json!({ "model": 0, "sentences": Limits::JOB_SENTENCES })).json()["id"].clone();
    let mut first = Events::of(&server, &job);
    assert_eq!(first.next().expect("an event").0, "progress");
    let refused = server.get(&format!("/api/jobs/{job}/events"));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.error().contains("too many streams"), "{}", refused.error());
    server.still_serves();
    drop(first);
    // The server notices a moment later.
    assert!(soon(|| watched(&server, &job) == "200"), "who leaves makes room");
}
