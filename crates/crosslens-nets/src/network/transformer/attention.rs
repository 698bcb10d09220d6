//! Attention of several heads, of one side to itself or of the decoder to the encoder.
//!
//! ```text
//! α[q, k] = softmax_k((z_q·W_Q + b_Q)·(h_k·W_K + b_K) / √d_head)   over the keys that q may see, for each head's columns
//! result  = [Σ_k α[q, k]·(h_k·W_V + b_V) of each head]·W_O + b_O
//! ```
//!
//! Rows are in sentence-major order, so that one sentence's queries, keys and values are blocks of rows.

use crosslens_analysis::Visible;
use crosslens_kernels::{Matrix, MatrixMut, Real, Write, dots, product_of_rows, softmax};

use super::Backward;
use super::affine::Affine;
use crate::network::hook::{Row, ShardHook};
use crate::network::layout::Layout;
use crate::network::packing::Packing;
use crate::network::prepared::{Context, Maps};
use crate::network::rows::zeroed;

/// The maps of one layer's attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    pub(crate) query: Affine,
    pub(crate) key: Affine,
    pub(crate) value: Affine,
    output: Affine,
    pub(crate) heads: usize,
    d: usize,
    pub(crate) visible: Visible,
    /// Place of its first head among the network's sites.
    pub(crate) first_site: usize,
}

/// Where an attention stands.
pub(crate) struct Shape<'a> {
    pub(crate) name: &'a str,
    pub(crate) d: usize,
    pub(crate) heads: usize,
    pub(crate) visible: Visible,
    pub(crate) first_site: usize,
}

/// What an attention saw and did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttentionTrace<F> {
    queries: Vec<F>,
    keys: Vec<F>,
    values: Vec<F>,
    /// Per sentence `[head, query, key]`, one sentence after the other.
    weights: Vec<F>,
    offsets: Vec<usize>,
    /// `[query row, d]`: what the heads sum, side by side.
    contexts: Vec<F>,
}

/// The states of the two sides and how their rows lie; the same twice where a side asks itself.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a, F> {
    pub(crate) query_states: &'a [F],
    pub(crate) queries: &'a Packing,
    pub(crate) key_states: &'a [F],
    pub(crate) keys: &'a Packing,
}

/// Some steps of one sentence: rows of `d`.
pub(crate) struct Question<'a, F> {
    pub(crate) queries: &'a [F],
    pub(crate) keys: &'a [F],
    pub(crate) values: &'a [F],
    /// Step of the first query.
    pub(crate) first_step: usize,
}

/// What somebody who changes a run is shown of a question.
pub(crate) struct Hooked<'a, F> {
    pub(crate) hook: ShardHook<'a, F>,
    pub(crate) sentence: usize,
    pub(crate) query_states: &'a [F],
    pub(crate) key_states: &'a [F],
    pub(crate) context: Context<'a, F>,
}

impl Attention {
    pub(crate) fn new(shape: &Shape<'_>, layout: &mut Layout, maps: &mut Maps) -> Self {
        let &Shape { name, d, heads, visible, first_site } = shape;
        let mut map = |part: &str| Affine::new(&format!("{name}.{part}"), d, d, layout, maps);
        let (query, key, value, output) = (map("query"), map("key"), map("value"), map("output"));
        Self { query, key, value, output, heads, d, visible, first_site }
    }

    fn d_head(&self) -> usize {
        self.d / self.heads
    }

    pub(crate) fn scale<F: Real>(&self) -> F {
        F::of(1.0 / (self.d_head() as f64).sqrt())
    }

    /// Weights and results of all rows.
    pub(crate) fn forward<F: Real>(
        &self,
        trace: &mut AttentionTrace<F>,
        asking: Asking<'_, F>,
        result: &mut Vec<F>,
        context: Context<'_, F>,
        hook: Option<ShardHook<'_, F>>,
    ) {
        let d = self.d;
        self.query.forward(asking.query_states, &mut trace.queries, context);
        self.key.forward(asking.key_states, &mut trace.keys, context);
        self.value.forward(asking.key_states, &mut trace.values, context);
        trace.contexts.resize(trace.queries.len(), F::ZERO);
        trace.offsets.clear();
        let mut n_weights = 0;
        for (n_queries, n_keys) in asking.queries.lengths.iter().zip(&asking.keys.lengths) {
            trace.offsets.push(n_weights);
            n_weights += self.heads * n_queries * n_keys;
        }
        trace.weights.resize(n_weights, F::ZERO);
        for sentence in 0..asking.queries.n_sentences() {
            let (queries, keys) = (asking.queries.sentence_rows(sentence), asking.keys.sentence_rows(sentence));
            let (of_query, of_key) = (queries.start * d..queries.end * d, keys.start * d..keys.end * d);
            let question = Question {
                queries: &trace.queries[of_query.clone()],
                keys: &trace.keys[of_key.clone()],
                values: &trace.values[of_key.clone()],
                first_step: 0,
            };
            let weights = &mut trace.weights[trace.offsets[sentence]..][..self.heads * queries.len() * keys.len()];
            let (query_states, key_states) = (&asking.query_states[of_query.clone()], &asking.key_states[of_key]);
            let hooked = hook.map(|hook| Hooked { hook, sentence, query_states, key_states, context });
            self.attend(question, weights, &mut trace.contexts[of_query], hooked);
        }
        self.output.forward(&trace.contexts, result, context);
    }

    /// Weights `[head, query, key]` and contexts `[query, d]` of one sentence.
    pub(crate) fn attend<F: Real>(&self, question: Question<'_, F>, weights: &mut [F], contexts: &mut [F], hooked: Option<Hooked<'_, F>>) {
        let Question { queries, keys, values, first_step } = question;
        let (d, d_head) = (self.d, self.d_head());
        let (n_queries, n_keys) = (queries.len() / d, keys.len() / d);
        for (head, weights) in weights.chunks_exact_mut(n_queries * n_keys).enumerate() {
            let (query, key) = (self.columns(queries, head), self.columns(keys, head));
            dots(MatrixMut::new(weights, n_queries, n_keys), query, key, self.scale());
            for (number, row) in weights.chunks_exact_mut(n_keys).enumerate() {
                let (seen, unseen) = row.split_at_mut(self.visible.n_keys(first_step + number, n_keys));
                softmax(seen);
                unseen.fill(F::ZERO);
                if let Some(Hooked { hook, sentence, query_states, key_states, .. }) = hooked {
                    let (site, step, query_state) = (self.first_site + head, first_step + number, &query_states[number * d..][..d]);
                    hook.weights(Row { site, sentence, step, query_state, key_states }, seen);
                }
            }
            let replaced = hooked.as_ref().and_then(|hooked| self.replaced_values(hooked, head));
            let value = self.columns(replaced.as_deref().unwrap_or(values), head);
            let context = MatrixMut::strided(&mut contexts[head * d_head..], n_queries, d_head, d);
            product_of_rows(context, Matrix::new(weights, n_queries, n_keys), value, Write::Over);
        }
    }

    /// The values of all columns where the hook changes the states behind those of one head.
    fn replaced_values<F: Real>(&self, hooked: &Hooked<'_, F>, head: usize) -> Option<Vec<F>> {
        let Hooked { hook, sentence, key_states, context, .. } = hooked;
        let mut states = key_states.to_vec();
        hook.values(self.first_site + head, *sentence, &mut states);
        (states != *key_states).then(|| {
            let mut values = Vec::new();
            self.value.forward(&states, &mut values, *context);
            values
        })
    }

    /// What the mixed heads give, from what they sum.
    pub(crate) fn mix<F: Real>(&self, contexts: &[F], result: &mut Vec<F>, context: Context<'_, F>) {
        self.output.forward(contexts, result, context);
    }

    /// One head's columns of rows `[row, d]`.
    fn columns<'r, F: Real>(&self, rows: &'r [F], head: usize) -> Matrix<'r, F> {
        Matrix::strided(&rows[head * self.d_head()..], rows.len() / self.d, self.d_head(), self.d)
    }

    /// From the gradient of the result to those of the states: the queries' written over, the keys' added to `d_key_states`, or to the
    /// queries' where a side asks itself.
    pub(crate) fn backward<F: Real>(
        &self,
        trace: &AttentionTrace<F>,
        asking: Asking<'_, F>,
        d_result: &[F],
        d_query_states: &mut [F],
        d_key_states: Option<&mut [F]>,
        back: &mut Backward<'_, F>,
    ) {
        let Backward { context, gradient, scratch } = back;
        let (context, layout) = (*context, context.layout);
        self.output.add_gradients(&trace.contexts, d_result, layout, gradient, &mut scratch.packed);
        scratch.d_contexts.resize(trace.contexts.len(), F::ZERO);
        self.output.pass_back(d_result, &mut scratch.d_contexts, Write::Over, context);
        scratch.d_queries.resize(trace.queries.len(), F::ZERO);
        zeroed(&mut scratch.d_keys, trace.keys.len());
        zeroed(&mut scratch.d_values, trace.values.len());
        for sentence in 0..asking.queries.n_sentences() {
            self.unattend(trace, asking, sentence, scratch);
        }
        let super::Scratch { d_queries, d_keys, d_values, packed, .. } = scratch;
        self.query.add_gradients(asking.query_states, d_queries, layout, gradient, packed);
        self.key.add_gradients(asking.key_states, d_keys, layout, gradient, packed);
        self.value.add_gradients(asking.key_states, d_values, layout, gradient, packed);
        self.query.pass_back(d_queries, d_query_states, Write::Over, context);
        let d_key_states = d_key_states.unwrap_or(d_query_states);
        self.key.pass_back(d_keys, d_key_states, Write::Add, context);
        self.value.pass_back(d_values, d_key_states, Write::Add, context);
    }

    /// With weights `p` and `dp = d_context·valueᵀ`: `d_score = p∘(dp − Σ p∘dp)`; keys that may not be seen have `p = 0`.
    fn unattend<F: Real>(&self, trace: &AttentionTrace<F>, asking: Asking<'_, F>, sentence: usize, scratch: &mut super::Scratch<F>) {
        let super::Scratch { d_contexts, d_queries, d_keys, d_values, d_scores, .. } = scratch;
        let (d, d_head) = (self.d, self.d_head());
        let (queries, keys) = (asking.queries.sentence_rows(sentence), asking.keys.sentence_rows(sentence));
        let (n_queries, n_keys) = (queries.len(), keys.len());
        let (of_query, of_key) = (queries.start * d..queries.end * d, keys.start * d..keys.end * d);
        d_scores.resize(n_queries * n_keys, F::ZERO);
        for head in 0..self.heads {
            let weights = &trace.weights[trace.offsets[sentence] + head * n_queries * n_keys..][..n_queries * n_keys];
            let d_context = self.columns(&d_contexts[of_query.clone()], head);
            dots(MatrixMut::new(d_scores, n_queries, n_keys), d_context, self.columns(&trace.values[of_key.clone()], head), F::ONE);
            let columns = head * d_head;
            let d_value = MatrixMut::strided(&mut d_values[of_key.start + columns..], n_keys, d_head, d);
            product_of_rows(d_value, Matrix::new(weights, n_queries, n_keys).transposed(), d_context, Write::Add);
            for (d_scores, weights) in d_scores.chunks_exact_mut(n_keys).zip(weights.chunks_exact(n_keys)) {
                let mean: F = d_scores.iter().zip(weights).map(|(&d, &weight)| d * weight).sum();
                for (d_score, &weight) in d_scores.iter_mut().zip(weights) {
                    *d_score = weight * (*d_score - mean) * self.scale();
                }
            }
            let d_scores = Matrix::new(d_scores, n_queries, n_keys);
            let d_query = MatrixMut::strided(&mut d_queries[of_query.start + columns..], n_queries, d_head, d);
            product_of_rows(d_query, d_scores, self.columns(&trace.keys[of_key.clone()], head), Write::Over);
            let d_key = MatrixMut::strided(&mut d_keys[of_key.start + columns..], n_keys, d_head, d);
            product_of_rows(d_key, d_scores.transposed(), self.columns(&trace.queries[of_query.clone()], head), Write::Add);
        }
    }

    /// One sentence's weights, `[head, query, key]`.
    pub(crate) fn weights_of<'t, F>(&self, trace: &'t AttentionTrace<F>, queries: &Packing, keys: &Packing, sentence: usize) -> &'t [F] {
        let len = self.heads * queries.lengths[sentence] * keys.lengths[sentence];
        &trace.weights[trace.offsets[sentence]..][..len]
    }
}
