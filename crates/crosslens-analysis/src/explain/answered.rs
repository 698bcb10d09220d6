//! Which sentences are asked what the model predicts.

use super::passes::batches;
use super::{Corpus, Options};

/// The batches whose predictions are asked for: so many of all, as far apart as can be, since a corpus may be in some order.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    n: u64,
    of: u64,
}

impl Answered {
    /// As many as hold the sentences that are asked for, the fitted half left out where there is one.
    pub(super) fn of(corpus: &dyn Corpus, options: &Options) -> Self {
        let (n_sentences, of) = (corpus.n_sentences(), batches(corpus).count() as u64);
        let n_explained = if options.held_out { n_sentences / 2 } else { n_sentences }.max(1);
        let n = u128::from(options.answered.min(n_explained)) * u128::from(of);
        Self { n: n.div_ceil(n_explained.into()) as u64, of }
    }

    /// Whether batch number so and so is one of them.
    pub(super) fn has(self, batch: u64) -> bool {
        let before = |batch: u64| u128::from(batch) * u128::from(self.n) / u128::from(self.of.max(1));
        before(batch + 1) > before(batch)
    }
}
