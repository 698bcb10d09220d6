//! From tokens and steps to vectors: `x = scale·embedding[w] + position[t]`.

use crosslens_analysis::{Probe, Token};
use crosslens_kernels::{Real, add, add_scaled};

use super::config::StepVectors;
use crate::network::layout::{Layout, Start, TensorId};
use crate::network::prepared::Context;

/// How one side's tokens become vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedding {
    pub(crate) tokens: TensorId,
    /// Learned rows; `None` for sinusoids.
    positions: Option<TensorId>,
    /// Words, without a start token.
    n_words: usize,
    scale: f64,
    d: usize,
}

/// One side of a network and its positions.
pub(crate) struct EmbeddingShape<'a> {
    /// `encoder` or `decoder`.
    pub(crate) side: &'a str,
    pub(crate) n_words: usize,
    /// One more, numbered `n_words`, where a side has a start token.
    pub(crate) has_start: bool,
    pub(crate) d: usize,
    pub(crate) scale: f64,
    pub(crate) positions: StepVectors,
}

/// What is read besides the tokens.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a, F> {
    pub(crate) context: Context<'a, F>,
    pub(crate) sinusoids: &'a Sinusoids<F>,
    /// In place of every token, if there is one.
    pub(crate) probe: Option<Probe>,
}

impl Embedding {
    /// Vectors start with a deviation of `1/√d`, learned positions with one of `scale/√(2d)`, as large as sinusoids are beside the
    /// usual scale.
    pub(crate) fn new(shape: &EmbeddingShape<'_>, layout: &mut Layout) -> Self {
        let &EmbeddingShape { side, n_words, has_start, d, scale, positions } = shape;
        let deviation = 1.0 / (d as f64).sqrt();
        let tokens = layout.matrix(format!("{side}.embedding"), n_words + usize::from(has_start), d, Start::Normal(deviation));
        let positions = match positions {
            StepVectors::Sinusoidal { .. } => None,
            StepVectors::Learned { size } => Some(layout.matrix(
                format!("{side}.positions"),
                size,
                d,
                Start::Normal(scale * deviation * std::f64::consts::FRAC_1_SQRT_2),
            )),
        };
        Self { tokens, positions, n_words, scale, d }
    }

    /// Fills `rows`, `[row, d]`, one for each token and its step.
    pub(crate) fn read<F: Real>(&self, rows: &mut Vec<F>, tokens: impl Iterator<Item = (Token, usize)>, reading: Reading<'_, F>) {
        let Reading { context, sinusoids, probe } = reading;
        let (d, scale) = (self.d, F::of(self.scale));
        let vectors = &context.weights[context.layout.range(self.tokens)];
        let positions = self.positions.map_or(&sinusoids.rows[..], |positions| &context.weights[context.layout.range(positions)]);
        let probed = probe.map(|probe| self.probed(vectors, probe));
        rows.clear();
        for (token, step) in tokens {
            let start = rows.len();
            rows.extend_from_slice(&positions[step * d..][..d]);
            let vector = probed.as_deref().unwrap_or_else(|| &vectors[token as usize * d..][..d]);
            add_scaled(&mut rows[start..], scale, vector);
        }
    }

    /// What stands in for every token's vector.
    fn probed<F: Real>(&self, vectors: &[F], probe: Probe) -> Vec<F> {
        let mut mean = vec![F::ZERO; self.d];
        if probe == Probe::Average {
            let share = F::of(1.0 / self.n_words as f64);
            vectors[..self.n_words * self.d].chunks_exact(self.d).for_each(|vector| add_scaled(&mut mean, share, vector));
        }
        mean
    }

    /// Adds the gradients of tokens and positions.
    pub(crate) fn backward<F: Real>(
        &self,
        d_rows: &[F],
        tokens: impl Iterator<Item = (Token, usize)>,
        layout: &Layout,
        gradient: &mut [F],
    ) {
        let (d, scale) = (self.d, F::of(self.scale));
        let (of_tokens, of_positions) = (layout.range(self.tokens).start, self.positions.map(|positions| layout.range(positions).start));
        for (d_row, (token, step)) in d_rows.chunks_exact(d).zip(tokens) {
            add_scaled(&mut gradient[of_tokens + token as usize * d..][..d], scale, d_row);
            if let Some(start) = of_positions {
                add(&mut gradient[start + step * d..][..d], d_row);
            }
        }
    }
}

/// Sines and cosines of the steps, kept from batch to batch.
///
/// ```text
/// P[t, 2i] = sin(t / τ^(2i/d))   P[t, 2i+1] = cos(t / τ^(2i/d))   an odd d ends with a sine
/// ```
#[derive(Clone, Debug, Default)]
pub(crate) struct Sinusoids<F> {
    /// `[step, d]`; empty where positions are learned.
    rows: Vec<F>,
    /// Width and time scale they were made for.
    made_for: Option<(usize, f64)>,
}

impl<F: Real> Sinusoids<F> {
    /// Makes them those of this network for at least `n_steps` steps.
    pub(crate) fn reach(&mut self, positions: StepVectors, d: usize, n_steps: usize) {
        let StepVectors::Sinusoidal { time_scale } = positions else { return };
        if self.made_for != Some((d, time_scale)) {
            self.rows.clear();
            self.made_for = Some((d, time_scale));
        }
        for step in self.rows.len() / d..n_steps {
            self.rows.extend((0..d).map(|j| {
                let angle = step as f64 / time_scale.powf((j - j % 2) as f64 / d as f64);
                F::of(if j % 2 == 0 { angle.sin() } else { angle.cos() })
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P[1] = [sin 1, cos 1, sin(1/10)] for d = 3, τ = 10^(3/2).
    #[test]
    fn sinusoids_alternate_and_grow_without_changing() {
        let mut sinusoids = Sinusoids::<f64>::default();
        let positions = StepVectors::Sinusoidal { time_scale: 10f64.powf(1.5) };
        sinusoids.reach(positions, 3, 1);
        sinusoids.reach(positions, 3, 2);
        for (a, b) in sinusoids.rows.iter().zip([0.0, 1.0, 0.0, 1f64.sin(), 1f64.cos(), 0.1f64.sin()]) {
            assert!((a - b).abs() < 1e-15);
        }
        sinusoids.reach(StepVectors::default(), 2, 1);
        assert_eq!(sinusoids.rows, [0.0, 1.0]);
    }
}
