//! What the first layers read: a token's contribution to the gates is looked up, not computed.
//!
//! The gates' part of a token, `x(w)·W + b`, is the same wherever the token stands, so it is computed once per batch for every word (or,
//! for a vocabulary larger than that, once for every word that occurs) and gathered. Backwards, the rows' gradients are first added up by
//! token, and one small product per batch gives the gradient of `W`. Positions are treated the same way.

use crosslens_analysis::{Probe, Token};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Threads, Write, add, product, sum_rows, transposed_product};

use super::layer::Layer;
use super::layout::TensorId;
use super::prepared::Context;

/// Up to so many words a table holds the whole vocabulary; beyond, only the words of the batch.
const WHOLE_VOCABULARY: usize = 1024;

/// How one side's tokens become vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputSpace {
    /// Dimensions.
    pub(crate) d: usize,
    /// Words, without the start token.
    pub(crate) n_words: usize,
    /// Whether there is a start token, numbered `n_words`.
    pub(crate) has_start: bool,
    /// The learned rows; `None` for one-hot vectors.
    pub(crate) embedding: Option<TensorId>,
}

impl InputSpace {
    pub(crate) fn n_tokens(&self) -> usize {
        self.n_words + usize::from(self.has_start)
    }

    /// Most tokens a table has rows for where so many occur.
    pub(crate) fn most_local(&self, n_occurring: usize) -> usize {
        self.n_tokens().min(n_occurring.max(WHOLE_VOCABULARY))
    }
}

/// The tokens a table has rows for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalTokens {
    /// Row → token.
    tokens: Vec<Token>,
    /// Token → row.
    rows: Vec<u32>,
}

impl LocalTokens {
    /// Makes rows for the whole vocabulary if it is small or `all` is set, else for the tokens given.
    pub(crate) fn collect(&mut self, space: &InputSpace, all: bool, occurring: impl Iterator<Item = Token>) {
        self.tokens.clear();
        let n_tokens = space.n_tokens();
        if all || n_tokens <= WHOLE_VOCABULARY {
            self.tokens.extend(0..n_tokens as Token);
            self.rows.clear();
            self.rows.extend(0..n_tokens as u32);
            return;
        }
        self.rows.clear();
        self.rows.resize(n_tokens, u32::MAX);
        let start = space.has_start.then_some(space.n_words as Token);
        for token in start.into_iter().chain(occurring) {
            let row = &mut self.rows[token as usize];
            if *row == u32::MAX {
                *row = self.tokens.len() as u32;
                self.tokens.push(token);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    fn row(&self, token: Token) -> usize {
        self.rows[token as usize] as usize
    }
}

/// The gates' parts of tokens and positions for one layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table<F> {
    /// `[local token, gates]`.
    tokens: Vec<F>,
    /// `[step, gates]`; empty without positions.
    positions: Vec<F>,
    /// `[local token, d]`: embeddings of the local tokens, and their gradients; empty for one-hot.
    vectors: Vec<F>,
    d_vectors: Vec<F>,
}

impl<F: Real> Table<F> {
    /// Computes the table for the weights at hand; `encoded` are the position vectors of all steps. With a probe, every token's part is the
    /// probe's.
    pub(crate) fn refresh(
        &mut self,
        layer: &Layer,
        space: &InputSpace,
        local: &LocalTokens,
        encoded: &[F],
        context: Context<'_, F>,
        probe: Option<Probe>,
    ) {
        let width = layer.width();
        let weights = &context.weights[context.layout.range(layer.gates_from_input)];
        let bias = &context.weights[context.layout.range(layer.gates_bias)];
        let map = &context.prepared.get(layer.input).forward;
        self.tokens.clear();
        for _ in 0..local.len() {
            self.tokens.extend_from_slice(bias);
        }
        match space.embedding {
            _ if probe == Some(Probe::Zero) => {}
            Some(embedding) => {
                let embedding = &context.weights[context.layout.range(embedding)];
                self.vectors.clear();
                let average = probe.map(|_| mean_row(&embedding[..space.n_words * space.d], space.d));
                for &token in &local.tokens {
                    let own = &embedding[token as usize * space.d..][..space.d];
                    self.vectors.extend_from_slice(average.as_deref().unwrap_or(own));
                }
                let vectors = Matrix::new(&self.vectors, local.len(), space.d);
                product(MatrixMut::new(&mut self.tokens, local.len(), width), vectors, map, Write::Add);
            }
            None => {
                for (row, &token) in self.tokens.chunks_exact_mut(width).zip(&local.tokens) {
                    if token as usize == space.n_words || probe.is_some() {
                        let share = F::of(1.0 / space.d as f64);
                        weights.chunks_exact(width).for_each(|weights| crosslens_kernels::add_scaled(row, share, weights));
                    } else {
                        add(row, &weights[token as usize * width..][..width]);
                    }
                }
            }
        }
        let n_steps = encoded.len() / space.d;
        self.positions.resize(n_steps * width, F::ZERO);
        product(MatrixMut::new(&mut self.positions, n_steps, width), Matrix::new(encoded, n_steps, space.d), map, Write::Over);
    }

    /// Size of the gradient of this table.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len() + self.positions.len()
    }

    /// `gates[row] = table[token] (+ positions[step])`.
    pub(crate) fn read(&self, gates: &mut [F], width: usize, local: &LocalTokens, tokens: &[Token], steps: &[u32]) {
        for ((gates, &token), &step) in gates.chunks_exact_mut(width).zip(tokens).zip(steps) {
            gates.copy_from_slice(&self.tokens[local.row(token) * width..][..width]);
            if !self.positions.is_empty() {
                add(gates, &self.positions[step as usize * width..][..width]);
            }
        }
    }

    /// Adds the gates' gradients up by token and by step.
    pub(crate) fn add_gradient(&self, gradient: &mut [F], gates: &[F], width: usize, local: &LocalTokens, tokens: &[Token], steps: &[u32]) {
        let (by_token, by_step) = gradient.split_at_mut(self.tokens.len());
        for ((gates, &token), &step) in gates.chunks_exact(width).zip(tokens).zip(steps) {
            add(&mut by_token[local.row(token) * width..][..width], gates);
            if !by_step.is_empty() {
                add(&mut by_step[step as usize * width..][..width], gates);
            }
        }
    }

    /// From the table's gradient to those of the parameters behind it.
    #[expect(clippy::too_many_arguments, reason = "one call site; every argument is another object")]
    pub(crate) fn finish(
        &mut self,
        table_gradient: &[F],
        layer: &Layer,
        space: &InputSpace,
        local: &LocalTokens,
        encoded: &[F],
        context: Context<'_, F>,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
        threads: &Threads,
    ) {
        let (width, layout) = (layer.width(), context.layout);
        let (by_token, by_step) = table_gradient[..self.len()].split_at(self.tokens.len());
        let by_token = Matrix::new(by_token, local.len(), width);
        sum_rows(&mut gradient[layout.range(layer.gates_bias)], by_token);
        let input_range = layout.range(layer.gates_from_input);
        match space.embedding {
            Some(embedding) => {
                let vectors = Matrix::new(&self.vectors, local.len(), space.d);
                let target = MatrixMut::new(&mut gradient[input_range.clone()], space.d, width);
                self.d_vectors.resize(local.len() * space.d, F::ZERO);
                let d_vectors = MatrixMut::new(&mut self.d_vectors, local.len(), space.d);
                let map = &context.prepared.get(layer.input).backward;
                threads.both(
                    || transposed_product(target, vectors, by_token, Write::Add, scratch),
                    || product(d_vectors, by_token, map, Write::Over),
                );
                let gradient = &mut gradient[layout.range(embedding)];
                for (d_vector, &token) in self.d_vectors.chunks_exact(space.d).zip(&local.tokens) {
                    add(&mut gradient[token as usize * space.d..][..space.d], d_vector);
                }
            }
            None => {
                let gradient = &mut gradient[input_range.clone()];
                for (row, &token) in local.tokens.iter().enumerate() {
                    if token as usize == space.n_words {
                        let share = F::of(1.0 / space.d as f64);
                        gradient
                            .chunks_exact_mut(width)
                            .for_each(|weights| crosslens_kernels::add_scaled(weights, share, by_token.row(row)));
                    } else {
                        add(&mut gradient[token as usize * width..][..width], by_token.row(row));
                    }
                }
            }
        }
        let n_steps = encoded.len() / space.d;
        let target = MatrixMut::new(&mut gradient[input_range], space.d, width);
        transposed_product(target, Matrix::new(encoded, n_steps, space.d), Matrix::new(by_step, n_steps, width), Write::Add, scratch);
    }
}

fn mean_row<F: Real>(rows: &[F], d: usize) -> Vec<F> {
    let share = F::of(1.0 / (rows.len() / d) as f64);
    let mut mean = vec![F::ZERO; d];
    rows.chunks_exact(d).for_each(|row| crosslens_kernels::add_scaled(&mut mean, share, row));
    mean
}
