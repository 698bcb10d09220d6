use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{crosslens, run, seen, succeed, train};

/// A server that was started, and the first line it said.
pub(crate) struct Serving {
    process: Child,
    pub(crate) said: Value,
}

impl Serving {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("its first line");
        let said = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { process, said }
    }

    /// The same, once everything it serves is explained.
    pub(crate) fn ready(command: Command) -> Self {
        let serving = Self::start(command);
        let start = Instant::now();
        while serving.ask("GET", "/api/models", &Value::Null).as_array().is_some_and(|all| all.iter().any(|model| model["ready"] != true)) {
            assert!(start.elapsed() < Duration::from_secs(120), "explanations end");
            std::thread::sleep(Duration::from_millis(20));
        }
        serving
    }

    fn page(&self) -> String {
        self.send("GET", "/", "")
    }

    /// The JSON that a request is answered with.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        // What nobody reads resets the connection under a long answer.
        let answer = self.send(method, path, &if body.is_null() { String::new() } else { body.to_string() });
        let (_, json) = answer.split_once("\r\n\r\n").expect("a head and a body");
        // Whole, or in chunks, each after its length in a line of its own.
        let whole = if answer.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            json.split("\r\n").skip(1).step_by(2).collect()
        } else {
            json.to_owned()
        };
        serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn send(&self, method: &str, path: &str, body: &str) -> String {
        let host = self.said["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL").trim_end_matches('/');
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let head = format!("host: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close", body.len());
        write!(stream, "{method} {path} HTTP/1.1\r\n{head}\r\n\r\n{body}").expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        page
    }

    /// Ends it by a polite kill.
    pub(crate) fn stop(self) -> Output {
        Command::new("kill").arg(self.process.id().to_string()).status().expect("kill runs");
        self.process.wait_with_output().expect("it ends")
    }
}

/// The URL comes first, the page behind it answers, and a polite kill ends it well.
#[test]
fn it_prints_its_url_serves_and_stops_when_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), "20");
    let serving = Serving::start(crosslens(folder.path(), &["serve", "run", "--sentences", "50", "--json"]));
    assert_eq!((&serving.said["token"], &serving.said["models"][0]["live"]), (&Value::Null, &true.into()));
    let page = serving.page();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("Crosslens: run"), "{page}");
    let ended = serving.stop();
    let notes = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{notes}");
    assert!(notes.contains("answers questions") && notes.trim_end().ends_with("stopped"), "{notes}");
}

/// So many sentences take a while; the URL and the page do not wait for them, and neither does a polite kill.
#[test]
fn the_url_is_printed_before_anything_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), "20");
    let serving = Serving::start(crosslens(folder.path(), &["serve", "run", "--sentences", "1000000", "--json"]));
    assert!(serving.page().contains("Crosslens: run"));
    let model = serving.ask("GET", "/api/models", &Value::Null)[0].clone();
    assert_eq!((&model["name"], &model["live"], &model["ready"]), (&"run".into(), &true.into(), &false.into()), "{model}");
    let refused = serving.ask("GET", "/api/reports/0", &Value::Null);
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("explained")), "{refused}");
    let start = Instant::now();
    let ended = serving.stop();
    assert_eq!(ended.status.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(String::from_utf8_lossy(&ended.stderr).trim_end().ends_with("stopped"));
}

/// An `xdg-open` that writes down what it is told to open.
#[cfg(target_os = "linux")]
fn opener(folder: &std::path::Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let programs = folder.join("bin");
    std::fs::create_dir(&programs).expect("a folder");
    let program = programs.join("xdg-open");
    std::fs::write(&program, "#!/bin/sh\nprintf '%s' \"$1\" > opening && /bin/mv opening opened\n").expect("writable");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("our file");
    programs
}

#[cfg(target_os = "linux")]
#[test]
fn a_recording_and_a_report_are_served_and_opened_in_the_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "20");
    succeed(folder, &["record", "run", "--samples", "20", "-o", "rec"]);
    succeed(folder, &["explain", "run", "--samples", "20", "--save", "found.json", "--json"]);
    let mut command = crosslens(folder, &["serve", "rec", "found.json", "--open", "--json"]);
    command.env("PATH", opener(folder));
    let serving = Serving::start(command);
    assert_eq!(serving.said["models"], serde_json::json!([{ "name": "rec", "live": false }, { "name": "found", "live": false }]));
    assert!(serving.page().contains("Crosslens: rec, found"));
    let start = Instant::now();
    while !folder.join("opened").exists() && start.elapsed().as_secs() < 30 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let opened = std::fs::read_to_string(folder.join("opened")).expect("something was opened");
    assert_eq!(serving.said["url"], opened);
    serving.stop();

    // A system without one: the URL is on the screen all the same.
    let mut command = crosslens(folder, &["serve", "found.json", "--open", "--json"]);
    command.env("PATH", folder.join("nowhere"));
    let serving = Serving::start(command);
    assert!(serving.page().contains("Crosslens: found"));
    let notes = String::from_utf8_lossy(&serving.stop().stderr).into_owned();
    assert!(notes.contains("`xdg-open` cannot be started; open the URL yourself"), "{notes}");
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
    // What is found only later ends the program too, where there is nothing else to show.
    std::fs::write(folder.path().join("run/timeline.json"), "no timeline").expect("writable");
    let broken = seen(folder.path(), &["serve", "run", "--sentences", "20"]);
    assert!(broken.contains("exit 1") && broken.contains("timeline.json") && broken.contains("http://127.0.0.1:"), "{broken}");
}
