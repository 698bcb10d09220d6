//! Writing step by step: what decoders that choose their own words need.
//!
//! A [`Stepper`] holds what all sentences share, made once for the weights at hand. A [`Stepping`] reads some sources and then goes on one
//! step at a time for as many *rows* as are wanted: one a source for greedy decoding, several for beams. Its numbers are those of a pass
//! over the same tokens, bit for bit, whatever other rows go along.

use crosslens_analysis::Token;
use crosslens_kernels::{Real, Threads};

use super::Network;
use super::attention::Sides;
use super::decoder::DecoderInput;
use super::engine::Shared;
use super::rows::Selection;
use super::shard::Shard;

/// A network made ready to write.
#[derive(Debug)]
pub struct Stepper<'a, F> {
    network: &'a Network,
    weights: &'a [F],
    shared: Shared<F>,
    most_steps: usize,
}

impl<'a, F: Real> Stepper<'a, F> {
    /// Prepares the weights, for sources and targets of up to `most_steps` tokens.
    ///
    /// Panics if the weights are those of another network.
    pub fn new(network: &'a Network, weights: &'a [F], most_steps: usize, threads: &Threads) -> Self {
        assert_eq!(weights.len(), network.layout.len(), "weights of another network");
        Self { network, weights, shared: Shared::for_all_tokens(network, weights, most_steps, threads), most_steps }
    }

    /// Reads the sources; each has one row.
    ///
    /// Panics if a source is empty, longer than the steps prepared for, or has a token the network does not know.
    pub fn start(&self, sources: &[&[Token]]) -> Stepping<'_, F> {
        assert!(sources.iter().all(|source| (1..=self.most_steps).contains(&source.len())), "a source has between 1 and the most steps");
        let mut shard = Shard::default();
        shard.read_sources(self.network, &self.shared, self.shared.context(self.network, self.weights), sources);
        Stepping { stepper: self, shard, origins: (0..sources.len()).collect(), step: 0, logits: Vec::new() }
    }
}

/// Some sources, and how far their targets are written.
#[derive(Debug)]
pub struct Stepping<'a, F> {
    stepper: &'a Stepper<'a, F>,
    shard: Shard<F>,
    /// Row → source.
    origins: Vec<usize>,
    step: usize,
    logits: Vec<F>,
}

impl<F: Real> Stepping<'_, F> {
    /// Rows that are being written.
    pub fn n_rows(&self) -> usize {
        self.origins.len()
    }

    /// The source a row is written for.
    pub fn origin(&self, row: usize) -> usize {
        self.origins[row]
    }

    /// Feeds every row a token, at first the start token; returns the logits `[row, target word]` of the next, to be changed at will.
    ///
    /// Panics if there are not as many tokens as rows, after more steps than were prepared for, or if [`Stepping::keep`] was not called
    /// since the last step.
    pub fn step(&mut self, fed: &[Token]) -> &mut [F] {
        let Self { stepper, shard, origins, step, logits } = self;
        let network = stepper.network;
        assert_eq!(fed.len(), origins.len(), "one token for each row");
        assert!(*step < stepper.most_steps, "more steps than were prepared for");
        shard.target.step_of.fill(*step as u32);
        shard.decoder.fed.clear();
        shard.decoder.fed.extend_from_slice(fed);
        let sides = Sides { source: &shard.source, target: &shard.target, origins: Some(origins) };
        if let Some(attention) = &network.decoder.attention {
            attention.reserve_queries(&mut shard.attention, sides);
        }
        let context = stepper.shared.context(network, stepper.weights);
        let (table, local) = (&stepper.shared.tables[network.decoder_table()], &stepper.shared.target_tokens);
        let input = DecoderInput { sides, context, table, local, dropout: None, hook: None };
        network.decoder.forward_step(&mut shard.decoder, &mut shard.attention, 0, input);
        network.decoder.assemble(&mut shard.decoder, &shard.attention, Selection::Step(0), input);
        network.decoder.readout.logits(&shard.decoder.readout_input, logits, context);
        *step += 1;
        logits
    }

    /// A row's weights in the step just made, `[head, source step]`; empty without attention.
    pub fn attention(&self, row: usize) -> &[F] {
        let Some(attention) = &self.stepper.network.decoder.attention else { return &[] };
        let sides = Sides { source: &self.shard.source, target: &self.shard.target, origins: Some(&self.origins) };
        attention.weights_of(&self.shard.attention, sides, row)
    }

    /// After a step: the rows to go on with, each from where the row named has come to. A row may be named several times, or not at all.
    pub fn keep(&mut self, rows: &[usize]) {
        self.origins = rows.iter().map(|&row| self.origins[row]).collect();
        self.shard.target.arrange(rows.iter().map(|_| 1));
        self.stepper.network.decoder.go_on(&mut self.shard.decoder, rows, &self.shard.target);
    }
}
