//! Long work: a model explained on many sentences, watched and cancelled from outside.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosslens_lab::analysis::explain::{Corpus, ExplainError, Explained, First, Options, Stop, explain};
use crosslens_lab::{Shown, in_words};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use crate::Limits;
use crate::api::JobRequest;
use crate::library::{Library, ServedReport, Source};
use crate::reply::Refusal;
use crate::status::{Status, cancel};

/// Jobs that are remembered; of more the oldest that have ended are forgotten.
const REMEMBERED: usize = 200;

/// One piece of long work.
pub(crate) struct Job {
    pub(crate) id: usize,
    pub(crate) request: JobRequest,
    status: watch::Sender<Status>,
    stop: Stop,
}

/// A job for people and pages.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobView {
    id: usize,
    model: usize,
    sentences: u64,
    #[serde(flatten)]
    status: Status,
}

impl Job {
    pub(crate) fn view(&self) -> JobView {
        let JobRequest { model, sentences, .. } = self.request;
        JobView { id: self.id, model, sentences, status: self.status.borrow().clone() }
    }

    pub(crate) fn cancel(&self) {
        cancel(&self.stop, &self.status);
    }

    fn is_cancelled(&self) -> bool {
        self.stop.is_set()
    }

    /// How it stands, now and later.
    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }
}

/// All jobs; one runs at a time.
pub(crate) struct Jobs {
    by_id: Mutex<(usize, BTreeMap<usize, Arc<Job>>)>,
    turn: Arc<Semaphore>,
}

impl Jobs {
    pub(crate) fn new() -> Self {
        Self { by_id: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, BTreeMap<usize, Arc<Job>>)> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn views(&self) -> Vec<JobView> {
        self.lock().1.values().map(|job| job.view()).collect()
    }

    pub(crate) fn find(&self, id: usize) -> Option<Arc<Job>> {
        self.lock().1.get(&id).cloned()
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().1.values().for_each(|job| job.cancel());
    }

    /// Starts one, or lets it wait for those before it.
    pub(crate) fn start(&self, library: &Arc<Library>, request: JobRequest, limits: &Limits) -> Result<JobView, Refusal> {
        let job = self.enter(request, limits, library.n_reports() - library.models.len())?;
        let (library, turn, view, kept) = (Arc::clone(library), Arc::clone(&self.turn), job.view(), Arc::clone(&job));
        let work = async move {
            let turn = turn.acquire_owned().await;
            let worker = Arc::clone(&job);
            let done = tokio::task::spawn_blocking(move || {
                let _held = turn;
                run(&worker, &library)
            });
            // A panic has been reported on the terminal.
            let ended = done.await.unwrap_or_else(|_| Status::Failed { error: Refusal::broken().error });
            kept.status.send_replace(ended);
        };
        tokio::spawn(work);
        Ok(view)
    }

    fn enter(&self, request: JobRequest, limits: &Limits, n_made: usize) -> Result<Arc<Job>, Refusal> {
        let mut jobs = self.lock();
        let (next, by_id) = &mut *jobs;
        let n_open = by_id.values().filter(|job| !job.status.borrow().has_ended()).count();
        if n_open >= limits.jobs {
            return Err(Refusal::busy(format!("{n_open} jobs wait or run already; cancel one or wait")));
        }
        if n_made + n_open >= limits.reports {
            return Err(Refusal::busy(format!("jobs have left {n_made} reports, as many as are kept; restart the server to drop them")));
        }
        if by_id.len() >= REMEMBERED
            && let Some(oldest) = by_id.iter().find(|(_, job)| job.status.borrow().has_ended()).map(|(&id, _)| id)
        {
            by_id.remove(&oldest);
        }
        let job = Arc::new(Job { id: *next, request, status: watch::Sender::new(Status::Waiting), stop: Stop::default() });
        by_id.insert(*next, Arc::clone(&job));
        *next += 1;
        Ok(job)
    }
}

fn run(job: &Job, library: &Library) -> Status {
    if job.is_cancelled() {
        return Status::Cancelled;
    }
    match explained(job, library) {
        Ok(_) | Err(_) if job.is_cancelled() => Status::Cancelled,
        Ok(explained) => {
            let model = &library.models[job.request.model];
            let name = format!("{} ({} sentences, {})", model.name, explained.report.corpus.pairs, explained.report.components.estimator);
            let shown = Shown { name, explained, training: Vec::new(), timeline: None };
            Status::Done { report: library.add_report(ServedReport::new(job.request.model, &shown)) }
        }
        Err(error) => Status::Failed { error: in_words(&error) },
    }
}

/// One thread does it, so that questions are answered meanwhile.
fn explained(job: &Job, library: &Library) -> Result<Explained, ExplainError> {
    let JobRequest { model, sentences, samples, estimator, seed } = job.request;
    let stop = job.stop.clone();
    let options = Options { estimator: estimator.into(), samples, seed, geometry: true, n_threads: 1, stop, ..Options::default() };
    let mut tell = |progress| {
        job.status.send_replace(Status::of(progress));
    };
    let mut made = |corpus: &dyn Corpus, source: String, held_out: bool| {
        let mut explained = explain(corpus, None, &Options { held_out, ..options.clone() }, &mut tell)?;
        explained.report.corpus.source = source;
        Ok(explained)
    };
    match library.models[model].source().map_err(|_| ExplainError::Empty)? {
        Source::Live(live) => {
            let explained = live.with_corpus(seed, sentences, |corpus, source| made(corpus, source, live.halves(sentences)));
            let mut explained = explained.unwrap_or(Err(ExplainError::Empty))?;
            live.stage(&mut explained)?;
            Ok(explained)
        }
        Source::Recording(recording) => {
            made(&First { corpus: recording.as_ref(), n_sentences: sentences }, "a recording".to_owned(), false)
        }
        Source::Report => Err(ExplainError::Empty),
    }
}
