//! Attention of several heads, each row of weights shown to a watcher before it is used.

use std::ops::Range;
use std::sync::Arc;

use crosslens_analysis::{GridBias, PositionBias, RelativeBias, SiteKind, Visible};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, add, dots, product, product_of_rows, softmax};

use super::{Linear, Pace};

/// Which rows belong to which sentence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// First row of each sentence, and the number of all rows.
    starts: Vec<usize>,
}

impl Spans {
    pub(crate) fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        Self { starts }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn rows(&self, sentence: usize) -> Range<usize> {
        self.starts[sentence]..self.starts[sentence + 1]
    }

    /// The rows of one sentence of a matrix `[rows, d]`.
    pub(crate) fn of_sentence<'m>(&self, sentence: usize, matrix: &'m [f32], d: usize) -> &'m [f32] {
        let rows = self.rows(sentence);
        &matrix[rows.start * d..rows.end * d]
    }
}

/// A layer of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) kind: SiteKind,
    pub(crate) layer: usize,
}

/// Sees what happens at every layer of attention, and may change it.
pub(crate) trait Watch {
    /// Whether anything but the states of a layer is looked at or changed; where not, its weights are never there as a whole.
    fn looks_at(&self, _at: At) -> bool {
        true
    }

    /// The states `[rows, d]` that ask and are asked; the same where a side asks itself.
    fn states(&mut self, _at: At, _queries: &[f32], _keys: &[f32]) {}

    /// The states `[key, d]` whose values one head sums instead of a sentence's own.
    fn values(&mut self, _at: At, _head: usize, _sentence: usize, _keys: &[f32]) -> Option<Vec<f32>> {
        None
    }

    /// The weights `[query, key]` of one head for one sentence, with the states `[step, d]` they come from.
    fn weights(&mut self, _at: At, _head: usize, _sentence: usize, _states: [&[f32]; 2], _weights: &mut [f32]) {}
}

/// Nobody watches.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    fn looks_at(&self, _at: At) -> bool {
        false
    }
}

/// How much of a layer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The weights alone: nothing comes after.
    Weights,
    /// What the layer passes on.
    Output,
}

/// Projected keys and values, `[rows, heads · d_head]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<f32>,
    /// Empty where they are not needed.
    pub(crate) values: Vec<f32>,
}

/// `softmax((W_Q z + b_Q)·(W_K h + b_K) × scale + bias)` over the keys that may be seen, summing `W_V h + b_V`, then `W_O`.
pub(crate) struct Attention {
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) output: Linear,
    pub(crate) n_heads: usize,
    pub(crate) scale: f32,
    pub(crate) visible: Visible,
    /// By head.
    pub(crate) bias: Option<Arc<Vec<PositionBias>>>,
}

/// Queries from which on keys are packed for them: a head's rows are so short that adding up each dot product takes longer than the product.
const MANY_QUERIES: usize = 6;

/// Weights that are made, and used, before the next ones where nobody looks at them: as many as stay near.
const NEAR_WEIGHTS: usize = 1 << 16;

/// What is used again from layer to layer.
#[derive(Default)]
pub(crate) struct Scratch {
    projected: Vec<f32>,
    context: Vec<f32>,
    weights: Vec<f32>,
    /// One head's keys.
    packed: Packed<f32>,
}

/// One layer's question: who asks, who is asked, and what is wanted.
pub(crate) struct Question<'a> {
    pub(crate) at: At,
    /// States that ask, `[rows, d]`.
    pub(crate) queries: &'a [f32],
    pub(crate) query_spans: &'a Spans,
    /// Step of each sentence's first query.
    pub(crate) first_step: usize,
    /// States that are asked; empty where only their projections are kept.
    pub(crate) key_states: &'a [f32],
    pub(crate) key_spans: &'a Spans,
    pub(crate) pace: Pace,
    pub(crate) need: Need,
}

impl Attention {
    fn width(&self) -> usize {
        self.query.d_out()
    }

    fn d_head(&self) -> usize {
        self.width() / self.n_heads
    }

    /// Projects the states that are asked.
    pub(crate) fn keys(&self, states: &[f32], pace: Pace, need: Need) -> Keys {
        let mut keys = Keys::default();
        self.key.apply(states, pace, &mut keys.keys);
        if need == Need::Output {
            self.value.apply(states, pace, &mut keys.values);
        }
        keys
    }

    /// Answers for all sentences; `result` is `[rows, d]`, or untouched where weights are all that is needed.
    ///
    /// `keys` gives the projections of one sentence's keys.
    pub(crate) fn answer<'k>(
        &self,
        question: &Question<'_>,
        keys: impl Fn(usize) -> (&'k [f32], &'k [f32]),
        watch: &mut dyn Watch,
        scratch: &mut Scratch,
        result: &mut Vec<f32>,
    ) {
        let (width, d_query) = (self.width(), self.query.d_in());
        let Scratch { projected, context, weights, packed } = scratch;
        self.query.apply(question.queries, question.pace, projected);
        if self.scale != 1.0 {
            projected.iter_mut().for_each(|x| *x *= self.scale);
        }
        context.resize(projected.len(), 0.0);
        for sentence in 0..question.query_spans.len() {
            let rows = question.query_spans.rows(sentence);
            let first_row = rows.start;
            let (n_queries, n_keys) = (rows.len(), question.key_spans.rows(sentence).len());
            let key_states = if question.key_states.is_empty() {
                &[]
            } else {
                question.key_spans.of_sentence(sentence, question.key_states, self.key.d_in())
            };
            let states = [&question.queries[rows.start * d_query..rows.end * d_query], key_states];
            let (keys, values) = keys(sentence);
            let near = (NEAR_WEIGHTS / n_keys.max(1)).max(MANY_QUERIES).min(n_queries);
            let n_together = if watch.looks_at(question.at) { n_queries } else { near };
            for head in 0..self.n_heads {
                let first = head * self.d_head();
                let head_keys = Matrix::strided(&keys[first..], n_keys, self.d_head(), width);
                if n_queries >= MANY_QUERIES {
                    packed.pack(head_keys.transposed());
                }
                for from in (rows.start..rows.end).step_by(n_together.max(1)) {
                    let rows = from..rows.end.min(from + n_together);
                    let head_queries = Matrix::strided(&projected[rows.start * width + first..], rows.len(), self.d_head(), width);
                    weights.resize(rows.len() * n_keys, 0.0);
                    let scores = MatrixMut::new(weights, rows.len(), n_keys);
                    if n_queries >= MANY_QUERIES {
                        product(scores, head_queries, packed, Write::Over);
                    } else {
                        dots(scores, head_queries, head_keys, 1.0);
                    }
                    self.weigh(head, question.first_step + from - first_row, n_keys, weights);
                    if n_together == n_queries {
                        watch.weights(question.at, head, sentence, states, weights);
                    }
                    if question.need == Need::Weights {
                        continue;
                    }
                    let replaced = watch.values(question.at, head, sentence, key_states).map(|states| {
                        let mut values = Vec::new();
                        self.value.apply(&states, question.pace, &mut values);
                        values
                    });
                    let values = Matrix::strided(&replaced.as_deref().unwrap_or(values)[first..], n_keys, self.d_head(), width);
                    let context = &mut context[rows.start * width + first..rows.end * width];
                    let context = MatrixMut::strided(context, rows.len(), self.d_head(), width);
                    product_of_rows(context, Matrix::new(weights, rows.len(), n_keys), values, Write::Over);
                }
            }
        }
        if question.need == Need::Output {
            self.output.apply(context, question.pace, result);
        }
    }

    /// Makes weights of the scores `[query, key]` of one head, from the query at `first_step` on.
    fn weigh(&self, head: usize, first_step: usize, n_keys: usize, weights: &mut [f32]) {
        for (query, row) in weights.chunks_exact_mut(n_keys).enumerate() {
            let step = first_step + query;
            if let Some(bias) = &self.bias {
                match &bias[head] {
                    PositionBias::Distance(bias) => add_bias(bias, step, row),
                    PositionBias::Grid(bias) => add_grid_bias(bias, step, row),
                }
            }
            let (seen, unseen) = row.split_at_mut(self.visible.n_keys(step, n_keys));
            softmax(seen);
            unseen.fill(0.0);
        }
    }
}

/// Adds the bias of each key's distance from the step.
fn add_bias(bias: &RelativeBias, step: usize, row: &mut [f32]) {
    let first = -bias.lowest - step as i64;
    match usize::try_from(first).ok().and_then(|first| bias.values.get(first..first + row.len())) {
        Some(values) => add(row, values),
        None => row.iter_mut().enumerate().for_each(|(key, score)| *score += bias.at(step, key)),
    }
}

/// Adds the bias of the rows and columns between each key and the step.
fn add_grid_bias(bias: &GridBias, step: usize, row: &mut [f32]) {
    let (Some(query), Some((first, patches))) = (step.checked_sub(1), row.split_first_mut()) else {
        row.iter_mut().enumerate().for_each(|(key, score)| *score += bias.at(step, key));
        return;
    };
    *first += bias.at(step, 0);
    let (query_row, query_column) = (query / bias.columns, query % bias.columns);
    for (key_row, scores) in patches.chunks_mut(bias.columns).enumerate() {
        let from = (query_row + bias.rows - 1 - key_row) * (2 * bias.columns - 1) + query_column;
        // The nearer to the picture's right edge a key lies, the nearer to the beginning its value.
        scores.iter_mut().zip(bias.values[from..from + bias.columns].iter().rev()).for_each(|(score, value)| *score += value);
    }
}
