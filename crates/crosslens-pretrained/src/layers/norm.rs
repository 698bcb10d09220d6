//! Norms of rows.

use crosslens_kernels::vectorised;

use crate::PretrainedError;
use crate::weights::Weights;

/// Sums kept apart, so that the loop vectorises and the order never changes.
const PARTIAL_SUMS: usize = 16;

/// Brings every row to one size.
pub(crate) struct Norm {
    scale: Vec<f32>,
    /// With a shift the mean is taken off first; without, only the size is changed.
    shift: Option<Vec<f32>>,
    epsilon: f32,
}

impl Norm {
    /// Layer norm: `(x − mean)/√(variance + ε) · scale + shift`.
    pub(crate) fn layer(weights: &mut Weights, name: &str, d: usize, epsilon: f32) -> Result<Self, PretrainedError> {
        let scale = weights.read(&format!("{name}.weight"), &[d])?;
        let shift = Some(weights.read(&format!("{name}.bias"), &[d])?);
        Ok(Self { scale, shift, epsilon })
    }

    /// Root-mean-square norm: `x/√(mean of squares + ε) · scale`.
    pub(crate) fn root_mean_square(weights: &mut Weights, name: &str, d: usize, epsilon: f32) -> Result<Self, PretrainedError> {
        Ok(Self { scale: weights.read(&format!("{name}.weight"), &[d])?, shift: None, epsilon })
    }

    /// Norms every row of `rows` into `result`.
    pub(crate) fn apply(&self, rows: &[f32], result: &mut Vec<f32>) {
        result.resize(rows.len(), 0.0);
        result.copy_from_slice(rows);
        self.apply_in_place(result);
    }

    /// Norms every row.
    pub(crate) fn apply_in_place(&self, rows: &mut [f32]) {
        let d = self.scale.len();
        vectorised(
            #[inline(always)]
            || rows.chunks_exact_mut(d).for_each(|row| self.row(row)),
        );
    }

    #[inline(always)]
    fn row(&self, row: &mut [f32]) {
        let d = row.len() as f32;
        if let Some(shift) = &self.shift {
            let mean = sum(row, |x| x) / d;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / d;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            for ((x, scale), shift) in row.iter_mut().zip(&self.scale).zip(shift) {
                *x = (*x - mean) * factor * scale + shift;
            }
        } else {
            let factor = 1.0 / (sum(row, |x| x * x) / d + self.epsilon).sqrt();
            for (x, scale) in row.iter_mut().zip(&self.scale) {
                *x *= factor * scale;
            }
        }
    }
}

#[inline(always)]
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; PARTIAL_SUMS];
    let (blocks, rest) = row.as_chunks::<PARTIAL_SUMS>();
    for block in blocks {
        for (sum, &x) in sums.iter_mut().zip(block) {
            *sum += of(x);
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += of(x);
    }
    sums.iter().sum()
}
