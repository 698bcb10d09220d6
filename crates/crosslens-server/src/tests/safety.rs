use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Answer, Running, soon, tiny_run};
use crate::Limits;

#[test]
fn a_name_that_is_not_the_servers_is_refused() {
    let server = Running::usual();
    assert!(server.address.ip().is_loopback() && server.token.is_none());
    let with = |host: &str| server.request("GET", "/api/models", &[&format!("host: {host}")], "");
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.0.1", "0.0.0.0", ""] {
        let answer = with(host);
        assert_eq!(answer.status, 403, "{host}");
        answer.error();
    }
    assert_eq!(with("localhost:1234").status, 200, "a tunnel may have another port");
    assert_eq!(server.send(b"GET /api/models HTTP/1.0\r\n\r\n").status, 400);
    assert_eq!(server.send(b"GET /api/models HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n").status, 400);
    assert_eq!(server.send(b"GET http://localhost/api/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").status, 400);
}

#[test]
fn other_sites_are_refused() {
    let server = Running::usual();
    let own = format!("http://127.0.0.1:{}", server.address.port());
    let body = json!({ "sentence": { "sample": 0 } }).to_string();
    let post = |line: &str| server.request("POST", "/api/models/0/explain", &["content-type: application/json", line], &body);
    assert_eq!(post(&format!("origin: {own}")).status, 200);
    assert_eq!(post("sec-fetch-site: same-origin").status, 200);
    for line in [
        "origin: http://evil.example",
        "origin: null",
        "origin: http://localhost:1",
        "sec-fetch-site: cross-site",
        "sec-fetch-site: same-site",
    ] {
        let answer = post(line);
        assert_eq!(answer.status, 403, "{line}");
        assert!(answer.error().contains("other sites"));
    }
    // A form of another site can send text, but no JSON.
    assert_eq!(server.request("POST", "/api/models/0/explain", &["content-type: text/plain"], &body).status, 415);
    // A link may lead to the page, not to the data.
    assert_eq!(server.request("GET", "/", &["sec-fetch-site: cross-site"], "").status, 200);
    assert_eq!(server.request("GET", "/api/reports/0", &["sec-fetch-site: cross-site"], "").status, 403);
}

#[test]
fn beyond_this_machine_everybody_must_bring_the_token() {
    let server = Running::start("0.0.0.0", Limits::default());
    let token = server.token.clone().expect("a token");
    assert!(server.url.ends_with(&format!("/?token={token}")));
    for path in ["/", "/api/models", "/main.js"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    server.get("/api/models").error();
    let mut wrong = token.clone();
    wrong.replace_range(63.., if token.ends_with('0') { "1" } else { "0" });
    let get = |path: &str, line: &str| server.request("GET", path, &[line], "");
    for bad in [wrong.as_str(), "", &token[..63], &format!("{token}0")] {
        assert_eq!(get("/api/models", &format!("authorization: Bearer {bad}")).status, 401);
        assert_eq!(get("/api/models", &format!("cookie: crosslens-{}={bad}", server.address.port())).status, 401);
        assert_eq!(server.get(&format!("/?token={bad}")).status, 401);
    }
    assert_eq!(get("/api/models", &format!("authorization: Bearer {token}")).status, 200);
    assert_eq!(server.get(&format!("/api/models?token={token}")).status, 401, "the address of the page alone takes it");
    let opened = server.get(&format!("/?token={token}"));
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let cookie = opened.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let kept = cookie.split(';').next().expect("its value");
    for path in ["/", "/api/models", "/main.js"] {
        assert_eq!(get(path, &format!("cookie: other=1; {kept}")).status, 200, "{path}");
    }
    // On a second visit, with the cookie, the token leaves the address as well.
    let again = get(&format!("/?token={token}"), &format!("cookie: {kept}"));
    assert_eq!((again.status, again.header("location")), (303, Some("/")));
    // The token opens no other site's door.
    assert_eq!(server.request("GET", "/api/models", &[&format!("authorization: Bearer {token}"), "host: evil.example"], "").status, 403);
}

#[test]
fn bodies_are_limited() {
    let server = Running::start("127.0.0.1", Limits { body_bytes: 1000, ..Limits::default() });
    let long = server.post("/api/models/0/explain", &json!({ "sentence": { "source": "x".repeat(2000) } }));
    assert_eq!(long.status, 413, "{long:?}");
    assert!(long.error().contains("1000 bytes"));
    // The same in pieces, without a length.
    let chunk = "x".repeat(2000);
    let chunked = format!(
        "POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n7d0\r\n{chunk}\r\n0\r\n\r\n"
    );
    assert_eq!(server.send(chunked.as_bytes()).status, 413);
    let deep = "[".repeat(900);
    assert_eq!(server.request("POST", "/api/jobs", &["content-type: application/json"], &deep).status, 400);
    let headers: Vec<String> = (0..100).map(|number| format!("x-{number}: 1")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    assert_eq!(server.request("GET", "/api/models", &headers, "").status, 431);
    server.still_serves();
}

#[test]
fn who_dawdles_is_not_waited_for() {
    let short = Duration::from_millis(300);
    let server = Running::start("127.0.0.1", Limits { head_time: short, request_time: short, ..Limits::default() });
    let mut no_head = server.connect();
    no_head.write_all(b"GET / HTTP/1.1\r\nhost: local").expect("the server reads");
    let mut rest = Vec::new();
    no_head.read_to_end(&mut rest).ok();
    let no_body =
        server.send(b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{");
    assert_eq!(no_body.status, 503, "{no_body:?}");
    assert!(no_body.error().contains("longer than 0.3 s"));
}

#[test]
fn only_so_many_questions_wait() {
    let server = Running::start("127.0.0.1", Limits { working: 1, waiting: 1, ..Limits::default() });
    let ask = || server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } }));
    assert_eq!(ask().status, 200);
    let taken = server.state.take_all_places();
    let refused = ask();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.error().contains("too many questions"));
    server.still_serves();
    drop(taken);
    assert_eq!(ask().status, 200);
}

/// Its body never comes: who is refused for want of a place is refused at once, before anything of it is kept.
#[test]
fn a_place_is_taken_before_a_question_is_read() {
    let server = Running::usual();
    let taken = server.state.take_all_places();
    for asked in ["explain", "rerun"] {
        let head = format!("POST /api/models/0/{asked} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        let refused = server.send(format!("{head}content-length: 60000\r\nconnection: close\r\n\r\n{{").as_bytes());
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.error().contains("too many questions"), "{refused:?}");
    }
    drop(taken);
    server.still_serves();
}

/// The work itself cannot be interrupted: its client is told, and its place is kept until it has ended.
#[test]
fn work_that_takes_too_long_is_given_up() {
    let limits = Limits { request_time: Duration::from_millis(500), working: 1, waiting: 0, ..Limits::default() };
    let server = Running::start("127.0.0.1", limits);
    let late = server.get("/api/panic?sleep");
    assert_eq!((late.status, late.header("retry-after")), (503, Some("1")), "{late:?}");
    assert!(late.error().contains("longer than 0.5 s"), "{late:?}");
    let ask = || server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 0 } }));
    let meanwhile = ask();
    assert!(meanwhile.status == 503 && meanwhile.error().contains("too many questions"), "{meanwhile:?}");
    server.still_serves();
    assert!(soon(|| ask().status == 200), "its place is free again");
}

#[test]
fn only_so_many_connect() {
    let server = Running::start("127.0.0.1", Limits { connections: 2, ..Limits::default() });
    let held: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /api/models HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
            stream.read_exact(&mut [0; 12]).expect("an answer");
            stream
        })
        .collect();
    let mut third = server.connect();
    let refused = Answer::read(&mut third);
    assert_eq!((refused.status, refused.header("content-length")), (503, Some(refused.body.len().to_string().as_str())));
    refused.error();
    drop(held);
    // The server notices a moment later.
    assert!(soon(|| server.get("/api/models").status == 200));
}

/// There is one connection, and somebody has it without using it.
#[test]
fn who_neither_reads_nor_finishes_loses_the_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("tiny");
    tiny_run(&run);
    let short = Duration::from_millis(200);
    let limits = Limits { connections: 1, head_time: short, request_time: short, write_time: short, ..Limits::default() };
    // More than the buffers of both ends hold.
    let flood = b"GET /head.js HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    let cases: [(&str, &[u8]); 5] = [
        ("says nothing", b""),
        ("stops in the head", b"GET / HTTP/1.1\r\nhost: local"),
        (
            "stops in the body",
            b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
        ),
        ("asks once and stays", b"GET /api/models HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        ("never reads", &flood),
    ];
    for (who, bytes) in cases {
        let server = Running::of(std::slice::from_ref(&run), "127.0.0.1", limits.clone());
        let mut held = server.connect();
        held.write_all(bytes).expect("the server reads");
        assert!(soon(|| server.get("/api/models").status == 200), "one that {who} keeps its connection");
        drop(held);
    }
}

#[test]
fn a_panic_is_an_answer_and_the_server_goes_on() {
    let server = Running::usual();
    for path in ["/api/panic", "/api/panic?work", "/api/panic"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 500);
        assert!(!answer.error().contains("asked for by a test"), "what went wrong is not told");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    server.still_serves();
}

#[test]
fn it_stops_gracefully() {
    let mut server = Running::usual();
    let mut idle = server.connect();
    idle.write_all(b"GET /api/models HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
    idle.read_exact(&mut [0; 12]).expect("an answer");
    let job = server.post("/api/jobs", &json!({ "model": 0, "sentences": Limits::JOB_SENTENCES })).json()["id"].clone();
    let mut events = server.connect();
    write!(events, "GET /api/jobs/{job}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
    events.read_exact(&mut [0; 12]).expect("an answer");
    let state = Arc::clone(&server.state);
    server.stop();
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).expect("the stream ends");
    assert!(rest.ends_with(b"0\r\n\r\n"), "it ends as a stream should: {}", String::from_utf8_lossy(&rest));
    assert!(TcpStream::connect(("127.0.0.1", server.address.port())).is_err(), "nobody listens");
    assert!(*state.stopping.borrow());
}
