//! Training and reproduction.

use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Existing;
use crosslens_lab::analysis::corpus::{CorpusSpec, CorpusSpecError};
use crosslens_lab::network::{Cell, Family, Score};
use crosslens_lab::recipes::{TASKS, default_config, with_family};
use crosslens_lab::reproduce::{OnCorpus, ReproduceError, ReproduceOptions, Scale, Work, reproduce as test_claims};
use crosslens_lab::tasks::Preparing;
use crosslens_lab::text::Units;
use crosslens_lab::train::{Ending, Event, Run, RunConfig, RunFolder, Wish, read_config};
use crosslens_lab::{CorpusWishes, check_parts, folder_of_new_run, train_recorded};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;
use crate::watch::{Watch, detached, watched};

/// Trains a run; `callback` is told each evaluation as JSON and may return `False` to stop. Returns what it came to, as JSON.
#[pyfunction]
#[pyo3(signature = (what, out, corpus, arch, cell, score, seed, steps, record_every, overwrite, resume, n_threads, callback, progress))]
#[expect(clippy::too_many_arguments, reason = "all are named in Python")]
pub(crate) fn train(
    py: Python<'_>,
    what: Option<&str>,
    out: PathBuf,
    corpus: &Bound<'_, PyDict>,
    arch: Option<&str>,
    cell: Option<&str>,
    score: Option<&str>,
    seed: Option<u64>,
    steps: Option<u64>,
    record_every: Option<u64>,
    overwrite: bool,
    resume: bool,
    n_threads: usize,
    callback: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> Result<String, Failure> {
    let parts = Parts::named(arch, cell, score)?;
    let (config, folder) = if resume {
        if seed.is_some() || record_every.is_some() || !corpus.is_empty() || parts != Parts::default() {
            return Err(Failure::config("arch, cell, score, seed, record_every and the corpus cannot change a run that has begun"));
        }
        let folder = RunFolder::at(&out);
        let mut config = folder.read_config()?;
        config.training.steps = steps.unwrap_or(config.training.steps);
        (config, folder)
    } else {
        let mut config = chosen(what, &parts, corpus, steps)?;
        parts.put_into(&mut config)?;
        config.seed = seed.unwrap_or(config.seed);
        config.training.steps = steps.unwrap_or(config.training.steps);
        config.training.record_every = record_every.unwrap_or(config.training.record_every);
        config.version = Some(env!("CARGO_PKG_VERSION").to_owned());
        (config, folder_of_new_run(&out, if overwrite { Existing::Replace } else { Existing::Refuse })?)
    };
    let told = progress.as_ref().map(|progress| progress.clone_ref(py));
    let run = watched(py, told, |tell| {
        let mut tell = |now: Preparing| tell(now.stage.name(), now.done, now.total);
        if resume { Run::prepare_again_watched(config, folder, &mut tell) } else { Run::prepare_watched(config, folder, &mut tell) }
    })??;
    let mut observer = Observing { watch: Watch::new(progress), callback, failure: None };
    let trained = detached(py, || train_recorded(&run, n_threads, resume, &mut |event: Event<'_>| observer.observe(event)))??;
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

/// What is chosen of a network.
#[derive(Default, PartialEq, Eq)]
struct Parts {
    family: Option<Family>,
    cell: Option<Cell>,
    score: Option<Score>,
}

impl Parts {
    fn named(arch: Option<&str>, cell: Option<&str>, score: Option<&str>) -> Result<Self, Failure> {
        let score = score.map(|name| if name == "concat" { Score::Additive.name() } else { name });
        Ok(Self {
            family: arch.map(|name| named("architecture", &Family::ALL, Family::name, name)).transpose()?,
            cell: cell.map(|name| named("cell", &Cell::ALL, Cell::name, name)).transpose()?,
            score: score.map(|name| named("score", &Score::ALL, Score::name, name)).transpose()?,
        })
    }

    fn put_into(&self, config: &mut RunConfig) -> Result<(), Failure> {
        check_parts(config.network.family, self.cell, self.score)?;
        config.network.cell = self.cell.unwrap_or(config.network.cell);
        config.network.score = self.score.or(config.network.score);
        Ok(())
    }
}

/// The value of this name.
fn named<T: Copy>(kind: &str, all: &[T], name_of: impl Fn(T) -> &'static str, name: &str) -> Result<T, Failure> {
    let names = || all.iter().map(|&value| name_of(value)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|&value| name_of(value) == name);
    found.ok_or_else(|| Failure::config(format!("there is no {kind} `{name}`; there are {}", names())))
}

/// A corpus by its name.
fn spec(text: &str) -> Result<CorpusSpec, Failure> {
    text.parse().map_err(|error: CorpusSpecError| Failure::config(error.to_string()))
}

/// What is trained on, if it is a corpus, and what is chosen of it.
fn corpus_of(given: &Bound<'_, PyDict>) -> Result<Option<(CorpusSpec, CorpusWishes)>, Failure> {
    let (mut train, mut wishes) = (None, CorpusWishes::default());
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let wrong = |error: PyErr| Failure::config(format!("`{name}`: {error}"));
        match name.as_str() {
            "corpus" => train = Some(spec(&value.extract::<String>().map_err(wrong)?)?),
            "dev" => wishes.dev = Some(spec(&value.extract::<String>().map_err(wrong)?)?),
            "held_out" => wishes.held_out = Some(value.extract().map_err(wrong)?),
            "max_words" => wishes.max_words = Some(value.extract().map_err(wrong)?),
            "max_pairs" => wishes.max_pairs = Some(value.extract().map_err(wrong)?),
            "units" => wishes.units = Some(named("unit", &Units::ALL, Units::name, &value.extract::<String>().map_err(wrong)?)?),
            "vocabulary" => wishes.vocabulary = Some(value.extract().map_err(wrong)?),
            "keep_case" => wishes.keep_case = value.extract().map_err(wrong)?,
            _ => return Err(Failure::config(format!("there is no option `{name}`"))),
        }
    }
    match train {
        Some(train) if wishes.dev.is_some() && wishes.held_out.is_some() => {
            Err(Failure::config(format!("`{train}`: dev and held_out are two ways to judge, give one of them")))
        }
        Some(train) => Ok(Some((train, wishes))),
        None if wishes == CorpusWishes::default() => Ok(None),
        None => {
            Err(Failure::config("dev, held_out, max_words, max_pairs, units, vocabulary and keep_case are of a corpus: give corpus= too"))
        }
    }
}

fn chosen(what: Option<&str>, parts: &Parts, corpus: &Bound<'_, PyDict>, steps: Option<u64>) -> Result<RunConfig, Failure> {
    let family = parts.family;
    match (corpus_of(corpus)?, what) {
        (Some((train, wishes)), None) => return Ok(wishes.run(train, family.unwrap_or(Family::Bahdanau), steps)),
        (Some((train, _)), Some(what)) => {
            return Err(Failure::config(format!("`{what}` and corpus=\"{train}\" are two things to learn: give one of them")));
        }
        (None, _) => {}
    }
    let what = what.unwrap_or("one-to-one");
    let path = Path::new(what);
    // A file of a task's name does not hide the task: `./sort` is the file.
    if !TASKS.contains(&what) && (path.is_file() || path.extension().is_some_and(|ending| ending == "toml")) {
        let mut config = read_config(path)?;
        if let Some(family) = family.filter(|&family| family != config.network.family) {
            with_family(&mut config, family);
        }
        return Ok(config);
    }
    let unknown = || Failure::config(format!("there is no task `{what}`; there are {}", TASKS.join(", ")));
    default_config(what, family.unwrap_or(Family::Aed)).ok_or_else(unknown)
}

/// Passes events on to Python; what that raises is kept until the run has saved itself.
struct Observing {
    watch: Watch,
    callback: Option<Py<PyAny>>,
    failure: Option<PyErr>,
}

impl Observing {
    fn observe(&mut self, event: Event<'_>) -> Wish {
        self.go_on_unless(|observer| match event {
            Event::Updated { step, steps, .. } => observer.watch.tell("training", step, steps).map(|()| Wish::GoOn),
            Event::Evaluated(metrics) => observer.call(&serde_json::to_string(metrics).expect("numbers with names")),
            _ => Ok(Wish::GoOn),
        })
    }

    /// What Python wants; where it raises, that is kept and the work stops.
    fn go_on_unless(&mut self, tell: impl FnOnce(&mut Self) -> PyResult<Wish>) -> Wish {
        tell(self).unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Wish::Stop
        })
    }

    /// So many networks of all are done; while the last one is at work, one is missing.
    fn tell_networks(&mut self, n_done: u64, of: u64) -> Wish {
        self.go_on_unless(|observer| observer.watch.tell("networks", n_done, of).map(|()| Wish::GoOn))
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
#[pyo3(signature = (out, claims, seeds, quick, corpus, n_threads, progress))]
#[expect(clippy::too_many_arguments, reason = "all are named in Python")]
pub(crate) fn reproduce(
    py: Python<'_>,
    out: PathBuf,
    claims: Vec<String>,
    seeds: usize,
    quick: bool,
    corpus: Option<&str>,
    n_threads: usize,
    progress: Option<Py<PyAny>>,
) -> Result<String, Failure> {
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let corpus = corpus.map(spec).transpose()?.map(|spec| OnCorpus { spec, steps: OnCorpus::STEPS });
    let options = ReproduceOptions { claims, seeds, scale, corpus, out, n_threads };
    let mut observer = Observing { watch: Watch::new(progress), callback: None, failure: None };
    // Networks that are done, and all of them.
    let (mut n_done, mut of) = (0, 1);
    let done = detached(py, || {
        let mut watch = |work: Work<'_>| match work {
            Work::Network { number, of: total, .. } => {
                (n_done, of) = (number as u64 - 1, total as u64);
                observer.tell_networks(n_done, of)
            }
            Work::Training(_) | Work::Explaining(_) => observer.tell_networks(n_done, of),
            _ => Wish::GoOn,
        };
        test_claims(&options, &mut watch).map_err(Box::new)
    })?;
    if done.is_ok() {
        observer.tell_networks(of, of);
    }
    match (done, observer.failure) {
        (Err(error), failure) if matches!(*error, ReproduceError::Interrupted) => {
            Err(failure.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())).into())
        }
        (Err(error), _) => Err((*error).into()),
        (Ok(_), Some(error)) => Err(error.into()),
        (Ok(reproduction), None) => Ok(reproduction.to_json()),
    }
}
