//! How close another attention comes to the true one.

use crosslens_kernels::{Real, place_of_highest, softmax, vectorised};
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

/// Sums kept apart, so that loops vectorise in a fixed order.
const PARTIAL_SUMS: usize = 8;

impl ClosenessTally {
    /// One row of weights beside the true one. Panics unless both have as many keys.
    pub fn of_row<F: Real>(truth: &[F], other: &[F]) -> Self {
        assert_eq!(truth.len(), other.len(), "rows over the same keys");
        let (variation, kl) = distances(truth, other);
        let agree = argmax(truth) == argmax(other);
        Self { sums: [variation, kl, f64::from(u8::from(agree)), 1.0] }
    }

    /// Compares one row of weights with the true one. Panics unless both have as many keys.
    pub fn add_row<F: Real>(&mut self, truth: &[F], other: &[F]) {
        self.add(&Self::of_row(truth, other), 1.0);
    }

    /// Total variations of all rows, added up.
    pub(crate) fn summed_variation(&self) -> f64 {
        self.sums[0]
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

/// Total variation and divergence of two rows.
fn distances<F: Real>(truth: &[F], other: &[F]) -> (f64, f64) {
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [(0.0, 0.0); PARTIAL_SUMS];
            let ((truths, last), (others, rest)) = (truth.as_chunks::<PARTIAL_SUMS>(), other.as_chunks::<PARTIAL_SUMS>());
            for (a, b) in truths.iter().zip(others) {
                for i in 0..PARTIAL_SUMS {
                    sums[i] = with_distance(sums[i], a[i], b[i]);
                }
            }
            let last = last.iter().zip(rest).fold((0.0, 0.0), |sums, (&a, &b)| with_distance(sums, a, b));
            sums.iter().fold(last, |total, sum| (total.0 + sum.0, total.1 + sum.1))
        },
    )
}

/// Sums with one key's part of the distances. Where the true weight is 0 the logarithm is finite, so that nothing is added.
#[inline(always)]
fn with_distance<F: Real>((variation, kl): (f64, f64), a: F, b: F) -> (f64, f64) {
    let (a, b) = (a.to_f64(), b.to_f64());
    (variation + (a - b).abs() / 2.0, kl + a * (a / if b > LEAST { b } else { LEAST }).ln_fast())
}

/// Entropy of a row of weights over that of a uniform row; 0 for a single key.
pub(crate) fn evenness<F: Real>(row: &[F]) -> f64 {
    if row.len() < 2 {
        return 0.0;
    }
    let entropy = vectorised(
        #[inline(always)]
        || {
            let mut sums = [0.0; PARTIAL_SUMS];
            let (blocks, rest) = row.as_chunks::<PARTIAL_SUMS>();
            for block in blocks {
                for i in 0..PARTIAL_SUMS {
                    sums[i] -= block[i].to_f64() * block[i].to_f64().ln_fast();
                }
            }
            sums.iter().sum::<f64>() - rest.iter().map(|p| p.to_f64() * p.to_f64().ln_fast()).sum::<f64>()
        },
    );
    entropy / (row.len() as f64).ln()
}

/// The place of the highest number, the first among equals; 0 of none.
pub(crate) fn argmax<F: Real>(row: &[F]) -> usize {
    place_of_highest(row).unwrap_or(0)
}

/// Turns scores into weights, in a copy.
pub(crate) fn weights<F: Real>(scores: &[F], weights: &mut Vec<F>) {
    weights.clear();
    weights.extend_from_slice(scores);
    softmax(weights);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Written out, one key after the other.
    fn plain(truth: &[f64], other: &[f64]) -> (f64, f64) {
        let pairs = || truth.iter().zip(other);
        let kl = pairs().filter(|(a, _)| **a > 0.0).map(|(a, b)| a * (a / b.max(LEAST)).ln()).sum();
        (pairs().map(|(a, b)| (a - b).abs() / 2.0).sum(), kl)
    }

    /// How large a divergence is before its parts cancel: what rounding goes with.
    fn size(truth: &[f64], other: &[f64]) -> f64 {
        1.0 + truth.iter().zip(other).filter(|(a, _)| **a > 0.0).map(|(a, b)| a * (a / b.max(LEAST)).ln().abs()).sum::<f64>()
    }

    /// Weights of two rows, some of them 0.
    fn rows() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let weight = || prop_oneof![1 => Just(0.0), 4 => 1e-9f64..1.0];
        prop::collection::vec((weight(), weight()), 0..40)
    }

    proptest! {
        #[test]
        fn distances_of_a_row_are_plain_sums(row in rows()) {
            let (truth, other): (Vec<f64>, Vec<f64>) = row.into_iter().unzip();
            let (variation, kl) = plain(&truth, &other);
            let (found_variation, found_kl) = distances(&truth, &other);
            let size = size(&truth, &other);
            prop_assert!((variation - found_variation).abs() < 1e-13 && (kl - found_kl).abs() < 1e-13 * size);
            let single = |row: &[f64]| row.iter().map(|&x| x as f32).collect::<Vec<_>>();
            let (found_variation, found_kl) = distances(&single(&truth), &single(&other));
            prop_assert!((variation - found_variation).abs() < 1e-5 && (kl - found_kl).abs() < 1e-6 * size);
        }

        /// A key behind which nothing is adds nothing, wherever its register ends.
        #[test]
        fn a_true_weight_of_nothing_adds_nothing(row in rows(), other in 0.0f64..1.0) {
            let (truth, others): (Vec<f64>, Vec<f64>) = row.into_iter().unzip();
            let with = |weight: f64| distances(&[&truth[..], &[weight]].concat(), &[&others[..], &[other]].concat()).1;
            prop_assert!((with(0.0) - distances(&truth, &others).1).abs() < 1e-13 * size(&truth, &others));
        }
    }

    #[test]
    fn evenness_is_1_of_a_uniform_row_and_0_of_one_key() {
        for n in [2, 7, 8, 9, 17, 32] {
            let mut row = vec![1.0 / n as f64; n];
            assert!((evenness(&row) - 1.0).abs() < 1e-14, "{n} keys");
            row.fill(0.0);
            row[n / 2] = 1.0;
            assert_eq!(evenness(&row), 0.0, "{n} keys");
        }
        assert_eq!(evenness(&[1.0f32]), 0.0);
    }
}
