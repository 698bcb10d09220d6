//! How much of the states' variance each part explains.

use super::fit::FitError;
use super::solve::solve;
use super::{Connections, Estimator, Shrinkage, Sums};

/// Shares of `Σ ‖h − h̄‖²`, with `R²` of the regressions on steps, on tokens and on both:
///
/// ```text
/// time = R²(both) − R²(token)      token = R²(both) − R²(time)      shared = R²(time) + R²(token) − R²(both)
/// rest = Σ ‖Δ‖² / Σ ‖h − h̄‖² of the estimator at hand; the four add up to 1 if that is the joint one without shrinkage
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// What only the step explains.
    pub time: f64,
    /// What only the token explains.
    pub token: f64,
    /// What either explains; negative where the two hide each other.
    pub shared: f64,
    /// What neither explains, under the estimator.
    pub rest: f64,
}

impl Sums {
    /// The variance of these states, split by components fitted to these or other states.
    ///
    /// States that are all the same have no variance: every share is then 0.
    pub fn variance(&self, estimator: Estimator, shrinkage: f64) -> Result<Variance, FitError> {
        self.variance_under(self, estimator, shrinkage)
    }

    /// The same with the components of `fitted`, other sentences of the same stream.
    pub fn variance_under(&self, fitted: &Self, estimator: Estimator, shrinkage: f64) -> Result<Variance, FitError> {
        if self.n_states() == 0 || fitted.n_states() == 0 {
            return Err(FitError::Empty);
        }
        let squares = Squares::of(self, &Connections::of(self))?;
        if squares.total <= 0.0 {
            return Ok(Variance { time: 0.0, token: 0.0, shared: 0.0, rest: 0.0 });
        }
        let rest = self.rest(fitted, estimator, shrinkage)?;
        Ok(Variance {
            time: (squares.both - squares.token) / squares.total,
            token: (squares.both - squares.time) / squares.total,
            shared: (squares.time + squares.token - squares.both) / squares.total,
            rest: (rest / squares.total).max(0.0),
        })
    }

    /// `Σ ‖h − μ − χ‖²` from the sums alone:
    /// `Q − 2 (Σ_t μ·H[t] + Σ_w χ·H[w]) + Σ n ‖μ‖² + Σ m ‖χ‖² + 2 Σ c μ·χ`.
    fn rest(&self, fitted: &Self, estimator: Estimator, shrinkage: f64) -> Result<f64, FitError> {
        let d = self.d;
        let fit = fitted.fit::<f64>(estimator, Shrinkage::Given(shrinkage))?.components;
        let mut rest = self.squares;
        for step in 0..self.n_steps() {
            let mean = fit.temporal(step);
            rest += self.n[step] as f64 * dot(mean, mean) - 2.0 * dot(mean, self.step_sum(step));
        }
        let mut met = vec![0.0; d];
        for token in self.ascending() {
            met.fill(0.0);
            for &(step, times) in &token.steps {
                met.iter_mut().zip(fit.temporal(step as usize)).for_each(|(met, mean)| *met += times as f64 * mean);
            }
            let input = fit.input(token.token);
            rest += token.count as f64 * dot(input, input) - 2.0 * dot(input, &token.sum) + 2.0 * dot(input, &met);
        }
        Ok(rest)
    }

    /// `λ` = variance of the rest over variance of the tokens, by the method of moments: with `W` tokens, `N` states and `S` the squares
    /// that tokens explain beyond the steps, `E S = σ²_Δ (W − 1) + σ²_χ (N − Σ m²/N)`.
    pub(super) fn estimated_shrinkage(&self, connections: &Connections) -> Result<f64, FitError> {
        let squares = Squares::of(self, connections)?;
        let (n_states, n_tokens, n_steps) = (self.n_states() as f64, self.n_tokens() as f64, self.n_steps() as f64);
        let free = n_states - n_tokens - n_steps + connections.n_pieces as f64;
        if free <= 0.0 {
            return Ok(1.0);
        }
        let rest = (squares.total - squares.both).max(0.0) / free;
        let spread = n_states - self.tokens.iter().map(|token| (token.count as f64).powi(2)).sum::<f64>() / n_states;
        let tokens = (squares.both - squares.time - rest * (n_tokens - 1.0)) / spread.max(1.0);
        // Tokens that explain no more than chance are shrunk to almost nothing.
        Ok(if tokens > 0.0 { (rest / tokens).min(n_states) } else { n_states })
    }
}

/// Explained sums of squares about the grand mean.
struct Squares {
    total: f64,
    time: f64,
    token: f64,
    both: f64,
}

impl Squares {
    fn of(sums: &Sums, connections: &Connections) -> Result<Self, FitError> {
        let total = sums.total();
        let mean = dot(&total, &total) / sums.n_states() as f64;
        let time: f64 = (0..sums.n_steps()).map(|step| dot(sums.step_sum(step), sums.step_sum(step)) / sums.n[step].max(1) as f64).sum();
        let token: f64 = sums.ascending().map(|token| dot(&token.sum, &token.sum) / token.count as f64).sum();
        let temporal = solve(sums, connections, 0.0)?;
        let mut both: f64 = (0..sums.n_steps()).map(|step| dot(&temporal[step * sums.d..][..sums.d], sums.step_sum(step))).sum();
        let mut input = vec![0.0; sums.d];
        for token in sums.ascending() {
            sums.input_of(token, &temporal, 0.0, &mut input);
            both += dot(&input, &token.sum);
        }
        Ok(Self { total: (sums.squares - mean).max(0.0), time: time - mean, token: token - mean, both: both - mean })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
