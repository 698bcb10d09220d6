//! One trained network and what was found in it.

use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{ExplainError, Options, Progress, Rerun, SaveError};
use crosslens_analysis::report::{Report, SharesReport, SiteReport};
use crosslens_analysis::timeline::{Timeline, TimelinePoint};
use crosslens_analysis::{Estimator, Fed, FitError, Pair, RecordError, Recordable, RecordingError, replace_file};
use crosslens_nets::network::{Engine, Feeding, Network};
use crosslens_nets::tasks::Split;
use crosslens_nets::train::{RunFolder, Samples, evaluate};
use serde::{Deserialize, Serialize};

use super::claim::Head;
use super::exactness::Exactness;
use super::looks::Looks;
use super::specimens::Gate;
use super::together::Together;
use crate::{Sentences, TrainedModel};

/// Sentences whose states are added up again.
const N_EXACT: u64 = 200;
/// Draws the fresh sentences; no run has seen them.
const FRESH: u64 = 0x5EED_0005;
/// Sentences kept for the page.
const SHOWN: usize = 8;
/// The file beside `report.json`.
const STUDY_FILE: &str = "study.json";
/// Count it up with every change of what is trained, measured or kept that the configuration of a run does not tell: networks are found
/// again by their configuration, the program's version and this, and under another one they are trained and studied anew.
pub(super) const STUDY_SCHEMA: &str = "crosslens-study/4";
/// Attention rebuilt from steps and residuals, beside what every explanation rebuilds: the terms of a score without a token's part.
pub(super) const WITHOUT_INPUT: &str = "tt,tr,rt,rr";
/// Largest `study.json` that is read.
const MAX_BYTES: u64 = 64 << 20;

/// A network of a free-running phrase accuracy below this does not do its task, and no claim is judged by it.
pub const GATE: f64 = 0.97;
/// On real sentences: a network that gets fewer words right beyond those that uniform attention leaves right has not learnt to look. An
/// independent prototype's first network of that kind came to 0.03, and its numbers meant little.
pub const TEXT_GATE: f64 = 0.05;
/// And one that gets fewer words right at all has not learnt to translate: what it gains by looking may be chance.
pub const TEXT_WORDS: f64 = 0.25;

/// What claims are judged by.
#[derive(Clone, Debug)]
pub struct Study {
    /// The explanation, by the paper's estimator, with the shares of the weights it began with beside.
    pub report: Report,
    /// Beyond it.
    pub notes: Notes,
    /// Along training, if it was recorded.
    pub timeline: Vec<TimelinePoint>,
}

/// What a report does not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notes {
    schema: String,
    /// Single sentences, counted.
    pub looks: Looks,
    /// The average attention of the first head, `[query, key]`; empty without one.
    pub average: Vec<Vec<f64>>,
    /// Shares by head with both parts fitted at once.
    pub joint: Vec<Option<SharesReport>>,
    /// Free-running share of words right without the encoding of positions, as every share of words right; null for networks without it.
    pub without_positions: Option<f64>,
    /// Words right with all heads changed at once; null for networks of one head.
    pub together: Option<Together>,
    /// Whether the parts of its states add up.
    pub exactness: Exactness,
    /// Updates made.
    pub steps: u64,
    /// Seconds trained.
    pub seconds: f64,
}

/// Why a network cannot be studied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// It cannot be explained.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// It cannot be run.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its states cannot be split.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// The report cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The notes cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The course of training cannot be read.
    #[error(transparent)]
    Timeline(#[from] RecordingError),
}

/// On what a network is studied.
#[derive(Clone, Copy, Debug)]
pub struct StudyOptions {
    /// Fresh sentences it is explained on.
    pub n_sentences: u64,
    /// Those of them it is run again on with something changed.
    pub n_causal: u64,
    /// Threads; 0 for one per core. No result depends on it.
    pub n_threads: usize,
}

impl Default for StudyOptions {
    fn default() -> Self {
        Self { n_sentences: 1000, n_causal: 500, n_threads: 0 }
    }
}

impl Study {
    /// Explains a trained network; with its folder, also reads what was recorded along its training.
    pub fn of(
        model: &TrainedModel,
        folder: Option<&Path>,
        options: &StudyOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, StudySamples), StudyError> {
        let &StudyOptions { n_sentences, n_causal, n_threads } = options;
        let sentences = Sentences::Task { seed: FRESH, n_samples: n_sentences };
        let subject = model.subject(n_threads).map_err(ExplainError::Threads)?;
        let has_terms = subject.description().sites.iter().any(|site| !site.map.is_additive());
        let without_input = || WITHOUT_INPUT.parse().expect("terms by their names");
        // As the floors were measured: a decoder that is changed reads what it wrote itself, and its mistakes add up.
        let full = Options {
            samples: n_sentences as usize,
            causal: n_causal,
            rerun: Rerun::Free,
            subsets: has_terms.then(without_input).into_iter().collect(),
            geometry: true,
            n_threads,
            ..Options::default()
        };
        let mut explained = model.explain(&sentences, None, &full, Some(model.config.seed), progress)?;
        let plain = Options { estimator: Estimator::Joint, causal: 0, samples: 0, n_threads, ..Options::default() };
        let joint = model.explain(&sentences, None, &plain, None, progress)?.report;
        let looks = Looks::of(subject.description(), &explained.samples);
        let is_several = subject.description().sites.len() > 1;
        let together = if is_several { Together::of(&subject, &explained.samples, n_causal as usize)? } else { None };
        let pairs: Vec<Pair> = (0..n_sentences.min(N_EXACT)).map(|number| sentences.pair(model, number)).collect();
        let exactness = Exactness::of(&subject, &subject.record(&pairs, Fed::Own)?)?;
        explained.samples.sentences.truncate(SHOWN);
        explained.samples.distances.truncate(SHOWN);
        let timeline = folder.map(|folder| Timeline::load(&RunFolder::at(folder).timeline_file())).transpose()?;
        let last = folder.and_then(|folder| RunFolder::at(folder).read_metrics().ok()?.pop());
        let notes = Notes {
            schema: STUDY_SCHEMA.into(),
            looks,
            average: explained.samples.averages.first().cloned().unwrap_or_default(),
            joint: joint.sites.into_iter().map(|site| site.shares).collect(),
            without_positions: without_positions(model, options)?,
            together,
            exactness,
            steps: last.map_or(0, |line| line.step),
            seconds: last.map_or(0.0, |line| line.seconds),
        };
        let study = Self { report: explained.report.clone(), notes, timeline: timeline.map_or(Vec::new(), |timeline| timeline.points) };
        Ok((study, StudySamples(explained)))
    }

    /// Reads what an earlier call kept in a run folder; `None` where there is nothing whole.
    pub(super) fn load(folder: &Path) -> Option<Self> {
        let report = Report::load(&folder.join("report.json")).ok()?;
        let path = folder.join(STUDY_FILE);
        let is_small = std::fs::metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_BYTES);
        let notes: Notes = if is_small { serde_json::from_slice(&std::fs::read(&path).ok()?).ok()? } else { return None };
        let timeline = recorded(folder).ok()?;
        (notes.schema == STUDY_SCHEMA).then_some(Self { report, notes, timeline })
    }

    /// Free-running share of sentences right.
    pub fn phrase_accuracy(&self) -> f64 {
        self.report.task.phrase_accuracy.unwrap_or_default()
    }

    /// Share of words right on the sentences it was run again on; no number where it was not.
    pub(super) fn words_right(&self) -> f64 {
        self.report.unchanged.map_or(f64::NAN, |unchanged| unchanged.word_accuracy)
    }

    /// Share of words right beyond those that uniform attention leaves right, on the same sentences; no number without attention.
    pub fn gained_by_attention(&self) -> f64 {
        self.words_right() - Head(self.site()).words("uniform")
    }

    /// Whether the network does what is asked of it; what is no number never does.
    pub fn passes(&self, gate: Gate) -> bool {
        match gate {
            Gate::Phrases => self.phrase_accuracy() >= GATE,
            Gate::Attention => self.words_right() >= TEXT_WORDS && self.gained_by_attention() >= TEXT_GATE,
            Gate::Open => true,
        }
    }

    /// The first head; networks without attention have none.
    pub fn site(&self) -> Option<&SiteReport> {
        self.report.sites.first()
    }
}

/// The explanation with the sentences for the page.
pub struct StudySamples(crosslens_analysis::explain::Explained);

impl StudySamples {
    /// Writes `report.json`, `report.samples.safetensors` and, last, `study.json`: a folder that has the last has all.
    pub(super) fn save(mut self, study: &Study, folder: &Path) -> Result<(), StudyError> {
        self.0.report.model.path = Some(folder.to_string_lossy().into_owned());
        self.0.save(&folder.join("report.json"))?;
        let path = folder.join(STUDY_FILE);
        let text = serde_json::to_vec(&study.notes).expect("notes have string or number keys and plain numbers");
        replace_file(&path, |file| file.write_all(&text)).map_err(|source| StudyError::Write { path, source })
    }
}

/// What was recorded along training; nothing where it was not.
fn recorded(folder: &Path) -> Result<Vec<TimelinePoint>, RecordingError> {
    Ok(Timeline::load(&RunFolder::at(folder).timeline_file())?.points)
}

/// The same weights, but positions of amplitude 0.
fn without_positions(model: &TrainedModel, options: &StudyOptions) -> Result<Option<f64>, ExplainError> {
    let mut config = model.config.network.clone();
    let Some(positions) = &mut config.positions else { return Ok(None) };
    positions.amplitude = 0.0;
    let (n_source, n_target) = (model.task.source_vocabulary().len(), model.task.target_vocabulary().len());
    let network = Network::new(&config, n_source, n_target, model.config.seed).expect("only the amplitude is another");
    let mut engine = Engine::new(options.n_threads)?;
    let samples = Samples { split: Split::Test, seed: FRESH, n_samples: options.n_causal as usize };
    Ok(Some(evaluate(model.task.as_ref(), &network, &mut engine, &model.weights, samples, Feeding::Free).word_accuracy()))
}
