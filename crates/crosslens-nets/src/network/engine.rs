//! Runs a network on batches: what shards share, the threads, and the sum of their gradients.

use std::ops::Range;
use std::sync::Mutex;

use crosslens_analysis::{Pair, Probe};
use crosslens_kernels::{Packed, Real, Threads, add};
use serde::{Deserialize, Serialize};

use super::dropout::Dropout;
use super::hook::Hook;
use super::inputs::{LocalTokens, Table};
use super::observe::{Ran, Watched};
use super::positions::Encoded;
use super::prepared::{Context, Prepared};
use super::shard::{Job, Shard};
use super::{Body, Network, Outcome, Recurrent, transformer};

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

/// What the shards of a batch of a recurrent network share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared<F> {
    pub(crate) source_tokens: LocalTokens,
    pub(crate) target_tokens: LocalTokens,
    /// Of the encoder's directions, then of the decoder.
    pub(crate) tables: Vec<Table<F>>,
    encoded: Encoded<F>,
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
    prepared: Prepared<F>,
    recurrent: Kept<Shared<F>, Shard<F>>,
    transformer: Kept<transformer::Shared<F>, transformer::Shard<F>>,
    results: Vec<ShardResult<F>>,
    n_shards: usize,
    gradient: Vec<F>,
    squares: Vec<f64>,
    scratch: Packed<F>,
    label_smoothing: F,
}

/// What an optimiser works on and with.
pub(crate) struct Workplace<'a, F> {
    pub(crate) gradient: &'a mut [F],
    /// For squared norms of the gradient's pieces; kept from step to step.
    pub(crate) squares: &'a mut Vec<f64>,
    pub(crate) threads: &'a Threads,
}

/// What one kind of network keeps.
#[derive(Debug, Default)]
struct Kept<S, W> {
    shared: S,
    /// As many as threads ever worked at once; any of them serves any shard.
    workspaces: Mutex<Vec<W>>,
}

/// What a shard leaves behind.
#[derive(Clone, Debug, Default)]
struct ShardResult<F> {
    outcome: Outcome,
    gradient: Vec<F>,
}

/// What to run.
pub(crate) struct Pass<'a, F> {
    pub(crate) pairs: &'a [Pair],
    pub(crate) feeding: Feeding,
    pub(crate) dropout: Option<Dropout>,
    pub(crate) with_gradient: bool,
    /// Where a gradient is wanted.
    pub(crate) label_smoothing: F,
    pub(crate) hook: Option<&'a dyn Hook<F>>,
}

impl<'a, F: Real> Pass<'a, F> {
    /// Forward only, unchanged.
    pub(crate) fn plain(pairs: &'a [Pair], feeding: Feeding) -> Self {
        Self { pairs, feeding, dropout: None, with_gradient: false, label_smoothing: F::ZERO, hook: None }
    }
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
            prepared: Prepared::default(),
            recurrent: Kept::default(),
            transformer: Kept::default(),
            results: Vec::new(),
            n_shards: 0,
            gradient: Vec::new(),
            squares: Vec::new(),
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
        self.run(network, weights, Pass::plain(pairs, feeding), |_, _| ())
    }

    /// The same, and the gradient of the mean cross-entropy, found in [`Engine::gradient`].
    ///
    /// `dropout_seed` draws the dropped inputs, if the network drops any.
    pub fn differentiate(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding, dropout_seed: u64) -> Outcome {
        let probability = network.config.dropout;
        let dropout = (probability > 0.0).then_some(Dropout { probability, seed: dropout_seed });
        self.threads.clone().within(|| {
            let pass = Pass { pairs, feeding, dropout, with_gradient: true, label_smoothing: self.label_smoothing, hook: None };
            let outcome = self.run(network, weights, pass, |_, _| ());
            self.sum_gradients(network, weights);
            outcome
        })
    }

    /// The gradient left by [`Engine::differentiate`], in the order of the network's layout.
    pub fn gradient(&self) -> &[F] {
        &self.gradient
    }

    /// The gradient, for an optimiser to work on, with what else it needs.
    pub(crate) fn workplace(&mut self) -> Workplace<'_, F> {
        Workplace { gradient: &mut self.gradient, squares: &mut self.squares, threads: &self.threads }
    }

    /// Runs all shards; `look` sees each one, with its number, when it is done.
    pub(crate) fn run(
        &mut self,
        network: &Network,
        weights: &[F],
        pass: Pass<'_, F>,
        look: impl Fn(usize, &dyn Watched<F>) + Sync,
    ) -> Outcome {
        assert_eq!(weights.len(), network.layout.len(), "weights of another network");
        let Pass { pairs, with_gradient, .. } = pass;
        assert!(pairs.iter().all(|pair| !pair.source.is_empty() && !pair.target.is_empty()), "sentences are not empty");
        let Self { threads, prepared, recurrent, transformer, results, n_shards, .. } = self;
        prepared.refresh(&network.maps, &network.layout, weights, with_gradient, threads);
        let context = Context { layout: &network.layout, weights, prepared };
        *n_shards = shard_count(pairs.len());
        results.resize_with((*n_shards).max(results.len()), ShardResult::default);
        let results = &mut results[..*n_shards];
        match &network.body {
            Body::Recurrent(body) => {
                recurrent.shared.refresh(body, context, &pass, threads);
                recurrent.in_shards(&pass, threads, results, |number, shared, shard, job, gradient| {
                    let outcome = shard.run(body, shared, context, job, gradient);
                    look(number, &Ran { network: &**body, shard, context });
                    outcome
                });
            }
            Body::Transformer(body) => {
                transformer.shared.refresh(body, pairs);
                transformer.in_shards(&pass, threads, results, |number, shared, shard, job, gradient| {
                    let outcome = shard.run(body, shared, context, job, gradient);
                    look(number, &Ran { network: &**body, shard, context });
                    outcome
                });
            }
        }
        results.iter().fold(Outcome::default(), |total, result| total.with(&result.outcome))
    }

    fn sum_gradients(&mut self, network: &Network, weights: &[F]) {
        let Self { threads, prepared, recurrent, results, n_shards, gradient, scratch, .. } = self;
        let tables = match &network.body {
            Body::Recurrent(body) => Some((body, &mut recurrent.shared)),
            Body::Transformer(_) => None,
        };
        let len = network.layout.len() + tables.as_ref().map_or(0, |(_, shared)| shared.table_len());
        gradient.resize(len, F::ZERO);
        let results = &results[..*n_shards];
        let start = network.layout.sharded().start;
        let (tabled, sharded) = gradient.split_at_mut(start);
        tabled.fill(F::ZERO);
        threads.for_each_chunk([sharded], SUM_CHUNK, |number, [chunk]| {
            let from = start + number * SUM_CHUNK;
            chunk.copy_from_slice(&results[0].gradient[from..from + chunk.len()]);
            for result in &results[1..] {
                add(chunk, &result.gradient[from..from + chunk.len()]);
            }
        });
        if let Some((body, shared)) = tables {
            let (parameters, tables) = gradient.split_at_mut(network.layout.len());
            let context = Context { layout: &network.layout, weights, prepared };
            shared.finish(body, context, tables, parameters, scratch, threads);
        }
        gradient.truncate(network.layout.len());
    }
}

/// Sentences in a shard of so many.
fn shard_size(n_sentences: usize) -> usize {
    n_sentences.div_ceil(MAX_SHARDS).max(SHARD_SENTENCES)
}

/// Shards of so many sentences.
pub(crate) fn shard_count(n_sentences: usize) -> usize {
    n_sentences.div_ceil(shard_size(n_sentences))
}

impl<S: Sync, W: Default + Send> Kept<S, W> {
    /// Does `work` on every shard with a workspace of its own.
    fn in_shards<F: Real>(
        &self,
        pass: &Pass<'_, F>,
        threads: &Threads,
        results: &mut [ShardResult<F>],
        work: impl Fn(usize, &S, &mut W, Job<'_, F>, &mut Vec<F>) -> Outcome + Sync,
    ) {
        let &Pass { pairs, feeding, dropout, with_gradient, label_smoothing, hook } = pass;
        let size = shard_size(pairs.len());
        let n_words: usize = pairs.iter().map(|pair| pair.target.len()).sum();
        let gradient_weight = with_gradient.then(|| F::of(1.0 / n_words as f64));
        threads.for_each(results, |number, result| {
            let first_sentence = number * size;
            let pairs = &pairs[first_sentence..(first_sentence + size).min(pairs.len())];
            let mut workspace = lock(&self.workspaces).pop().unwrap_or_default();
            let job = Job { pairs, first_sentence, feeding, dropout, gradient_weight, label_smoothing, hook };
            result.outcome = work(number, &self.shared, &mut workspace, job, &mut result.gradient);
            lock(&self.workspaces).push(workspace);
        });
    }
}

impl<F: Real> Shared<F> {
    /// Makes everything that of these weights and sentences.
    fn refresh(&mut self, network: &Recurrent, context: Context<'_, F>, pass: &Pass<'_, F>, threads: &Threads) {
        let Pass { pairs, hook, .. } = pass;
        self.source_tokens.collect(&network.source_space, false, pairs.iter().flat_map(|pair| pair.source.iter().copied()));
        let all = pass.feeding == Feeding::Free;
        let targets = pairs.iter().flat_map(|pair| pair.target.iter().copied());
        let given = hook.iter().flat_map(|hook| (0..pairs.len()).flat_map(|sentence| hook.fed(sentence).unwrap_or_default()).copied());
        self.target_tokens.collect(&network.target_space, all, targets.chain(given));
        let n_steps = pairs.iter().map(|pair| pair.source.len().max(pair.target.len())).max().unwrap_or(0);
        self.compute(network, context, n_steps, hook.and_then(Hook::probe), threads);
    }

    /// Made of these weights for any tokens, in sentences of up to `n_steps`.
    pub(crate) fn for_all_tokens(network: &Recurrent, context: Context<'_, F>, n_steps: usize, threads: &Threads) -> Self {
        let mut shared = Self::default();
        shared.source_tokens.collect(&network.source_space, true, std::iter::empty());
        shared.target_tokens.collect(&network.target_space, true, std::iter::empty());
        shared.compute(network, context, n_steps, None, threads);
        shared
    }

    /// Computes the tables of the tokens collected.
    fn compute(&mut self, network: &Recurrent, context: Context<'_, F>, n_steps: usize, probe: Option<Probe>, threads: &Threads) {
        let Self { source_tokens, target_tokens, tables, encoded } = self;
        encoded.refresh(network.config.positions.zip(network.rotation.as_deref()), network.source_space.d, n_steps);
        tables.resize_with(network.decoder_table() + 1, Table::default);
        let (source_tokens, target_tokens, encoded) = (&*source_tokens, &*target_tokens, &encoded.rows);
        threads.for_each(tables, |number, table| {
            let (layer, space, local) = network.table(number, source_tokens, target_tokens);
            table.refresh(layer, space, local, encoded, context, probe);
        });
    }

    /// From the gradients of all tables to those of the parameters behind them.
    fn finish(
        &mut self,
        network: &Recurrent,
        context: Context<'_, F>,
        gradients: &[F],
        parameters: &mut [F],
        scratch: &mut Packed<F>,
        threads: &Threads,
    ) {
        let mut rest = gradients;
        for (number, table) in self.tables.iter_mut().enumerate() {
            let (layer, space, local) = network.table(number, &self.source_tokens, &self.target_tokens);
            let table_gradient;
            (table_gradient, rest) = rest.split_at(table.len());
            table.finish(table_gradient, layer, space, local, &self.encoded.rows, context, parameters, scratch, threads);
        }
    }
}

/// A workspace holds nothing that a panic could leave half-done: every run writes it anew.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
