//! What is served: the runs, recordings and reports named on the command line, and what jobs add.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crosslens_lab::analysis::Recording;
use crosslens_lab::analysis::explain::{Explained, Options, Progress};
use crosslens_lab::analysis::page::{average_bytes, codes_json, report_json, sample_bytes, sample_header};
use crosslens_lab::analysis::report::Verdict;
use crosslens_lab::{ImportedModel, ImportedOptions, LiveError, LiveModel, Opened, Shard, ShowError, ShowOptions, Shown};
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
    fn show(&self) -> ShowOptions {
        let Self { n_sentences, seed, samples, n_threads, .. } = *self;
        let explain = Options { samples, seed, geometry: true, n_threads, ..Options::default() };
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

/// What can be done with it besides looking at its report.
pub(crate) enum Source {
    /// Any question can be asked.
    Live(Arc<LiveModel>),
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
            Source::Live(ref live) if live.run().is_some() => Kind::Run,
            Source::Live(_) => Kind::Model,
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

/// Everything that is served.
pub struct Library {
    pub(crate) models: Vec<Model>,
    reports: RwLock<Vec<Arc<ServedReport>>>,
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

/// A model of another program: fitted on its corpus or by given sums, explained on its corpus, asked in any case.
fn imported(
    model: ImportedModel,
    path: &Path,
    show: &ShowOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Shown, Source), LibraryError> {
    let n_threads = show.explain.n_threads;
    let sentences = show.imported.sentences(&model, show.n_sentences, n_threads).map_err(ShowError::from)?;
    let given = show.imported.sums(&model, path)?;
    let shown = match &sentences {
        Some(sentences) => Shown::of_imported(&model, sentences, given.as_deref(), show, progress)?,
        None => {
            let explained = Explained::of_no_sentence(model.description(), &no_verdict(given.is_some()));
            Shown { name: String::new(), explained, training: Vec::new(), timeline: None }
        }
    };
    let sums = match (given, &sentences) {
        (None, Some(sentences)) => {
            let stats = model.fit(sentences, Shard::WHOLE, n_threads, progress).map_err(ShowError::from)?;
            Some(stats.streams.into_iter().map(|stream| stream.sums).collect())
        }
        (given, _) => given,
    };
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
    /// Opens everything; runs and recordings are explained first, and runs kept ready for questions. `progress` is told of each path.
    pub fn open(paths: &[PathBuf], options: &OpenOptions, progress: &mut dyn FnMut(&Path, Progress)) -> Result<Self, LibraryError> {
        let mut library = Self { models: Vec::new(), reports: RwLock::default() };
        for path in paths {
            library.add(path, options, &mut |done| progress(path, done))?;
        }
        Ok(library)
    }

    fn add(&mut self, path: &Path, options: &OpenOptions, progress: &mut dyn FnMut(Progress)) -> Result<(), LibraryError> {
        let show = options.show();
        let (mut shown, source) = if path.extension().is_some_and(|extension| extension == "json") || !path.exists() {
            (Shown::open(path, &show, progress)?, Source::Report)
        } else {
            let opened = options.imported.open(path).map_err(ShowError::from)?;
            match opened {
                Opened::Imported(model) => imported(*model, path, &show, progress)?,
                opened => {
                    let shown = Shown::of(&opened, path, &show, progress)?;
                    (shown, source(opened, path, options, progress)?)
                }
            }
        };
        // Where it lies on this machine is nothing a browser need know.
        shown.explained.report.model.path = None;
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
            is_live: matches!(model.source, Source::Live(_)),
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
