//! Layer norm: every row is brought to mean 0 and variance 1, then scaled and shifted by learned vectors.
//!
//! ```text
//! x̂ = (x − mean x) / √(var x + ε)        y = x̂∘scale + shift        var over d, not d − 1
//! dx = (g − mean g − x̂·mean(g∘x̂)) / √(var x + ε)   with g = dy∘scale
//! ```

use crosslens_kernels::{Real, vectorised};

use crate::network::layout::{Layout, Start, TensorId};
use crate::network::prepared::Context;

/// Keeps a row of equal numbers from being divided by zero.
const EPSILON: f64 = 1e-5;

/// One norm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerNorm {
    scale: TensorId,
    shift: TensorId,
    d: usize,
}

/// What a norm saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct NormTrace<F> {
    /// `x̂`, `[row, d]`.
    standard: Vec<F>,
    /// `1/√(var x + ε)`, by row.
    factors: Vec<F>,
}

impl LayerNorm {
    pub(crate) fn new(name: &str, d: usize, layout: &mut Layout) -> Self {
        let scale = layout.vector(format!("{name}.scale"), d, Start::One);
        Self { scale, shift: layout.vector(format!("{name}.shift"), d, Start::Zero), d }
    }

    /// Norms rows `[row, d]` in place.
    pub(crate) fn apply<F: Real>(&self, trace: &mut NormTrace<F>, rows: &mut [F], context: Context<'_, F>) {
        let scale = &context.weights[context.layout.range(self.scale)];
        let shift = &context.weights[context.layout.range(self.shift)];
        trace.standard.resize(rows.len(), F::ZERO);
        trace.factors.clear();
        for (row, standard) in rows.chunks_exact_mut(self.d).zip(trace.standard.chunks_exact_mut(self.d)) {
            trace.factors.push(standardise(row, standard));
            vectorised(
                #[inline(always)]
                || {
                    for (((y, &x), &scale), &shift) in row.iter_mut().zip(&*standard).zip(scale).zip(shift) {
                        *y = x * scale + shift;
                    }
                },
            );
        }
    }

    /// From the gradient of the output to that of the input, in place; adds those of scale and shift.
    pub(crate) fn backward<F: Real>(&self, trace: &NormTrace<F>, d_rows: &mut [F], context: Context<'_, F>, gradient: &mut [F]) {
        let scale = &context.weights[context.layout.range(self.scale)];
        let rows = |d_rows| std::iter::zip(<[F]>::chunks_exact(d_rows, self.d), trace.standard.chunks_exact(self.d));
        let d_scale = &mut gradient[context.layout.range(self.scale)];
        for (d_row, standard) in rows(d_rows) {
            d_scale.iter_mut().zip(d_row.iter().zip(standard)).for_each(|(sum, (&d, &x))| *sum += d * x);
        }
        let d_shift = &mut gradient[context.layout.range(self.shift)];
        d_rows.chunks_exact(self.d).for_each(|d_row| crosslens_kernels::add(d_shift, d_row));
        let share = F::of(1.0 / self.d as f64);
        for ((d_row, standard), &factor) in d_rows.chunks_exact_mut(self.d).zip(trace.standard.chunks_exact(self.d)).zip(&trace.factors) {
            d_row.iter_mut().zip(scale).for_each(|(d, &scale)| *d *= scale);
            let mean = sum(d_row, |d, _| d, standard) * share;
            let along = sum(d_row, |d, x| d * x, standard) * share;
            for (d, &x) in d_row.iter_mut().zip(standard) {
                *d = (*d - mean - x * along) * factor;
            }
        }
    }
}

/// Fills `x̂` of one row; returns `1/√(var + ε)`.
fn standardise<F: Real>(row: &[F], standard: &mut [F]) -> F {
    let share = F::of(1.0 / row.len() as f64);
    let mean = sum(row, |x, _| x, row) * share;
    standard.iter_mut().zip(row).for_each(|(standard, &x)| *standard = x - mean);
    let variance = sum(standard, |x, _| x * x, standard) * share;
    let factor = F::ONE / (variance + F::of(EPSILON)).sqrt();
    standard.iter_mut().for_each(|x| *x *= factor);
    factor
}

/// `Σ f(a, b)` in a fixed order, in sums kept apart so that the loop vectorises.
#[inline]
fn sum<F: Real>(a: &[F], f: impl Fn(F, F) -> F, b: &[F]) -> F {
    const SUMS: usize = 8;
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [F::ZERO; SUMS];
            let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
            for (a, b) in a.iter().zip(b) {
                for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                    *sum += f(a, b);
                }
            }
            for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
                *sum += f(a, b);
            }
            sums.into_iter().sum()
        },
    )
}
