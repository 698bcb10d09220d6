//! From a model and a sentence to its attention.

use crosslens_analysis::explain::{ExplainError, Progress};
use crosslens_analysis::tsv::Words;
use crosslens_analysis::{
    Attended, Components, Estimator, Fed, FitError, Pair, RecordError, Recordable, Recorded, Shrinkage, SplitError, Sums, Token,
    Vocabulary, Wishes,
};
use crosslens_nets::Subject;
use crosslens_nets::tasks::{END_WORD, Split};
use crosslens_nets::text::TextError;

use crate::{PretrainedModelError, Sentences, SentencesError, Shard, TrainedModel};

/// Fresh sentences that components are fitted on where no sums are given.
const FITTED_SENTENCES: u64 = 1000;

/// A sentence to look at.
#[derive(Clone, Copy, Debug)]
pub enum Sentence<'a> {
    /// A fresh one of the model's task, drawn by a seed; the decoder reads its own words, as many as the target has.
    Fresh(u64),
    /// This source; the decoder reads its own words until it ends the sentence, or as many as the longest target of the task has.
    Source(&'a str),
    /// This source; the decoder reads this target.
    Pair(&'a str, &'a str),
}

/// What to give besides attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttendOptions<'a> {
    /// Scores before the softmax.
    pub scores: bool,
    /// The terms of every score.
    pub terms: bool,
    /// The states.
    pub states: bool,
    /// What the components behind the terms are fitted from; without, fresh sentences of the task.
    pub given: Option<&'a [Sums]>,
    /// Draws those.
    pub seed: u64,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
}

/// Why there is no attention to give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttendError {
    /// A network without attention.
    #[error("this network has no attention")]
    NoAttention,
    /// A word the model does not know.
    #[error("the {side} word `{word}` is not in the model's vocabulary")]
    UnknownWord {
        /// Source or target.
        side: &'static str,
        /// The word.
        word: String,
        /// Those it knows.
        known: Vec<String>,
    },
    /// A text that cannot be turned into tokens.
    #[error(transparent)]
    Text(TextError),
    /// No word at all.
    #[error("the {side} is empty")]
    Empty {
        /// Source or target.
        side: &'static str,
    },
    /// A model of another program without a sentence.
    #[error("this model was not trained here and has no task to draw a sentence from")]
    NoTask,
    /// Files for a model of texts.
    #[error("this model reads texts, neither sounds nor pictures")]
    NoFiles,
    /// The terms of such a model without sums.
    #[error("this model was not trained here and has no task to draw sentences from: the components behind the terms need sums")]
    NoSums {
        /// Whether its sources are sounds or pictures, whose sums are of no use in a file.
        reads_files: bool,
    },
    /// A pretrained model cannot read it.
    #[error(transparent)]
    Pretrained(#[from] PretrainedModelError),
    /// The model cannot write by itself.
    #[error(transparent)]
    Sentences(#[from] Box<SentencesError>),
    /// The model cannot be run.
    #[error("the sentence cannot be recorded")]
    Record(#[from] RecordError),
    /// Components cannot be had.
    #[error(transparent)]
    Sums(#[from] ExplainError),
    /// Components cannot be fitted.
    #[error("the components cannot be fitted")]
    Fit(#[from] FitError),
    /// Components of other states.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}

impl TrainedModel {
    /// Every attention matrix of a sentence.
    pub fn attend(
        &self,
        sentence: Sentence<'_>,
        options: &AttendOptions<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Attended, AttendError> {
        let subject = self.subject(options.n_threads)?;
        if subject.description().sites.is_empty() {
            return Err(AttendError::NoAttention);
        }
        let recorded = self.record_sentence(&subject, sentence)?;
        let components = if options.terms { Some(self.components(options, progress)?) } else { None };
        let wishes = Wishes { scores: options.scores, terms: components.as_deref(), states: options.states };
        Ok(Attended::of(subject.description(), &recorded, &wishes)?)
    }

    fn components(&self, options: &AttendOptions<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Components<f32>>, AttendError> {
        if let Some(given) = options.given {
            return fitted(given);
        }
        let sentences = Sentences::Task { seed: options.seed, n_samples: FITTED_SENTENCES };
        let stats = self.fit(&sentences, Shard::WHOLE, options.n_threads, progress)?;
        fitted(stats.streams.iter().map(|stream| &stream.sums))
    }

    fn record_sentence(&self, subject: &Subject, sentence: Sentence<'_>) -> Result<Recorded, AttendError> {
        let source = |text| self.read_source(text).map(|(tokens, _)| tokens);
        match sentence {
            Sentence::Fresh(seed) => record_one(subject, self.task.pair(Split::Test, seed, 0), Fed::Own),
            Sentence::Pair(left, right) => {
                let pair = Pair::new(source(left)?, self.read_target(right)?.0);
                record_one(subject, pair, Fed::Target)
            }
            Sentence::Source(text) => {
                let source = source(text)?;
                let length = self.own_tokens(subject, &source)?.len();
                let written = record_one(subject, Pair::new(source, vec![0; length]), Fed::Own)?;
                // There was no target to be compared with.
                Ok(Recorded { target: None, loss: None, ..written })
            }
        }
    }

    /// What the decoder writes by itself: the likeliest word at every step, until it ends the sentence, or as many as the longest target of
    /// the task has.
    fn own_tokens(&self, subject: &Subject, source: &[Token]) -> Result<Vec<Token>, AttendError> {
        // Of the target only the length matters, since the decoder reads its own words.
        let longest = Pair::new(source.to_vec(), vec![0; self.task.max_lengths().target]);
        let mut written = record_one(subject, longest, Fed::Own)?.predicted;
        let end = self.task.target_vocabulary().token(END_WORD);
        if let Some(last) = written.iter().position(|&token| Some(token) == end) {
            written.truncate(last + 1);
        }
        Ok(written)
    }

    /// What the network writes by itself for each source, as for [`Sentence::Source`]; it need not have attention. `done` is told how many
    /// of all are written.
    pub fn write_alone(&self, sources: &[&str], n_threads: usize, done: &mut dyn FnMut(usize)) -> Result<Vec<Vec<Token>>, AttendError> {
        let subject = self.subject(n_threads)?;
        let mut all = Vec::with_capacity(sources.len());
        for source in sources {
            all.push(self.own_tokens(&subject, &self.read_source(source)?.0)?);
            done(all.len());
        }
        Ok(all)
    }
}

impl TrainedModel {
    /// The tokens of a source, and their words as they stand in the text; the end where sentences have one.
    pub fn read_source(&self, text: &str) -> Result<(Vec<Token>, Vec<String>), AttendError> {
        self.read_text("source", text)
    }

    /// The tokens of a target, and their words as they stand in the text; the end where sentences have one.
    pub fn read_target(&self, text: &str) -> Result<(Vec<Token>, Vec<String>), AttendError> {
        self.read_text("target", text)
    }

    fn read_text(&self, side: &'static str, text: &str) -> Result<(Vec<Token>, Vec<String>), AttendError> {
        let is_source = side == "source";
        if let Some(files) = self.task.text() {
            let encoded = if is_source { files.codec.encode_source(text) } else { files.codec.encode_target(text) };
            return match encoded {
                Ok(encoded) => Ok((encoded.tokens, encoded.pieces)),
                Err(TextError::Empty) => Err(AttendError::Empty { side }),
                Err(error) => Err(AttendError::Text(error)),
            };
        }
        let vocabulary = if is_source { self.task.source_vocabulary() } else { self.task.target_vocabulary() };
        let tokens = tokens(vocabulary, side, text)?;
        let words = tokens.iter().map(|&token| vocabulary.word(token).unwrap_or_default().to_owned()).collect();
        Ok((tokens, words))
    }
}

/// The components of each stream.
pub(crate) fn fitted<'a>(sums: impl IntoIterator<Item = &'a Sums>) -> Result<Vec<Components<f32>>, AttendError> {
    sums.into_iter().map(|sums| Ok(sums.fit(Estimator::Paper, Shrinkage::None)?.components)).collect()
}

pub(crate) fn record_one(subject: &dyn Recordable, pair: Pair, fed: Fed<'_>) -> Result<Recorded, AttendError> {
    let recorded = subject.record(&[pair], fed)?;
    Ok(recorded.into_iter().next().expect("one sentence for one pair"))
}

/// The tokens of a text, the end token added where sentences have one.
fn tokens(vocabulary: &Vocabulary, side: &'static str, text: &str) -> Result<Vec<Token>, AttendError> {
    if text.trim().is_empty() {
        return Err(AttendError::Empty { side });
    }
    let words = Words { vocabulary, end: vocabulary.token(END_WORD) };
    words.tokens(text).map_err(|word| AttendError::UnknownWord { side, word: word.to_owned(), known: vocabulary.words().to_vec() })
}
