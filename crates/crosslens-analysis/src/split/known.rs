//! Terms that do not depend on the sentence: those of two steps, and of a step and a token.

use crosslens_kernels::{Matrix, MatrixMut, Real, dots};

use crate::Components;

/// Most numbers of a table; beyond, terms are computed for every sentence anew.
pub(crate) const MAX_TABLE: usize = 1 << 23;

/// Scores of all temporal and input parts with the other side's temporal parts, but for the scores of two input parts.
#[derive(Debug)]
pub(super) struct Known<F> {
    n_query_steps: usize,
    n_key_steps: usize,
    /// `μ_q·μ_k`, `[query step, key step]`.
    temporal: Vec<F>,
    /// `χ_q·μ_k`, `[query token's row, key step]`.
    query_tokens: Vec<F>,
    /// `μ_q·χ_k`, `[key token's row, query step]`.
    key_tokens: Vec<F>,
    /// `μ̄_q·μ_k`, `[key step]`.
    mean_steps: Vec<F>,
    /// `μ̄_q·χ_k`, `[key token's row]`.
    mean_tokens: Vec<F>,
    zeros: Vec<F>,
}

impl<F: Real> Known<F> {
    /// Computes the tables; `None` where they would be too large.
    pub(super) fn new(query: &Components<F>, key: &Components<F>, scale: F) -> Option<Self> {
        let (n_query_steps, n_key_steps) = (query.n_steps(), key.n_steps());
        let sizes = [(n_query_steps, n_key_steps), (query.n_tokens(), n_key_steps), (key.n_tokens(), n_query_steps)];
        if sizes.iter().any(|&(rows, columns)| rows.saturating_mul(columns) > MAX_TABLE) {
            return None;
        }
        let [mut temporal, mut query_tokens, mut key_tokens] = sizes.map(|(rows, columns)| vec![F::ZERO; rows * columns]);
        let (query_steps, key_steps) = (query.temporal_rows(), key.temporal_rows());
        dots(MatrixMut::new(&mut temporal, n_query_steps, n_key_steps), query_steps, key_steps, scale);
        dots(MatrixMut::new(&mut query_tokens, query.n_tokens(), n_key_steps), query.input_rows(), key_steps, scale);
        dots(MatrixMut::new(&mut key_tokens, key.n_tokens(), n_query_steps), key.input_rows(), query_steps, scale);
        let (mut mean_steps, mut mean_tokens) = (vec![F::ZERO; n_key_steps], vec![F::ZERO; key.n_tokens()]);
        let mean = Matrix::new(query.mean(), 1, query.d());
        dots(MatrixMut::new(&mut mean_steps, 1, n_key_steps), mean, key_steps, scale);
        dots(MatrixMut::new(&mut mean_tokens, 1, key.n_tokens()), mean, key.input_rows(), scale);
        let zeros = vec![F::ZERO; n_query_steps.max(n_key_steps)];
        Some(Self { n_query_steps, n_key_steps, temporal, query_tokens, key_tokens, mean_steps, mean_tokens, zeros })
    }

    /// Whether a sentence is no longer than what was fitted.
    pub(super) fn covers(&self, n_queries: usize, n_keys: usize) -> bool {
        n_queries <= self.n_query_steps && n_keys <= self.n_key_steps
    }

    /// `μ_q·μ_k` of one query step, by key step.
    pub(super) fn temporal(&self, query: usize) -> &[F] {
        &self.temporal[query * self.n_key_steps..][..self.n_key_steps]
    }

    /// `χ_q·μ_k` of the query token at that place, by key step.
    pub(super) fn of_query_token(&self, row: Option<usize>) -> &[F] {
        row.map_or(&self.zeros, |row| &self.query_tokens[row * self.n_key_steps..][..self.n_key_steps])
    }

    /// `μ_q·χ_k` of the key token at that place, by query step.
    pub(super) fn of_key_token(&self, row: Option<usize>) -> &[F] {
        row.map_or(&self.zeros, |row| &self.key_tokens[row * self.n_query_steps..][..self.n_query_steps])
    }

    /// `μ̄_q·μ_k`, by key step.
    pub(super) fn mean_steps(&self) -> &[F] {
        &self.mean_steps
    }

    /// `μ̄_q·χ_k` of the key token at that place.
    pub(super) fn mean_of_key_token(&self, row: Option<usize>) -> F {
        row.map_or(F::ZERO, |row| self.mean_tokens[row])
    }
}
