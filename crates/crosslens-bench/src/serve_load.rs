//! Many live explanations at once, asked of a running `crosslens serve`.

use std::io::{BufRead, BufReader, Error, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::protocol::say;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where it listens, as `crosslens serve` prints it: `http://127.0.0.1:PORT/`.
    url: String,
    /// Sentences asked for.
    #[arg(long, default_value_t = 1000)]
    requests: usize,
    /// Connections that ask at once, each for its next sentence as soon as it has the last.
    #[arg(long, default_value_t = 8)]
    concurrency: usize,
    /// The model's number.
    #[arg(long, default_value_t = 0)]
    model: usize,
}

/// Sentences asked for before anything is measured, by each connection.
const WARM_UP: usize = 5;

pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let host = arguments.url.trim_start_matches("http://").trim_end_matches('/');
    let n_each = arguments.requests.div_ceil(arguments.concurrency.max(1));
    wait_until_ready(host, arguments.model)?;
    let start = Instant::now();
    let answers: Vec<std::io::Result<Vec<f64>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.concurrency.max(1))
            .map(|client| scope.spawn(move || ask_on(host, arguments.model, client * n_each, n_each)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(Error::other("a client failed")))).collect()
    });
    let elapsed_secs = start.elapsed().as_secs_f64();
    let mut times_ms = Vec::new();
    for answer in answers {
        times_ms.extend(answer?);
    }
    times_ms.sort_by(f64::total_cmp);
    let quantile = |q: f64| times_ms[((times_ms.len() - 1) as f64 * q).round() as usize];
    say(&json!({
        "requests": times_ms.len(), "concurrency": arguments.concurrency, "requests_per_second": times_ms.len() as f64 / elapsed_secs,
        "p50_ms": quantile(0.5), "p99_ms": quantile(0.99), "max_ms": quantile(1.0),
    }))
}

/// The server answers before it has explained its models: a model's report is refused until it is there, and for good if it never will be.
fn wait_until_ready(host: &str, model: usize) -> std::io::Result<()> {
    let stream = TcpStream::connect(host)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        (&stream).write_all(format!("GET /api/reports/{model} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes())?;
        let answer = Answer::read(&mut reader)?;
        if !answer.status.contains(" 503 ") {
            return answer.body().map(drop);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks for one sentence after the other on one connection; gives the time of each in milliseconds.
fn ask_on(host: &str, model: usize, first: usize, n: usize) -> std::io::Result<Vec<f64>> {
    let stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut times_ms = Vec::with_capacity(n);
    for number in 0..WARM_UP + n {
        let body = json!({ "sentence": { "sample": first + number } }).to_string();
        let request = format!(
            "POST /api/models/{model}/explain HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let start = Instant::now();
        (&stream).write_all(request.as_bytes())?;
        Answer::read(&mut reader)?.body()?;
        if number >= WARM_UP {
            times_ms.push(1000.0 * start.elapsed().as_secs_f64());
        }
    }
    Ok(times_ms)
}

/// What a request was answered.
struct Answer {
    /// The first line.
    status: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(reader: &mut impl BufRead) -> std::io::Result<Self> {
        let (mut status, mut length) = (String::new(), 0);
        if reader.read_line(&mut status)? == 0 {
            return Err(Error::other("the server has ended"));
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().map_err(Error::other)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { status, body })
    }

    /// Anything but 200 is an error.
    fn body(self) -> std::io::Result<Vec<u8>> {
        let Self { status, body } = self;
        if status.contains(" 200 ") {
            Ok(body)
        } else {
            Err(Error::other(format!("{}: {}", status.trim(), String::from_utf8_lossy(&body))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Waits for a server that gives these answers, one after the other, and then ends.
    fn wait_for(answers: &'static [(&'static str, &'static str)]) -> std::io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let host = listener.local_addr()?.to_string();
        let server = std::thread::spawn(move || -> std::io::Result<()> {
            let (stream, _) = listener.accept()?;
            let mut reader = BufReader::new(stream.try_clone()?);
            for (status, body) in answers {
                let mut line = String::new();
                while reader.read_line(&mut line)? > 2 {
                    line.clear();
                }
                write!(&stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
            }
            Ok(())
        });
        let waited = wait_until_ready(&host, 0);
        server.join().expect("it does not panic")?;
        waited
    }

    #[test]
    fn waiting_ends_when_a_model_is_there_or_never_will_be() {
        const BUSY: (&str, &str) = ("503 Service Unavailable", "{}");
        wait_for(&[BUSY, BUSY, ("200 OK", "{}")]).expect("it is there");
        let failed = wait_for(&[BUSY, ("409 Conflict", "it cannot be shown")]).expect_err("it never will be").to_string();
        assert_eq!(failed, "HTTP/1.1 409 Conflict: it cannot be shown");
        wait_for(&[BUSY]).expect_err("nobody is there any more");
    }
}
