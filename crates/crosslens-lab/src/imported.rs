//! Models of other programs: read, explained, looked at, recorded.

use std::ops::Range;
use std::path::Path;

use crosslens_analysis::explain::{Corpus, CorpusError, EveryNth, ExplainError, Explained, First, Live, Options, Progress, explain};
use crosslens_analysis::tsv::{TsvError, read_lines};
use crosslens_analysis::{Attended, Description, Fed, Pair, RecordError, Recordable, Recorded, Stats, Sums, Token, Wishes};
use crosslens_nets::imported::{ImportError, Imported, UnknownWord};
use crosslens_nets::train::RunFolder;

use crate::attending::{fitted, record_one};
use crate::explaining::{CONTROL_SENTENCES, add_control};
use crate::recording::record_corpus;
use crate::{AttendError, AttendOptions, RecordOptions, RecordRunError, Sentence, Shard};

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
}

/// A model that another program trained.
#[derive(Clone, Debug)]
pub struct ImportedModel {
    model: Imported,
}

impl ImportedModel {
    /// Whether a path leads to one, and not to a run.
    pub fn is_at(path: &Path) -> bool {
        !RunFolder::at(path).holds_run() && Imported::is_at(path)
    }

    /// Opens a folder with an `import.toml`, a mapping, or the weights of a model known to the program.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        Ok(Self { model: Imported::open(path)? })
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        self.model.description()
    }

    /// Reads a file of sentences, one a line: a source, or a source and a target separated by a tab.
    pub fn sentences(&self, path: &Path, n_threads: usize) -> Result<ImportedSentences, SentencesError> {
        let not_known =
            |side: &'static str| move |unknown: UnknownWord| format!("the {side} word `{}` is not in the model's vocabulary", unknown.word);
        let lines = read_lines(path, |line| {
            let (source, target) = line.split_once('\t').map_or((line, None), |(source, target)| (source, Some(target)));
            if source.trim().is_empty() {
                return Err("the source is empty".to_owned());
            }
            let target = target.filter(|target| !target.trim().is_empty());
            let target = target.map(|target| self.model.target(target)).transpose().map_err(not_known("target"))?;
            Ok((self.model.source(source).map_err(not_known("source"))?, target))
        })?;
        let told = lines.iter().map(|(_, target)| target.is_some()).collect();
        let untold: Vec<Vec<Token>> = lines.iter().filter(|(_, target)| target.is_none()).map(|(source, _)| source.clone()).collect();
        let mut written = self.model.subject(n_threads)?.write(&untold, self.model.most_steps())?.into_iter();
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
        let subject = self.model.subject(options.n_threads)?;
        let mut explained = explain(&sentences.of(&subject, Fed::Own), given, options, progress)?;
        if let Some(untrained) = control.and_then(|seed| subject.untrained(seed)) {
            let corpus = sentences.of(untrained.as_ref(), Fed::Own);
            add_control(&mut explained, &First { corpus: &corpus, n_sentences: CONTROL_SENTENCES }, options, progress)?;
        }
        explained.report.corpus.source = "a file".into();
        Ok(explained)
    }

    /// Every attention matrix of a sentence. Terms need sums: there is no task to draw sentences from.
    pub fn attend(&self, sentence: Sentence<'_>, options: &AttendOptions<'_>) -> Result<Attended, AttendError> {
        let subject = self.model.subject(options.n_threads)?;
        let source = |text: &str| self.tokens("source", text, Imported::source);
        let recorded = match sentence {
            Sentence::Fresh(_) => return Err(AttendError::NoTask),
            Sentence::Pair(left, right) => {
                let pair = Pair { source: source(left)?, target: self.tokens("target", right, Imported::target)? };
                record_one(&subject, pair, Fed::Target)?
            }
            Sentence::Source(text) => {
                let source = source(text)?;
                let target = subject.write(std::slice::from_ref(&source), self.model.most_steps())?.remove(0);
                // There was no target to be compared with.
                Recorded { target: None, loss: None, ..record_one(&subject, Pair { source, target }, Fed::Own)? }
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
        of: impl Fn(&Imported, &str) -> Result<Vec<Token>, UnknownWord>,
    ) -> Result<Vec<Token>, AttendError> {
        if text.trim().is_empty() {
            return Err(AttendError::Empty { side });
        }
        let table = if side == "source" { &self.description().source } else { &self.description().target };
        of(&self.model, text).map_err(|unknown| AttendError::UnknownWord { side, word: unknown.word, known: table.names.clone() })
    }

    /// Sums the states of one shard of the sentences.
    pub fn fit(
        &self,
        sentences: &ImportedSentences,
        shard: Shard,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, ExplainError> {
        let subject = self.model.subject(n_threads)?;
        let corpus = sentences.of(&subject, Fed::Own);
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
        let subject = self.model.subject(options.n_threads)?;
        record_corpus(&sentences.of(&subject, options.fed), path, options, progress)
    }
}

impl ImportedSentences {
    fn of<'a>(&'a self, model: &'a dyn Recordable, fed: Fed<'a>) -> OfSentences<'a> {
        OfSentences { model, sentences: self, fed }
    }
}

/// A model and listed sentences, some without a known target.
struct OfSentences<'a> {
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
            (sentence.target, sentence.loss) = (None, None);
        }
        Ok(recorded)
    }

    fn model(&self) -> Option<&dyn Recordable> {
        Some(self.model)
    }
}
