//! Runs a network on batches: what shards share, the threads, and the sum of their gradients.

use std::ops::Range;
use std::sync::Mutex;

use crosslens_analysis::{Pair, Probe};
use crosslens_kernels::{Packed, Real, Threads, add};
use serde::{Deserialize, Serialize};

use super::dropout::Dropout;
use super::hook::Hook;
use super::inputs::{LocalTokens, Table};
use super::positions::Encoded;
use super::prepared::{Context, Prepared};
use super::shard::{Job, Shard};
use super::{Network, Outcome};

/// Sentences in one shard. Fixed, so that results do not depend on threads.
const SHARD_SENTENCES: usize = 16;
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
    encoded: Encoded<F>,
}

impl<F: Real> Shared<F> {
    /// Made to read any tokens, in sentences of up to `n_steps`.
    pub(crate) fn for_all_tokens(network: &Network, weights: &[F], n_steps: usize, threads: &Threads) -> Self {
        let mut shared = Self::default();
        shared.source_tokens.collect(&network.source_space, true, std::iter::empty());
        shared.target_tokens.collect(&network.target_space, true, std::iter::empty());
        shared.refresh(network, weights, n_steps, false, None, threads);
        shared
    }

    pub(crate) fn context<'a>(&'a self, network: &'a Network, weights: &'a [F]) -> Context<'a, F> {
        Context { layout: &network.layout, weights, prepared: &self.prepared }
    }

    /// Packs the weights and computes the tables of the tokens collected.
    fn refresh(&mut self, network: &Network, weights: &[F], n_steps: usize, with_gradient: bool, probe: Option<Probe>, threads: &Threads) {
        let Self { prepared, source_tokens, target_tokens, tables, encoded } = self;
        prepared.refresh(&network.maps, &network.layout, weights, with_gradient, threads);
        encoded.refresh(network.config.positions.zip(network.rotation()), network.d_input(), n_steps);
        let context = Context { layout: &network.layout, weights, prepared };
        tables.resize_with(network.decoder_table() + 1, Table::default);
        let (source_tokens, target_tokens, encoded) = (&*source_tokens, &*target_tokens, &encoded.rows);
        threads.for_each(tables, |number, table| {
            let (layer, space, local) = network.table(number, source_tokens, target_tokens);
            table.refresh(layer, space, local, encoded, context, probe);
        });
    }

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
    /// As many as threads ever worked at once; any of them serves any shard.
    workspaces: Mutex<Vec<Shard<F>>>,
    results: Vec<ShardResult<F>>,
    n_shards: usize,
    gradient: Vec<F>,
    scratch: Packed<F>,
    label_smoothing: F,
}

/// What a shard leaves behind.
#[derive(Clone, Debug, Default)]
struct ShardResult<F> {
    outcome: Outcome,
    gradient: Vec<F>,
}

impl<F: Real> Engine<F> {
    /// An engine on `n_threads` threads; 0 means one per core.
    pub fn new(n_threads: usize) -> std::io::Result<Self> {
        Ok(Self::on(Threads::new(n_threads)?))
    }

    /// An engine on these threads, which others may use too.
    pub(crate) fn on(threads: Threads) -> Self {
        Self {
            threads,
            shared: Shared::default(),
            workspaces: Mutex::new(Vec::new()),
            results: Vec::new(),
            n_shards: 0,
            gradient: Vec::new(),
            scratch: Packed::new(),
            label_smoothing: F::ZERO,
        }
    }

    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// From now on gradients are those of a loss in which this share of the target's probability is spread over all words, and so is the
    /// loss that comes with them. Evaluations are not changed.
    pub fn set_label_smoothing(&mut self, share: f64) {
        self.label_smoothing = F::of(share);
    }

    /// Loss and accuracy of a batch.
    ///
    /// Panics if a token is not in the network's vocabularies or a sentence is empty.
    pub fn evaluate(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding) -> Outcome {
        self.run(network, weights, pairs, feeding, None, false, None, |_, _| ())
    }

    /// The same, and the gradient of the mean cross-entropy, found in [`Engine::gradient`].
    ///
    /// `dropout_seed` draws the dropped inputs, if the network drops any.
    pub fn differentiate(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding, dropout_seed: u64) -> Outcome {
        let probability = network.config.dropout;
        let dropout = (probability > 0.0).then_some(Dropout { probability, seed: dropout_seed });
        self.threads.clone().within(|| {
            let outcome = self.run(network, weights, pairs, feeding, dropout, true, None, |_, _| ());
            self.sum_gradients(network, weights);
            outcome
        })
    }

    /// The gradient left by [`Engine::differentiate`], in the order of the network's layout.
    pub fn gradient(&self) -> &[F] {
        &self.gradient
    }

    /// The gradient, for an optimiser to work on, and the threads to do it with.
    pub fn gradient_mut(&mut self) -> (&mut [F], &Threads) {
        (&mut self.gradient, &self.threads)
    }

    /// Runs all shards; `look` sees each one's workspace and its number when it is done.
    #[expect(clippy::too_many_arguments, reason = "internal; each caller states what it wants")]
    pub(crate) fn run(
        &mut self,
        network: &Network,
        weights: &[F],
        pairs: &[Pair],
        feeding: Feeding,
        dropout: Option<Dropout>,
        with_gradient: bool,
        hook: Option<&dyn Hook<F>>,
        look: impl Fn(usize, &Shard<F>) + Sync,
    ) -> Outcome {
        assert_eq!(weights.len(), network.layout.len(), "weights of another network");
        assert!(pairs.iter().all(|pair| !pair.source.is_empty() && !pair.target.is_empty()), "sentences are not empty");
        self.refresh(network, weights, pairs, feeding, with_gradient, hook);
        let Self { threads, shared, workspaces, results, n_shards, label_smoothing, .. } = self;
        let size = pairs.len().div_ceil(MAX_SHARDS).max(SHARD_SENTENCES);
        *n_shards = pairs.len().div_ceil(size);
        results.resize_with((*n_shards).max(results.len()), ShardResult::default);
        let n_words: usize = pairs.iter().map(|pair| pair.target.len()).sum();
        let gradient_weight = with_gradient.then(|| F::of(1.0 / n_words as f64));
        let label_smoothing = *label_smoothing;
        let context = Context { layout: &network.layout, weights, prepared: &shared.prepared };
        let (shared, workspaces) = (&*shared, &*workspaces);
        threads.for_each(&mut results[..*n_shards], |number, result| {
            let first_sentence = number * size;
            let pairs = &pairs[first_sentence..(first_sentence + size).min(pairs.len())];
            let mut shard = lock(workspaces).pop().unwrap_or_default();
            let job = Job { pairs, first_sentence, feeding, dropout, gradient_weight, label_smoothing, hook };
            result.outcome = shard.run(network, shared, context, job, &mut result.gradient);
            look(number, &shard);
            lock(workspaces).push(shard);
        });
        results[..*n_shards].iter().fold(Outcome::default(), |total, result| total.with(&result.outcome))
    }

    fn refresh(
        &mut self,
        network: &Network,
        weights: &[F],
        pairs: &[Pair],
        feeding: Feeding,
        with_gradient: bool,
        hook: Option<&dyn Hook<F>>,
    ) {
        let Self { threads, shared, .. } = self;
        shared.source_tokens.collect(&network.source_space, false, pairs.iter().flat_map(|pair| pair.source.iter().copied()));
        let all = feeding == Feeding::Free;
        let targets = pairs.iter().flat_map(|pair| pair.target.iter().copied());
        let given = hook.into_iter().flat_map(|hook| (0..pairs.len()).flat_map(|sentence| hook.fed(sentence).unwrap_or_default()).copied());
        shared.target_tokens.collect(&network.target_space, all, targets.chain(given));
        let n_steps = pairs.iter().map(|pair| pair.source.len().max(pair.target.len())).max().unwrap_or(0);
        shared.refresh(network, weights, n_steps, with_gradient, hook.and_then(Hook::probe), threads);
    }

    fn sum_gradients(&mut self, network: &Network, weights: &[F]) {
        let Self { threads, shared, results, n_shards, gradient, scratch, .. } = self;
        let len = network.layout.len() + shared.table_len();
        gradient.resize(len, F::ZERO);
        let results = &results[..*n_shards];
        let start = network.layout.sharded().start;
        let (tabled, sharded) = gradient.split_at_mut(start);
        tabled.fill(F::ZERO);
        let mut chunks: Vec<&mut [F]> = sharded.chunks_mut(SUM_CHUNK).collect();
        threads.for_each(&mut chunks, |number, chunk| {
            let from = start + number * SUM_CHUNK;
            chunk.copy_from_slice(&results[0].gradient[from..from + chunk.len()]);
            for result in &results[1..] {
                add(chunk, &result.gradient[from..from + chunk.len()]);
            }
        });
        let (parameters, tables) = gradient.split_at_mut(network.layout.len());
        let context = Context { layout: &network.layout, weights, prepared: &shared.prepared };
        let mut rest = &*tables;
        for (number, table) in shared.tables.iter_mut().enumerate() {
            let (layer, space, local) = network.table(number, &shared.source_tokens, &shared.target_tokens);
            let table_gradient;
            (table_gradient, rest) = rest.split_at(table.len());
            table.finish(table_gradient, layer, space, local, &shared.encoded.rows, context, parameters, scratch);
        }
        gradient.truncate(network.layout.len());
    }
}

/// A workspace holds nothing that a panic could leave half-done: every run writes it anew.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
