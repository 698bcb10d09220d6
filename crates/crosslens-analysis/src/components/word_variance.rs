//! How far the states of one word lie apart, before and after its step is taken away.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Components, Sums};
use crate::Token;

/// `Σ ‖h‖²` and `Σ ‖h − μ‖²` by token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WordVariance {
    squares: BTreeMap<Token, [f64; 2]>,
}

impl WordVariance {
    /// Adds one sentence, but for the tokens to be ignored.
    pub fn add(&mut self, tokens: &[Token], states: &[f32], components: &Components<f32>, is_ignored: impl Fn(Token) -> bool) {
        for (step, (&token, state)) in tokens.iter().zip(states.chunks_exact(components.d().max(1))).enumerate() {
            if is_ignored(token) {
                continue;
            }
            let squares = self.squares.entry(token).or_default();
            for (&h, &mean) in state.iter().zip(components.temporal(step)) {
                let (h, mean) = (f64::from(h), f64::from(mean));
                squares[0] += h * h;
                squares[1] += (h - mean) * (h - mean);
            }
        }
    }

    /// Adds what another one has summed, under the same components.
    pub fn merge(&mut self, other: &Self) {
        for (&token, squares) in &other.squares {
            let own = self.squares.entry(token).or_default();
            own.iter_mut().zip(squares).for_each(|(own, other)| *own += other);
        }
    }

    /// The traces of the words' covariances before and after, averaged over words seen twice or more; `sums` must hold the same sentences.
    pub fn means(&self, sums: &Sums, components: &Components<f32>) -> Option<[f64; 2]> {
        let (mut means, mut words) = ([0.0; 2], 0.0);
        for token in sums.ascending().filter(|token| token.count > 1) {
            let Some(squares) = self.squares.get(&token.token) else { continue };
            let count = token.count as f64;
            let mut rest = token.sum.clone();
            for &(step, times) in &token.steps {
                let mean = components.temporal(step as usize);
                rest.iter_mut().zip(mean).for_each(|(rest, &mean)| *rest -= times as f64 * f64::from(mean));
            }
            for ((mean, square), sum) in means.iter_mut().zip(squares).zip([&token.sum, &rest]) {
                *mean += (square - sum.iter().map(|x| x * x).sum::<f64>() / count).max(0.0) / (count - 1.0);
            }
            words += 1.0;
        }
        (words > 0.0).then(|| means.map(|mean| mean / words))
    }

    /// After over before.
    pub fn ratio(&self, sums: &Sums, components: &Components<f32>) -> Option<f64> {
        let [before, after] = self.means(sums, components)?;
        (before > 0.0).then(|| after / before)
    }
}
