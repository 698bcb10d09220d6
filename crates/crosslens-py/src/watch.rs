//! Tells Python how far long work is, and stops it on Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crosslens_lab::analysis::explain::{Phase, Progress};
use pyo3::prelude::*;

/// Python is asked at most this often.
const EVERY: Duration = Duration::from_millis(100);

/// Calls `callback(what, done, total)` now and then, and lets Python look for Ctrl-C.
pub(crate) struct Watch {
    callback: Option<Py<PyAny>>,
    last: Option<Instant>,
}

/// Why work was stopped: what the callback or Ctrl-C raised.
struct Stopped(PyErr);

impl Watch {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, last: None }
    }

    /// Fails where the callback does, or where the user wants to stop.
    pub(crate) fn tell(&mut self, what: &str, done: u64, total: u64) -> PyResult<()> {
        let is_last = done >= total;
        if !is_last && self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return Ok(());
        }
        self.last = Some(Instant::now());
        Python::attach(|py| {
            py.check_signals()?;
            match &self.callback {
                Some(callback) => callback.call1(py, (what, done, total)).map(|_| ()),
                None => Ok(()),
            }
        })
    }
}

/// Does long work without holding Python. What the callback raises, Ctrl-C included, unwinds out of the work, which has no other way to be
/// told: nothing that it works on outlives it.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(&str, u64, u64)) -> T + Send,
) -> PyResult<T> {
    let mut watch = Watch::new(callback);
    let done = py.detach(|| {
        let mut tell = |what: &str, done: u64, total: u64| {
            if let Err(error) = watch.tell(what, done, total) {
                resume_unwind(Box::new(Stopped(error)));
            }
        };
        catch_unwind(AssertUnwindSafe(|| work(&mut tell)))
    });
    done.or_else(|payload| match payload.downcast::<Stopped>() {
        Ok(stopped) => Err(stopped.0),
        Err(panic) => resume_unwind(panic),
    })
}

/// What an explanation is doing.
pub(crate) fn phase(progress: Progress) -> &'static str {
    match progress.phase {
        Phase::Writing => "writing",
        Phase::Fitting => "fitting",
        Phase::Splitting => "splitting",
        Phase::Checking => "checking",
    }
}
