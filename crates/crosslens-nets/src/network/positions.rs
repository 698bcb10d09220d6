//! Encoding of positions: sinusoids, rotated once at random.

use crosslens_kernels::Real;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::config::Positions;

/// The position vectors of one network, kept from batch to batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoded<F> {
    /// `[step, d]`; empty without positions.
    pub(super) rows: Vec<F>,
    /// What they were computed from.
    source: Option<(Positions, Vec<f64>)>,
}

impl<F: Real> Encoded<F> {
    /// Makes them those of this encoding for at least `n_steps` steps.
    pub(super) fn refresh(&mut self, positions: Option<(Positions, &[f64])>, d: usize, n_steps: usize) {
        let Some((positions, rotation)) = positions else {
            *self = Self::default();
            return;
        };
        let is_same = self.source.as_ref().is_some_and(|(old, old_rotation)| *old == positions && old_rotation == rotation);
        if !is_same || self.rows.len() < n_steps * d {
            self.rows.clear();
            self.rows.extend(encode(positions, rotation, d, n_steps).into_iter().map(F::of));
            self.source = Some((positions, rotation.to_vec()));
        }
    }
}

/// `PE[k] = P[k]·R` for steps `0..n_steps`, rows of `d`.
///
/// ```text
/// P[k, 2i] = A·sin(k / τ^(2i/d)), P[k, 2i+1] = A·cos(k / τ^(2i/d)); an odd d ends with a sine
/// ```
fn encode(positions: Positions, rotation: &[f64], d: usize, n_steps: usize) -> Vec<f64> {
    let mut encoded = vec![0.0; n_steps * d];
    for (step, row) in encoded.chunks_exact_mut(d).enumerate() {
        for j in 0..d {
            let angle = step as f64 / positions.time_scale.powf((j - j % 2) as f64 / d as f64);
            let value = positions.amplitude * if j % 2 == 0 { angle.sin() } else { angle.cos() };
            for (element, &turned) in row.iter_mut().zip(&rotation[j * d..][..d]) {
                *element += value * turned;
            }
        }
    }
    encoded
}

/// A random rotation of `d` dimensions, uniform over all of them, row-major.
///
/// A product of `d − 1` reflections, each across the mirror that sends a normal vector of the remaining dimensions to the next axis; the
/// signs that make it uniform are collected apart, the last chosen to make the determinant +1.
pub(super) fn random_rotation(d: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut rotation = vec![0.0; d * d];
    (0..d).for_each(|i| rotation[i * d + i] = 1.0);
    let mut signs = vec![1.0; d];
    for first in 0..d.saturating_sub(1) {
        let mut mirror: Vec<f64> = (first..d).map(|_| StandardNormal.sample(rng)).collect();
        let sign = if mirror[0] < 0.0 { -1.0 } else { 1.0 };
        signs[first] = -sign;
        let norm = mirror.iter().map(|x| x * x).sum::<f64>().sqrt();
        mirror[0] += sign * norm;
        let squared = mirror.iter().map(|x| x * x).sum::<f64>();
        for row in rotation.chunks_exact_mut(d) {
            let along: f64 = row[first..].iter().zip(&mirror).map(|(a, b)| a * b).sum();
            row[first..].iter_mut().zip(&mirror).for_each(|(a, b)| *a -= 2.0 * along / squared * b);
        }
    }
    // Every reflection has determinant −1.
    let reflections = if d.is_multiple_of(2) { -1.0 } else { 1.0 };
    if let Some((last, others)) = signs.split_last_mut() {
        *last = reflections * others.iter().product::<f64>();
    }
    for (row, sign) in rotation.chunks_exact_mut(d).zip(signs) {
        row.iter_mut().for_each(|x| *x *= sign);
    }
    rotation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    fn determinant(mut matrix: Vec<f64>, d: usize) -> f64 {
        let mut determinant = 1.0;
        for i in 0..d {
            let pivot = (i..d).max_by(|&a, &b| matrix[a * d + i].abs().total_cmp(&matrix[b * d + i].abs())).expect("rows are left");
            if pivot != i {
                (0..d).for_each(|j| matrix.swap(i * d + j, pivot * d + j));
                determinant = -determinant;
            }
            determinant *= matrix[i * d + i];
            for row in i + 1..d {
                let factor = matrix[row * d + i] / matrix[i * d + i];
                (i..d).for_each(|j| matrix[row * d + j] -= factor * matrix[i * d + j]);
            }
        }
        determinant
    }

    #[test]
    fn a_rotation_keeps_lengths_and_handedness() {
        for d in [1, 2, 3, 10, 11] {
            let rotation = random_rotation(d, &mut generator(&[d as u64]));
            for i in 0..d {
                for j in 0..d {
                    let dot: f64 = (0..d).map(|k| rotation[i * d + k] * rotation[j * d + k]).sum();
                    assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
            assert!((determinant(rotation, d) - 1.0).abs() < 1e-12);
        }
    }

    /// With R = 1: P[1] = [sin 1, cos 1, sin(1/10)] for d = 3, τ = 10^(3/2).
    #[test]
    fn an_odd_width_ends_with_a_sine() {
        let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let encoded = encode(Positions { amplitude: 1.0, time_scale: 10f64.powf(1.5) }, &identity, 3, 2);
        for (a, b) in encoded.iter().zip([0.0, 1.0, 0.0, 1f64.sin(), 1f64.cos(), 0.1f64.sin()]) {
            assert!((a - b).abs() < 1e-15);
        }
    }
}
