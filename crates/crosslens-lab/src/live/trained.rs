//! Questions to a network trained here.

use crosslens_analysis::explain::{Corpus, Live};
use crosslens_analysis::{Fed, Pair, Recordable, Recorded, Token};
use crosslens_nets::tasks::{END_WORD, Split};

use super::{Asked, Feeds, Heard, LiveError, Spelled, record_one, spelling};
use crate::{Sentences, TrainedModel};

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
                record_one(subject, Pair { source: self.source(source)?, target: self.target(target)? }, fed)?
            }
            Asked::Typed { source, target: None } => self.hear_alone(subject, self.source(source)?)?,
        };
        Ok(Heard { recorded, fed })
    }

    /// Of the target only the length matters, since the decoder reads its own words.
    fn hear_alone(&self, subject: &dyn Recordable, source: Vec<Token>) -> Result<Recorded, LiveError> {
        let of_length = |length| Pair { source: source.clone(), target: vec![0; length] };
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

    fn source(&self, words: &Spelled) -> Result<Vec<Token>, LiveError> {
        spelling::tokens(self.model.task.source_vocabulary(), "source", words, self.most_words)
    }

    fn target(&self, words: &Spelled) -> Result<Vec<Token>, LiveError> {
        spelling::tokens(self.model.task.target_vocabulary(), "target", words, self.most_words)
    }
}
