//! Attention of decoder states over encoder states: scores, weights, contexts, and back.
//!
//! Everything here is in sentence-major order, so that one sentence's queries, keys and values are blocks of rows.

use std::ops::Range;

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, dots, product, product_of_rows, softmax, sum_rows};

use super::additive;
use super::config::{NetworkConfig, Score};
use super::hook::{Row, ShardHook};
use super::layout::{Layout, Start, TensorId};
use super::linear::Linear;
use super::packing::Packing;
use super::prepared::{Context, Maps};
use super::rows::{Selection, StepBuffers, map_rows, zeroed};

/// How attention is formed.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    pub(crate) score: Score,
    pub(crate) heads: usize,
    d_query_state: usize,
    d_key_state: usize,
    /// Width of one head's query and key.
    d_head: usize,
    /// Width of one head's value.
    d_value: usize,
    pub(crate) d_context: usize,
    pub(crate) query: Option<Linear>,
    pub(crate) key: Option<Linear>,
    pub(crate) value: Option<Linear>,
    mix: Option<Linear>,
    mix_bias: Option<TensorId>,
    pub(crate) bias: Option<TensorId>,
    pub(crate) vector: Option<TensorId>,
}

/// What attention saw and did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttentionTrace<F> {
    /// `[source row, d_key]`: encoder states, and their gradient.
    pub(crate) key_states: Vec<F>,
    pub(crate) d_key_states: Vec<F>,
    keys: Vec<F>,
    d_keys: Vec<F>,
    /// From the key states by the value map; without one in use only where a hook replaces them.
    values: Vec<F>,
    d_values: Vec<F>,
    /// `[target row, n]`: the states that ask, and their gradient.
    pub(crate) query_states: Vec<F>,
    pub(crate) d_query_states: Vec<F>,
    queries: Vec<F>,
    d_queries: Vec<F>,
    /// Per sentence `[head, target step, source step]`, one sentence after the other.
    pub(crate) weights: Vec<F>,
    offsets: Vec<usize>,
    /// `[target row, head · d_value]`: per head, before they are mixed.
    summaries: Vec<F>,
    d_summaries: Vec<F>,
    /// `[target row, d_context]`.
    pub(crate) contexts: Vec<F>,
    pub(crate) d_contexts: Vec<F>,
    /// Gradients of one sentence's scores.
    d_scores: Vec<F>,
    d_vector: Vec<F>,
    /// The key states as a hook changed them for one head.
    replaced: Vec<F>,
    buffers: StepBuffers<F>,
}

/// The two sides of a shard.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) source: &'a Packing,
    pub(crate) target: &'a Packing,
    /// Target sentence → the source it is written for; `None` where each has its own.
    pub(crate) origins: Option<&'a [usize]>,
}

impl<'a> Sides<'a> {
    /// Each target with its own source.
    pub(crate) fn paired(source: &'a Packing, target: &'a Packing) -> Self {
        Self { source, target, origins: None }
    }

    fn origin(&self, sentence: usize) -> usize {
        self.origins.map_or(sentence, |origins| origins[sentence])
    }
}

impl Attention {
    /// The attention of a network; `None` where its family has none.
    pub(crate) fn new(config: &NetworkConfig, layout: &mut Layout, maps: &mut Maps) -> Option<Self> {
        let score = config.score?;
        let (n, d_key, heads) = (config.hidden, config.d_key(), config.heads);
        let mut linear = |name: &str, rows, columns| Linear::new(name, rows, columns, layout, maps);
        let (query, key, value) = match score {
            Score::Dot | Score::ScaledDot => (None, None, None),
            Score::General => (Some(linear("attention.query", n, d_key)), None, None),
            Score::Additive => (Some(linear("attention.query", n, n)), Some(linear("attention.key", d_key, n)), None),
            Score::Qkv => (
                Some(linear("attention.query", n, heads * n)),
                Some(linear("attention.key", d_key, heads * n)),
                Some(linear("attention.value", d_key, heads * n)),
            ),
        };
        let mix = (heads > 1).then(|| linear("attention.mix", heads * n, n));
        let mix_bias = (heads > 1 && config.readout_bias).then(|| layout.vector("attention.mix_bias", n, Start::Zero));
        let is_additive = score == Score::Additive;
        let bias = is_additive.then(|| layout.vector("attention.bias", n, Start::Zero));
        let vector = is_additive.then(|| layout.vector("attention.vector", n, Start::Normal(1.0 / (n as f64).sqrt())));
        let d_value = if value.is_some() { n } else { d_key };
        Some(Self {
            score,
            heads,
            d_query_state: n,
            d_key_state: d_key,
            d_head: if score == Score::General { d_key } else { n },
            d_value,
            d_context: d_value,
            query,
            key,
            value,
            mix,
            mix_bias,
            bias,
            vector,
        })
    }

    /// Makes room for a shard and sets those gradients to zero that are added to.
    pub(crate) fn reserve<F: Real>(&self, trace: &mut AttentionTrace<F>, sides: Sides<'_>) {
        let (n_source, n_target) = (sides.source.n_rows(), sides.target.n_rows());
        trace.key_states.resize(n_source * self.d_key_state, F::ZERO);
        zeroed(&mut trace.d_key_states, n_source * self.d_key_state);
        trace.query_states.resize(n_target * self.d_query_state, F::ZERO);
        trace.d_query_states.resize(n_target * self.d_query_state, F::ZERO);
        trace.contexts.resize(n_target * self.d_context, F::ZERO);
        trace.d_contexts.resize(n_target * self.d_context, F::ZERO);
        if self.query.is_some() {
            trace.queries.resize(n_target * self.heads * self.d_head, F::ZERO);
            trace.d_queries.resize(n_target * self.heads * self.d_head, F::ZERO);
        }
        if self.key.is_some() {
            trace.keys.resize(n_source * self.heads * self.d_head, F::ZERO);
            zeroed(&mut trace.d_keys, n_source * self.heads * self.d_head);
        }
        if self.value.is_some() {
            trace.values.resize(n_source * self.heads * self.d_value, F::ZERO);
            zeroed(&mut trace.d_values, n_source * self.heads * self.d_value);
        }
        if self.mix.is_some() {
            trace.summaries.resize(n_target * self.heads * self.d_value, F::ZERO);
            trace.d_summaries.resize(n_target * self.heads * self.d_value, F::ZERO);
        }
        self.reserve_weights(trace, sides);
        zeroed(&mut trace.d_vector, if self.vector.is_some() { self.d_head } else { 0 });
    }

    fn reserve_weights<F: Real>(&self, trace: &mut AttentionTrace<F>, sides: Sides<'_>) {
        trace.offsets.clear();
        let mut total = 0;
        for (sentence, target) in sides.target.lengths.iter().enumerate() {
            trace.offsets.push(total);
            total += self.heads * sides.source.lengths[sides.origin(sentence)] * target;
        }
        trace.weights.resize(total, F::ZERO);
    }

    /// Makes room for other queries to the same keys, without gradients.
    pub(crate) fn reserve_queries<F: Real>(&self, trace: &mut AttentionTrace<F>, sides: Sides<'_>) {
        let n_target = sides.target.n_rows();
        trace.query_states.resize(n_target * self.d_query_state, F::ZERO);
        trace.contexts.resize(n_target * self.d_context, F::ZERO);
        if self.query.is_some() {
            trace.queries.resize(n_target * self.heads * self.d_head, F::ZERO);
        }
        if self.mix.is_some() {
            trace.summaries.resize(n_target * self.heads * self.d_value, F::ZERO);
        }
        self.reserve_weights(trace, sides);
    }

    /// Keys and values of all source rows, from the key states.
    pub(crate) fn read_keys<F: Real>(&self, trace: &mut AttentionTrace<F>, context: Context<'_, F>) {
        let rows = trace.key_states.len() / self.d_key_state;
        let states = Matrix::new(&trace.key_states, rows, self.d_key_state);
        if let Some(key) = &self.key {
            let width = self.heads * self.d_head;
            if let Some(bias) = self.bias {
                let bias = &context.weights[context.layout.range(bias)];
                trace.keys.chunks_exact_mut(width).for_each(|row| row.copy_from_slice(bias));
            } else {
                trace.keys.fill(F::ZERO);
            }
            product(MatrixMut::new(&mut trace.keys, rows, width), states, &context.prepared.get(key.map).forward, Write::Add);
        }
        if let Some(value) = &self.value {
            let width = self.heads * self.d_value;
            product(MatrixMut::new(&mut trace.values, rows, width), states, &context.prepared.get(value.map).forward, Write::Over);
        }
    }

    /// Lets the hook replace what each head sums.
    pub(crate) fn replace_values<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        sides: Sides<'_>,
        context: Context<'_, F>,
        hook: ShardHook<'_, F>,
    ) {
        let AttentionTrace { key_states, values, replaced, .. } = trace;
        let (n_rows, d) = (sides.source.n_rows(), self.d_key_state);
        let mut map = Packed::new();
        for head in 0..self.heads {
            replaced.clone_from(key_states);
            for sentence in 0..sides.source.n_sentences() {
                let rows = sides.source.sentence_rows(sentence);
                hook.values(head, sentence, &mut replaced[rows.start * d..rows.end * d]);
            }
            let Some(value) = &self.value else {
                values.clone_from(replaced);
                continue;
            };
            if replaced == key_states {
                continue;
            }
            let weights = Matrix::new(&context.weights[context.layout.range(value.tensor)], d, self.heads * self.d_value);
            map.pack(weights.column_range(head * self.d_value, (head + 1) * self.d_value));
            let values = head_rows_mut(values, 0, n_rows, self.heads, head, self.d_value);
            product(values, Matrix::new(replaced, n_rows, d), &map, Write::Over);
        }
    }

    /// Weights and contexts of the selected rows, from their query states.
    pub(crate) fn forward<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        sides: Sides<'_>,
        selection: Selection,
        context: Context<'_, F>,
        hook: Option<ShardHook<'_, F>>,
    ) {
        let rows = selection.rows(sides.target);
        if let Some(query) = &self.query {
            let map = &context.prepared.get(query.map).forward;
            map_rows(rows, &trace.query_states, map, &mut trace.queries, Write::Over, &mut trace.buffers);
        }
        let vector = self.vector.map(|id| &context.weights[context.layout.range(id)]);
        self.for_each_sentence(sides, selection, |sentence, steps| self.attend(trace, sides, sentence, steps, vector, hook));
        if let Some(mix) = &self.mix {
            let map = &context.prepared.get(mix.map).forward;
            map_rows(rows, &trace.summaries, map, &mut trace.contexts, Write::Over, &mut trace.buffers);
            if let Some(bias) = self.mix_bias {
                let bias = &context.weights[context.layout.range(bias)];
                match rows {
                    None => trace.contexts.chunks_exact_mut(self.d_context).for_each(|row| crosslens_kernels::add(row, bias)),
                    Some(rows) => {
                        rows.iter().for_each(|row| crosslens_kernels::add(&mut trace.contexts[row * bias.len()..][..bias.len()], bias))
                    }
                }
            }
        }
    }

    fn for_each_sentence(&self, sides: Sides<'_>, selection: Selection, mut work: impl FnMut(usize, Range<usize>)) {
        match selection {
            Selection::All => sides.target.lengths.iter().enumerate().for_each(|(sentence, &length)| work(sentence, 0..length)),
            Selection::Step(step) => {
                let running = sides.target.rows(step).len();
                sides.target.sentences[..running].iter().for_each(|&sentence| work(sentence, step..step + 1));
            }
        }
    }

    pub(crate) fn scale<F: Real>(&self) -> F {
        match self.score {
            Score::ScaledDot | Score::Qkv => F::of(1.0 / (self.d_query_state as f64).sqrt()),
            Score::Dot | Score::General | Score::Additive => F::ONE,
        }
    }

    fn attend<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        sides: Sides<'_>,
        sentence: usize,
        steps: Range<usize>,
        vector: Option<&[F]>,
        hook: Option<ShardHook<'_, F>>,
    ) {
        let AttentionTrace { key_states, keys, values, query_states, queries, weights, offsets, summaries, contexts, .. } = trace;
        let keys: &[F] = if self.key.is_some() { keys } else { key_states };
        let values: &[F] = if self.value.is_some() || hook.is_some() { values } else { key_states };
        let queries: &[F] = if self.query.is_some() { queries } else { query_states };
        let summaries = if self.mix.is_some() { summaries } else { contexts };
        let place = self.place(sides, sentence, &steps);
        for head in 0..self.heads {
            let weights = &mut weights[offsets[sentence] + place.weights(head)..][..place.m * place.n_keys];
            let query = head_rows(queries, place.target_row, place.m, self.heads, head, self.d_head);
            let key = head_rows(keys, place.source_row, place.n_keys, self.heads, head, self.d_head);
            match vector {
                Some(vector) => additive::scores(weights, query, key, vector),
                None => dots(MatrixMut::new(weights, place.m, place.n_keys), query, key, self.scale()),
            }
            weights.chunks_exact_mut(place.n_keys).for_each(softmax);
            if let Some(hook) = hook {
                let key_states = &key_states[place.source_row * self.d_key_state..][..place.n_keys * self.d_key_state];
                for (number, weights) in weights.chunks_exact_mut(place.n_keys).enumerate() {
                    let query_state = &query_states[(place.target_row + number) * self.d_query_state..][..self.d_query_state];
                    hook.weights(Row { site: head, sentence, step: place.first_step + number, query_state, key_states }, weights);
                }
            }
            let value = head_rows(values, place.source_row, place.n_keys, self.heads, head, self.d_value);
            let summary = head_rows_mut(summaries, place.target_row, place.m, self.heads, head, self.d_value);
            product_of_rows(summary, Matrix::new(weights, place.m, place.n_keys), value, Write::Over);
        }
    }

    fn place(&self, sides: Sides<'_>, sentence: usize, steps: &Range<usize>) -> Place {
        let origin = sides.origin(sentence);
        Place {
            target_row: sides.target.sentence_rows(sentence).start + steps.start,
            source_row: sides.source.sentence_rows(origin).start,
            m: steps.len(),
            n_keys: sides.source.lengths[origin],
            n_queries: sides.target.lengths[sentence],
            first_step: steps.start,
        }
    }

    /// From `d_contexts` of the selected rows to their `d_query_states`, and to the gradients of keys and values.
    pub(crate) fn backward<F: Real>(&self, trace: &mut AttentionTrace<F>, sides: Sides<'_>, selection: Selection, context: Context<'_, F>) {
        let rows = selection.rows(sides.target);
        if let Some(mix) = &self.mix {
            let map = &context.prepared.get(mix.map).backward;
            map_rows(rows, &trace.d_contexts, map, &mut trace.d_summaries, Write::Over, &mut trace.buffers);
        }
        let vector = self.vector.map(|id| &context.weights[context.layout.range(id)]);
        self.for_each_sentence(sides, selection, |sentence, steps| self.unattend(trace, sides, sentence, steps, vector));
        if let Some(query) = &self.query {
            let map = &context.prepared.get(query.map).backward;
            map_rows(rows, &trace.d_queries, map, &mut trace.d_query_states, Write::Over, &mut trace.buffers);
        }
    }

    /// With weights `p` and `dp = d_context·valueᵀ`: `d_score = p∘(dp − Σ p∘dp)`.
    fn unattend<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        sides: Sides<'_>,
        sentence: usize,
        steps: Range<usize>,
        vector: Option<&[F]>,
    ) {
        let place = self.place(sides, sentence, &steps);
        let AttentionTrace { weights, offsets, d_scores, d_vector, .. } = trace;
        d_scores.resize(place.m * place.n_keys, F::ZERO);
        for head in 0..self.heads {
            let weights = &weights[offsets[sentence] + place.weights(head)..][..place.m * place.n_keys];
            {
                let d_summaries = if self.mix.is_some() { &trace.d_summaries } else { &trace.d_contexts };
                let d_summary = head_rows(d_summaries, place.target_row, place.m, self.heads, head, self.d_value);
                let values = if self.value.is_some() { &trace.values } else { &trace.key_states };
                let value = head_rows(values, place.source_row, place.n_keys, self.heads, head, self.d_value);
                dots(MatrixMut::new(d_scores, place.m, place.n_keys), d_summary, value, F::ONE);
                let d_values = if self.value.is_some() { &mut trace.d_values } else { &mut trace.d_key_states };
                let d_value = head_rows_mut(d_values, place.source_row, place.n_keys, self.heads, head, self.d_value);
                product_of_rows(d_value, Matrix::new(weights, place.m, place.n_keys).transposed(), d_summary, Write::Add);
            }
            let scale = self.scale::<F>();
            for (d_scores, weights) in d_scores.chunks_exact_mut(place.n_keys).zip(weights.chunks_exact(place.n_keys)) {
                let mean: F = d_scores.iter().zip(weights).map(|(&d, &weight)| d * weight).sum();
                for (d_score, &weight) in d_scores.iter_mut().zip(weights) {
                    *d_score = weight * (*d_score - mean) * scale;
                }
            }
            let queries = if self.query.is_some() { &trace.queries } else { &trace.query_states };
            let query = head_rows(queries, place.target_row, place.m, self.heads, head, self.d_head);
            let keys = if self.key.is_some() { &trace.keys } else { &trace.key_states };
            let key = head_rows(keys, place.source_row, place.n_keys, self.heads, head, self.d_head);
            let d_queries = if self.query.is_some() { &mut trace.d_queries } else { &mut trace.d_query_states };
            let d_query = head_rows_mut(d_queries, place.target_row, place.m, self.heads, head, self.d_head);
            let d_keys = if self.key.is_some() { &mut trace.d_keys } else { &mut trace.d_key_states };
            let d_key = head_rows_mut(d_keys, place.source_row, place.n_keys, self.heads, head, self.d_head);
            match vector {
                Some(vector) => additive::backward(d_scores, query, key, vector, additive::Gradients { d_query, d_key, d_vector }),
                None => {
                    let d_scores = Matrix::new(d_scores, place.m, place.n_keys);
                    product_of_rows(d_query, d_scores, key, Write::Over);
                    product_of_rows(d_key, d_scores.transposed(), query, Write::Add);
                }
            }
        }
    }

    /// Passes the gradients of keys and values on to the key states, and adds those of all parameters.
    pub(crate) fn finish<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        context: Context<'_, F>,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
    ) {
        let layout = context.layout;
        let mut pass_on = |linear: &Linear, d_output: &[F], d_states: &mut [F]| {
            map_rows(None, d_output, &context.prepared.get(linear.map).backward, d_states, Write::Add, &mut trace.buffers);
        };
        if let Some(key) = &self.key {
            pass_on(key, &trace.d_keys, &mut trace.d_key_states);
            key.add_gradient(&trace.key_states, &trace.d_keys, layout, gradient, scratch);
        }
        if let Some(value) = &self.value {
            pass_on(value, &trace.d_values, &mut trace.d_key_states);
            value.add_gradient(&trace.key_states, &trace.d_values, layout, gradient, scratch);
        }
        if let Some(query) = &self.query {
            query.add_gradient(&trace.query_states, &trace.d_queries, layout, gradient, scratch);
        }
        if let Some(mix) = &self.mix {
            mix.add_gradient(&trace.summaries, &trace.d_contexts, layout, gradient, scratch);
        }
        if let Some(bias) = self.mix_bias {
            let rows = trace.d_contexts.len() / self.d_context;
            sum_rows(&mut gradient[layout.range(bias)], Matrix::new(&trace.d_contexts, rows, self.d_context));
        }
        if let Some(bias) = self.bias {
            sum_rows(&mut gradient[layout.range(bias)], Matrix::new(&trace.d_keys, trace.d_keys.len() / self.d_head, self.d_head));
        }
        if let Some(vector) = self.vector {
            crosslens_kernels::add(&mut gradient[layout.range(vector)], &trace.d_vector);
        }
    }

    /// One sentence's weights, `[head, target step, source step]`.
    pub(crate) fn weights_of<'a, F>(&self, trace: &'a AttentionTrace<F>, sides: Sides<'_>, sentence: usize) -> &'a [F] {
        let len = self.heads * sides.source.lengths[sides.origin(sentence)] * sides.target.lengths[sentence];
        &trace.weights[trace.offsets[sentence]..][..len]
    }
}

/// Where a sentence's selected rows lie.
struct Place {
    target_row: usize,
    source_row: usize,
    m: usize,
    n_keys: usize,
    n_queries: usize,
    first_step: usize,
}

impl Place {
    fn weights(&self, head: usize) -> usize {
        (head * self.n_queries + self.first_step) * self.n_keys
    }
}

fn head_rows<F: Real>(rows: &[F], from: usize, n_rows: usize, heads: usize, head: usize, width: usize) -> Matrix<'_, F> {
    Matrix::strided(&rows[from * heads * width + head * width..], n_rows, width, heads * width)
}

fn head_rows_mut<F: Real>(rows: &mut [F], from: usize, n_rows: usize, heads: usize, head: usize, width: usize) -> MatrixMut<'_, F> {
    MatrixMut::strided(&mut rows[from * heads * width + head * width..], n_rows, width, heads * width)
}
