//! The real server, asked over real sockets.

mod answers;
mod described;
mod hostile;
mod imported;
mod jobs;
mod pictures;
#[path = "../../../crosslens-pretrained/tests/sight/planted.rs"]
mod planted_sight;
#[path = "../../../crosslens-pretrained/tests/speech/planted.rs"]
#[expect(dead_code, reason = "some of it is for the tests beside it")]
mod planted_whisper;
mod preparing;
mod safety;
#[path = "../../../crosslens-analysis/tests/explain/schema.rs"]
mod schema;
mod sounds;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crosslens_lab::ImportedOptions;
use crosslens_lab::train::{Event, Run, RunFolder, Wish, parse_config};
use serde_json::Value;

use crate::api::State;
use crate::{Library, Limits, OpenOptions, Preparing, Server, ServerError};

/// No answer takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Sentences the tiny model is fitted on.
const N_SENTENCES: u64 = 64;

/// A network that has learnt next to nothing, which is enough to be asked.
fn tiny_run(path: &Path) {
    let mut config = parse_config(Path::new("tiny.toml"), include_str!("../../../crosslens/tests/tiny.toml")).expect("a configuration");
    config.training.steps = 20;
    let run = Run::prepare(config, RunFolder::at(path)).expect("a network");
    run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
}

/// A server that runs until it is dropped.
struct Running {
    address: SocketAddr,
    token: Option<String>,
    url: String,
    state: Arc<State>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Running {
    /// On this machine, with the usual limits.
    fn usual() -> Self {
        Self::start("127.0.0.1", Limits::default())
    }

    fn start(host: &str, limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("tiny");
        tiny_run(&run);
        Self::of(&[run], host, limits)
    }

    /// Serves what lies at these paths.
    fn of(paths: &[PathBuf], host: &str, limits: Limits) -> Self {
        Self::with(paths, ImportedOptions::default(), host, limits)
    }

    /// The same, with what models that were not trained here need.
    fn with(paths: &[PathBuf], imported: ImportedOptions, host: &str, limits: Limits) -> Self {
        let running = Self::begin(paths, imported, host, limits, |_| ());
        let models = &running.state.library.models;
        assert!(soon(|| models.iter().all(|model| model.status().borrow().has_ended())), "explanations end");
        running
    }

    /// The same, while its models may still be explained.
    fn begin(
        paths: &[PathBuf],
        imported: ImportedOptions,
        host: &str,
        limits: Limits,
        told: impl FnMut(Preparing<'_>) + Send + 'static,
    ) -> Self {
        let options = OpenOptions { n_sentences: N_SENTENCES, samples: 3, n_threads: 1, imported, ..OpenOptions::default() };
        let library = Library::open(paths, options).expect("what was just made");
        let server = Server::bind(library, host, 0, limits).expect("a free port");
        let (address, token, url) = (server.address(), server.token().map(str::to_owned), server.url());
        let (state, stop) = (server.state(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(move || stopped.load(Ordering::Relaxed), told));
        Self { address, token, url, state, stop, thread: Some(thread) }
    }

    /// Stops it and waits until it has.
    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic").expect("the server ends well");
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.address.port())).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// What these bytes are answered.
    fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("the server reads");
        Answer::read(&mut stream)
    }

    /// A request that is well formed; `headers` are whole lines.
    fn request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("host: 127.0.0.1:{}", self.address.port());
        let own_host = headers.iter().any(|line| line.to_ascii_lowercase().starts_with("host:"));
        let host = if own_host { String::new() } else { host + "\r\n" };
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        self.send(
            format!("{method} {path} HTTP/1.1\r\n{host}{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").as_bytes(),
        )
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &["content-type: application/json"], &body.to_string())
    }

    fn still_serves(&self) {
        let answer = self.get("/api/models");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// What came back; status 0 if nothing did.
#[derive(Debug)]
struct Answer {
    status: u16,
    /// In small letters.
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A connection that is reset ends as well as one that is closed.
        stream.read_to_end(&mut bytes).ok();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |place| place + 4);
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head, body: bytes[end..].to_vec() }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error it says, if that is what it is.
    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Whether something becomes true before long.
fn soon(is_so: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
