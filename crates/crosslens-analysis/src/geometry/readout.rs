//! How the readouts of words lie to each other.

use super::report::{AnglesReport, HalfReport};
use super::{angle, dot, inside_span};
use crate::{Readout, Token};

/// Most words whose angles are written out one by one.
const MAX_LISTED: usize = 64;

/// The two halves of a readout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// What reads the decoder's state.
    State,
    /// What reads the context.
    Context,
}

/// The readout vectors of words, in their order: columns of the map, one half of its rows. Empty vectors where there is no such half.
pub fn word_readouts(readout: &Readout, half: Half, words: &[Token]) -> Vec<Vec<f64>> {
    let (from, n) = match half {
        Half::State => (0, readout.d_state),
        Half::Context => (readout.d_state, readout.d_context),
    };
    let map = &readout.map;
    let column = |word: Token| (from..from + n).map(|row| f64::from(map.weights[row * map.d_out + word as usize])).collect();
    words.iter().map(|&word| column(word)).collect()
}

/// Angles between all pairs of vectors, in degrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Angles {
    /// `[vector][vector]`, 0 on the diagonal.
    pub table: Vec<Vec<f64>>,
}

impl Angles {
    /// Of these vectors; a vector of no length is at no angle to any other.
    pub fn between(vectors: &[Vec<f64>]) -> Self {
        Self { table: vectors.iter().map(|a| vectors.iter().map(|b| angle(a, b)).collect()).collect() }
    }

    /// Of these vectors once their mean is taken off.
    pub fn about_the_mean(vectors: &[Vec<f64>]) -> Self {
        Self::between(&super::Path { states: vectors.to_vec() }.centred().states)
    }

    /// Lowest, mean and highest over pairs; `None` for fewer than two vectors.
    pub fn report(&self) -> Option<AnglesReport> {
        let pairs: Vec<f64> = self.table.iter().enumerate().flat_map(|(row, angles)| angles[..row].iter().copied()).collect();
        let bound = |better: fn(f64, f64) -> f64| pairs.iter().copied().reduce(better);
        Some(AnglesReport {
            lowest: bound(f64::min)?,
            mean: pairs.iter().sum::<f64>() / pairs.len() as f64,
            highest: bound(f64::max)?,
            table: (self.table.len() <= MAX_LISTED).then(|| self.table.clone()),
        })
    }
}

impl HalfReport {
    /// Of these readouts; `None` where the half does not exist.
    pub fn of(vectors: &[Vec<f64>]) -> Option<Self> {
        vectors.first().filter(|vector| !vector.is_empty())?;
        Some(Self {
            norms: vectors.iter().map(|vector| dot(vector, vector).sqrt()).collect(),
            angles: Angles::between(vectors).report(),
            centred_angles: Angles::about_the_mean(vectors).report(),
            inside_span: inside_span(vectors),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Linear;

    /// Rows 0 and 1 read the state, row 2 the context; words are columns.
    #[test]
    fn a_words_readout_is_its_column() {
        let map = Linear { d_in: 3, d_out: 2, weights: vec![1., 2., 3., 4., 5., 6.], bias: Vec::new() };
        let readout = Readout { map, d_state: 2, d_context: 1 };
        assert_eq!(word_readouts(&readout, Half::State, &[1, 0]), [[2., 4.], [1., 3.]]);
        assert_eq!(word_readouts(&readout, Half::Context, &[1]), [[6.]]);
    }

    /// Corners of an equilateral triangle, moved far off: small angles raw, 120° about their mean = arccos(−1/2).
    #[test]
    fn angles_about_the_mean_see_the_simplex() {
        let corners: Vec<Vec<f64>> =
            [0f64, 120., 240.].iter().map(|turn| vec![10.0 + turn.to_radians().cos(), turn.to_radians().sin()]).collect();
        let raw = Angles::between(&corners).report().expect("three");
        assert!(raw.highest < 12.0);
        let centred = Angles::about_the_mean(&corners).report().expect("three");
        assert!((centred.lowest - 120.0).abs() < 1e-9 && (centred.highest - 120.0).abs() < 1e-9, "{centred:?}");
    }
}
