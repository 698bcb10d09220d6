//! From a model or a recording to sums.

use crosslens_analysis::explain::{EveryNth, ExplainError, First, Live, Progress};
use crosslens_analysis::{Fed, Recording, Stats};

use crate::{Sentences, TrainedModel};

/// One of several parts of a corpus: every sentence whose place leaves the same rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// All sentences.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// How many of `n_sentences` are in it.
    pub fn len(self, n_sentences: u64) -> u64 {
        n_sentences.saturating_sub(self.number - 1).div_ceil(self.of)
    }

    /// Whether the sentence at this place of the corpus is in it.
    pub(crate) fn holds(self, place: u64) -> bool {
        place % self.of == self.number - 1
    }

    /// The place in the corpus of its sentence `number`.
    fn place(self, number: u64) -> u64 {
        number * self.of + self.number - 1
    }
}

impl TrainedModel {
    /// Sums the states of one shard of the sentences.
    pub fn fit(
        &self,
        sentences: &Sentences,
        shard: Shard,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, ExplainError> {
        let subject = self.subject(n_threads)?;
        let pair = |number| sentences.pair(self, shard.place(number));
        let corpus = Live { model: &subject, pair: &pair, n_pairs: shard.len(sentences.len()), fed: Fed::Own };
        Stats::of(&corpus, n_threads, progress)
    }
}

/// Sums the states of one shard of the first `n_sentences` of a recording.
pub fn fit_recording(
    recording: &Recording,
    n_sentences: u64,
    shard: Shard,
    n_threads: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<Stats, ExplainError> {
    let corpus = First { corpus: recording, n_sentences };
    Stats::of(&EveryNth { corpus: &corpus, first: shard.number - 1, n: shard.of }, n_threads, progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_hold_every_sentence_once() {
        for (n_sentences, of) in [(10, 3), (3, 3), (2, 5), (0, 2), (7, 1)] {
            let shards = (1..=of).map(|number| Shard { number, of });
            let mut places: Vec<u64> = shards.flat_map(|shard| (0..shard.len(n_sentences)).map(move |k| shard.place(k))).collect();
            places.sort_unstable();
            assert_eq!(places, (0..n_sentences).collect::<Vec<_>>(), "{n_sentences} in {of}");
            for shard in (1..=of).map(|number| Shard { number, of }) {
                let held: Vec<u64> = (0..n_sentences).filter(|&place| shard.holds(place)).collect();
                assert_eq!(held, (0..shard.len(n_sentences)).map(|k| shard.place(k)).collect::<Vec<_>>());
            }
        }
    }
}
