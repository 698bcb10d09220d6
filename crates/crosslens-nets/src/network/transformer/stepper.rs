//! Writing with a Transformer token by token, for whoever searches among continuations.

use crosslens_analysis::Token;
use crosslens_kernels::{Real, Threads};

use super::Transformer;
use super::decoder::Memory;
use super::embedding::Reading;
use super::encoder::EncoderTrace;
use super::shard::{Shared, with_steps};
use super::steps::{Stepping, Steps};
use crate::network::packing::Packing;
use crate::network::prepared::{Context, Prepared};
use crate::network::{Body, Network};

/// A decoder that is fed one token at a time.
///
/// It holds *hypotheses*, each a sequence being written for one source. What a step costs does not grow with the steps before but for
/// the keys it looks at. The logits are, bit for bit, those that a pass over the whole sequence gives.
///
/// ```
/// use crosslens_nets::network::{Family, Network, NetworkConfig};
///
/// let config = NetworkConfig { hidden: 8, heads: 2, ..NetworkConfig::of(Family::Transformer) };
/// let network = Network::new(&config, 5, 6, 0)?;
/// let weights = network.draw_weights::<f32>(0);
/// let mut stepper = network.stepper(&weights).expect("a Transformer");
/// stepper.start(&[&[0, 1, 2], &[4]]);
/// let start = network.start_token();
/// assert_eq!(stepper.step(&[start, start]).len(), 2 * 6);
/// // Go on with the first source alone, two words tried after it.
/// stepper.reorder(&[0, 0]);
/// assert_eq!(stepper.step(&[3, 5]).len(), 2 * 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Stepper<'n, F> {
    network: &'n Network,
    body: &'n Transformer,
    weights: &'n [F],
    prepared: Prepared<F>,
    shared: Shared<F>,
    source: Packing,
    source_tokens: Vec<Token>,
    encoder: EncoderTrace<F>,
    steps: Steps<F>,
}

impl Network {
    /// A decoder of these weights to be fed token by token; `None` for recurrent networks. Panics if the weights are another network's.
    pub fn stepper<'n, F: Real>(&'n self, weights: &'n [F]) -> Option<Stepper<'n, F>> {
        let Body::Transformer(body) = &self.body else { return None };
        assert_eq!(weights.len(), self.layout.len(), "weights of another network");
        let mut prepared = Prepared::default();
        let threads = Threads::new(1).expect("one thread is the caller's own");
        prepared.refresh(&self.maps, &self.layout, weights, false, &threads);
        Some(Stepper {
            network: self,
            body,
            weights,
            prepared,
            shared: Shared::default(),
            source: Packing::default(),
            source_tokens: Vec::new(),
            encoder: EncoderTrace::default(),
            steps: Steps::default(),
        })
    }
}

impl<F: Real> Stepper<'_, F> {
    /// Reads sources and begins one hypothesis for each, in place of all before.
    ///
    /// Panics if a source is empty, has a token that is none of the network's, or fails [`Network::check_lengths`].
    pub fn start(&mut self, sources: &[&[Token]]) {
        assert!(sources.iter().all(|source| !source.is_empty()), "sources are not empty");
        let Self { network, body, weights, prepared, shared, source, source_tokens, encoder, steps } = self;
        let context = Context { layout: &network.layout, weights, prepared };
        source.arrange(sources.iter().map(|source| source.len()));
        source_tokens.clear();
        sources.iter().for_each(|source| source_tokens.extend_from_slice(source));
        shared.sinusoids.reach(body.own.positions, body.config.hidden, source.n_steps());
        let reading = Reading { context, sinusoids: &shared.sinusoids, probe: None };
        body.source.read(&mut encoder.rows, with_steps(source_tokens, source), reading);
        body.encoder.forward(encoder, source, None, context, None);
        let memory = Memory { rows: &encoder.rows, packing: source };
        steps.start(body, memory, 0..sources.len(), source.n_steps() + 1, context);
    }

    /// Feeds a token to each hypothesis; returns the logits `[hypothesis, word]` of what comes after.
    ///
    /// The first token of every hypothesis is [`Network::start_token`]. With fewer tokens than hypotheses the last ones are left behind.
    /// Panics if there are more, a token is none of the network's, or [`Network::check_lengths`] fails for the steps made.
    pub fn step(&mut self, tokens: &[Token]) -> &[F] {
        let Self { network, body, weights, prepared, shared, source, encoder, steps, .. } = self;
        assert!(tokens.len() <= steps.n_hypotheses(), "{} tokens for {} hypotheses", tokens.len(), steps.n_hypotheses());
        let context = Context { layout: &network.layout, weights, prepared };
        shared.sinusoids.reach(body.own.positions, body.config.hidden, steps.n_steps() + 1);
        let reading = Reading { context, sinusoids: &shared.sinusoids, probe: None };
        let memory = Memory { rows: &encoder.rows, packing: source };
        steps.step(body, tokens, Stepping { memory, reading, hook: None })
    }

    /// Makes hypothesis `i` a copy of what hypothesis `order[i]` was; there may be more or fewer than before. Panics if one is not there.
    pub fn reorder(&mut self, order: &[usize]) {
        let n = self.steps.n_hypotheses();
        assert!(order.iter().all(|&from| from < n), "an order of {n} hypotheses");
        self.steps.reorder(order, self.body.config.hidden);
    }

    /// How many hypotheses go on.
    pub fn n_hypotheses(&self) -> usize {
        self.steps.n_hypotheses()
    }

    /// Tokens fed to each so far.
    pub fn n_steps(&self) -> usize {
        self.steps.n_steps()
    }
}
