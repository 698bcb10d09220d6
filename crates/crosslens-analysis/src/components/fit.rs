//! From sums to components.

use crosslens_kernels::{Aligned, Matrix, Real, fetch_ahead, vectorised};

use super::graph::FEW;
use super::rows::TokenRows;
use super::solve::{condition, solve};
use super::sums::TokenSum;
use super::{Connections, Sums};
use crate::Token;

/// How steps and tokens share what both explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The paper's: the step first, the token from what is left.
    ///
    /// ```text
    /// μ[t] = H[t]/n[t]        χ[w] = (H[w] − Σ_t c[w,t] μ[t]) / m[w]
    /// ```
    #[default]
    Paper,
    /// Both at once by least squares, with `Σ m χ = 0` within each connected piece of the token × step graph.
    Joint,
}

impl Estimator {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Joint => "joint",
        }
    }
}

/// How much rare tokens are pulled towards nothing: `m + λ` takes the place of `m`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Shrinkage {
    /// Not at all.
    #[default]
    None,
    /// By this `λ`, in observations; with the joint estimator the gauge is then `Σ χ = 0`, which the penalty itself chooses.
    Given(f64),
    /// By the `λ` the data suggest: variance of the rest over variance of the tokens.
    Estimated,
}

/// Why sums cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No state was added.
    #[error("there are no states to fit")]
    Empty,
    /// Steps and tokens cannot be told apart.
    #[error("steps and tokens cannot be told apart: the system's condition is {condition:.1e}")]
    Singular {
        /// Largest over smallest eigenvalue.
        condition: f64,
    },
    /// Sentences that are too long.
    #[error("a sentence has {steps} steps, at most {most} are told apart: leave longer ones out, or cut them")]
    TooManySteps {
        /// Steps of the longest.
        steps: usize,
        /// The limit.
        most: usize,
    },
    /// A shrinkage that is negative or no number.
    #[error("the shrinkage is {value}, it must be 0 or more")]
    Shrinkage {
        /// What was given.
        value: f64,
    },
}

/// Components and how they came about.
#[derive(Clone, Debug)]
pub struct Fit<F> {
    /// What the states split into.
    pub components: Components<F>,
    /// The `λ` used.
    pub shrinkage: f64,
    /// Which steps hang together.
    pub connections: Connections,
    /// Of the joint system; `None` for the paper's estimator, which solves none.
    pub condition: Option<f64>,
}

/// The parts of a state that depend on its step and on its token alone.
#[derive(Clone, Debug)]
pub struct Components<F> {
    d: usize,
    temporal: Aligned<F>,
    mean: Vec<F>,
    rows: TokenRows,
    input: Aligned<F>,
    /// `χ` of a token never seen, and `μ` of a step never reached: zero, until a map with a constant moves the latter.
    zeros: Vec<F>,
    beyond: Vec<F>,
    few_steps: usize,
    few_tokens: usize,
}

impl<F: Real> Components<F> {
    /// No step and no token: everything is rest.
    pub fn nothing(d: usize) -> Self {
        let zeros = vec![F::ZERO; d];
        Self {
            d,
            temporal: Aligned::zeros(0),
            mean: zeros.clone(),
            rows: TokenRows::default(),
            input: Aligned::zeros(0),
            beyond: zeros.clone(),
            zeros,
            few_steps: 0,
            few_tokens: 0,
        }
    }

    /// Dimensions of a state.
    pub fn d(&self) -> usize {
        self.d
    }

    /// Steps that have a temporal part.
    pub fn n_steps(&self) -> usize {
        self.temporal.len() / self.d.max(1)
    }

    /// Tokens that have an input part.
    pub fn n_tokens(&self) -> usize {
        self.input.len() / self.d.max(1)
    }

    /// `μ[t]`; zero for a step never reached.
    pub fn temporal(&self, step: usize) -> &[F] {
        if step < self.n_steps() { &self.temporal[step * self.d..][..self.d] } else { &self.beyond }
    }

    /// `χ[w]`; zero for a token never seen.
    pub fn input(&self, token: Token) -> &[F] {
        self.input_at(self.row(token))
    }

    /// `χ` of the token at that place, zero for one that has none.
    pub(crate) fn input_at(&self, row: Option<usize>) -> &[F] {
        row.map_or(&self.zeros, |row| self.input_row(row))
    }

    /// The place of a token among those that have an input part.
    pub(crate) fn row(&self, token: Token) -> Option<usize> {
        self.rows.get(token)
    }

    /// `χ` of the token at that place.
    pub(crate) fn input_row(&self, row: usize) -> &[F] {
        &self.input[row * self.d..][..self.d]
    }

    /// All `μ`, by step.
    pub(crate) fn temporal_rows(&self) -> Matrix<'_, F> {
        Matrix::new(&self.temporal, self.n_steps(), self.d)
    }

    /// All `χ`, by the places of their tokens.
    pub(crate) fn input_rows(&self) -> Matrix<'_, F> {
        Matrix::new(&self.input, self.n_tokens(), self.d)
    }

    /// The components behind a map of rows to `d` dimensions; `map` is told whether it maps a temporal part, which a constant joins.
    pub(crate) fn mapped(&self, d: usize, map: impl Fn(&[F], bool) -> Vec<F>) -> Self {
        Self {
            d,
            temporal: Aligned::from(&map(&self.temporal, true)[..]),
            mean: map(&self.mean, true),
            rows: self.rows.clone(),
            input: Aligned::from(&map(&self.input, false)[..]),
            zeros: vec![F::ZERO; d],
            beyond: map(&self.beyond, true),
            ..*self
        }
    }

    /// The mean of `μ` over all states: the same at every step, so no matter of position.
    pub fn mean(&self) -> &[F] {
        &self.mean
    }

    /// Steps and tokens fitted from fewer than five states.
    pub fn few(&self) -> (usize, usize) {
        (self.few_steps, self.few_tokens)
    }
}

impl Sums {
    /// Fits the components.
    pub fn fit<F: Real>(&self, estimator: Estimator, shrinkage: Shrinkage) -> Result<Fit<F>, FitError> {
        if self.n_states() == 0 {
            return Err(FitError::Empty);
        }
        let connections = Connections::of(self);
        let shrinkage = match shrinkage {
            Shrinkage::None => 0.0,
            Shrinkage::Given(value) if value.is_finite() && value >= 0.0 => value,
            Shrinkage::Given(value) => return Err(FitError::Shrinkage { value }),
            Shrinkage::Estimated => self.estimated_shrinkage(&connections)?,
        };
        let (mut temporal, condition) = match estimator {
            Estimator::Paper => (self.step_means(), None),
            Estimator::Joint => (solve(self, &connections, shrinkage)?, Some(condition(self, &connections, shrinkage)?)),
        };
        if estimator == Estimator::Joint && shrinkage == 0.0 {
            self.fix_gauge(&mut temporal, &connections);
        }
        let components = self.components(&temporal, shrinkage);
        Ok(Fit { components, shrinkage, connections, condition })
    }

    pub(super) fn step_means(&self) -> Vec<f64> {
        let mut means = self.by_step.to_vec();
        for (mean, &n) in means.chunks_exact_mut(self.d.max(1)).zip(&self.n) {
            mean.iter_mut().for_each(|mean| *mean /= n.max(1) as f64);
        }
        means
    }

    /// `χ[w] = (H[w] − Σ_t c[w,t] μ[t]) / (m[w] + λ)`, into `input`; computed in `f64` and rounded once.
    pub(super) fn input_of<F: Real>(&self, token: &TokenSum, temporal: &[f64], shrinkage: f64, input: &mut [F]) {
        /// Numbers that stay in registers while the steps pass by.
        const STRETCH: usize = 64;
        let factor = 1.0 / (token.count as f64 + shrinkage);
        vectorised(
            #[inline(always)]
            || {
                let (sums, last_sums) = token.sum.as_chunks::<STRETCH>();
                let (inputs, last_inputs) = input.as_chunks_mut::<STRETCH>();
                for (number, (sums, inputs)) in sums.iter().zip(inputs).enumerate() {
                    let mut rest = *sums;
                    for &(step, times) in &token.steps {
                        let (means, times) = (&temporal[step as usize * self.d + number * STRETCH..][..STRETCH], times as f64);
                        for i in 0..STRETCH {
                            rest[i] -= times * means[i];
                        }
                    }
                    for i in 0..STRETCH {
                        inputs[i] = F::of(rest[i] * factor);
                    }
                }
                for (i, (sum, input)) in last_sums.iter().zip(last_inputs).enumerate() {
                    let place = self.d - last_sums.len() + i;
                    let known = |&(step, times): &(u32, u64)| times as f64 * temporal[step as usize * self.d + place];
                    *input = F::of(token.steps.iter().map(known).fold(*sum, |rest, known| rest - known) * factor);
                }
            },
        );
    }

    /// Moves what all tokens of a piece have in common to its steps, so that `Σ m χ = 0` there.
    fn fix_gauge(&self, temporal: &mut [f64], connections: &Connections) {
        // Σ_w m χ over a piece is Σ_w H[w] − Σ_t n μ = Σ_t (H[t] − n μ): no token is needed.
        let mut shifts = vec![0.0; connections.n_pieces * self.d];
        let mut counts = vec![0.0; connections.n_pieces];
        for step in 0..self.n_steps() {
            let piece = connections.steps[step];
            let n = self.n[step] as f64;
            counts[piece] += n;
            let shift = &mut shifts[piece * self.d..][..self.d];
            for ((shift, sum), mean) in shift.iter_mut().zip(self.step_sum(step)).zip(&temporal[step * self.d..]) {
                *shift += sum - n * mean;
            }
        }
        for step in 0..self.n_steps() {
            let piece = connections.steps[step];
            if self.n[step] > 0 {
                let shift = &shifts[piece * self.d..][..self.d];
                for (mean, shift) in temporal[step * self.d..][..self.d].iter_mut().zip(shift) {
                    *mean += shift / counts[piece];
                }
            }
        }
    }

    fn components<F: Real>(&self, temporal: &[f64], shrinkage: f64) -> Components<F> {
        let d = self.d;
        let mut rows = TokenRows::default();
        let mut input = Aligned::zeros(self.tokens.len() * d);
        let mut tokens = self.ascending().peekable();
        for input in input.chunks_exact_mut(d.max(1)) {
            let token = tokens.next().expect("a row for each token");
            if let Some(next) = tokens.peek() {
                fetch_ahead(&next.sum);
                fetch_ahead(&next.steps);
            }
            self.input_of(token, temporal, shrinkage, input);
            rows.get_or_next(token.token);
        }
        let mut mean = vec![0.0; d];
        let n_states = self.n_states() as f64;
        for (step, &n) in self.n.iter().enumerate() {
            let weight = n as f64 / n_states;
            mean.iter_mut().zip(&temporal[step * d..]).for_each(|(mean, temporal)| *mean += weight * temporal);
        }
        Components {
            d,
            temporal: Aligned::from(&temporal.iter().map(|&x| F::of(x)).collect::<Vec<_>>()[..]),
            mean: mean.into_iter().map(F::of).collect(),
            rows,
            input,
            zeros: vec![F::ZERO; d],
            beyond: vec![F::ZERO; d],
            few_steps: self.n.iter().filter(|&&n| n < FEW).count(),
            few_tokens: self.tokens.iter().filter(|token| token.count < FEW).count(),
        }
    }
}
