//! The mean of all sentences' attention: what a sentence-blind model would do.

use crosslens_kernels::Real;
use serde::{Deserialize, Serialize};

/// Sums of attention weights by query and key step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AverageAttention {
    /// By query step, then key step: `Σ α` and how many sentences have that cell.
    rows: Vec<Vec<(f64, f64)>>,
}

impl AverageAttention {
    /// Adds one row of a sentence, over its visible keys.
    pub fn add_row<F: Real>(&mut self, query: usize, weights: &[F]) {
        if self.rows.len() <= query {
            self.rows.resize_with(query + 1, Vec::new);
        }
        let row = &mut self.rows[query];
        if row.len() < weights.len() {
            row.resize(weights.len(), (0.0, 0.0));
        }
        for ((sum, count), weight) in row.iter_mut().zip(weights) {
            *sum += weight.to_f64();
            *count += 1.0;
        }
    }

    /// Adds what another one has summed.
    pub fn merge(&mut self, other: &Self) {
        for (query, other) in other.rows.iter().enumerate() {
            if self.rows.len() <= query {
                self.rows.resize_with(query + 1, Vec::new);
            }
            let row = &mut self.rows[query];
            if row.len() < other.len() {
                row.resize(other.len(), (0.0, 0.0));
            }
            for ((sum, count), (other_sum, other_count)) in row.iter_mut().zip(other) {
                *sum += other_sum;
                *count += other_count;
            }
        }
    }

    /// The mean weights of a query step over its first keys, made a distribution again; uniform where nothing is known.
    pub fn row<F: Real>(&self, query: usize, n_keys: usize, weights: &mut Vec<F>) {
        weights.clear();
        let known = self.rows.get(query).map_or(&[][..], |row| &row[..row.len().min(n_keys)]);
        let means = || known.iter().map(|&(sum, count)| if count > 0.0 { sum / count } else { 0.0 });
        let total: f64 = means().sum();
        if total > 0.0 {
            weights.extend(means().map(|mean| F::of(mean / total)));
            weights.resize(n_keys, F::ZERO);
        } else {
            weights.resize(n_keys, F::of(1.0 / n_keys as f64));
        }
    }

    /// `[query step, key step]`: the mean over the sentences that have the cell, 0 where none has.
    pub fn matrix(&self) -> Vec<Vec<f64>> {
        let width = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mean = |&(sum, count): &(f64, f64)| if count > 0.0 { sum / count } else { 0.0 };
        let pad = |row: &Vec<(f64, f64)>| row.iter().map(mean).chain(std::iter::repeat_n(0.0, width - row.len())).collect();
        self.rows.iter().map(pad).collect()
    }
}
