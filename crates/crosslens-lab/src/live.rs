//! A model kept ready: fitted once, then any sentence is explained or decoded again at once.

use crosslens_analysis::explain::{ExplainError, Progress, Ready, Samples};
use crosslens_analysis::{
    Components, Estimator, Fed, FitError, Pair, RecordError, Recordable, Recorded, Shrinkage, SplitError, Subset, Token, Vocabulary,
};
use crosslens_nets::Subject;
use crosslens_nets::tasks::{END_WORD, Split};

use crate::{Sentences, Shard, TrainedModel};

/// The words of one side as somebody spelled them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// A text, its words separated by blanks; where sentences end in a word of their own, that is added if it is missing.
    Text(String),
    /// Exactly these words.
    Words(Vec<String>),
}

/// What the decoder reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feeds {
    /// Its own likeliest word.
    #[default]
    Own,
    /// The target.
    Target,
}

/// A sentence to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One of the model's task, by its number.
    Task(u64),
    /// This one; without a target the decoder writes until it ends the sentence, or as many words as the longest target of the task has.
    Typed {
        /// What the encoder reads.
        source: Spelled,
        /// What the decoder should write.
        target: Option<Spelled>,
    },
}

/// What a model wrote when it was run again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rerun {
    /// The words.
    pub predicted: Vec<String>,
    /// What it wrote before.
    pub before: Vec<String>,
    /// Mean cross-entropy of the target now; `None` without a target.
    pub loss: Option<f64>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// A word the model does not know.
    #[error("the {side} word `{word}` is not in the model's vocabulary")]
    UnknownWord {
        /// Source or target.
        side: &'static str,
        /// The word.
        word: String,
    },
    /// No word at all.
    #[error("the {side} is empty")]
    Empty {
        /// Source or target.
        side: &'static str,
    },
    /// More words than are taken at once.
    #[error("the {side} has {n_words} words, and at most {most} are taken")]
    TooLong {
        /// Source or target.
        side: &'static str,
        /// How many it has.
        n_words: usize,
        /// How many are taken.
        most: usize,
    },
    /// The decoder cannot read what is not there.
    #[error("the decoder can read the target only if one is given")]
    NoTarget,
    /// A head the model does not have.
    #[error("there is no head {site}: the model has {n_sites}")]
    NoSite {
        /// Its number.
        site: usize,
        /// How many there are.
        n_sites: usize,
    },
    /// The model cannot be run.
    #[error("the sentence cannot be run")]
    Record(#[from] RecordError),
    /// Its states are no numbers.
    #[error("the scores of this sentence are not all finite numbers")]
    Scores,
    /// States cannot be summed.
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

/// A model with its components under both estimators. One sentence is worked on by one thread; several may ask at once.
pub struct LiveModel {
    model: TrainedModel,
    subject: &'static Subject,
    paper: Ready<'static>,
    joint: Ready<'static>,
    seed: u64,
    most_words: usize,
}

impl LiveModel {
    /// Fits the model on `n_sentences` fresh sentences of its task. Sentences of more than `most_words` on a side are refused.
    ///
    /// The network and its components stay in memory until the program ends: what is prepared from them is shared by all threads for as
    /// long.
    pub fn new(
        model: TrainedModel,
        seed: u64,
        n_sentences: u64,
        most_words: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, LiveError> {
        let subject: &'static Subject = Box::leak(Box::new(model.subject(1)?));
        let stats = model.fit(&Sentences::Task { seed, n_samples: n_sentences }, Shard::WHOLE, 0, progress)?;
        let ready = |estimator| -> Result<Ready<'static>, LiveError> {
            let fit = |sums: &crosslens_analysis::Sums| Ok(sums.fit(estimator, Shrinkage::None)?.components);
            let components: Vec<Components<f32>> = stats.streams.iter().map(|stream| fit(&stream.sums)).collect::<Result<_, FitError>>()?;
            Ok(Ready::new(subject.description(), components.leak())?)
        };
        let (paper, joint) = (ready(Estimator::Paper)?, ready(Estimator::Joint)?);
        Ok(Self { model, subject, paper, joint, seed, most_words })
    }

    /// The model.
    pub fn model(&self) -> &TrainedModel {
        &self.model
    }

    /// The network, to be recorded.
    pub fn subject(&self) -> &Subject {
        self.subject
    }

    /// One sentence in full.
    pub fn explain(&self, asked: &Asked, feeds: Feeds, estimator: Estimator) -> Result<Samples, LiveError> {
        let recorded = self.record(asked, feeds)?;
        let samples = self.ready(estimator).explain(&recorded);
        let is_finite = samples.sentences.iter().flat_map(|sample| &sample.pieces).flatten().all(|piece| piece.is_finite());
        if is_finite { Ok(samples) } else { Err(LiveError::Scores) }
    }

    /// Decodes a sentence again, the attention of one head made of some pieces of its scores alone.
    pub fn rerun(&self, asked: &Asked, feeds: Feeds, estimator: Estimator, site: usize, kept: Subset) -> Result<Rerun, LiveError> {
        let n_sites = self.subject.description().sites.len();
        if site >= n_sites {
            return Err(LiveError::NoSite { site, n_sites });
        }
        let recorded = self.record(asked, feeds)?;
        let how = self.ready(estimator).keeping(&recorded, site, kept);
        let target = recorded.target.clone().unwrap_or_else(|| recorded.predicted.clone());
        let answers = self.subject.run(&[Pair { source: recorded.source.clone(), target }], fed(feeds), &how)?;
        let answer = answers.into_iter().next().expect("one answer for one pair");
        let words = &self.subject.description().target;
        let names = |tokens: &[Token]| tokens.iter().map(|&token| words.name(token).into_owned()).collect();
        let loss = recorded.target.as_ref().map(|_| answer.loss).filter(|loss| loss.is_finite());
        Ok(Rerun { predicted: names(&answer.predicted), before: names(&recorded.predicted), loss })
    }

    fn ready(&self, estimator: Estimator) -> &Ready<'static> {
        match estimator {
            Estimator::Paper => &self.paper,
            Estimator::Joint => &self.joint,
        }
    }

    fn record(&self, asked: &Asked, feeds: Feeds) -> Result<Recorded, LiveError> {
        match asked {
            Asked::Task(number) => {
                let recorded = self.record_one(self.model.task.pair(Split::Test, self.seed, *number), fed(feeds))?;
                Ok(Recorded { number: *number, ..recorded })
            }
            Asked::Typed { source, target: Some(target) } => {
                let pair = Pair { source: self.source(source)?, target: self.target(target)? };
                self.record_one(pair, fed(feeds))
            }
            Asked::Typed { target: None, .. } if feeds == Feeds::Target => Err(LiveError::NoTarget),
            Asked::Typed { source, target: None } => {
                // Of the target only the length matters, since the decoder reads its own words.
                let source = self.source(source)?;
                let of_length = |length| Pair { source: source.clone(), target: vec![0; length] };
                let longest = self.record_one(of_length(self.model.task.max_lengths().target.max(1)), Fed::Own)?;
                let end = self.model.task.target_vocabulary().token(END_WORD);
                let written = &longest.predicted;
                let length = written.iter().position(|&token| Some(token) == end).map_or(written.len(), |last| last + 1);
                let recorded = if length == written.len() { longest } else { self.record_one(of_length(length), Fed::Own)? };
                Ok(Recorded { target: None, loss: None, ..recorded })
            }
        }
    }

    fn record_one(&self, pair: Pair, fed: Fed<'_>) -> Result<Recorded, LiveError> {
        let recorded = self.subject.record(&[pair], fed)?;
        Ok(recorded.into_iter().next().expect("one sentence for one pair"))
    }

    fn source(&self, words: &Spelled) -> Result<Vec<Token>, LiveError> {
        tokens(self.model.task.source_vocabulary(), "source", words, self.most_words)
    }

    fn target(&self, words: &Spelled) -> Result<Vec<Token>, LiveError> {
        tokens(self.model.task.target_vocabulary(), "target", words, self.most_words)
    }
}

fn fed(feeds: Feeds) -> Fed<'static> {
    match feeds {
        Feeds::Own => Fed::Own,
        Feeds::Target => Fed::Target,
    }
}

fn tokens(vocabulary: &Vocabulary, side: &'static str, spelled: &Spelled, most: usize) -> Result<Vec<Token>, LiveError> {
    let words: Vec<&str> = match spelled {
        Spelled::Text(text) => text.split_whitespace().collect(),
        Spelled::Words(words) => words.iter().map(String::as_str).collect(),
    };
    if words.is_empty() {
        return Err(LiveError::Empty { side });
    }
    let is_text = matches!(spelled, Spelled::Text(_));
    let end = vocabulary.token(END_WORD).filter(|_| is_text && words.last() != Some(&END_WORD));
    let n_words = words.len() + usize::from(end.is_some());
    if n_words > most {
        return Err(LiveError::TooLong { side, n_words, most });
    }
    let known = |word: &str| vocabulary.token(word).ok_or_else(|| LiveError::UnknownWord { side, word: word.to_owned() });
    words.into_iter().map(known).chain(end.map(Ok)).collect()
}
