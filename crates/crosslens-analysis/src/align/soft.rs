//! Attention as an alignment: a weight for each target and source token.

use super::{Link, Links};

/// Why numbers are no soft alignment.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SoftAlignmentError {
    /// As many weights as cells were expected.
    #[error("an alignment of {n_targets} × {n_sources} tokens has {n_weights} weights")]
    Shape {
        /// Rows.
        n_targets: usize,
        /// Columns.
        n_sources: usize,
        /// Numbers given.
        n_weights: usize,
    },
    /// A weight below 0, infinite, or not a number.
    #[error("the weight of target token {target} and source token {source_token} is {weight}; weights are finite and at least 0")]
    Weight {
        /// The row.
        target: usize,
        /// The column.
        source_token: usize,
        /// What stands there.
        weight: f64,
    },
    /// Sentences whose words and end tokens do not fit the weights.
    #[error(
        "{n_target_words} target and {n_source_words} source words, each with an end token, do not fit an alignment of {n_targets} × {n_sources} tokens"
    )]
    Words {
        /// Words of the target, without its end token.
        n_target_words: usize,
        /// Words of the source, without its end token.
        n_source_words: usize,
        /// Rows.
        n_targets: usize,
        /// Columns.
        n_sources: usize,
    },
}

/// Weights `[target, source]`, finite and at least 0: what a target token took from each source token. Rows of attention add up to 1; after
/// special tokens were dropped they may add up to less.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftAlignment {
    n_targets: usize,
    n_sources: usize,
    weights: Vec<f64>,
}

impl SoftAlignment {
    /// From weights row by row, `f32` or `f64`.
    pub fn new<W: Into<f64>>(n_targets: usize, n_sources: usize, weights: impl IntoIterator<Item = W>) -> Result<Self, SoftAlignmentError> {
        let weights: Vec<f64> = weights.into_iter().map(Into::into).collect();
        if n_targets.checked_mul(n_sources) != Some(weights.len()) {
            return Err(SoftAlignmentError::Shape { n_targets, n_sources, n_weights: weights.len() });
        }
        if let Some(at) = weights.iter().position(|&weight| !(weight >= 0.0 && weight.is_finite())) {
            return Err(SoftAlignmentError::Weight { target: at / n_sources, source_token: at % n_sources, weight: weights[at] });
        }
        Ok(Self { n_targets, n_sources, weights })
    }

    /// Weights that are known to be some.
    pub(super) fn of(n_targets: usize, n_sources: usize, weights: Vec<f64>) -> Self {
        debug_assert_eq!(n_targets * n_sources, weights.len());
        Self { n_targets, n_sources, weights }
    }

    /// Rows.
    pub fn n_targets(&self) -> usize {
        self.n_targets
    }

    /// Columns.
    pub fn n_sources(&self) -> usize {
        self.n_sources
    }

    /// The weights of one target token. Panics if there is no such token.
    pub fn row(&self, target: usize) -> &[f64] {
        &self.weights[target * self.n_sources..][..self.n_sources]
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.n_targets).map(|target| self.row(target))
    }

    /// The place of the largest weight of each row, the first among equals; none where all weights are 0.
    pub fn argmax(&self) -> impl Iterator<Item = Option<usize>> {
        self.rows().map(|row| {
            let mut best = None;
            for (place, &weight) in row.iter().enumerate() {
                if weight > best.map_or(0.0, |best: usize| row[best]) {
                    best = Some(place);
                }
            }
            best
        })
    }

    /// One link a target token, to the source token of its largest weight. Tokens whose weights are all 0 have none.
    pub fn argmax_links(&self) -> Links {
        let best = self.argmax().enumerate();
        best.filter_map(|(target, source)| Some(Link { source: source?, target })).collect()
    }

    /// Every link whose weight is more than `threshold`: any number for a target token, none among them.
    pub fn links_above(&self, threshold: f64) -> Links {
        let cells = self.rows().enumerate().flat_map(|(target, row)| row.iter().enumerate().map(move |cell| (target, cell)));
        cells.filter(|(_, (_, weight))| **weight > threshold).map(|(target, (source, _))| Link { source, target }).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of weights that add up to 1, up to 5 × 5.
    pub(in crate::align) fn alignments() -> impl Strategy<Value = SoftAlignment> {
        (1..6_usize, 1..6_usize).prop_flat_map(|(n_targets, n_sources)| {
            prop::collection::vec(0.01..1.0_f64, n_targets * n_sources).prop_map(move |mut weights| {
                for row in weights.chunks_mut(n_sources) {
                    let sum: f64 = row.iter().sum();
                    row.iter_mut().for_each(|weight| *weight /= sum);
                }
                SoftAlignment::of(n_targets, n_sources, weights)
            })
        })
    }

    #[test]
    fn the_first_of_equal_weights_wins_and_zero_is_no_link() {
        let soft = SoftAlignment::new(3, 3, [0.2_f32, 0.4, 0.4, 0.0, 0.0, 0.0, 0.1, 0.0, 0.9]).expect("nine weights");
        assert_eq!(soft.argmax_links(), Links::from_iter([(1, 0), (2, 2)]));
    }

    #[test]
    fn a_threshold_gives_any_number_of_links() {
        let soft = SoftAlignment::new(2, 3, [0.25, 0.5, 0.25, 0.1, 0.2, 0.7]).expect("six weights");
        assert_eq!(soft.links_above(0.25), Links::from_iter([(1, 0), (2, 1)]));
        assert_eq!(soft.links_above(0.15), Links::from_iter([(0, 0), (1, 0), (2, 0), (1, 1), (2, 1)]));
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        let shape = SoftAlignment::new(2, 2, [0.5]).expect_err("one weight for four cells");
        assert_eq!(shape, SoftAlignmentError::Shape { n_targets: 2, n_sources: 2, n_weights: 1 });
        assert!(SoftAlignment::new(usize::MAX, 2, [0.5]).is_err());
        for weight in [-0.1, f64::NAN, f64::INFINITY] {
            let error = SoftAlignment::new(2, 2, [0.0, 1.0, weight, 0.0]).expect_err("no weight");
            assert!(error.to_string().contains("target token 1 and source token 0"), "{error}");
        }
        assert!(SoftAlignment::new(0, 3, [0.0; 0]).expect("no rows").argmax_links().is_empty());
        assert!(SoftAlignment::new(3, 0, [0.0; 0]).expect("no columns").argmax_links().is_empty());
    }

    proptest! {
        #[test]
        fn the_largest_weight_is_above_any_threshold_that_some_weight_of_its_row_is_above(soft in alignments(), threshold in 0.0..1.0) {
            let best = soft.argmax_links();
            for link in soft.links_above(threshold).iter() {
                prop_assert!(best.iter().any(|best| best.target == link.target && soft.links_above(threshold).contains(best)));
            }
        }
    }
}
