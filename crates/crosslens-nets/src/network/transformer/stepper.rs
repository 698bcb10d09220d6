//! Writing with a Transformer token by token.

use crosslens_analysis::Token;
use crosslens_kernels::Real;

use super::Transformer;
use super::decoder::Memory;
use super::embedding::Reading;
use super::encoder::EncoderTrace;
use super::shard::{Shared, with_steps};
use super::steps::{Stepping, Steps};
use crate::network::packing::Packing;
use crate::network::prepared::Context;

/// Some sources as the encoder sees them, and the *hypotheses* being written for them.
///
/// What a step costs does not grow with the steps before but for the keys it looks at. The logits are, bit for bit, those that a pass
/// over the whole sequence gives.
#[derive(Debug, Default)]
pub(crate) struct Writing<F> {
    shared: Shared<F>,
    source: Packing,
    source_tokens: Vec<Token>,
    encoder: EncoderTrace<F>,
    steps: Steps<F>,
}

impl<F: Real> Writing<F> {
    /// Reads sources and begins one hypothesis for each.
    pub(crate) fn start(body: &Transformer, context: Context<'_, F>, sources: &[&[Token]]) -> Self {
        let mut writing = Self::default();
        let Self { shared, source, source_tokens, encoder, steps } = &mut writing;
        source.arrange(sources.iter().map(|source| source.len()));
        sources.iter().for_each(|source| source_tokens.extend_from_slice(source));
        shared.sinusoids.reach(body.own.positions, body.config.hidden, source.n_steps());
        let reading = Reading { context, sinusoids: &shared.sinusoids, probe: None };
        body.source.read(&mut encoder.rows, with_steps(source_tokens, source), reading);
        body.encoder.forward(encoder, source, None, context, None);
        let memory = Memory { rows: &encoder.rows, packing: source };
        steps.start(body, memory, 0..sources.len(), source.n_steps() + 1, context);
        writing
    }

    /// Feeds a token to each hypothesis; returns the logits `[hypothesis, word]` of what comes after.
    pub(crate) fn step(&mut self, body: &Transformer, context: Context<'_, F>, tokens: &[Token]) -> &mut [F] {
        let Self { shared, source, encoder, steps, .. } = self;
        shared.sinusoids.reach(body.own.positions, body.config.hidden, steps.n_steps() + 1);
        let reading = Reading { context, sinusoids: &shared.sinusoids, probe: None };
        let memory = Memory { rows: &encoder.rows, packing: source };
        steps.step(body, tokens, Stepping { memory, reading, hook: None })
    }

    /// Makes hypothesis `i` a copy of what hypothesis `order[i]` was; there may be more or fewer than before.
    pub(crate) fn reorder(&mut self, body: &Transformer, order: &[usize]) {
        self.steps.reorder(order, body.config.hidden);
    }

    /// A hypothesis's weights on the source in the last step, `[layer, head, source step]`.
    pub(crate) fn looks(&self, hypothesis: usize) -> &[F] {
        self.steps.looks(hypothesis)
    }
}
