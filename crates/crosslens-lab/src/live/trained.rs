//! Questions to a network trained here.

use crosslens_analysis::explain::{Corpus, Live, Samples, TokenNames};
use crosslens_analysis::{Fed, Pair, Recordable, Recorded, Token};
use crosslens_nets::tasks::{END_WORD, Split};
use crosslens_nets::text::Units;

use super::{Asked, Feeds, Heard, LiveError, Spelled, WordsOf, record_one, refused, spelling};
use crate::{AttendError, Sentences, TrainedModel};

/// A network with its task.
pub(super) struct LiveRun {
    pub(super) model: TrainedModel,
    pub(super) seed: u64,
    pub(super) most_words: usize,
}

impl LiveRun {
    pub(super) fn hear(&self, subject: &dyn Recordable, asked: &Asked, feeds: Feeds) -> Result<Heard, LiveError> {
        let fed = feeds.fed();
        let recorded = match asked {
            Asked::Task(number) => {
                let recorded = record_one(subject, self.model.task.pair(Split::Test, self.seed, *number), fed)?;
                Recorded { number: *number, ..recorded }
            }
            Asked::Typed { source, target: Some(target) } => {
                record_one(subject, Pair::new(self.source(source)?, self.target(target)?), fed)?
            }
            Asked::Typed { source, target: None } => self.hear_alone(subject, self.source(source)?)?,
            Asked::File(_) => return Err(LiveError::NoFiles),
        };
        Ok(Heard { recorded, fed, warning: None })
    }

    /// Of the target only the length matters, since the decoder reads its own words.
    fn hear_alone(&self, subject: &dyn Recordable, source: Vec<Token>) -> Result<Recorded, LiveError> {
        let of_length = |length| Pair::new(source.clone(), vec![0; length]);
        let longest = record_one(subject, of_length(self.model.task.max_lengths().target.max(1)), Fed::Own)?;
        let end = self.model.task.target_vocabulary().token(END_WORD);
        let written = &longest.predicted;
        let length = written.iter().position(|&token| Some(token) == end).map_or(written.len(), |last| last + 1);
        let recorded = if length == written.len() { longest } else { record_one(subject, of_length(length), Fed::Own)? };
        Ok(Recorded { target: None, loss: None, ..recorded })
    }

    pub(super) fn with_corpus<T>(
        &self,
        subject: &dyn Recordable,
        seed: u64,
        n_sentences: u64,
        then: impl FnOnce(&dyn Corpus, String) -> T,
    ) -> T {
        let of_task = Sentences::Task { seed, n_samples: n_sentences };
        let pair = |number| of_task.pair(&self.model, number);
        let corpus = Live { model: subject, pair: &pair, n_pairs: n_sentences, fed: Fed::Own };
        then(&corpus, format!("fresh sentences of {}, seed {seed}", self.model.config.task.name()))
    }

    /// The words it knows on both sides; `None` where it reads any text.
    pub(super) fn words(&self) -> Option<[&[String]; 2]> {
        let task = &self.model.task;
        task.text().is_none().then(|| [task.source_vocabulary().words(), task.target_vocabulary().words()])
    }

    /// Which tokens of a sentence form a word; `None` where each is one.
    pub(super) fn word_of(&self, samples: &Samples) -> Option<WordsOf> {
        let codec = &self.model.task.text().filter(|text| text.codec.config().units != Units::Words)?.codec;
        let Recorded { source, fed, predicted, .. } = &samples.sentences.first()?.sentence;
        let group = |names: &TokenNames, tokens: &[Token]| {
            let (start, rest) =
                if names.start.is_some() && tokens.first() == names.start.as_ref() { tokens.split_at(1) } else { (&[][..], tokens) };
            let pieces: Vec<String> = rest.iter().map(|&token| names.name(token).into_owned()).collect();
            let words = codec.word_of(&pieces).into_iter().map(|word| word + start.len());
            start.iter().map(|_| 0).chain(words).collect()
        };
        Some(WordsOf {
            source: group(&samples.source, source),
            fed: group(&samples.target, fed),
            predicted: group(&samples.target, predicted),
        })
    }

    fn source(&self, spelled: &Spelled) -> Result<Vec<Token>, LiveError> {
        match spelled {
            Spelled::Text(text) if self.model.task.text().is_some() => self.read("source", self.model.read_source(text)),
            _ => spelling::tokens(self.model.task.source_vocabulary(), "source", spelled, self.most_words),
        }
    }

    fn target(&self, spelled: &Spelled) -> Result<Vec<Token>, LiveError> {
        match spelled {
            Spelled::Text(text) if self.model.task.text().is_some() => self.read("target", self.model.read_target(text)),
            _ => spelling::tokens(self.model.task.target_vocabulary(), "target", spelled, self.most_words),
        }
    }

    /// What the run's own rules made of a text.
    fn read(&self, side: &'static str, read: Result<(Vec<Token>, Vec<String>), AttendError>) -> Result<Vec<Token>, LiveError> {
        let (tokens, _) = read.map_err(refused)?;
        spelling::check_length(side, tokens.len(), self.most_words)?;
        Ok(tokens)
    }
}
