//! How close another attention comes to the true one.

use crosslens_kernels::{Real, softmax};
use serde::{Deserialize, Serialize};

/// How close rows of attention are, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Closeness {
    /// Total variation, `½ Σ_k |a − b|`: 0 for the same, at most 1.
    pub total_variation: f64,
    /// `Σ_k a ln(a/b)` in nats, `a` the true one.
    pub kl: f64,
    /// Share of rows with their maximum at the same key.
    pub argmax: f64,
    /// Rows compared.
    pub rows: f64,
}

/// Sums over rows, from which [`Closeness`] is a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClosenessTally {
    sums: [f64; 4],
}

/// Weights are never taken to be less likely than this, so that one key underflowing does not make a divergence infinite.
const LEAST: f64 = 1e-30;

impl ClosenessTally {
    /// Compares one row of weights with the true one.
    pub fn add_row<F: Real>(&mut self, truth: &[F], other: &[F]) {
        let pairs = truth.iter().zip(other).map(|(a, b)| (a.to_f64(), b.to_f64()));
        let (mut variation, mut kl) = (0.0, 0.0);
        for (a, b) in pairs {
            variation += (a - b).abs() / 2.0;
            if a > 0.0 {
                kl += a * (a / b.max(LEAST)).ln();
            }
        }
        let agree = argmax(truth) == argmax(other);
        for (sum, value) in self.sums.iter_mut().zip([variation, kl, f64::from(u8::from(agree)), 1.0]) {
            *sum += value;
        }
    }

    /// Adds `weight` times what another one has summed.
    pub fn add(&mut self, other: &Self, weight: f64) {
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, other)| *sum += weight * other);
    }

    /// The means.
    pub fn mean(&self) -> Closeness {
        let [total_variation, kl, argmax, rows] = self.sums;
        let least = rows.max(f64::MIN_POSITIVE);
        Closeness { total_variation: total_variation / least, kl: kl / least, argmax: argmax / least, rows }
    }
}

/// The place of the highest number, the first among equals; 0 of none.
pub(crate) fn argmax<F: Real>(row: &[F]) -> usize {
    let mut best = 0;
    for (place, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = place;
        }
    }
    best
}

/// Turns scores into weights, in a copy.
pub(crate) fn weights<F: Real>(scores: &[F], weights: &mut Vec<F>) {
    weights.clear();
    weights.extend_from_slice(scores);
    softmax(weights);
}
