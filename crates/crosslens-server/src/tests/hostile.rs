use std::io::Write;

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use proptest::prelude::*;

use super::{Answer, Running};
use crate::api::answer;
use crate::routes::ROUTES;

const N_REQUESTS: u32 = 1000;

/// Bodies that are nearly right.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"sentence\"",
        "\"source\"",
        "\"target\"",
        "\"sample\"",
        "\"site\"",
        "\"off\"",
        "\"bias\"",
        "\"feeding\"",
        "\"model\"",
        "\"sentences\"",
        "\"own\"",
        "\"joint\"",
        "\"<eos>\"",
        "0",
        "-1",
        "1e999",
        "18446744073709551616",
        "null",
        "true",
        "\"\\ud800\"",
        "\"\u{202e}\"",
    ]);
    let whole = prop::sample::select(vec![
        "{\"sentence\":{\"sample\":4294967295}}",
        "{\"sentence\":{\"source\":[\"<eos>\"],\"target\":[\"<eos>\"]},\"feeding\":\"target\"}",
        "{\"sentence\":{\"sample\":3},\"site\":0,\"off\":[0,0,8],\"bias\":false,\"estimator\":\"joint\"}",
        "{\"sentence\":{\"sample\":3},\"site\":18446744073709551615,\"off\":[]}",
        "{\"sentence\":{\"source\":\"<eos> <eos>\"}}",
        "{\"model\":0,\"sentences\":1,\"samples\":0,\"seed\":18446744073709551615}",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..20).prop_map(|pieces| pieces.concat().into_bytes()),
        whole.prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..200),
    ]
}

/// Paths that are nearly right; not the one that panics.
fn paths() -> impl Strategy<Value = String> {
    let known: Vec<&str> = ROUTES.iter().map(|(_, path, _)| *path).filter(|path| !path.ends_with("panic")).collect();
    let value = prop_oneof![Just("0".to_owned()), Just("main.js".to_owned()), "[0-9]{1,25}", "[-%.~a-zA-Z0-9]{1,12}"];
    let filled = (prop::sample::select(known), value.clone(), value.clone())
        .prop_map(|(path, first, second)| path.replacen("{id}", &first, 1).replacen("{number}", &second, 1).replacen("{file}", &first, 1));
    let random = prop::collection::vec(value, 0..6).prop_map(|pieces| format!("/{}", pieces.join("/")));
    (prop_oneof![4 => filled, 1 => random], prop_oneof![Just(String::new()), "\\?[a-z=&%0-9]{0,20}"])
        .prop_map(|(path, query)| path + &query)
}

fn methods() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"])
}

#[test]
fn a_thousand_requests_at_the_router_leave_it_serving() {
    let server = Running::usual();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let header = prop::sample::select(vec!["origin", "sec-fetch-site", "content-type", "cookie", "authorization", "range", "x"]);
    let request = (methods(), paths(), bodies(), prop::option::of((header, "[ -~]{0,20}")), prop::bool::weighted(0.9));
    proptest!(ProptestConfig::with_cases(N_REQUESTS), |((method, path, body, header, is_json) in request)| {
        let mut builder = Request::builder().method(method).uri(&path).header("host", "localhost");
        if is_json {
            builder = builder.header("content-type", "application/json");
        }
        if let Some((name, value)) = header {
            builder = builder.header(name, value);
        }
        let Ok(request) = builder.body(Full::new(Bytes::from(body))) else { return Ok(()) };
        let reply = runtime.block_on(answer(std::sync::Arc::clone(&server.state), request));
        prop_assert!(reply.status() != 500, "{} {}", method, path);
        prop_assert!(reply.headers().contains_key("content-security-policy"));
    });
    server.state.jobs.cancel_all();
    server.still_serves();
}

/// A seeded generator: the same requests on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

#[test]
fn a_thousand_malformed_requests_on_the_wire_leave_it_serving() {
    let server = Running::usual();
    let templates: [&[u8]; 6] = [
        b"GET /api/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"POST /api/models/0/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 28\r\nconnection: close\r\n\r\n{\"sentence\":{\"sample\":12345}",
        b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"mod\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nupgrade: h2c\r\nconnection: close, upgrade\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    let mut dice = Dice(7);
    for number in 0..N_REQUESTS {
        let mut bytes = templates[dice.below(templates.len())].to_vec();
        for _ in 0..dice.below(8) {
            let place = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[place] = dice.below(256) as u8,
                1 => bytes.insert(place, dice.below(256) as u8),
                2 => bytes.truncate(place + 1),
                _ => {
                    let piece: Vec<u8> = bytes[place..].iter().take(20).copied().collect();
                    bytes.splice(place..place, piece);
                }
            }
        }
        let mut stream = server.connect();
        stream.write_all(&bytes).ok();
        // Nothing more will come: the server need not wait for the rest.
        stream.shutdown(std::net::Shutdown::Write).ok();
        let answer = Answer::read(&mut stream);
        assert!(answer.status != 500, "{}: {answer:?}", String::from_utf8_lossy(&bytes));
        if number % 100 == 0 {
            server.still_serves();
        }
    }
    server.still_serves();
}
