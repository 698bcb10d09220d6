//! From a model and sentences to an explanation.

use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::{CorpusError, CorpusSpec, CorpusSpecError, Filter, TextPair};
use crosslens_analysis::explain::{Corpus, ExplainError, Explained, Extent, First, Live, Options, Progress, explain};
use crosslens_analysis::report::{ControlCorpus, CorpusReport};
use crosslens_analysis::tsv::{TsvError, Words, read_pairs};
use crosslens_analysis::{Fed, Pair, Recordable, Recording, Sums};
use crosslens_nets::tasks::{END_WORD, Split};

use crate::{AttendError, TrainedModel};

/// What one sentence tells, where nothing says what positions and tokens are like elsewhere.
pub const ONE_ALONE: &str = "one sentence shows attention and scores, but not what they are made of: its positions and tokens explain \
                             all of it, so shares and verdict say nothing";

/// Why the sentences of a file cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SentenceFileError {
    /// Pairs of words.
    #[error(transparent)]
    Tsv(#[from] TsvError),
    /// Pairs of text.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// No name of a corpus.
    #[error(transparent)]
    Name(#[from] CorpusSpecError),
    /// A line that the model cannot read.
    #[error("`{path}`, line {line}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// The reason.
        source: Box<AttendError>,
    },
}

/// Sentences to explain a model on.
#[derive(Clone, Debug)]
pub enum Sentences {
    /// Fresh ones of its own task.
    Task {
        /// Draws them.
        seed: u64,
        /// How many.
        n_samples: u64,
    },
    /// These.
    Listed(Vec<Pair>),
}

impl Sentences {
    /// The pairs of a file, in the words of a model; for a model of text any corpus that [`CorpusSpec`] names.
    pub fn read(path: &Path, model: &TrainedModel) -> Result<Self, SentenceFileError> {
        if model.task.text().is_some() {
            return Self::read_text(path, model);
        }
        let (source, target) = (model.task.source_vocabulary(), model.task.target_vocabulary());
        let side = |vocabulary| Words { vocabulary, end: crosslens_analysis::Vocabulary::token(vocabulary, END_WORD) };
        Ok(Self::Listed(read_pairs(path, side(source), side(target))?))
    }

    fn read_text(path: &Path, model: &TrainedModel) -> Result<Self, SentenceFileError> {
        let spec: CorpusSpec = path.to_string_lossy().parse()?;
        let mut pairs = Vec::new();
        for pair in spec.open(&Filter { dedupe: false, ..Filter::default() })? {
            let TextPair { source, target, line } = pair?;
            let bad = |error: AttendError| SentenceFileError::Line { path: path.to_owned(), line, source: Box::new(error) };
            pairs.push(Pair::new(model.read_source(&source).map_err(bad)?.0, model.read_target(&target).map_err(bad)?.0));
        }
        Ok(Self::Listed(pairs))
    }

    /// The pairs of a file, or else so many fresh ones of the model's task.
    pub fn choose(model: &TrainedModel, file: Option<&Path>, seed: u64, n_samples: u64) -> Result<Self, SentenceFileError> {
        match file {
            Some(path) => Self::read(path, model),
            None => Ok(Self::Task { seed, n_samples }),
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Task { n_samples, .. } => *n_samples,
            Self::Listed(pairs) => pairs.len() as u64,
        }
    }

    /// How long they are and how many different tokens they have.
    pub fn extent(&self, model: &TrainedModel) -> Extent {
        match self {
            Self::Listed(pairs) => Extent::of(pairs.iter()).keeping(pairs.iter()),
            Self::Task { .. } => Extent::of((0..self.len()).map(|number| self.pair(model, number)).collect::<Vec<Pair>>().iter()),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn pair(&self, model: &TrainedModel, number: u64) -> Pair {
        match self {
            Self::Task { seed, .. } => model.task.pair(Split::Test, *seed, number),
            Self::Listed(pairs) => pairs[number as usize].clone(),
        }
    }
}

/// Untrained weights for comparison are explained on at most so many sentences.
pub(crate) const CONTROL_SENTENCES: u64 = 200;

impl TrainedModel {
    /// Explains the model; with `control`, beside what untrained weights of the same shape would give.
    pub fn explain(
        &self,
        sentences: &Sentences,
        given: Option<&[Sums]>,
        options: &Options,
        control: Option<u64>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Explained, ExplainError> {
        let subject = self.subject(options.n_threads)?;
        let pair = |number| sentences.pair(self, number);
        let corpus = Live { model: &subject, pair: &pair, n_pairs: sentences.len(), fed: Fed::Own };
        let mut explained = explain(&corpus, given, options, progress)?;
        if let Some(untrained) = control.and_then(|seed| subject.untrained(seed)) {
            let n_pairs = sentences.len().min(CONTROL_SENTENCES);
            let corpus = Live { model: untrained.as_ref(), pair: &pair, n_pairs, fed: Fed::Own };
            add_control(&mut explained, &corpus, options, progress)?;
        }
        explained.report.corpus.source = match sentences {
            Sentences::Task { seed, .. } => format!("fresh sentences of {}, seed {seed}", self.config.task.name()),
            Sentences::Listed(_) => "a file".into(),
        };
        Ok(explained)
    }
}

/// Puts beside each site what untrained weights give on `corpus`, whose halves are fitted and explained as those of the model were. Their
/// components are their own, also where sums were given: those are of other states.
pub(crate) fn add_control(
    explained: &mut Explained,
    corpus: &dyn Corpus,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ExplainError> {
    let options = Options { causal: 0, samples: 0, bootstrap: 0, rank: None, geometry: false, subsets: Vec::new(), ..options.clone() };
    let control = explain(corpus, None, &options, progress)?.report;
    let CorpusReport { pairs, fitted_pairs, .. } = control.corpus;
    explained.report.corpus.control = Some(ControlCorpus { pairs, fitted_pairs, held_out: options.held_out });
    for (site, control) in explained.report.sites.iter_mut().zip(control.sites) {
        site.control = control.shares;
    }
    Ok(())
}

/// Explains the first `n_sentences` of a recording. Nothing can be run again: causal fields stay empty.
pub fn explain_recording(
    recording: &Recording,
    n_sentences: u64,
    given: Option<&[Sums]>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Explained, ExplainError> {
    let mut explained = explain(&First { corpus: recording, n_sentences }, given, options, progress)?;
    explained.report.corpus.source = format!("the recording {}", recording.path().display());
    Ok(explained)
}
