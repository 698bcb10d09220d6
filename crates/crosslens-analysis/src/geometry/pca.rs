//! Principal components.

use nalgebra::{DMatrix, SymmetricEigen};

use super::dot;
use super::jacobi::right_singular;
use super::moments::{Moments, PcaError};

/// Iterations an eigenvalue may take at most; a handful is usual.
const MAX_ITERATIONS: usize = 10_000;

/// The axes along which states vary most.
///
/// ```text
/// C = Σ (h − h̄)ᵀ(h − h̄) / N      C aᵢᵀ = λᵢ aᵢᵀ,  λ₁ ≥ λ₂ ≥ …
/// ```
///
/// An axis points where its largest entry is positive, the first among equals, so that the same states give the same axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pca {
    mean: Vec<f64>,
    /// `λ`, descending, none below 0.
    variances: Vec<f64>,
    /// `[axis, d]`.
    axes: Vec<Vec<f64>>,
}

impl Moments {
    /// The principal components of the states added.
    pub fn pca(&self) -> Result<Pca, PcaError> {
        if self.count == 0 || self.d == 0 {
            return Err(PcaError::Empty);
        }
        if self.products.iter().any(|x| !x.is_finite()) {
            return Err(PcaError::NotFinite);
        }
        let (d, n) = (self.d, self.count as f64);
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / n).collect();
        // The mean of both triangles: exactly symmetric whatever the order of the sums was.
        let covariance = DMatrix::from_fn(d, d, |i, j| 0.5 * (self.products[i * d + j] + self.products[j * d + i]) / n - mean[i] * mean[j]);
        let eigen = SymmetricEigen::try_new(covariance, f64::EPSILON, MAX_ITERATIONS).ok_or(PcaError::Diverged)?;
        let axes = eigen.eigenvectors.column_iter().map(|axis| axis.iter().copied().collect());
        Ok(Pca::sorted(mean, eigen.eigenvalues.iter().copied().zip(axes).collect()))
    }
}

impl Pca {
    /// The principal components of a list of vectors, those along which they vary at all; meant for some hundreds.
    pub fn of(vectors: &[Vec<f64>]) -> Result<Self, PcaError> {
        let (n, d) = (vectors.len(), vectors.first().map_or(0, Vec::len));
        if n == 0 || d == 0 {
            return Err(PcaError::Empty);
        }
        if vectors.iter().flatten().any(|x| !x.is_finite()) {
            return Err(PcaError::NotFinite);
        }
        let mut mean = vec![0.0; d];
        for vector in vectors {
            mean.iter_mut().zip(vector).for_each(|(mean, x)| *mean += x / n as f64);
        }
        let centred = vectors.iter().map(|vector| vector.iter().zip(&mean).map(|(x, mean)| x - mean).collect()).collect();
        let pairs = right_singular(centred).into_iter().map(|(value, axis)| (value * value / n as f64, axis));
        Ok(Self::sorted(mean, pairs.collect()))
    }

    fn sorted(mean: Vec<f64>, mut pairs: Vec<(f64, Vec<f64>)>) -> Self {
        pairs.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let (variances, mut axes): (Vec<f64>, Vec<Vec<f64>>) = pairs.into_iter().unzip();
        axes.iter_mut().for_each(|axis| fix_sign(axis));
        Self { mean, variances: variances.into_iter().map(|variance| variance.max(0.0)).collect(), axes }
    }

    /// Where the middle is.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The axes, that of the most variance first.
    pub fn axes(&self) -> &[Vec<f64>] {
        &self.axes
    }

    /// The variances along the axes.
    pub fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// Shares of the variance along the first `n` axes; all 0 where nothing varies.
    pub fn shares(&self, n: usize) -> Vec<f64> {
        let total: f64 = self.variances.iter().sum();
        self.variances.iter().take(n).map(|variance| if total > 0.0 { variance / total } else { 0.0 }).collect()
    }

    /// `(Σ λ)² / Σ λ²`: along how many axes the states vary, were they all alike; 0 where nothing varies.
    pub fn participation_ratio(&self) -> f64 {
        let (total, squares) = (self.variances.iter().sum::<f64>(), dot(&self.variances, &self.variances));
        if squares > 0.0 { total * total / squares } else { 0.0 }
    }

    /// How many axes hold at least this share of the variance; 0 where nothing varies.
    pub fn n_axes(&self, share: f64) -> usize {
        let total: f64 = self.variances.iter().sum();
        if total <= 0.0 {
            return 0;
        }
        let mut held = 0.0;
        let reaches = |variance: &f64| {
            held += variance;
            held >= share * total
        };
        self.variances.iter().position(reaches).map_or(self.variances.len(), |last| last + 1)
    }

    /// Where a state lies along the first three axes, from the mean; 0 along axes there are not.
    pub fn place(&self, state: &[f64]) -> [f64; 3] {
        let from_mean: Vec<f64> = state.iter().zip(&self.mean).map(|(x, mean)| x - mean).collect();
        self.along(&from_mean)
    }

    /// How far a direction goes along the first three axes.
    pub fn along(&self, direction: &[f64]) -> [f64; 3] {
        std::array::from_fn(|axis| self.axes.get(axis).map_or(0.0, |axis| dot(axis, direction)))
    }
}

fn fix_sign(axis: &mut [f64]) {
    // Entries that differ by rounding alone count as equal, and the first of them decides.
    let largest = axis.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let deciding = axis.iter().copied().find(|x| x.abs() >= largest * (1.0 - 1e-9));
    if deciding.is_some_and(|x| x < 0.0) {
        axis.iter_mut().for_each(|x| *x = -*x);
    }
}
