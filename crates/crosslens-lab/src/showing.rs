//! From a run, a recording or a saved report to what a page shows.

use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{ExplainError, Explained, Options, Progress};
use crosslens_analysis::page::Page;
use crosslens_analysis::report::Report;
use crosslens_analysis::timeline::{Timeline, TrainingPoint};
use crosslens_analysis::{Mismatch, Recordable, Recording, RecordingError, Stats, StatsError, Sums};
use crosslens_nets::train::{FolderError, Metrics, RunFolder};

use crate::{
    Attention, Choices, ImportedModel, ImportedSentences, OpenError, Opened, Sentences, SentencesError, TrainedModel, explain_recording,
};

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShowError {
    /// Nothing is there.
    #[error("there is no `{path}`")]
    Nothing {
        /// Where nothing is.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A report, its samples or a timeline cannot be read.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// Metrics cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A model of another program, which brings no sentences to be explained on.
    #[error("`{path}` was not trained here and has no task to draw sentences from: it needs --corpus")]
    NoSentences {
        /// The model.
        path: PathBuf,
    },
    /// A file that goes with it cannot be read.
    #[error("cannot read `{path}`, which {option} names")]
    Unreadable {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The sentences for it cannot be had.
    #[error(transparent)]
    Sentences(#[from] SentencesError),
    /// Sums that cannot be read.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Sums of another model.
    #[error("the sums in `{sums}` are not those of `{path}`: {mismatch}")]
    OtherSums {
        /// The file of sums.
        sums: PathBuf,
        /// The model.
        path: PathBuf,
        /// How they differ.
        mismatch: Mismatch,
    },
    /// It cannot be explained.
    #[error(transparent)]
    Explain(#[from] ExplainError),
}

/// How a model or a recording is explained for a page.
#[derive(Clone, Debug)]
pub struct ShowOptions {
    /// Sentences to explain it on; of a recording at most so many.
    pub n_sentences: u64,
    /// Draws the sentences of a run's task.
    pub seed: u64,
    /// For models that were not trained here, which have no task to draw sentences from.
    pub imported: ImportedOptions,
    /// The rest; its `samples` is how many sentences are shown, also of a saved report.
    pub explain: Options,
}

impl ShowOptions {
    /// How a model of another program is explained.
    pub fn of_imported(&self) -> Options {
        Options { causal: self.imported.causal, ..self.explain.clone() }
    }

    /// The same for a corpus: without sums of others one half of it is fitted on and the other explained.
    #[must_use]
    pub fn halving(mut self, corpus: &ImportedSentences, given: Option<&[Sums]>) -> Self {
        self.explain.held_out = ImportedSentences::are_halved(corpus.len(), given);
        self
    }
}

/// What a model that was not trained here is explained with.
#[derive(Clone, Debug, Default)]
pub struct ImportedOptions {
    /// Sentences, one a line: a source, or a source and a target.
    pub corpus: Option<PathBuf>,
    /// Sums to fit from, instead of those of the corpus.
    pub components: Option<PathBuf>,
    /// Whether attention of both sides to themselves is explained too, also of networks trained here that have it.
    pub self_attention: bool,
    /// Sentences the causal checks run on: every head is checked, which for so many as a run takes would be long.
    pub causal: u64,
    /// How it is opened.
    pub choices: Choices,
}

impl ImportedOptions {
    /// Whether anything is asked for that only models of other programs need.
    pub fn is_asked(&self) -> bool {
        self.corpus.is_some() || self.components.is_some()
    }

    /// Whether the files can be read, for whoever uses them only later; what is in them is seen then.
    pub fn check_files(&self) -> Result<(), ShowError> {
        for (option, path) in [("--corpus", &self.corpus), ("--components", &self.components)] {
            let Some(path) = path else { continue };
            let opened = if path.is_dir() { std::fs::read_dir(path).map(drop) } else { std::fs::File::open(path).map(drop) };
            opened.map_err(|source| ShowError::Unreadable { option, path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Opens a path with the attention that is asked for.
    pub fn open(&self, path: &Path) -> Result<Opened, OpenError> {
        let attention = if self.self_attention { Attention::All } else { Attention::Cross };
        if ImportedModel::is_at(path) {
            return Ok(Opened::Imported(Box::new(ImportedModel::open_with(path, &self.choices, attention)?)));
        }
        Ok(match Opened::open(path)? {
            Opened::Model(model) => Opened::Model(Box::new(TrainedModel { attention, ..*model })),
            opened => opened,
        })
    }

    /// The first so many sentences, where a corpus is given; `progress` hears how many targets the model has written for them.
    pub fn sentences(
        &self,
        model: &ImportedModel,
        most: u64,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<ImportedSentences>, SentencesError> {
        self.corpus.as_deref().map(|corpus| model.first_sentences(corpus, most, n_threads, progress)).transpose()
    }

    /// The sums, where they are given, which must be those of the model at `path`.
    pub fn sums(&self, model: &ImportedModel, path: &Path) -> Result<Option<Vec<Sums>>, ShowError> {
        let Some(file) = &self.components else { return Ok(None) };
        let differ = |mismatch| ShowError::OtherSums { sums: file.clone(), path: path.to_owned(), mismatch };
        Stats::load(file)?.sums_for(model.description()).map(Some).map_err(differ)
    }
}

/// One explanation with all that a page shows beside it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What it is called in the page.
    pub name: String,
    /// The report and its sentences.
    pub explained: Explained,
    /// The curves of its training, where it was trained here.
    pub training: Vec<TrainingPoint>,
    /// What was found at its checkpoints, where that was recorded.
    pub timeline: Option<Timeline>,
}

impl Shown {
    /// Opens a saved report, or explains a run or a recording first.
    pub fn open(path: &Path, options: &ShowOptions, progress: &mut dyn FnMut(Progress)) -> Result<Self, ShowError> {
        if !path.exists() {
            return Err(ShowError::Nothing { path: path.to_owned() });
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            return Self::of_report(path, options);
        }
        Self::of(&options.imported.open(path)?, path, options, progress)
    }

    /// Explains what was opened at `path`.
    pub fn of(opened: &Opened, path: &Path, options: &ShowOptions, progress: &mut dyn FnMut(Progress)) -> Result<Self, ShowError> {
        let shown = match opened {
            Opened::Model(model) => Self::of_model(model, RunFolder::at(path), options, progress)?,
            Opened::Imported(model) => return Self::of_imported_at(path, model, options, &mut |_| (), progress),
            Opened::Recording(recording) => Self::of_recording(recording, options, progress)?,
        };
        shown.found_at(path)
    }

    /// What lies at a path is called in the page.
    pub fn name_at(path: &Path) -> String {
        let name = path.file_stem().or_else(|| path.file_name()).unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Says where it was found, and adds what lies there besides.
    pub fn found_at(self, path: &Path) -> Result<Self, ShowError> {
        let mut shown = self;
        shown.name = Self::name_at(path);
        shown.explained.report.model.path = Some(path.to_string_lossy().into_owned());
        if path.is_dir() {
            shown.timeline = timeline(path)?;
        }
        Ok(shown)
    }

    /// Explains a model of another program that was opened at `path`; `told` hears of the sentences before it starts.
    pub fn of_imported_at(
        path: &Path,
        model: &ImportedModel,
        options: &ShowOptions,
        told: &mut dyn FnMut(&ImportedSentences),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ShowError> {
        let sentences = options.imported.sentences(model, options.n_sentences, options.explain.n_threads, progress)?;
        let sentences = sentences.ok_or_else(|| ShowError::NoSentences { path: path.to_owned() })?;
        let sums = options.imported.sums(model, path)?;
        told(&sentences);
        let options = options.clone().halving(&sentences, sums.as_deref());
        Self::of_imported(model, &sentences, sums.as_deref(), &options, progress)?.found_at(path)
    }

    fn of_report(path: &Path, options: &ShowOptions) -> Result<Self, ShowError> {
        let explained = Explained::load(path, options.explain.samples)?;
        let (training, timeline) = match run_of_report(path, &explained.report) {
            Some(run) => (curves(&RunFolder::at(&run))?, timeline(&run)?),
            None => Default::default(),
        };
        Ok(Self { name: Self::name_at(path), explained, training, timeline })
    }

    fn of_model(
        model: &TrainedModel,
        folder: RunFolder,
        options: &ShowOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ShowError> {
        let sentences = Sentences::Task { seed: options.seed, n_samples: options.n_sentences };
        let explained = model.explain(&sentences, None, &options.explain, None, progress)?;
        Ok(Self { name: String::new(), explained, training: curves(&folder)?, timeline: None })
    }

    /// Explains a model of another program on these sentences, by sums of others if they are given.
    pub fn of_imported(
        model: &ImportedModel,
        sentences: &ImportedSentences,
        sums: Option<&[Sums]>,
        options: &ShowOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ShowError> {
        let explained = model.explain(sentences, sums, &options.of_imported(), None, progress)?;
        Ok(Self { name: String::new(), explained, training: Vec::new(), timeline: None })
    }

    fn of_recording(recording: &Recording, options: &ShowOptions, progress: &mut dyn FnMut(Progress)) -> Result<Self, ShowError> {
        let explained = explain_recording(recording, options.n_sentences, None, &options.explain, progress)?;
        Ok(Self { name: String::new(), explained, training: Vec::new(), timeline: None })
    }

    /// The page with this in it.
    pub fn on(&self, page: Page) -> Page {
        let page = page.report(&self.name, &self.explained.report, &self.explained.samples).training(&self.training);
        match &self.timeline {
            Some(timeline) => page.timeline(timeline),
            None => page,
        }
    }
}

/// The run that the report at `path` explains: the one in whose folder it lies; else the one at the path that was typed then, if the same
/// model is there, since from another working directory that path may lead to another run.
pub fn run_of_report(path: &Path, report: &Report) -> Option<PathBuf> {
    let holds_run = |folder: &Path| RunFolder::at(folder).holds_run();
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if holds_run(beside) {
        return Some(beside.to_owned());
    }
    let typed = report.model.path.as_ref().map(Path::new).filter(|folder| holds_run(folder))?;
    let subject = TrainedModel::open(typed).ok()?.subject(1).ok()?;
    (subject.description().model_hash == report.model.hash).then(|| typed.to_owned())
}

/// Loss and accuracy along the training of a run.
pub fn curves(folder: &RunFolder) -> Result<Vec<TrainingPoint>, FolderError> {
    let point = |metrics: &Metrics| TrainingPoint {
        step: metrics.step,
        train_loss: Some(metrics.train_loss),
        loss: Some(metrics.loss),
        word_accuracy: Some(metrics.word_accuracy),
        phrase_accuracy: Some(metrics.phrase_accuracy),
    };
    Ok(folder.read_metrics()?.iter().map(point).collect())
}

/// What was found at the checkpoints of a run; `None` where that was not recorded.
fn timeline(run: &Path) -> Result<Option<Timeline>, RecordingError> {
    let timeline = Timeline::load(&RunFolder::at(run).timeline_file())?;
    Ok(Some(timeline).filter(|timeline| !timeline.points.is_empty()))
}

#[cfg(test)]
mod tests {
    use crosslens_nets::network::Family;
    use crosslens_nets::train::{Event, Run, Wish};

    use super::*;
    use crate::recipes::default_config;

    fn trained(folder: &Path, steps: u64) -> TrainedModel {
        let mut config = default_config("one-to-one", Family::Ao).expect("a shipped recipe");
        (config.network.hidden, config.training.steps, config.training.batch) = (8, steps, 4);
        (config.training.evaluate_every, config.training.evaluate_samples) = (1, 4);
        let run = Run::prepare(config, RunFolder::at(folder)).expect("a run");
        run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        TrainedModel::open(folder).expect("the model it saved")
    }

    /// The curves on a page are those of the run in whose folder the report lies, or else of the very model it explains.
    #[test]
    fn a_report_brings_the_curves_of_its_own_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
        let model = trained(&own, 3);
        trained(&other, 5);
        let explain = Options { causal: 0, samples: 1, n_threads: 1, ..Options::default() };
        let options = ShowOptions { n_sentences: 4, seed: 1, imported: ImportedOptions::default(), explain };
        let mut explained =
            model.explain(&Sentences::Task { seed: 1, n_samples: 4 }, None, &options.explain, None, &mut |_| ()).expect("it");
        let mut n_points = |path: &Path, typed: &Path| {
            explained.report.model.path = Some(typed.to_string_lossy().into_owned());
            explained.save(path).expect("writable");
            Shown::open(path, &options, &mut |_| ()).expect("a report").training.len()
        };
        let (beside, away) = (own.join("report.json"), folder.path().join("away.json"));
        assert_eq!((n_points(&beside, &own), n_points(&beside, &other), n_points(&beside, Path::new("gone"))), (3, 3, 3));
        assert_eq!((n_points(&away, &own), n_points(&away, &other), n_points(&away, Path::new("gone"))), (3, 0, 0));
    }
}
