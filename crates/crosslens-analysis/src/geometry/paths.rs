//! Paths that states take, and how alike two of them are.

use super::{cosine, dot, to_f64};
use crate::Components;

/// States step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// `[step][d]`.
    pub states: Vec<Vec<f64>>,
}

impl Path {
    /// The temporal components, `μ[0], μ[1], …`.
    pub fn temporal(components: &Components<f32>) -> Self {
        Self { states: (0..components.n_steps()).map(|step| to_f64(components.temporal(step))).collect() }
    }

    /// From `[step, d]` numbers.
    pub fn of(states: &[f32], d: usize) -> Self {
        Self { states: states.chunks_exact(d.max(1)).map(to_f64).collect() }
    }

    /// Its first steps.
    pub fn first(&self, n_steps: usize) -> Self {
        Self { states: self.states[..n_steps.min(self.states.len())].to_vec() }
    }

    /// The same path about its own middle.
    pub fn centred(&self) -> Self {
        let n = self.states.len() as f64;
        let mut mean = vec![0.0; self.states.first().map_or(0, Vec::len)];
        for state in &self.states {
            mean.iter_mut().zip(state).for_each(|(mean, x)| *mean += x / n);
        }
        Self { states: self.states.iter().map(|state| state.iter().zip(&mean).map(|(x, mean)| x - mean).collect()).collect() }
    }

    /// How alike two paths are, whatever their middles: over the steps both have,
    ///
    /// ```text
    /// Σ_t a′[t]·b′[t] / √(Σ ‖a′[t]‖² Σ ‖b′[t]‖²)        a′ = a − its mean over t
    /// ```
    pub fn centred_cosine(&self, other: &Self) -> f64 {
        let n = self.states.len().min(other.states.len());
        cosine(&self.first(n).centred().states.concat(), &other.first(n).centred().states.concat())
    }

    /// Where this path is along another one: the Pearson correlation of `t` with the step of `other` nearest to this path's `t`,
    /// over the steps both have. `None` where there are fewer than two, or where the nearest step is always the same.
    pub fn step_correlation(&self, other: &Self) -> Option<f64> {
        let n = self.states.len().min(other.states.len());
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let nearest = |state: &[f64]| {
            let distances = other.states[..n].iter().map(|candidate| distance(state, candidate));
            distances.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(step, _)| step)
        };
        let steps: Vec<f64> = (0..n).map(|step| step as f64).collect();
        let found: Vec<f64> = self.states[..n].iter().map(|state| nearest(state) as f64).collect();
        pearson(&steps, &found)
    }
}

/// The correlation of two lists of numbers; `None` where one of them does not vary.
pub fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let centred = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        values.iter().map(|x| x - mean).collect::<Vec<f64>>()
    };
    let (a, b) = (centred(a), centred(b));
    (dot(&a, &a) > 0.0 && dot(&b, &b) > 0.0).then(|| cosine(&a, &b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[[f64; 2]]) -> Path {
        Path { states: points.iter().map(|point| point.to_vec()).collect() }
    }

    /// About their middles (1, 0) and (5, 7) both go along x by −1, 0, 1: the same path.
    #[test]
    fn a_shifted_path_is_the_same_path() {
        let (a, b) = (line(&[[0., 0.], [1., 0.], [2., 0.]]), line(&[[4., 7.], [5., 7.], [6., 7.]]));
        assert!((a.centred_cosine(&b) - 1.0).abs() < 1e-15);
        let back = line(&[[2., 0.], [1., 0.], [0., 0.]]);
        assert!((a.centred_cosine(&back) + 1.0).abs() < 1e-15);
        assert_eq!(back.step_correlation(&a), Some(-1.0));
    }

    /// Nearest steps 0, 0, 2: covariance with 0, 1, 2 is (−1)(−⅔) + 0 + 1·4/3 = 2, variances 2 and 8/3, so r = 2/√(16/3) = √3/2.
    #[test]
    fn the_step_correlation_is_that_of_the_nearest_steps() {
        let path = line(&[[0., 0.], [1., 0.], [2., 0.]]);
        let late = line(&[[0., 1.], [0.4, 1.], [2., 1.]]);
        assert!((late.step_correlation(&path).expect("it moves") - 0.75f64.sqrt()).abs() < 1e-15);
        assert_eq!(line(&[[0., 0.], [0., 0.]]).step_correlation(&path), None);
    }
}
