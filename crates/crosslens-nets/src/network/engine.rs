//! Runs a network on batches: what shards share, the threads, and the sum of their gradients.

use std::ops::Range;

use crosslens_analysis::Pair;
use crosslens_kernels::{Packed, Real, Threads, add};
use serde::{Deserialize, Serialize};

use super::dropout::Dropout;
use super::inputs::{LocalTokens, Table};
use super::layer::Context;
use super::prepared::Prepared;
use super::shard::{Job, Shard};
use super::{Network, Outcome};

/// Sentences in one shard. Fixed, so that results do not depend on threads.
const SHARD_SENTENCES: usize = 32;
/// Most shards of a batch; larger batches get larger shards.
const MAX_SHARDS: usize = 16;
/// Numbers of the gradient that one piece of work adds up.
const SUM_CHUNK: usize = 1 << 15;

/// What the decoder reads after its first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feeding {
    /// The target (teacher forcing).
    Forced,
    /// Its own likeliest word; no gradient flows through the choice.
    Free,
}

/// What the shards of a batch share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared<F> {
    prepared: Prepared<F>,
    pub(crate) source_tokens: LocalTokens,
    pub(crate) target_tokens: LocalTokens,
    /// Of the encoder's directions, then of the decoder.
    pub(crate) tables: Vec<Table<F>>,
    encoded: Vec<F>,
}

impl<F: Real> Shared<F> {
    pub(crate) fn table_len(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    pub(crate) fn table_range(&self, number: usize) -> Range<usize> {
        let start: usize = self.tables[..number].iter().map(Table::len).sum();
        start..start + self.tables[number].len()
    }
}

/// Memory and threads to run a network with, kept from batch to batch.
#[derive(Debug)]
pub struct Engine<F> {
    threads: Threads,
    shared: Shared<F>,
    shards: Vec<Shard<F>>,
    n_shards: usize,
    gradient: Vec<F>,
    scratch: Packed<F>,
}

impl<F: Real> Engine<F> {
    /// An engine on `n_threads` threads; 0 means one per core.
    pub fn new(n_threads: usize) -> std::io::Result<Self> {
        Ok(Self {
            threads: Threads::new(n_threads)?,
            shared: Shared::default(),
            shards: Vec::new(),
            n_shards: 0,
            gradient: Vec::new(),
            scratch: Packed::new(),
        })
    }

    /// Loss and accuracy of a batch.
    ///
    /// Panics if a token is not in the network's vocabularies or a sentence is empty.
    pub fn evaluate(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding) -> Outcome {
        self.run(network, weights, pairs, feeding, None, false)
    }

    /// The same, and the gradient of the mean cross-entropy, found in [`Engine::gradient`].
    ///
    /// `dropout_seed` draws the dropped inputs, if the network drops any.
    pub fn differentiate(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding, dropout_seed: u64) -> Outcome {
        let probability = network.config.dropout;
        let dropout = (probability > 0.0).then_some(Dropout { probability, seed: dropout_seed });
        let outcome = self.run(network, weights, pairs, feeding, dropout, true);
        self.sum_gradients(network, weights);
        outcome
    }

    /// The gradient left by [`Engine::differentiate`], in the order of the network's layout.
    pub fn gradient(&self) -> &[F] {
        &self.gradient
    }

    /// The gradient, to be changed in place by an optimiser.
    pub fn gradient_mut(&mut self) -> &mut [F] {
        &mut self.gradient
    }

    /// The team of threads.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    fn run(
        &mut self,
        network: &Network,
        weights: &[F],
        pairs: &[Pair],
        feeding: Feeding,
        dropout: Option<Dropout>,
        with_gradient: bool,
    ) -> Outcome {
        assert_eq!(weights.len(), network.layout.len(), "weights of another network");
        assert!(pairs.iter().all(|pair| !pair.source.is_empty() && !pair.target.is_empty()), "sentences are not empty");
        self.refresh(network, weights, pairs, feeding, with_gradient);
        let Self { threads, shared, shards, n_shards, .. } = self;
        let size = pairs.len().div_ceil(MAX_SHARDS).max(SHARD_SENTENCES);
        *n_shards = pairs.len().div_ceil(size);
        shards.resize_with((*n_shards).max(shards.len()), Shard::default);
        let n_words: usize = pairs.iter().map(|pair| pair.target.len()).sum();
        let gradient_weight = with_gradient.then(|| F::of(1.0 / n_words as f64));
        let context = Context { layout: &network.layout, weights, prepared: &shared.prepared };
        let shared = &*shared;
        threads.for_each(&mut shards[..*n_shards], |number, shard| {
            let first_sentence = number * size;
            let pairs = &pairs[first_sentence..(first_sentence + size).min(pairs.len())];
            shard.run(network, shared, context, Job { pairs, first_sentence, feeding, dropout, gradient_weight });
        });
        let mut total = Outcome::default();
        shards[..*n_shards].iter().for_each(|shard| total.add(&shard.outcome));
        total.loss /= n_words.max(1) as f64;
        total
    }

    fn refresh(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding, with_gradient: bool) {
        let Self { threads, shared, .. } = self;
        let Shared { prepared, source_tokens, target_tokens, tables, encoded } = shared;
        prepared.refresh(&network.maps, &network.layout, weights, with_gradient, threads);
        source_tokens.collect(&network.source_space, false, pairs.iter().flat_map(|pair| pair.source.iter().copied()));
        let all = feeding == Feeding::Free;
        target_tokens.collect(&network.target_space, all, pairs.iter().flat_map(|pair| pair.target.iter().copied()));
        let n_steps = pairs.iter().map(|pair| pair.source.len().max(pair.target.len())).max().unwrap_or(0);
        network.encode_positions(encoded, n_steps);

        let context = Context { layout: &network.layout, weights, prepared };
        tables.resize_with(network.decoder_table() + 1, Table::default);
        let (source_tokens, target_tokens, encoded) = (&*source_tokens, &*target_tokens, &*encoded);
        threads.for_each(tables, |number, table| {
            let (layer, space, local) = network.table(number, source_tokens, target_tokens);
            table.refresh(layer, space, local, encoded, context);
        });
    }

    fn sum_gradients(&mut self, network: &Network, weights: &[F]) {
        let Self { threads, shared, shards, n_shards, gradient, scratch } = self;
        let len = network.layout.len() + shared.table_len();
        gradient.resize(len, F::ZERO);
        let shards = &shards[..*n_shards];
        let mut chunks: Vec<&mut [F]> = gradient.chunks_mut(SUM_CHUNK).collect();
        threads.for_each(&mut chunks, |number, chunk| {
            let from = number * SUM_CHUNK;
            chunk.copy_from_slice(&shards[0].gradient[from..from + chunk.len()]);
            for shard in &shards[1..] {
                add(chunk, &shard.gradient[from..from + chunk.len()]);
            }
        });
        let (parameters, tables) = gradient.split_at_mut(network.layout.len());
        let context = Context { layout: &network.layout, weights, prepared: &shared.prepared };
        for (number, table) in shared.tables.iter().enumerate() {
            let (layer, space, local) = network.table(number, &shared.source_tokens, &shared.target_tokens);
            let table_gradient = &tables[shared.table_range(number)];
            table.finish(table_gradient, layer, space, local, &shared.encoded, context, parameters, scratch);
        }
        gradient.truncate(network.layout.len());
    }

    /// The shards of the last batch, with the sentences' numbers.
    pub(crate) fn shards(&self) -> &[Shard<F>] {
        &self.shards[..self.n_shards]
    }
}
