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

/// How far the states of one word lie apart: the trace of their covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordSpread {
    /// The word.
    pub token: Token,
    /// How often it was seen.
    pub count: u64,
    /// As the states are.
    pub before: f64,
    /// With `μ` of their step taken away.
    pub after: f64,
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

    /// By word seen twice or more, ascending; `sums` must hold the same sentences.
    pub fn by_word(&self, sums: &Sums, components: &Components<f32>) -> Vec<WordSpread> {
        let mut words = Vec::new();
        for token in sums.ascending().filter(|token| token.count > 1) {
            let Some(squares) = self.squares.get(&token.token) else { continue };
            let count = token.count as f64;
            let mut rest = token.sum.to_vec();
            for &(step, times) in &token.steps {
                let mean = components.temporal(step as usize);
                rest.iter_mut().zip(mean).for_each(|(rest, &mean)| *rest -= times as f64 * f64::from(mean));
            }
            let trace = |square: f64, sum: &[f64]| (square - sum.iter().map(|x| x * x).sum::<f64>() / count).max(0.0) / (count - 1.0);
            let (before, after) = (trace(squares[0], &token.sum), trace(squares[1], &rest));
            words.push(WordSpread { token: token.token, count: token.count, before, after });
        }
        words
    }

    /// The traces before and after, averaged over these words; `None` without a word.
    pub fn means(&self, sums: &Sums, components: &Components<f32>) -> Option<[f64; 2]> {
        let words = self.by_word(sums, components);
        let mean = |of: fn(&WordSpread) -> f64| words.iter().map(of).sum::<f64>() / words.len() as f64;
        (!words.is_empty()).then(|| [mean(|word| word.before), mean(|word| word.after)])
    }

    /// After over before.
    pub fn ratio(&self, sums: &Sums, components: &Components<f32>) -> Option<f64> {
        let [before, after] = self.means(sums, components)?;
        (before > 0.0).then(|| after / before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimator, Shrinkage};

    /// Word 7 stands at steps 0 and 1, twice each, word 8 twice at step 0; μ[0] = (1+3+0+4)/4 = 2, μ[1] = (11+13)/2 = 12.
    /// Word 7: 1, 3, 11, 13 have the mean 7 and the variance (36+16+16+36)/3; less μ they are −1, 1, −1, 1, of variance 4/3.
    /// Word 8: 0 and 4 have the variance 8, and −2 and 2 as well.
    #[test]
    fn a_word_at_two_steps_spreads_less_without_them() {
        let sentences: [(&[Token], &[f32]); 4] = [(&[7, 7], &[1.0, 11.0]), (&[7, 7], &[3.0, 13.0]), (&[8], &[0.0]), (&[8], &[4.0])];
        let mut sums = Sums::new(1);
        sentences.iter().for_each(|(tokens, states)| sums.add(tokens, states));
        let components = sums.fit::<f32>(Estimator::Paper, Shrinkage::None).expect("there are states").components;
        let mut variance = WordVariance::default();
        sentences.iter().for_each(|(tokens, states)| variance.add(tokens, states, &components, |_| false));
        let words = variance.by_word(&sums, &components);
        let found: Vec<_> = words.iter().map(|word| (word.token, word.count)).collect();
        assert_eq!(found, [(7, 4), (8, 2)]);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and {b}");
        close(words[0].before, 104.0 / 3.0);
        close(words[0].after, 4.0 / 3.0);
        close(words[1].before, 8.0);
        close(words[1].after, 8.0);
        let [before, after] = variance.means(&sums, &components).expect("two words");
        close(before, (104.0 / 3.0 + 8.0) / 2.0);
        close(after, (4.0 / 3.0 + 8.0) / 2.0);
    }
}
