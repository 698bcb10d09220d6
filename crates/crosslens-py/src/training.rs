//! Training and reproduction.

use std::path::{Path, PathBuf};

use crosslens_lab::network::Family;
use crosslens_lab::recipes::{TASKS, default_config, with_family};
use crosslens_lab::reproduce::{ReproduceError, ReproduceOptions, Scale, Work, reproduce as test_claims};
use crosslens_lab::train::{Ending, Event, Run, RunConfig, RunFolder, Wish, read_config};
use crosslens_lab::train_recorded;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::watch::Watch;

/// Trains a run; `callback` is told each evaluation as JSON and may return `False` to stop. Returns what it came to, as JSON.
#[pyfunction]
#[pyo3(signature = (what, out, arch, seed, steps, record_every, overwrite, resume, n_threads, callback, progress))]
#[expect(clippy::too_many_arguments, reason = "all are named in Python")]
pub(crate) fn train(
    py: Python<'_>,
    what: &str,
    out: PathBuf,
    arch: Option<&str>,
    seed: Option<u64>,
    steps: Option<u64>,
    record_every: Option<u64>,
    overwrite: bool,
    resume: bool,
    n_threads: usize,
    callback: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> Result<String, Failure> {
    let folder = RunFolder::at(&out);
    let mut config = if resume { folder.read_config()? } else { chosen(what, arch)? };
    if !resume && !overwrite && !folder.is_empty() {
        return Err(Failure::config(format!("`{}` is not empty: another out=, overwrite=True or resume=True", out.display())));
    }
    if resume && (seed.is_some() || arch.is_some() || record_every.is_some()) {
        return Err(Failure::config("arch, seed and record_every cannot change a run that has begun"));
    }
    config.seed = seed.unwrap_or(config.seed);
    config.training.steps = steps.unwrap_or(config.training.steps);
    config.training.record_every = record_every.unwrap_or(config.training.record_every);
    config.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    let run = Run::prepare(config, folder)?;
    let mut observer = Observing { watch: Watch::new(progress), callback, failure: None };
    let trained = py.detach(|| train_recorded(&run, n_threads, resume, &mut |event: Event<'_>| observer.observe(event)))?;
    match observer.failure {
        Some(error) => Err(error.into()),
        None => Ok(serde_json::json!({
            "finished": trained.ending == Ending::Finished,
            "steps": trained.steps,
            "seconds": trained.seconds,
            "parameters": trained.parameters,
            "metrics": trained.metrics,
        })
        .to_string()),
    }
}

fn chosen(what: &str, arch: Option<&str>) -> Result<RunConfig, Failure> {
    let family = arch.map(family).transpose()?;
    let path = Path::new(what);
    if path.is_file() || path.extension().is_some_and(|ending| ending == "toml") {
        let mut config = read_config(path)?;
        if let Some(family) = family.filter(|&family| family != config.network.family) {
            with_family(&mut config, family);
        }
        return Ok(config);
    }
    let unknown = || Failure::config(format!("there is no task `{what}`; there are {}", TASKS.join(", ")));
    default_config(what, family.unwrap_or(Family::Aed)).ok_or_else(unknown)
}

fn family(name: &str) -> Result<Family, Failure> {
    let names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    let found = Family::ALL.into_iter().find(|family| family.name() == name);
    found.ok_or_else(|| Failure::config(format!("there is no architecture `{name}`; there are {}", names.join(", "))))
}

/// Passes events on to Python; what that raises is kept until the run has saved itself.
struct Observing {
    watch: Watch,
    callback: Option<Py<PyAny>>,
    failure: Option<PyErr>,
}

impl Observing {
    fn observe(&mut self, event: Event<'_>) -> Wish {
        let told = match event {
            Event::Updated { step, steps, .. } => self.watch.tell("training", step, steps).map(|()| Wish::GoOn),
            Event::Evaluated(metrics) => self.call(&serde_json::to_string(metrics).expect("numbers with names")),
            _ => Ok(Wish::GoOn),
        };
        told.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Wish::Stop
        })
    }

    fn call(&self, metrics: &str) -> PyResult<Wish> {
        let Some(callback) = &self.callback else { return Ok(Wish::GoOn) };
        Python::attach(|py| {
            let answer = callback.call1(py, (metrics,))?;
            let wants_to_stop = answer.extract::<Option<bool>>(py)? == Some(false);
            Ok(if wants_to_stop { Wish::Stop } else { Wish::GoOn })
        })
    }
}

/// Tests claims; returns `reproduce.json`.
#[pyfunction]
#[pyo3(signature = (out, claims, seeds, quick, n_threads, progress))]
pub(crate) fn reproduce(
    py: Python<'_>,
    out: PathBuf,
    claims: Vec<String>,
    seeds: usize,
    quick: bool,
    n_threads: usize,
    progress: Option<Py<PyAny>>,
) -> Result<String, Failure> {
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let options = ReproduceOptions { claims, seeds, scale, corpus: None, out, n_threads };
    let mut observer = Observing { watch: Watch::new(progress), callback: None, failure: None };
    let (mut number, mut of) = (0, 0);
    let done = py.detach(|| {
        let mut watch = |work: Work<'_>| match work {
            Work::Network { number: at, of: total, .. } => {
                (number, of) = (at as u64, total as u64);
                let told = observer.watch.tell("networks", number.saturating_sub(1), of);
                told.map_or_else(
                    |error| {
                        observer.failure.get_or_insert(error);
                        Wish::Stop
                    },
                    |()| Wish::GoOn,
                )
            }
            Work::Training(_) | Work::Explaining(_) => match observer.watch.tell("networks", number.saturating_sub(1), of + 1) {
                Ok(()) => Wish::GoOn,
                Err(error) => {
                    observer.failure.get_or_insert(error);
                    Wish::Stop
                }
            },
            _ => Wish::GoOn,
        };
        test_claims(&options, &mut watch).map_err(Box::new)
    });
    match (done, observer.failure) {
        (Err(error), failure) if matches!(*error, ReproduceError::Interrupted) => {
            Err(failure.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())).into())
        }
        (Err(error), _) => Err((*error).into()),
        (Ok(reproduction), _) => Ok(reproduction.to_json()),
    }
}
