//! A fixed part of a batch, worked through by one thread.

use crosslens_analysis::{Pair, Token};
use crosslens_kernels::Real;

use super::decoder::{DecoderTrace, Memory};
use super::embedding::{Reading, Sinusoids};
use super::encoder::EncoderTrace;
use super::residual::Dropping;
use super::steps::{Stepping, Steps};
use super::{Backward, Scratch, Transformer};
use crate::network::Outcome;
use crate::network::engine::Feeding;
use crate::network::hook::{Hook, ShardHook};
use crate::network::packing::Packing;
use crate::network::prepared::Context;
use crate::network::readout::{ReadoutGradients, ReadoutTrace, likeliest};
use crate::network::rows::zeroed;
use crate::network::shard::{Job, judge};

/// What the shards of a batch share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared<F> {
    pub(super) sinusoids: Sinusoids<F>,
}

impl<F: Real> Shared<F> {
    /// Makes everything long enough for these sentences.
    pub(crate) fn refresh(&mut self, network: &Transformer, pairs: &[Pair]) {
        let n_steps = pairs.iter().map(|pair| pair.source.len().max(pair.target.len())).max().unwrap_or(0);
        self.sinusoids.reach(network.own.positions, network.config.hidden, n_steps);
    }
}

/// All buffers of a shard; they grow to the largest shard seen and stay. Rows are in sentence-major order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard<F> {
    pub(super) source: Packing,
    pub(super) target: Packing,
    source_tokens: Vec<Token>,
    pub(super) fed: Vec<Token>,
    targets: Vec<Token>,
    pub(super) predicted: Vec<Token>,
    pub(super) encoder: EncoderTrace<F>,
    pub(super) decoder: DecoderTrace<F>,
    pub(super) readout: ReadoutTrace<F>,
    steps: Steps<F>,
    step_tokens: Vec<Token>,
    scratch: Scratch<F>,
}

/// Tokens in sentence-major order with their steps.
pub(super) fn with_steps<'a>(tokens: &'a [Token], packing: &'a Packing) -> impl Iterator<Item = (Token, usize)> + 'a {
    tokens.iter().copied().zip(packing.lengths.iter().flat_map(|&length| 0..length))
}

impl<F: Real> Shard<F> {
    /// Forward, loss and, if asked for, backward: `gradient` becomes that of all parameters.
    pub(crate) fn run(
        &mut self,
        network: &Transformer,
        shared: &Shared<F>,
        context: Context<'_, F>,
        job: Job<'_, F>,
        gradient: &mut Vec<F>,
    ) -> Outcome {
        self.arrange(network, job);
        let reading = Reading { context, sinusoids: &shared.sinusoids, probe: job.hook.and_then(Hook::probe) };
        let hook = job.shard_hook();
        let dropped = job.dropout.map(|dropout| (dropout, job.first_sentence));
        network.source.read(&mut self.encoder.rows, with_steps(&self.source_tokens, &self.source), reading);
        let dropping = dropped.map(|(dropout, first_sentence)| Dropping { dropout, first_sentence, packing: &self.source });
        network.encoder.forward(&mut self.encoder, &self.source, dropping, context, hook);
        if job.feeding == Feeding::Free {
            self.feed_itself(network, reading, hook);
        }
        network.target.read(&mut self.decoder.rows, with_steps(&self.fed, &self.target), reading);
        let dropping = dropped.map(|(dropout, first_sentence)| Dropping { dropout, first_sentence, packing: &self.target });
        let memory = Memory { rows: &self.encoder.rows, packing: &self.source };
        network.decoder.forward(&mut self.decoder, &self.target, memory, dropping, context, hook);
        if let Some(hook) = hook {
            self.change_readout(network.config.hidden, hook);
        }

        if job.gradient_weight.is_some() {
            zeroed(gradient, context.layout.len());
            self.decoder.d_rows.resize(self.decoder.rows.len(), F::ZERO);
        }
        let gradients = job.gradient_weight.map(|row_weight| ReadoutGradients {
            d_input: &mut self.decoder.d_rows,
            gradient,
            scratch: &mut self.scratch.packed,
            row_weight,
            smoothing: job.label_smoothing,
        });
        let loss = network.readout.loss(&mut self.readout, &self.decoder.rows, &self.targets, &mut self.predicted, context, gradients);
        if job.gradient_weight.is_some() {
            self.backward(network, context, dropped.is_some(), gradient);
        }
        judge(loss, &self.target, &self.targets, &self.predicted)
    }

    fn arrange(&mut self, network: &Transformer, job: Job<'_, F>) {
        let pairs = job.pairs;
        self.source.arrange(pairs.iter().map(|pair| pair.source.len()));
        self.target.arrange(pairs.iter().map(|pair| pair.target.len()));
        let start = network.readout.n_words as Token;
        self.source_tokens.clear();
        self.targets.clear();
        self.fed.clear();
        for (sentence, pair) in pairs.iter().enumerate() {
            self.source_tokens.extend_from_slice(&pair.source);
            self.targets.extend_from_slice(&pair.target);
            match job.shard_hook().and_then(|hook| hook.fed(sentence)) {
                Some(fed) => self.fed.extend_from_slice(fed),
                None => self.fed.extend(std::iter::once(start).chain(pair.target[..pair.target.len() - 1].iter().copied())),
            }
        }
    }

    /// Replaces the fed tokens by the network's own, step by step; the longest targets come first, so that those still running stay in front.
    fn feed_itself(&mut self, network: &Transformer, reading: Reading<'_, F>, hook: Option<ShardHook<'_, F>>) {
        let Self { source, target, encoder, steps, step_tokens, fed, .. } = self;
        let memory = Memory { rows: &encoder.rows, packing: source };
        steps.start(network, memory, target.sentences.iter().copied(), target.n_steps(), reading.context);
        for step in 0..target.n_steps() - 1 {
            let rows = &target.to_sentence[target.rows(step)];
            let n_next = target.rows(step + 1).len();
            step_tokens.clear();
            step_tokens.extend(rows[..n_next].iter().map(|&row| fed[row]));
            let logits = steps.step(network, step_tokens, Stepping { memory, reading, hook });
            for (logits, &row) in logits.chunks_exact(network.readout.n_words).zip(rows) {
                fed[row + 1] = likeliest(logits);
            }
        }
    }

    fn change_readout(&mut self, d: usize, hook: ShardHook<'_, F>) {
        for sentence in 0..self.target.n_sentences() {
            for (step, row) in self.target.sentence_rows(sentence).enumerate() {
                hook.readout(sentence, step, &mut self.decoder.rows[row * d..][..d], &mut []);
            }
        }
    }

    fn backward(&mut self, network: &Transformer, context: Context<'_, F>, is_dropped: bool, gradient: &mut [F]) {
        let Self { source, target, source_tokens, fed, encoder, decoder, scratch, .. } = self;
        let mut back = Backward { context, gradient, scratch };
        let EncoderTrace { rows, d_rows, .. } = encoder;
        zeroed(d_rows, rows.len());
        network.decoder.backward(decoder, target, Memory { rows, packing: source }, d_rows, is_dropped, &mut back);
        network.target.backward(&decoder.d_rows, with_steps(fed, target), context.layout, back.gradient);
        network.encoder.backward(encoder, source, is_dropped, &mut back);
        network.source.backward(&encoder.d_rows, with_steps(source_tokens, source), context.layout, back.gradient);
    }
}
