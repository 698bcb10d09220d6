//! A model kept ready: fitted once, then any sentence is explained or decoded again at once.

mod imported;
mod spelling;
mod trained;

use std::sync::{Mutex, PoisonError};

use crosslens_analysis::explain::{Corpus, ExplainError, Explained, Progress, Ready, Samples};
use crosslens_analysis::{
    Components, Estimator, Fed, FitError, N_TERMS, Pair, RecordError, Recordable, Recorded, Shrinkage, SplitError, Stats, Subset, Sums,
    Token,
};
use serde::Serialize;

use crate::{AttendError, ImportedModel, ImportedSentences, Sentences, Shard, TrainedModel};
use imported::LiveImported;
pub use spelling::Spelled;
use trained::LiveRun;

/// Numbers that one explanation holds at most, some 50 MB as JSON.
const MOST_NUMBERS: usize = 4_000_000;

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
    /// One of the model's task, or of the corpus it was fitted on, by its number.
    Task(u64),
    /// This one; without a target the decoder writes until it ends the sentence, or as many words as the longest target of the task has.
    Typed {
        /// What the encoder reads.
        source: Spelled,
        /// What the decoder should write.
        target: Option<Spelled>,
    },
    /// This sound or picture, as the bytes of a file.
    File(Vec<u8>),
}

/// A sentence explained.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The sentence, and the scores of the heads that were asked for.
    pub samples: Samples,
    /// What is wrong with the file that was sent, in words for its user: a sound that breaks off.
    pub warning: Option<String>,
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

/// For each token of a sentence the word it belongs to, counted from 0; the start and the end are words of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WordsOf {
    /// Of what the encoder reads.
    pub source: Vec<usize>,
    /// Of what the decoder reads.
    pub fed: Vec<usize>,
    /// Of what it finds likeliest.
    pub predicted: Vec<usize>,
}

/// What sources are, where they are no texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// WAV, FLAC, MP3 or Ogg Vorbis.
    Sound,
    /// PNG, JPEG or WebP.
    Picture,
}

/// Where sentences to be taken by their number come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The task, without end.
    Task,
    /// The corpus, so many of them.
    Corpus(u64),
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
    /// A file for a model of texts.
    #[error("this model reads texts, neither sounds nor pictures")]
    NoFiles,
    /// What was sent is no sound or picture that the model reads; in words, with every cause.
    #[error("{words}")]
    Sent {
        /// Why.
        words: String,
    },
    /// What was sent cannot be laid down to be read.
    #[error("the file that was sent cannot be written into the folder for temporary files")]
    NotLaidDown(#[source] std::io::Error),
    /// There is nothing to take a sentence from.
    #[error("this model has no task and was opened without --corpus: there is no sentence to take")]
    NoSentences,
    /// A head the model does not have.
    #[error("there is no head {site}: the model has {n_sites}")]
    NoSite {
        /// Its number.
        site: usize,
        /// How many there are.
        n_sites: usize,
    },
    /// More numbers than one answer holds.
    #[error("the answer would hold {n_numbers} numbers, and at most {most} are given: ask for fewer heads at once")]
    TooMany {
        /// How many it would be.
        n_numbers: usize,
        /// How many are given.
        most: usize,
    },
    /// The model cannot read or write it.
    #[error(transparent)]
    Text(Box<AttendError>),
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

/// A sentence that was recorded, and what its decoder would read if it were run again.
struct Heard {
    recorded: Recorded,
    fed: Fed<'static>,
    /// What is wrong with its file.
    warning: Option<String>,
}

/// What differs between models: their words, their sentences.
enum Kind {
    Run(Box<LiveRun>),
    Imported(Box<LiveImported>),
}

/// A model with its components under both estimators. One sentence is worked on by one thread; several may ask at once.
///
/// A model that was not trained here may come without sums: then every score is shown whole, as the product of what is left where nothing
/// is known of positions and tokens.
pub struct LiveModel {
    kind: Kind,
    subject: &'static dyn Recordable,
    sums: Option<Vec<Sums>>,
    /// By estimator, prepared when it is first asked for.
    ready: Mutex<[Option<&'static Ready<'static>>; 2]>,
}

impl LiveModel {
    /// Fits a network trained here on `n_sentences` fresh sentences of its task. Sentences of more than `most_words` on a side are refused.
    ///
    /// The network and its components stay in memory until the program ends: what is prepared from them is shared by all threads for as
    /// long.
    pub fn of_run(
        model: TrainedModel,
        seed: u64,
        n_sentences: u64,
        most_words: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, LiveError> {
        let subject = Box::leak(Box::new(model.subject(1)?));
        let stats = model.fit(&Sentences::Task { seed, n_samples: n_sentences }, Shard::WHOLE, 0, progress)?;
        let live = Self::new(Kind::Run(Box::new(LiveRun { model, seed, most_words })), subject, Some(sums(stats)));
        live.ready(Estimator::Paper)?;
        live.ready(Estimator::Joint)?;
        Ok(live)
    }

    /// Keeps a model of another program ready, with the sums of its states if there are any, and the sentences they are of if those are
    /// known. As with a run, it stays in memory until the program ends.
    pub fn of_imported(
        model: ImportedModel,
        sentences: Option<ImportedSentences>,
        sums: Option<Vec<Sums>>,
        most_words: usize,
    ) -> Result<Self, LiveError> {
        let subject = Box::leak(model.subject(1)?);
        let kind = Kind::Imported(Box::new(LiveImported::new(model, sentences, most_words)));
        let live = Self::new(kind, subject, sums);
        live.ready(Estimator::Paper)?;
        Ok(live)
    }

    fn new(kind: Kind, subject: &'static dyn Recordable, sums: Option<Vec<Sums>>) -> Self {
        Self { kind, subject, sums, ready: Mutex::default() }
    }

    /// The network, to be recorded.
    pub fn subject(&self) -> &dyn Recordable {
        self.subject
    }

    /// Whether anything is known of what positions and tokens are like.
    pub fn is_fitted(&self) -> bool {
        self.sums.is_some()
    }

    /// What it learnt, where it was trained here.
    pub fn run(&self) -> Option<&TrainedModel> {
        match &self.kind {
            Kind::Run(run) => Some(&run.model),
            Kind::Imported(_) => None,
        }
    }

    /// Where sentences can be taken from by their number.
    pub fn taken(&self) -> Option<Taken> {
        match &self.kind {
            Kind::Run(_) => Some(Taken::Task),
            Kind::Imported(live) => live.sentences.as_ref().map(|sentences| Taken::Corpus(sentences.len())),
        }
    }

    /// The words it knows on both sides; `None` where it reads any text.
    pub fn words(&self) -> Option<[&[String]; 2]> {
        match &self.kind {
            Kind::Run(run) => run.words(),
            Kind::Imported(live) => live.words(),
        }
    }

    /// Which tokens of the first of these sentences form a word; `None` where each is one, and for models of other programs.
    pub fn word_of(&self, samples: &Samples) -> Option<WordsOf> {
        match &self.kind {
            Kind::Run(run) => run.word_of(samples),
            Kind::Imported(_) => None,
        }
    }

    /// What kind of files it reads in place of texts: sounds or pictures.
    pub fn reads(&self) -> Option<FileKind> {
        match &self.kind {
            Kind::Imported(live) => live.model.reads(),
            Kind::Run(_) => None,
        }
    }

    /// Whether its decoder can be told to read its own words in place of a target that is given. A pretrained one always reads the target.
    pub fn chooses_feeding(&self) -> bool {
        match &self.kind {
            Kind::Run(_) => true,
            Kind::Imported(live) => live.model.fed() == Fed::Own,
        }
    }

    /// Whether components are fitted on one half of so many sentences and the other explained.
    pub fn halves(&self, n_sentences: u64) -> bool {
        match &self.kind {
            Kind::Run(_) => false,
            Kind::Imported(live) => ImportedSentences::are_halved(live.n_sentences().min(n_sentences), None),
        }
    }

    /// Gives `then` so many sentences of its task, drawn by `seed`, or of its corpus, and where they come from in words; `None` where there
    /// are none.
    pub fn with_corpus<T>(&self, seed: u64, n_sentences: u64, then: impl FnOnce(&dyn Corpus, String) -> T) -> Option<T> {
        match &self.kind {
            Kind::Run(run) => Some(run.with_corpus(self.subject, seed, n_sentences, then)),
            Kind::Imported(live) => live.with_corpus(self.subject, n_sentences, then),
        }
    }

    /// Adds to an explanation of its corpus what sounds or pictures in it sound or look like.
    pub fn stage(&self, explained: &mut Explained) -> Result<(), ExplainError> {
        match &self.kind {
            Kind::Imported(live) => live.stage(explained),
            Kind::Run(_) => Ok(()),
        }
    }

    /// One sentence at these heads, or at all.
    pub fn explain(&self, asked: &Asked, feeds: Feeds, estimator: Estimator, sites: Option<&[usize]>) -> Result<Answer, LiveError> {
        let n_sites = self.subject.description().sites.len();
        let all: Vec<usize> = (0..n_sites).collect();
        let sites = sites.unwrap_or(&all);
        sites.iter().try_for_each(|&site| self.check_site(site))?;
        let Heard { recorded, warning, .. } = self.hear(asked, feeds)?;
        self.check_size(&recorded, sites)?;
        let mut samples = self.ready(estimator)?.explain(&recorded, sites);
        if let (Kind::Imported(live), Some(sample)) = (&self.kind, samples.sentences.first_mut()) {
            sample.scene = live.scene(asked, &recorded)?;
        }
        let is_finite = samples.sentences.iter().flat_map(|sample| &sample.pieces).flatten().all(|piece| piece.is_finite());
        if is_finite { Ok(Answer { samples, warning }) } else { Err(LiveError::Scores) }
    }

    /// Decodes a sentence again, the attention of one head made of some pieces of its scores alone.
    pub fn rerun(&self, asked: &Asked, feeds: Feeds, estimator: Estimator, site: usize, kept: Subset) -> Result<Rerun, LiveError> {
        self.check_site(site)?;
        let Heard { recorded, fed, .. } = self.hear(asked, feeds)?;
        let how = self.ready(estimator)?.keeping(&recorded, site, kept);
        let target = recorded.target.clone().unwrap_or_else(|| recorded.predicted.clone());
        let pair = Pair { source: recorded.source.clone(), target, signal: recorded.signal.clone() };
        let answers = self.subject.run(&[pair], fed, &how)?;
        let answer = answers.into_iter().next().expect("one answer for one pair");
        let words = &self.subject.description().target;
        let names = |tokens: &[Token]| tokens.iter().map(|&token| words.name(token).into_owned()).collect();
        let loss = recorded.target.as_ref().map(|_| answer.loss).filter(|loss| loss.is_finite());
        Ok(Rerun { predicted: names(&answer.predicted), before: names(&recorded.predicted), loss })
    }

    /// One sentence has so many heads times queries times keys that nobody could want them all at once.
    fn check_size(&self, recorded: &Recorded, sites: &[usize]) -> Result<(), LiveError> {
        let description = self.subject.description();
        let steps = |stream: usize| recorded.n_steps(description.streams[stream].side);
        let size = |&site: &usize| steps(description.sites[site].query) * steps(description.sites[site].key) * (N_TERMS + 1);
        let n_numbers = sites.iter().map(size).sum();
        if n_numbers > MOST_NUMBERS { Err(LiveError::TooMany { n_numbers, most: MOST_NUMBERS }) } else { Ok(()) }
    }

    fn check_site(&self, site: usize) -> Result<(), LiveError> {
        let n_sites = self.subject.description().sites.len();
        if site < n_sites { Ok(()) } else { Err(LiveError::NoSite { site, n_sites }) }
    }

    fn ready(&self, estimator: Estimator) -> Result<&'static Ready<'static>, LiveError> {
        let mut all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut all[usize::from(estimator == Estimator::Joint)];
        if let Some(ready) = place {
            return Ok(ready);
        }
        let description = self.subject.description();
        let components: Vec<Components<f32>> = match &self.sums {
            None => description.streams.iter().map(|stream| Components::nothing(stream.d)).collect(),
            Some(sums) => {
                let fit = |sums: &Sums| Ok(sums.fit(estimator, Shrinkage::None)?.components);
                sums.iter().map(fit).collect::<Result<_, FitError>>()?
            }
        };
        let ready: &'static Ready<'static> = Box::leak(Box::new(Ready::new(description, components.leak())?));
        *place = Some(ready);
        Ok(ready)
    }

    fn hear(&self, asked: &Asked, feeds: Feeds) -> Result<Heard, LiveError> {
        if let (Asked::Typed { target: None, .. }, Feeds::Target) = (asked, feeds) {
            return Err(LiveError::NoTarget);
        }
        match &self.kind {
            Kind::Run(run) => run.hear(self.subject, asked, feeds),
            Kind::Imported(live) => live.hear(self.subject, asked, feeds),
        }
    }
}

impl Feeds {
    fn fed(self) -> Fed<'static> {
        match self {
            Self::Own => Fed::Own,
            Self::Target => Fed::Target,
        }
    }
}

/// Sums of all streams, in their order.
fn sums(stats: Stats) -> Vec<Sums> {
    stats.streams.into_iter().map(|stream| stream.sums).collect()
}

fn record_one(subject: &dyn Recordable, pair: Pair, fed: Fed<'_>) -> Result<Recorded, LiveError> {
    let recorded = subject.record(&[pair], fed)?;
    Ok(recorded.into_iter().next().expect("one sentence for one pair"))
}

/// Why a text cannot be read.
fn refused(error: AttendError) -> LiveError {
    match error {
        AttendError::UnknownWord { side, word, .. } => LiveError::UnknownWord { side, word },
        AttendError::Empty { side } => LiveError::Empty { side },
        other => LiveError::Text(Box::new(other)),
    }
}
