use crosslens_kernels::{Real, Threads, add_scaled, squared_norm, vectorised};
use serde::{Deserialize, Serialize};

use crate::network::{Engine, Workplace};

/// Parameters that one piece of an update covers. Fixed, so that the gradient's norm does not depend on threads.
const CHUNK: usize = 1 << 15;

/// Adam and AdamW, L2 and clipping; the equations stand in `docs/math.md`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay per step, times the learning rate (AdamW).
    pub decay: f64,
    /// Factor of the sum of squares of all parameters in the loss.
    pub l2: f64,
    /// Largest global norm of the gradient; 0 does not clip.
    pub clip: f64,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0.0, l2: 0.0, clip: 1.0 }
    }
}

/// The moments of every parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments<F> {
    /// Running means of gradients.
    pub first: Vec<F>,
    /// Running means of their squares.
    pub second: Vec<F>,
    /// Updates made so far.
    pub steps: u64,
}

impl<F: Real> Moments<F> {
    /// Zero moments for `n` parameters.
    pub fn new(n: usize) -> Self {
        Self { first: vec![F::ZERO; n], second: vec![F::ZERO; n], steps: 0 }
    }

    /// Changes the weights along the gradient left by [`Engine::differentiate`]; returns its global norm, L2 included, before clipping.
    ///
    /// A gradient that is not finite changes nothing.
    pub fn update(&mut self, engine: &mut Engine<F>, weights: &mut [F], config: &OptimizerConfig, learning_rate: f64) -> f64 {
        let workplace = engine.workplace();
        let threads = workplace.threads;
        threads.within(|| self.apply(weights, workplace, config, learning_rate))
    }

    fn apply(&mut self, weights: &mut [F], workplace: Workplace<'_, F>, config: &OptimizerConfig, learning_rate: f64) -> f64 {
        let Workplace { gradient, squares, threads } = workplace;
        let norm = add_l2(weights, gradient, config.l2, squares, threads);
        if !norm.is_finite() {
            return norm;
        }
        self.steps += 1;
        let steps = self.steps as f64;
        let factor = if config.clip > 0.0 && norm > config.clip { config.clip / norm } else { 1.0 };
        let adam = Adam {
            factor: F::of(factor),
            beta1: F::of(config.beta1),
            rest1: F::of(1.0 - config.beta1),
            beta2: F::of(config.beta2),
            rest2: F::of(1.0 - config.beta2),
            rate: F::of(learning_rate / (1.0 - config.beta1.powf(steps))),
            correction2: F::of(1.0 / (1.0 - config.beta2.powf(steps))),
            epsilon: F::of(config.epsilon),
            kept: F::of(1.0 - learning_rate * config.decay),
        };
        let slices = [weights, gradient, self.first.as_mut_slice(), self.second.as_mut_slice()];
        threads.for_each_chunk(slices, CHUNK, |_, [weights, gradient, first, second]| adam.update(weights, gradient, first, second));
        norm
    }
}

/// `gradient += 2·l2·weights`; returns the norm of the result.
fn add_l2<F: Real>(weights: &[F], gradient: &mut [F], l2: f64, squares: &mut Vec<f64>, threads: &Threads) -> f64 {
    let piece = |number: usize| number * CHUNK..((number + 1) * CHUNK).min(weights.len());
    if l2 > 0.0 {
        let factor = F::of(2.0 * l2);
        threads.for_each_chunk([&mut *gradient], CHUNK, |number, [gradient]| add_scaled(gradient, factor, &weights[piece(number)]));
    }
    squares.resize(gradient.len().div_ceil(CHUNK), 0.0);
    threads.for_each(squares, |number, squared| *squared = squared_norm(&gradient[piece(number)]));
    squares.iter().sum::<f64>().sqrt()
}

/// The constants of one update.
struct Adam<F> {
    factor: F,
    beta1: F,
    rest1: F,
    beta2: F,
    rest2: F,
    rate: F,
    correction2: F,
    epsilon: F,
    kept: F,
}

impl<F: Real> Adam<F> {
    fn update(&self, weights: &mut [F], gradient: &[F], first: &mut [F], second: &mut [F]) {
        vectorised(
            #[inline(always)]
            || {
                for (((weight, &gradient), first), second) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
                    let gradient = gradient * self.factor;
                    *first = self.beta1 * *first + self.rest1 * gradient;
                    *second = self.beta2 * *second + self.rest2 * gradient * gradient;
                    let scale = (*second * self.correction2).sqrt() + self.epsilon;
                    *weight = *weight * self.kept - self.rate * *first / scale;
                }
            },
        );
    }
}
