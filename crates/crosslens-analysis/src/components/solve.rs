//! Least squares for `h ≈ μ[t] + χ[w]`, with the tokens eliminated.

use nalgebra::{Cholesky, DMatrix};

use super::fit::FitError;
use super::{Connections, Sums};

/// Most steps of a sentence: the system has as many unknowns, and takes the square of that in memory.
pub const MAX_STEPS: usize = 8192;

/// Solves
///
/// ```text
/// (diag n − Cᵀ (M + λ)⁻¹ C) μ = H_t − Cᵀ (M + λ)⁻¹ H_w
/// ```
///
/// for `μ`, `[step, d]`. Without shrinkage a constant per piece is free; the one with `Σ_t μ[t] = 0` in each piece is returned.
pub(super) fn solve(sums: &Sums, connections: &Connections, shrinkage: f64) -> Result<Vec<f64>, FitError> {
    let (n_steps, d) = (sums.n_steps(), sums.d());
    let mut system = system(sums, shrinkage)?;
    let mut right = DMatrix::<f64>::from_row_slice(n_steps, d, &sums.by_step);
    for token in sums.ascending() {
        let weight = 1.0 / (token.count as f64 + shrinkage);
        for &(step, times) in &token.steps {
            let factor = times as f64 * weight;
            for (right, sum) in right.row_mut(step as usize).iter_mut().zip(&token.sum[..]) {
                *right -= factor * sum;
            }
        }
    }
    if shrinkage == 0.0 {
        let scale = sums.n.iter().copied().max().unwrap_or(1) as f64;
        for step in 0..n_steps {
            for other in (0..n_steps).filter(|&other| connections.steps[other] == connections.steps[step] && sums.n[step] > 0) {
                system[(step, other)] += scale / n_steps as f64;
            }
        }
    }
    let temporal = Cholesky::new(system).map(|factors| {
        let solution = factors.solve(&right);
        solution.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>()).collect::<Vec<f64>>()
    });
    match temporal {
        Some(temporal) if temporal.iter().all(|value| value.is_finite()) => Ok(temporal),
        _ => Err(FitError::Singular { condition: condition(sums, connections, shrinkage)? }),
    }
}

/// The left side, `diag n − Cᵀ (M + λ)⁻¹ C`.
fn system(sums: &Sums, shrinkage: f64) -> Result<DMatrix<f64>, FitError> {
    let n_steps = sums.n_steps();
    if n_steps > MAX_STEPS {
        return Err(FitError::TooManySteps { steps: n_steps, most: MAX_STEPS });
    }
    let mut system = DMatrix::<f64>::zeros(n_steps, n_steps);
    for step in 0..n_steps {
        // A step nobody reached stands alone; its μ is 0.
        system[(step, step)] = if sums.n[step] == 0 { 1.0 } else { sums.n[step] as f64 };
    }
    for token in sums.ascending() {
        let weight = 1.0 / (token.count as f64 + shrinkage);
        for &(step, times) in &token.steps {
            let factor = times as f64 * weight;
            for &(other, other_times) in &token.steps {
                system[(step as usize, other as usize)] -= factor * other_times as f64;
            }
        }
    }
    Ok(system)
}

/// Largest over smallest eigenvalue of `D^−½ A D^−½`, `A` the system and `D = diag n`, with the free constant of each piece put at 1.
pub(super) fn condition(sums: &Sums, connections: &Connections, shrinkage: f64) -> Result<f64, FitError> {
    let n_steps = sums.n_steps();
    let system = system(sums, shrinkage)?;
    let root = |step: usize| (sums.n[step].max(1) as f64).sqrt();
    let mut totals = vec![0.0; connections.n_pieces];
    (0..n_steps).for_each(|step| totals[connections.steps[step]] += sums.n[step].max(1) as f64);
    let scaled = DMatrix::from_fn(n_steps, n_steps, |i, j| {
        let free = if shrinkage == 0.0 && connections.steps[i] == connections.steps[j] && sums.n[i] > 0 {
            root(i) * root(j) / totals[connections.steps[i]]
        } else {
            0.0
        };
        system[(i, j)] / (root(i) * root(j)) + free
    });
    let eigenvalues = scaled.symmetric_eigenvalues();
    Ok(eigenvalues.max() / eigenvalues.min().max(f64::MIN_POSITIVE))
}
