//! How much one server does at a time, and for how long.

use std::time::Duration;

use crosslens_lab::LiveModel;

/// Everything a client could ask too much of.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body; more is 413.
    pub body_bytes: usize,
    /// The same where the body may hold a sound or a picture: 12 MB of it, in base64.
    pub upload_bytes: usize,
    /// Connections at a time; more is 503.
    pub connections: usize,
    /// Questions to models that are worked on at a time.
    pub working: usize,
    /// Questions that wait for their turn; more is 503.
    pub waiting: usize,
    /// Streams of events at a time; more is 503.
    pub streams: usize,
    /// Jobs that wait or run at a time; more is 503.
    pub jobs: usize,
    /// Reports that jobs leave behind; more is 503.
    pub reports: usize,
    /// For the head of a request to arrive.
    pub head_time: Duration,
    /// For a request to be read and answered; longer is 503.
    pub request_time: Duration,
    /// For a client to take some of what it is sent; who takes nothing for so long is cut off.
    pub write_time: Duration,
    /// For open requests to end when the server stops.
    pub grace_time: Duration,
}

impl Limits {
    /// Words of a sentence on either side; more is 422.
    pub const WORDS: usize = 256;
    /// Sentences of one job.
    pub const JOB_SENTENCES: u64 = 100_000;
    /// Sentences a job keeps in full.
    pub const JOB_SAMPLES: usize = 50;
}

impl Limits {
    /// Bytes of a question to a model.
    pub(crate) fn of_question(&self, live: &LiveModel) -> usize {
        if live.reads().is_some() { self.upload_bytes } else { self.body_bytes }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024,
            upload_bytes: 16 << 20,
            connections: 256,
            working: std::thread::available_parallelism().map_or(1, usize::from),
            waiting: 64,
            streams: 16,
            jobs: 4,
            reports: 32,
            head_time: Duration::from_secs(10),
            request_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            grace_time: Duration::from_secs(5),
        }
    }
}
