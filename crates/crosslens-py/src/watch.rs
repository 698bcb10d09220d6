//! Tells Python how far long work is, and stops it on Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crosslens_lab::analysis::explain::{Phase, Progress};
use pyo3::prelude::*;

use crate::errors::Failure;

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
/// told: nothing that it works on outlives it. A panic becomes an exception, as in [`detached`].
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
    done.map_err(|payload| match payload.downcast::<Stopped>() {
        Ok(stopped) => stopped.0,
        Err(panic) => Failure::mistake(&*panic).into(),
    })
}

/// Does work without holding Python. A panic in it is a mistake of ours, and becomes an exception that says so.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| Failure::mistake(&*panic))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::CrosslensError;

    fn says_it_is_ours(py: Python<'_>, error: &PyErr) {
        assert!(error.is_instance_of::<CrosslensError>(py), "{error}");
        let text = error.to_string();
        assert!(text.contains("a mistake in Crosslens") && text.contains("seven of six") && text.contains("report it"), "{text}");
    }

    #[test]
    fn a_panic_becomes_an_exception_of_the_package() {
        Python::initialize();
        Python::attach(|py| {
            let watched: PyResult<()> = watched(py, None, |_| panic!("{} of six", "seven"));
            says_it_is_ours(py, &watched.expect_err("it panics"));
            let detached: Result<(), Failure> = detached(py, || panic!("seven of six"));
            says_it_is_ours(py, &PyErr::from(detached.expect_err("it panics")));
        });
    }
}
