//! Models of other programs: read, explained, looked at, recorded.

use std::ops::Range;
use std::path::Path;

use crosslens_analysis::explain::{
    Corpus, CorpusError, EveryNth, ExplainError, Explained, Extent, First, Live, Options, Progress, explain,
};
use crosslens_analysis::tsv::{TsvError, read_lines};
use crosslens_analysis::{Attended, Description, Fed, Pair, RecordError, Recordable, Recorded, SiteKind, Stats, Sums, Token, Wishes};
use crosslens_nets::imported::{Imported, UnknownWord};
use crosslens_nets::train::RunFolder;

use crate::attending::{fitted, record_one};
use crate::explaining::{CONTROL_SENTENCES, add_control};
use crate::recording::record_corpus;
use crate::{AttendError, AttendOptions, OpenError, PretrainedModel, RecordOptions, RecordRunError, Sentence, Shard};

/// Why sentences for an imported model cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SentencesError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] TsvError),
    /// What the model writes by itself cannot be had.
    #[error("the sentences cannot be run")]
    Record(#[from] RecordError),
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}

/// Sentences for an imported model. Where the file names no target, it is what the model writes by itself, and counts as not known.
#[derive(Clone, Debug)]
pub struct ImportedSentences {
    pairs: Vec<Pair>,
    /// By pair: whether the target was given.
    told: Vec<bool>,
}

impl ImportedSentences {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.pairs.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// One of them, and whether its target was given; counted round where there are fewer.
    pub(crate) fn around(&self, number: u64) -> Option<(Pair, bool)> {
        let place = usize::try_from(number.checked_rem(self.len())?).ok()?;
        Some((self.pairs[place].clone(), self.told[place]))
    }

    /// How long they are and how many different tokens they have.
    pub fn extent(&self) -> Extent {
        Extent::of(self.pairs.iter())
    }

    /// These, then others.
    #[must_use]
    pub fn then(mut self, others: Self) -> Self {
        self.pairs.extend(others.pairs);
        self.told.extend(others.told);
        self
    }
}

/// A model that another program trained.
#[derive(Debug)]
pub enum ImportedModel {
    /// Read by a mapping of its tensors.
    Mapped(Box<Imported>),
    /// Of Hugging Face's.
    Pretrained(Box<PretrainedModel>),
}

/// What of a model's attention is asked about. A network that was mapped has attention from the decoder to the encoder only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// From the decoder to the encoder.
    Cross,
    /// That, and of both sides to themselves.
    All,
}

impl ImportedModel {
    /// Whether a path leads to one, and not to a run.
    pub fn is_at(path: &Path) -> bool {
        !RunFolder::at(path).holds_run() && (Imported::is_at(path) || PretrainedModel::is_at(path))
    }

    /// Opens a folder with an `import.toml`, a mapping, the weights of a model known to the program, or a folder of Hugging Face's.
    pub fn open(path: &Path, attention: Attention) -> Result<Self, OpenError> {
        if Imported::is_at(path) {
            return Ok(Self::Mapped(Box::new(Imported::open(path)?)));
        }
        let kinds: &[SiteKind] = if attention == Attention::All { &SiteKind::ALL } else { &[SiteKind::Cross] };
        Ok(Self::Pretrained(Box::new(PretrainedModel::open(path, kinds, 0)?)))
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        match self {
            Self::Mapped(model) => model.description(),
            Self::Pretrained(model) => model.description(),
        }
    }

    /// What its decoder reads where nothing else is asked for. A pretrained model is always run on a target, its own where none is given,
    /// so that a row of attention belongs to a token of it.
    pub(crate) fn fed(&self) -> Fed<'static> {
        if matches!(self, Self::Mapped(_)) { Fed::Own } else { Fed::Target }
    }

    pub(crate) fn subject(&self, n_threads: usize) -> std::io::Result<Box<dyn Recordable>> {
        Ok(match self {
            Self::Mapped(model) => Box::new(model.subject(n_threads)?),
            Self::Pretrained(model) => Box::new(model.subject_on(n_threads).map_err(std::io::Error::other)?),
        })
    }

    /// What it writes for each source by itself, at most so many tokens.
    pub(crate) fn write(&self, sources: &[Vec<Token>], most: usize, n_threads: usize) -> Result<Vec<Vec<Token>>, SentencesError> {
        Ok(match self {
            Self::Mapped(model) => model.subject(n_threads)?.write(sources, model.most_steps().min(most))?,
            Self::Pretrained(model) => model.write(sources, most, n_threads)?,
        })
    }

    pub(crate) fn source(&self, text: &str) -> Result<Vec<Token>, AttendError> {
        match self {
            Self::Mapped(model) => self.tokens("source", text, |text| model.source(text)),
            Self::Pretrained(model) => Ok(model.source(text)?.ids),
        }
    }

    pub(crate) fn target(&self, text: &str) -> Result<Vec<Token>, AttendError> {
        match self {
            Self::Mapped(model) => self.tokens("target", text, |text| model.target(text)),
            Self::Pretrained(model) => Ok(model.target(text)?.ids),
        }
    }

    /// Reads a file of sentences, one a line: a source, or a source and a target separated by a tab.
    pub fn sentences(&self, path: &Path, n_threads: usize) -> Result<ImportedSentences, SentencesError> {
        self.first_sentences(path, u64::MAX, n_threads)
    }

    /// The same, but only the first so many of them.
    pub fn first_sentences(&self, path: &Path, most: u64, n_threads: usize) -> Result<ImportedSentences, SentencesError> {
        let mut lines = read_lines(path, |line| {
            let halves = line.split_once('\t').or_else(|| line.split_once(" ||| "));
            let (source, target) = halves.map_or((line, None), |(source, target)| (source, Some(target)));
            if source.trim().is_empty() {
                return Err("the source is empty".to_owned());
            }
            let target = target.filter(|target| !target.trim().is_empty());
            let target = target.map(|target| self.target(target)).transpose().map_err(|error| error.to_string())?;
            Ok((self.source(source).map_err(|error| error.to_string())?, target))
        })?;
        lines.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        self.with_targets(lines, n_threads)
    }

    /// Sources with what the model wrote for them, however it was searched for.
    pub fn written(&self, texts: &[(&str, Vec<Token>)]) -> Result<ImportedSentences, AttendError> {
        let pair = |(source, target): &(&str, Vec<Token>)| Ok(Pair { source: self.source(source)?, target: target.clone() });
        let pairs: Vec<Pair> = texts.iter().map(pair).collect::<Result<_, AttendError>>()?;
        Ok(ImportedSentences { told: vec![false; pairs.len()], pairs })
    }

    /// One sentence.
    pub fn sentence(&self, source: &str, target: Option<&str>, n_threads: usize) -> Result<ImportedSentences, AttendError> {
        let target = target.map(|target| self.target(target)).transpose()?;
        Ok(self.with_targets(vec![(self.source(source)?, target)], n_threads).map_err(Box::new)?)
    }

    /// Where there is no target, the model writes one.
    fn with_targets(&self, lines: Vec<(Vec<Token>, Option<Vec<Token>>)>, n_threads: usize) -> Result<ImportedSentences, SentencesError> {
        let told = lines.iter().map(|(_, target)| target.is_some()).collect();
        let untold: Vec<Vec<Token>> = lines.iter().filter(|(_, target)| target.is_none()).map(|(source, _)| source.clone()).collect();
        let mut written = self.write(&untold, usize::MAX, n_threads)?.into_iter();
        let mut pair = |(source, target): (Vec<Token>, Option<Vec<Token>>)| {
            let target = target.or_else(|| written.next()).expect("one was written for each source without a target");
            Pair { source, target }
        };
        Ok(ImportedSentences { pairs: lines.into_iter().map(&mut pair).collect(), told })
    }

    /// Explains the model; with `control`, beside what untrained weights of the same shape would give.
    pub fn explain(
        &self,
        sentences: &ImportedSentences,
        given: Option<&[Sums]>,
        options: &Options,
        control: Option<u64>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Explained, ExplainError> {
        let subject = self.subject(options.n_threads)?;
        let mut explained = explain(&sentences.of(subject.as_ref(), self.fed()), given, options, progress)?;
        if let Some(untrained) = control.and_then(|seed| subject.untrained(seed)) {
            let corpus = sentences.of(untrained.as_ref(), self.fed());
            add_control(&mut explained, &First { corpus: &corpus, n_sentences: CONTROL_SENTENCES }, options, progress)?;
        }
        explained.report.corpus.source = "a file".into();
        Ok(explained)
    }

    /// Every attention matrix of a sentence. Terms need sums: there is no task to draw sentences from.
    pub fn attend(&self, sentence: Sentence<'_>, options: &AttendOptions<'_>) -> Result<Attended, AttendError> {
        let subject = self.subject(options.n_threads)?;
        let recorded = match sentence {
            Sentence::Fresh(_) => return Err(AttendError::NoTask),
            Sentence::Pair(source, target) => {
                record_one(subject.as_ref(), Pair { source: self.source(source)?, target: self.target(target)? }, Fed::Target)?
            }
            Sentence::Source(text) => {
                let source = self.source(text)?;
                let target = self.write(std::slice::from_ref(&source), usize::MAX, options.n_threads).map_err(Box::new)?.remove(0);
                let mut recorded = record_one(subject.as_ref(), Pair { source, target }, self.fed())?;
                without_target(&mut recorded, self.fed());
                recorded
            }
        };
        let components = match (options.terms, options.given) {
            (false, _) => None,
            (true, None) => return Err(AttendError::NoSums),
            (true, Some(given)) => Some(fitted(given)?),
        };
        let wishes = Wishes { scores: options.scores, terms: components.as_deref(), states: options.states };
        Ok(Attended::of(subject.description(), &recorded, &wishes)?)
    }

    fn tokens(
        &self,
        side: &'static str,
        text: &str,
        of: impl Fn(&str) -> Result<Vec<Token>, UnknownWord>,
    ) -> Result<Vec<Token>, AttendError> {
        if text.trim().is_empty() {
            return Err(AttendError::Empty { side });
        }
        let table = if side == "source" { &self.description().source } else { &self.description().target };
        of(text).map_err(|unknown| AttendError::UnknownWord { side, word: unknown.word, known: table.names.clone() })
    }

    /// Sums the states of one shard of the sentences.
    pub fn fit(
        &self,
        sentences: &ImportedSentences,
        shard: Shard,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, ExplainError> {
        let subject = self.subject(n_threads)?;
        let corpus = sentences.of(subject.as_ref(), self.fed());
        Stats::of(&EveryNth { corpus: &corpus, first: shard.number - 1, n: shard.of }, n_threads, progress)
    }

    /// Records the model on sentences, a few at a time; `progress` is told how many are done.
    pub fn record(
        &self,
        sentences: &ImportedSentences,
        path: &Path,
        options: &RecordOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), RecordRunError> {
        let subject = self.subject(options.n_threads)?;
        record_corpus(&sentences.of(subject.as_ref(), options.fed), path, options, progress)
    }
}

impl ImportedSentences {
    pub(crate) fn of<'a>(&'a self, model: &'a dyn Recordable, fed: Fed<'a>) -> OfSentences<'a> {
        OfSentences { model, sentences: self, fed }
    }
}

/// A model and listed sentences, some without a known target.
pub(crate) struct OfSentences<'a> {
    model: &'a dyn Recordable,
    sentences: &'a ImportedSentences,
    fed: Fed<'a>,
}

impl Corpus for OfSentences<'_> {
    fn description(&self) -> &Description {
        self.model.description()
    }

    fn n_sentences(&self) -> u64 {
        self.sentences.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        let pair = |number: u64| self.sentences.pairs[number as usize].clone();
        let live = Live { model: self.model, pair: &pair, n_pairs: self.sentences.len(), fed: self.fed };
        let mut recorded = live.read(range)?;
        for sentence in recorded.iter_mut().filter(|sentence| !self.sentences.told[sentence.number as usize]) {
            without_target(sentence, self.fed);
        }
        Ok(recorded)
    }

    fn model(&self) -> Option<&dyn Recordable> {
        Some(self.model)
    }
}

/// There was no target to be compared with: it was what the model wrote, which need not be the likeliest token of every step.
pub(crate) fn without_target(sentence: &mut Recorded, fed: Fed<'_>) {
    let written = sentence.target.take();
    if let (Fed::Target, Some(written)) = (fed, written) {
        sentence.predicted = written;
    }
    sentence.loss = None;
}
