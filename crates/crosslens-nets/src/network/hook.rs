//! How somebody else changes a forward pass from within.
//!
//! A pass has at most one hook. Where it has none, as in training, nothing is copied and nothing is called.

use crosslens_analysis::{Probe, Token};

/// One row of attention, about to be used.
pub(crate) struct Row<'a, F> {
    /// The site's place in the network's description; of a recurrent network its head.
    pub(crate) site: usize,
    /// The sentence's number in the batch.
    pub(crate) sentence: usize,
    /// The step that asks.
    pub(crate) step: usize,
    /// `[n]`: the state that asks.
    pub(crate) query_state: &'a [F],
    /// `[key, d_key]`: the states that are asked.
    pub(crate) key_states: &'a [F],
}

/// Changes a forward pass; sentences are numbered as in the batch.
pub(crate) trait Hook<F>: Sync {
    /// What the decoder reads in place of the target, as long as that; `None` for the target. Not asked where the decoder runs freely.
    fn fed(&self, sentence: usize) -> Option<&[Token]>;

    /// What both sides read at every step in place of tokens; `None` for the tokens.
    fn probe(&self) -> Option<Probe> {
        None
    }

    /// May replace a row of weights over the keys that may be seen.
    fn weights(&self, row: Row<'_, F>, weights: &mut [F]);

    /// May replace the states `[key, d_key]` that a site sums, before its value map.
    fn values(&self, site: usize, sentence: usize, states: &mut [F]);

    /// May replace the readout's input of one step: what comes from the state and what from the context.
    fn readout(&self, sentence: usize, step: usize, state: &mut [F], context: &mut [F]);
}

/// A hook on a shard, whose sentences are numbered from 0.
pub(crate) struct ShardHook<'a, F> {
    pub(crate) hook: &'a dyn Hook<F>,
    /// Number in the batch of the shard's first sentence.
    pub(crate) first_sentence: usize,
}

impl<F> Clone for ShardHook<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for ShardHook<'_, F> {}

impl<'a, F> ShardHook<'a, F> {
    pub(crate) fn fed(self, sentence: usize) -> Option<&'a [Token]> {
        self.hook.fed(self.first_sentence + sentence)
    }

    pub(crate) fn weights(self, row: Row<'_, F>, weights: &mut [F]) {
        self.hook.weights(Row { sentence: self.first_sentence + row.sentence, ..row }, weights);
    }

    pub(crate) fn values(self, site: usize, sentence: usize, states: &mut [F]) {
        self.hook.values(site, self.first_sentence + sentence, states);
    }

    pub(crate) fn readout(self, sentence: usize, step: usize, state: &mut [F], context: &mut [F]) {
        self.hook.readout(self.first_sentence + sentence, step, state, context);
    }
}
