//! What is served: the runs, recordings and reports named on the command line, and what jobs add.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crosslens_lab::analysis::explain::{ExplainError, Explained, Options, Progress, Stop};
use crosslens_lab::analysis::page::{average_bytes, codes_json, report_json, sample_bytes, sample_header};
use crosslens_lab::analysis::report::Verdict;
use crosslens_lab::analysis::{Recordable, Recording};
use crosslens_lab::{ImportedModel, ImportedOptions, LiveError, LiveModel, Opened, ShowError, ShowOptions, Shown};
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use crate::Limits;
use crate::reply::Refusal;
use crate::status::{Status, cancel};

/// How models are explained once they are opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Sentences that components are fitted on, and the first report is made from.
    pub n_sentences: u64,
    /// Draws them.
    pub seed: u64,
    /// Sentences of it that are kept in full.
    pub samples: usize,
    /// What models that were not trained here are explained with; without anything, their scores are shown whole.
    pub imported: ImportedOptions,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { n_sentences: 1000, seed: 1_000_003, samples: 12, imported: ImportedOptions::default(), n_threads: 0 }
    }
}

impl OpenOptions {
    fn show(&self, stop: Stop) -> ShowOptions {
        let Self { n_sentences, seed, samples, n_threads, .. } = *self;
        let explain = Options { samples, seed, geometry: true, n_threads, stop, ..Options::default() };
        ShowOptions { n_sentences, seed, imported: self.imported.clone(), explain }
    }
}

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It cannot be opened or explained.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// It cannot be kept ready.
    #[error("`{path}` cannot be kept ready for questions")]
    Live {
        /// The run.
        path: PathBuf,
        /// Why.
        source: LiveError,
    },
    /// A mistake of the program's own.
    #[error("the explanation of `{path}` broke off; what went wrong stands above")]
    Broken {
        /// What was explained.
        path: PathBuf,
    },
}

/// What kind of thing was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Run,
    Model,
    Recording,
    Report,
}

impl Kind {
    /// Whether it answers questions.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Run | Self::Model)
    }
}

/// What can be done with it besides looking at its report.
pub(crate) enum Source {
    /// Any question can be asked.
    Live(Arc<LiveModel>),
    /// More of it can be explained.
    Recording(Arc<Recording>),
    /// Nothing.
    Report,
}

/// One thing that was named. Its first report has its own number.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// What it is, in words.
    pub(crate) description: String,
    /// What it is made ready from; taken when that begins.
    named: Mutex<Option<(Opened, PathBuf)>>,
    source: OnceLock<Source>,
    status: watch::Sender<Status>,
    stop: Stop,
}

impl Model {
    fn new(name: String, kind: Kind, description: String, named: Option<(Opened, PathBuf)>) -> Self {
        let status = watch::Sender::new(Status::Waiting);
        Self { name, kind, description, named: Mutex::new(named), source: OnceLock::new(), status, stop: Stop::default() }
    }

    /// What can be done with it, once it is explained; its report is there then too.
    pub(crate) fn source(&self) -> Result<&Source, Refusal> {
        self.source.get().ok_or_else(|| match &*self.status.borrow() {
            Status::Failed { error } => Refusal::new(StatusCode::CONFLICT, format!("`{}` cannot be shown: {error}", self.name)),
            Status::Running { phase, done, total } => {
                let far = format!("{phase}, {done} of {total} sentences");
                Refusal::busy(format!("`{}` is still being explained ({far}); ask again in a moment", self.name))
            }
            Status::Cancelled => {
                let cure = "its explanation was cancelled; start the server again to have it";
                Refusal::new(StatusCode::CONFLICT, format!("`{}` cannot be shown: {cure}", self.name))
            }
            _ => Refusal::busy(format!("`{}` waits to be explained; ask again in a moment", self.name)),
        })
    }

    /// Breaks its explanation off; one that is there stays.
    pub(crate) fn cancel(&self) {
        cancel(&self.stop, &self.status);
    }

    /// How far its explanation is, now and later.
    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }
}

/// A report as it goes over the wire.
pub(crate) struct ServedReport {
    pub(crate) name: String,
    /// The model it is of.
    pub(crate) model: usize,
    pub(crate) description: String,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) json: Bytes,
    pub(crate) averages: Bytes,
    pub(crate) samples: Vec<Bytes>,
}

impl ServedReport {
    pub(crate) fn new(model: usize, shown: &Shown) -> Self {
        let (report, samples) = (&shown.explained.report, &shown.explained.samples);
        let mut report = report.clone();
        report.corpus.warnings.iter_mut().for_each(|warning| *warning = without_folder(warning));
        let value = serde_json::to_value(&report).expect("a report has string keys");
        let headers: Vec<_> = samples.sentences.iter().map(|sample| sample_header(samples, sample)).collect();
        let whole = report_json(&shown.name, value, &headers, &codes_json(samples), &shown.training, shown.timeline.as_ref());
        Self {
            name: shown.name.clone(),
            model,
            description: report.model.description.clone(),
            verdicts: report.sites.iter().map(|site| site.verdict.clone()).collect(),
            json: whole.to_string().into(),
            averages: average_bytes(samples).into(),
            samples: samples.sentences.iter().map(|sample| sample_bytes(samples, sample).into()).collect(),
        }
    }
}

/// A warning that names a file first, its folder left out: where it lies on this machine is nothing a browser need know.
fn without_folder(warning: &str) -> String {
    let named = || {
        let (path, rest) = warning.strip_prefix('`')?.rsplit_once('`')?;
        Some(format!("`{}`{rest}", Path::new(path).file_name()?.display()))
    };
    named().unwrap_or_else(|| warning.to_owned())
}

/// Everything that is served.
pub struct Library {
    pub(crate) models: Vec<Model>,
    /// The first of each model, where it is there already, then those of jobs.
    reports: RwLock<Vec<Option<Arc<ServedReport>>>>,
    options: OpenOptions,
}

/// What is told while things are made ready, one after the other.
#[derive(Debug)]
#[non_exhaustive]
pub enum Preparing<'a> {
    /// How far the explanation of one is.
    Working {
        /// Which.
        name: &'a str,
        /// How far.
        progress: Progress,
    },
    /// One is there.
    Ready {
        /// Which.
        name: &'a str,
        /// What is wrong with the files it was explained on, in words for its user.
        warnings: &'a [String],
    },
    /// The explanation of one was broken off by somebody who looked at its page.
    Cancelled {
        /// Which.
        name: &'a str,
    },
    /// One cannot be shown.
    Failed {
        /// Which.
        name: &'a str,
        /// Why.
        error: LibraryError,
    },
}

/// What a run or a recording can do besides being explained.
fn source(opened: Opened, path: &Path, options: &OpenOptions, progress: &mut dyn FnMut(Progress)) -> Result<Source, LibraryError> {
    match opened {
        Opened::Recording(recording) => Ok(Source::Recording(Arc::new(*recording))),
        Opened::Imported(_) => Err(ShowError::NoSentences { path: path.to_owned() }.into()),
        Opened::Model(model) => {
            let live = LiveModel::of_run(*model, options.seed, options.n_sentences, Limits::WORDS, progress);
            Ok(Source::Live(Arc::new(live.map_err(cannot_live(path))?)))
        }
    }
}

fn cannot_live(path: &Path) -> impl FnOnce(LiveError) -> LibraryError {
    move |source| LibraryError::Live { path: path.to_owned(), source }
}

/// A model of another program: fitted on its corpus or by given sums, explained on its corpus, asked in any case. What is typed is split by
/// the sums that its corpus was, those of one half where it is halved.
fn imported(
    model: ImportedModel,
    path: &Path,
    show: &ShowOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Shown, Source), LibraryError> {
    let n_threads = show.explain.n_threads;
    let sentences = show.imported.sentences(&model, show.n_sentences, n_threads, progress).map_err(ShowError::from)?;
    let given = show.imported.sums(&model, path)?;
    let explain = Options { keep_totals: given.is_none(), ..show.explain.clone() };
    let show = ShowOptions { explain, ..show.clone() };
    let mut shown = match &sentences {
        Some(sentences) => {
            let show = show.halving(sentences, given.as_deref());
            Shown::of_imported(&model, sentences, given.as_deref(), &show, progress)?
        }
        None => {
            let explained = Explained::of_no_sentence(model.description(), &no_verdict(given.is_some()));
            Shown { name: String::new(), explained, training: Vec::new(), timeline: None }
        }
    };
    let fitted = shown.explained.totals.take().map(|totals| totals.first.stats(model.description()));
    let sums = given.or_else(|| Some(fitted?.streams.into_iter().map(|stream| stream.sums).collect()));
    let live = LiveModel::of_imported(model, sentences, sums, Limits::WORDS).map_err(cannot_live(path))?;
    Ok((shown.found_at(path)?, Source::Live(Arc::new(live))))
}

/// Why a model that has seen no corpus has no verdict.
fn no_verdict(is_fitted: bool) -> Verdict {
    let (label, text) = if is_fitted {
        ("no corpus", "sentences are split by the sums given; shares and a verdict need a corpus: start again with --corpus FILE")
    } else {
        ("not fitted", "scores are shown whole, as “rest × rest”; to split them start again with --corpus FILE or --components FILE")
    };
    Verdict { label: label.to_owned(), text: text.to_owned() }
}

/// One thing that is served, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its name in the page.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Whether it answers questions.
    pub is_live: bool,
}

impl Library {
    /// Opens everything and explains nothing yet: [`Library::prepare`] does. Saved reports are there at once.
    pub fn open(paths: &[PathBuf], options: OpenOptions) -> Result<Self, LibraryError> {
        options.imported.check_files()?;
        let mut library = Self { models: Vec::new(), reports: RwLock::default(), options };
        for path in paths {
            library.add(path)?;
        }
        Ok(library)
    }

    fn add(&mut self, path: &Path) -> Result<(), LibraryError> {
        let is_report = path.extension().is_some_and(|extension| extension == "json") || !path.exists();
        let report = if is_report { Some(Shown::open(path, &self.options.show(Stop::default()), &mut |_| ())?) } else { None };
        let model = match &report {
            Some(shown) => Model::new(shown.name.clone(), Kind::Report, shown.explained.report.model.description.clone(), None),
            None => {
                let opened = self.options.imported.open(path).map_err(ShowError::from)?;
                let (kind, description) = match &opened {
                    Opened::Model(model) => {
                        let subject = model.subject(1).map_err(|error| cannot_live(path)(error.into()))?;
                        (Kind::Run, subject.description().model.clone())
                    }
                    Opened::Imported(model) => (Kind::Model, model.description().model.clone()),
                    Opened::Recording(recording) => (Kind::Recording, recording.description().model.clone()),
                };
                Model::new(Shown::name_at(path), kind, description, Some((opened, path.to_owned())))
            }
        };
        self.models.push(model);
        self.reports.get_mut().unwrap_or_else(PoisonError::into_inner).push(None);
        if let Some(shown) = report {
            self.keep(self.models.len() - 1, shown, Source::Report);
        }
        Ok(())
    }

    /// Explains runs, models and recordings, and keeps those that run ready for questions, one after the other until it should stop.
    pub fn prepare(&self, should_stop: &dyn Fn() -> bool, told: &mut dyn FnMut(Preparing<'_>)) {
        for (number, model) in self.models.iter().enumerate() {
            let named = model.named.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((opened, path)) = named else { continue };
            if should_stop() {
                return;
            }
            if model.stop.is_set() {
                told(Preparing::Cancelled { name: &model.name });
                continue;
            }
            // Nothing of a panic is seen later: what it was working on is dropped with it, and the next one has its turn.
            let made = catch_unwind(AssertUnwindSafe(|| self.make(number, opened, &path, told)));
            if let Err(error) = made.unwrap_or_else(|_| Err(LibraryError::Broken { path })) {
                if should_stop() {
                    return;
                }
                if model.stop.is_set() {
                    model.status.send_replace(Status::Cancelled);
                    told(Preparing::Cancelled { name: &model.name });
                    continue;
                }
                // Errors name files, and where those lie is nothing a browser need know.
                let why = "the terminal of the server says why".to_owned();
                model.status.send_replace(Status::Failed { error: why });
                told(Preparing::Failed { name: &model.name, error });
            }
        }
    }

    /// Explains one and keeps what comes of it.
    fn make(&self, number: usize, opened: Opened, path: &Path, told: &mut dyn FnMut(Preparing<'_>)) -> Result<(), LibraryError> {
        let model = &self.models[number];
        let name = model.name.as_str();
        let mut progress = |progress: Progress| {
            model.status.send_replace(Status::of(progress));
            told(Preparing::Working { name, progress });
        };
        let (shown, source) = self.explained(opened, path, &model.stop, &mut progress)?;
        // Said before it is there to be seen, so that nobody sees a model whose warnings are still to come.
        told(Preparing::Ready { name, warnings: &shown.explained.report.corpus.warnings });
        self.keep(number, shown, source);
        Ok(())
    }

    fn explained(
        &self,
        opened: Opened,
        path: &Path,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Shown, Source), LibraryError> {
        let show = self.options.show(stop.clone());
        let made = match opened {
            Opened::Imported(model) => imported(*model, path, &show, progress)?,
            opened => {
                let shown = Shown::of(&opened, path, &show, progress)?;
                (shown, source(opened, path, &self.options, progress)?)
            }
        };
        // Writing targets and summing for questions go on to their end.
        if stop.is_set() { Err(ShowError::Explain(ExplainError::Stopped).into()) } else { Ok(made) }
    }

    /// Breaks off what is being explained, and begins nothing more, without a word: the server stops.
    pub(crate) fn stop(&self) {
        self.models.iter().for_each(|model| model.stop.set());
    }

    /// Keeps what was made of a model: its report first, so that whoever finds it ready finds that too.
    fn keep(&self, number: usize, mut shown: Shown, source: Source) {
        // Where it lies on this machine is nothing a browser need know.
        shown.explained.report.model.path = None;
        if shown.explained.report.corpus.source.starts_with("the recording ") {
            shown.explained.report.corpus.source = "a recording".to_owned();
        }
        let report = Arc::new(ServedReport::new(number, &shown));
        self.reports.write().unwrap_or_else(PoisonError::into_inner)[number] = Some(report);
        self.models[number].source.set(source).ok();
        self.models[number].status.send_replace(Status::Done { report: number });
    }

    /// Adds a report; gives its number.
    pub(crate) fn add_report(&self, report: ServedReport) -> usize {
        let mut reports = self.reports.write().unwrap_or_else(PoisonError::into_inner);
        reports.push(Some(Arc::new(report)));
        reports.len() - 1
    }

    /// All of them by number; `None` where one is not there yet.
    pub(crate) fn reports(&self) -> Vec<Option<Arc<ServedReport>>> {
        self.reports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn n_reports(&self) -> usize {
        self.reports.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn report(&self, number: usize) -> Option<Arc<ServedReport>> {
        self.reports.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned().flatten()
    }

    /// What there is, for people.
    pub fn summaries(&self) -> Vec<Summary> {
        let summary =
            |model: &Model| Summary { name: model.name.clone(), description: model.description.clone(), is_live: model.kind.is_live() };
        self.models.iter().map(summary).collect()
    }

    /// What a browser's tab says.
    pub(crate) fn title(&self) -> String {
        match self.models.as_slice() {
            [] => "Crosslens".to_owned(),
            models => format!("Crosslens: {}", models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")),
        }
    }
}
