//! Writing step by step: what decoders that choose their own words need.
//!
//! A [`Stepper`] holds what all sentences share, made once for the weights at hand. A [`Stepping`] reads some sources and then goes on one
//! step at a time for as many *rows* as are wanted: one a source for greedy decoding, several for beams. Its numbers are those of a pass
//! over the same tokens, bit for bit, whatever other rows go along.

use crosslens_analysis::Token;
use crosslens_kernels::{Real, Threads};

use super::attention::Sides;
use super::decoder::DecoderInput;
use super::engine::Shared;
use super::prepared::{Context, Prepared};
use super::rows::Selection;
use super::shard::Shard;
use super::transformer::Writing;
use super::{Body, Network, Recurrent};

/// A network made ready to write.
///
/// ```
/// use crosslens_nets::Threads;
/// use crosslens_nets::network::{Family, Network, NetworkConfig, Stepper};
///
/// let network = Network::new(&NetworkConfig { hidden: 8, ..NetworkConfig::of(Family::Luong) }, 5, 6, 0)?;
/// let weights = network.draw_weights::<f32>(0);
/// let stepper = Stepper::new(&network, &weights, 10, &Threads::new(1)?);
/// let mut stepping = stepper.start(&[&[0, 1, 2], &[4]]);
/// let start = network.start_token();
/// assert_eq!(stepping.step(&[start, start]).len(), 2 * 6);
/// // Go on with the first source alone, two words tried after it.
/// stepping.keep(&[0, 0]);
/// assert_eq!(stepping.step(&[3, 5]).len(), 2 * 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Stepper<'a, F> {
    network: &'a Network,
    weights: &'a [F],
    prepared: Prepared<F>,
    /// Of a recurrent network.
    shared: Shared<F>,
    most_steps: usize,
}

impl<'a, F: Real> Stepper<'a, F> {
    /// Prepares the weights, for sources and targets of up to `most_steps` tokens, or as many as the network has learned positions for.
    ///
    /// Panics if the weights are those of another network.
    pub fn new(network: &'a Network, weights: &'a [F], most_steps: usize, threads: &Threads) -> Self {
        assert_eq!(weights.len(), network.layout.len(), "weights of another network");
        let mut prepared = Prepared::default();
        prepared.refresh(&network.maps, &network.layout, weights, false, threads);
        let context = Context { layout: &network.layout, weights, prepared: &prepared };
        let shared = match &network.body {
            Body::Recurrent(body) => Shared::for_all_tokens(body, context, most_steps, threads),
            Body::Transformer(_) => Shared::default(),
        };
        let learned = network.config.transformer.and_then(|config| config.most_steps());
        Self { network, weights, prepared, shared, most_steps: most_steps.min(learned.unwrap_or(usize::MAX)) }
    }

    /// Tokens that a source or a target may have.
    pub fn most_steps(&self) -> usize {
        self.most_steps
    }

    fn context(&self) -> Context<'_, F> {
        Context { layout: &self.network.layout, weights: self.weights, prepared: &self.prepared }
    }

    /// Reads the sources; each has one row.
    ///
    /// Panics if a source is empty, has more than [`Stepper::most_steps`] tokens, or one that the network does not know.
    pub fn start(&self, sources: &[&[Token]]) -> Stepping<'_, F> {
        assert!(sources.iter().all(|source| (1..=self.most_steps).contains(&source.len())), "a source has between 1 and the most steps");
        let running = match &self.network.body {
            Body::Recurrent(body) => {
                let mut shard = Shard::default();
                shard.read_sources(body, &self.shared, self.context(), sources);
                Running::Recurrent(Box::new(shard), Vec::new())
            }
            Body::Transformer(body) => Running::Transformer(Box::new(Writing::start(body, self.context(), sources))),
        };
        Stepping { stepper: self, running, origins: (0..sources.len()).collect(), step: 0, is_placed: true }
    }
}

/// Some sources, and how far their targets are written.
#[derive(Debug)]
pub struct Stepping<'a, F> {
    stepper: &'a Stepper<'a, F>,
    running: Running<F>,
    /// Row → source.
    origins: Vec<usize>,
    step: usize,
    /// Whether rows stand where they go on from.
    is_placed: bool,
}

/// What a kind of network keeps between steps.
#[derive(Debug)]
enum Running<F> {
    /// And the logits of the last step.
    Recurrent(Box<Shard<F>>, Vec<F>),
    Transformer(Box<Writing<F>>),
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
    /// Panics if there are not as many tokens as rows, if one is not in the vocabulary, or after [`Stepper::most_steps`] steps.
    pub fn step(&mut self, fed: &[Token]) -> &mut [F] {
        assert_eq!(fed.len(), self.origins.len(), "one token for each row");
        assert!(self.step < self.stepper.most_steps, "more steps than were prepared for");
        if !self.is_placed {
            let all: Vec<usize> = (0..self.n_rows()).collect();
            self.keep(&all);
        }
        let Self { stepper, running, origins, step, is_placed } = self;
        *is_placed = false;
        *step += 1;
        match (&stepper.network.body, running) {
            (Body::Recurrent(body), Running::Recurrent(shard, logits)) => {
                let input = RecurrentStep { body, shared: &stepper.shared, context: stepper.context(), origins, step: *step - 1 };
                input.run(shard, fed, logits);
                logits
            }
            (Body::Transformer(body), Running::Transformer(writing)) => writing.step(body, stepper.context(), fed),
            _ => unreachable!("a stepping runs the network it was started with"),
        }
    }

    /// A row's weights on the source in the step just made, `[head, source step]`, of a Transformer `[layer, head, source step]`; empty
    /// without attention.
    pub fn attention(&self, row: usize) -> &[F] {
        match (&self.stepper.network.body, &self.running) {
            (Body::Recurrent(body), Running::Recurrent(shard, _)) => {
                let Some(attention) = &body.decoder.attention else { return &[] };
                let sides = Sides { source: &shard.source, target: &shard.target, origins: Some(&self.origins) };
                attention.weights_of(&shard.attention, sides, row)
            }
            (_, Running::Transformer(writing)) => writing.looks(row),
            _ => unreachable!("a stepping runs the network it was started with"),
        }
    }

    /// After a step: the rows to go on with, each from where the row named has come to. A row may be named several times, or not at all;
    /// without this call all go on.
    pub fn keep(&mut self, rows: &[usize]) {
        self.is_placed = true;
        self.origins = rows.iter().map(|&row| self.origins[row]).collect();
        match (&self.stepper.network.body, &mut self.running) {
            (Body::Recurrent(body), Running::Recurrent(shard, _)) => {
                shard.target.arrange(rows.iter().map(|_| 1));
                body.decoder.go_on(&mut shard.decoder, rows, &shard.target);
            }
            (Body::Transformer(body), Running::Transformer(writing)) => writing.reorder(body, rows),
            _ => unreachable!("a stepping runs the network it was started with"),
        }
    }
}

/// One step of a recurrent decoder, as the only step of a shard.
struct RecurrentStep<'a, F> {
    body: &'a Recurrent,
    shared: &'a Shared<F>,
    context: Context<'a, F>,
    origins: &'a [usize],
    step: usize,
}

impl<F: Real> RecurrentStep<'_, F> {
    fn run(&self, shard: &mut Shard<F>, fed: &[Token], logits: &mut Vec<F>) {
        let decoder = &self.body.decoder;
        shard.target.step_of.fill(self.step as u32);
        shard.decoder.fed.clear();
        shard.decoder.fed.extend_from_slice(fed);
        let sides = Sides { source: &shard.source, target: &shard.target, origins: Some(self.origins) };
        if let Some(attention) = &decoder.attention {
            attention.reserve_queries(&mut shard.attention, sides);
        }
        let (table, local) = (&self.shared.tables[self.body.decoder_table()], &self.shared.target_tokens);
        let input = DecoderInput { sides, context: self.context, table, local, dropout: None, hook: None };
        decoder.forward_step(&mut shard.decoder, &mut shard.attention, 0, input);
        decoder.assemble(&mut shard.decoder, &shard.attention, Selection::Step(0), input);
        decoder.readout.logits(&shard.decoder.readout_input, logits, self.context);
    }
}
