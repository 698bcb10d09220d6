//! How long work stands, and how that is told to whoever watches.

use crosslens_lab::analysis::explain::{Phase, Progress, Stop};
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::{mpsc, watch};

/// How a job, or what was named on the command line, stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub(crate) enum Status {
    Waiting,
    Running { phase: &'static str, done: u64, total: u64 },
    Done { report: usize },
    Failed { error: String },
    Cancelled,
}

impl Status {
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self, Self::Waiting | Self::Running { .. })
    }

    pub(crate) fn of(progress: Progress) -> Self {
        let phase = match progress.phase {
            Phase::Writing => "writing",
            Phase::Fitting => "fitting",
            Phase::Splitting => "splitting",
            Phase::Checking => "checking",
        };
        Self::Running { phase, done: progress.done, total: progress.total }
    }

    /// As a server-sent event.
    fn event(&self) -> Bytes {
        let name = match self {
            Self::Waiting | Self::Running { .. } => "progress",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        };
        let data = serde_json::to_string(self).unwrap_or_default();
        format!("event: {name}\ndata: {data}\n\n").into()
    }
}

/// Breaks an explanation off: one that waits is cancelled at once, one that runs says so itself as soon as it notices.
pub(crate) fn cancel(stop: &Stop, status: &watch::Sender<Status>) {
    stop.set();
    status.send_if_modified(|status| {
        let is_waiting = *status == Status::Waiting;
        if is_waiting {
            *status = Status::Cancelled;
        }
        is_waiting
    });
}

/// Sends how something stands, now and whenever that changes, until it has ended, nobody listens or the server stops.
pub(crate) async fn tell(mut status: watch::Receiver<Status>, events: mpsc::Sender<Bytes>, mut stopping: watch::Receiver<bool>) {
    loop {
        let now = status.borrow_and_update().clone();
        if events.send(now.event()).await.is_err() || now.has_ended() {
            return;
        }
        tokio::select! {
            changed = status.changed() => if changed.is_err() { return },
            () = events.closed() => return,
            _ = stopping.wait_for(|&is_stopping| is_stopping) => return,
        }
    }
}
