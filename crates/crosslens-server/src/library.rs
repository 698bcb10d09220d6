//! What is served: the runs, recordings and reports named on the command line, and what jobs add.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crosslens_lab::analysis::Recording;
use crosslens_lab::analysis::explain::{Options, Progress};
use crosslens_lab::analysis::page::{average_bytes, report_json, sample_bytes, sample_header};
use crosslens_lab::analysis::report::Verdict;
use crosslens_lab::{LiveError, LiveModel, Opened, ShowError, ShowOptions, Shown};
use hyper::body::Bytes;
use serde::Serialize;

use crate::Limits;

/// How models are explained when they are opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Sentences that components are fitted on, and the first report is made from.
    pub n_sentences: u64,
    /// Draws them.
    pub seed: u64,
    /// Sentences of it that are kept in full.
    pub samples: usize,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { n_sentences: 1000, seed: 1_000_003, samples: 12, n_threads: 0 }
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
}

/// What kind of thing was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Run,
    Recording,
    Report,
}

/// What can be done with it besides looking at its report.
pub(crate) enum Source {
    /// Any question can be asked.
    Run(Arc<LiveModel>),
    /// More of it can be explained.
    Recording(Arc<Recording>),
    /// Nothing.
    Report,
}

/// One thing that was named.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// Its first report's number.
    pub(crate) report: usize,
}

impl Model {
    pub(crate) fn kind(&self) -> Kind {
        match self.source {
            Source::Run(_) => Kind::Run,
            Source::Recording(_) => Kind::Recording,
            Source::Report => Kind::Report,
        }
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
        let value = serde_json::to_value(report).expect("a report has string keys");
        let headers: Vec<_> = samples.sentences.iter().map(|sample| sample_header(samples, sample)).collect();
        let whole = report_json(&shown.name, value, &headers, &shown.training, shown.timeline.as_ref());
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

/// Everything that is served.
pub struct Library {
    pub(crate) models: Vec<Model>,
    reports: RwLock<Vec<Arc<ServedReport>>>,
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
    /// Opens everything; runs and recordings are explained first, and runs kept ready for questions. `progress` is told of each path.
    pub fn open(paths: &[PathBuf], options: &OpenOptions, progress: &mut dyn FnMut(&Path, Progress)) -> Result<Self, LibraryError> {
        let mut library = Self { models: Vec::new(), reports: RwLock::default() };
        for path in paths {
            library.add(path, options, &mut |done| progress(path, done))?;
        }
        Ok(library)
    }

    fn add(&mut self, path: &Path, options: &OpenOptions, progress: &mut dyn FnMut(Progress)) -> Result<(), LibraryError> {
        let OpenOptions { n_sentences, seed, samples, n_threads } = *options;
        let explain = Options { samples, seed, geometry: true, n_threads, ..Options::default() };
        let mut shown = Shown::open(path, &ShowOptions { n_sentences, seed, explain }, progress)?;
        // Where it lies on this machine is nothing a browser need know.
        shown.explained.report.model.path = None;
        let source = if path.extension().is_some_and(|extension| extension == "json") {
            Source::Report
        } else {
            match Opened::open(path).map_err(ShowError::from)? {
                Opened::Recording(recording) => Source::Recording(Arc::new(*recording)),
                Opened::Imported(_) => return Err(ShowError::NoSentences { path: path.to_owned() }.into()),
                Opened::Model(model) => {
                    let live = LiveModel::new(*model, seed, n_sentences, Limits::WORDS, progress);
                    Source::Run(Arc::new(live.map_err(|source| LibraryError::Live { path: path.to_owned(), source })?))
                }
            }
        };
        if shown.explained.report.corpus.source.starts_with("the recording ") {
            shown.explained.report.corpus.source = "a recording".to_owned();
        }
        let report = self.add_report(ServedReport::new(self.models.len(), &shown));
        self.models.push(Model { name: shown.name, source, report });
        Ok(())
    }

    /// Adds a report; gives its number.
    pub(crate) fn add_report(&self, report: ServedReport) -> usize {
        let mut reports = self.reports.write().unwrap_or_else(PoisonError::into_inner);
        reports.push(Arc::new(report));
        reports.len() - 1
    }

    pub(crate) fn reports(&self) -> Vec<Arc<ServedReport>> {
        self.reports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn report(&self, number: usize) -> Option<Arc<ServedReport>> {
        self.reports.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }

    /// What there is, for people.
    pub fn summaries(&self) -> Vec<Summary> {
        let summary = |model: &Model| Summary {
            name: model.name.clone(),
            description: self.report(model.report).map(|report| report.description.clone()).unwrap_or_default(),
            is_live: matches!(model.source, Source::Run(_)),
        };
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
