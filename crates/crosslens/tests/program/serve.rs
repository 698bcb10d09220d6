use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::common::{crosslens, run, seen, train};

/// The URL comes first, the page behind it answers, and a polite kill ends it well.
#[test]
fn it_prints_its_url_serves_and_stops_when_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), "20");
    let mut process = crosslens(folder.path(), &["serve", "run", "--sentences", "50", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("its first line");
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!((&said["token"], &said["models"][0]["live"]), (&Value::Null, &true.into()));
    let host = said["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL").trim_end_matches('/').to_owned();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let mut stream = TcpStream::connect(&host).expect("it listens");
    write!(stream, "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("Crosslens: run"), "{page}");
    Command::new("kill").arg(process.id().to_string()).status().expect("kill runs");
    let ended = process.wait_with_output().expect("it ends");
    let notes = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{notes}");
    assert!(notes.contains("answers questions") && notes.trim_end().ends_with("stopped"), "{notes}");
}

#[test]
fn what_cannot_be_served_is_said_with_its_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let nothing = seen(folder.path(), &["serve"]);
    assert!(nothing.contains("exit 1") && nothing.contains("no run under runs/") && nothing.contains("crosslens train"), "{nothing}");
    let missing = seen(folder.path(), &["serve", "nowhere"]);
    assert!(missing.contains("exit 1") && missing.contains("there is no `nowhere`"), "{missing}");
    assert_eq!(run(folder.path(), &["serve", "--port", "70000"]).status.code(), Some(2));
    train(folder.path(), "20");
    let host = seen(folder.path(), &["serve", "run", "--sentences", "20", "--host", "nowhere.invalid"]);
    assert!(host.contains("`nowhere.invalid` is no address of this machine") && host.contains("--host 127.0.0.1"), "{host}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let busy = seen(folder.path(), &["serve", "run", "--sentences", "20", "--port", &port]);
    assert!(busy.contains("exit 1") && busy.contains("cannot listen at") && busy.contains("another --port"), "{busy}");
}
