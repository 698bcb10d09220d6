use crate::Real;

/// Sums kept apart, so that the loop vectorises and the order never changes.
const PARTIAL_SUMS: usize = 8;
/// Values that are searched at a time.
const SEARCHED: usize = 32;

/// Turns a row of scores into weights, `w[k] = e^score[k] / Σ_j e^score[j]`; an empty row stays empty.
///
/// ```
/// let mut row = [0.0f64, 2f64.ln()];
/// crosslens_kernels::softmax(&mut row);
/// assert!((row[1] - 2.0 / 3.0).abs() < 1e-15);
/// ```
pub fn softmax<F: Real>(row: &mut [F]) {
    normalise(row);
}

/// `ln Σ_j e^row[j]`; afterwards `row` holds the softmax. The loss and its gradient in one pass.
pub fn log_sum_exp<F: Real>(row: &mut [F]) -> F {
    let (highest, sum) = normalise(row);
    F::of(sum.to_f64().ln()) + highest
}

/// Where the highest value of a row stands, the first among equals; NaN never wins, and where there is nothing else, there is no such place.
///
/// ```
/// assert_eq!(crosslens_kernels::place_of_highest(&[1.0, f32::NAN, 3.0, 3.0]), Some(2));
/// ```
pub fn place_of_highest<F: Real>(row: &[F]) -> Option<usize> {
    crate::vectorised(
        #[inline(always)]
        || {
            let highest = highest(row);
            let (blocks, rest) = row.as_chunks::<SEARCHED>();
            // Whole blocks are compared without a way out between, so that they fill registers.
            let number = blocks.iter().position(|block| block.iter().fold(false, |found, &value| found | (value == highest)));
            let (from, block) = number.map_or((row.len() - rest.len(), rest), |number| (number * SEARCHED, &blocks[number]));
            block.iter().position(|&value| value == highest).map(|place| from + place)
        },
    )
}

/// Replaces scores by weights; returns the highest score and `Σ_j e^(row[j] − highest)`.
fn normalise<F: Real>(row: &mut [F]) -> (F, F) {
    crate::vectorised(
        #[inline(always)]
        || {
            let highest = highest(row);
            let sum = exponentials(row, highest);
            let factor = F::ONE / sum;
            row.iter_mut().for_each(|weight| *weight *= factor);
            (highest, sum)
        },
    )
}

/// NaN never wins. The highest are kept apart like the sums: one after the other, each comparison would wait for the one before.
#[inline(always)]
fn highest<F: Real>(row: &[F]) -> F {
    let higher = |best: F, score: F| if score > best { score } else { best };
    let mut highest = [F::of(f64::NEG_INFINITY); PARTIAL_SUMS];
    let (blocks, rest) = row.as_chunks::<PARTIAL_SUMS>();
    for block in blocks {
        for (best, &score) in highest.iter_mut().zip(block) {
            *best = higher(*best, score);
        }
    }
    for (best, &score) in highest.iter_mut().zip(rest) {
        *best = higher(*best, score);
    }
    highest.into_iter().fold(F::of(f64::NEG_INFINITY), higher)
}

#[inline(always)]
fn exponentials<F: Real>(row: &mut [F], highest: F) -> F {
    let mut sums = [F::ZERO; PARTIAL_SUMS];
    let (blocks, rest) = row.as_chunks_mut::<PARTIAL_SUMS>();
    for block in blocks {
        for (sum, score) in sums.iter_mut().zip(block) {
            *score = (*score - highest).exp_fast();
            *sum += *score;
        }
    }
    for (sum, score) in sums.iter_mut().zip(rest) {
        *score = (*score - highest).exp_fast();
        *sum += *score;
    }
    sums.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn weights_sum_to_one_and_ignore_a_constant(scores in prop::collection::vec(-30.0f64..30.0, 1..40), shift in -50.0f64..50.0) {
            let mut weights = scores.clone();
            softmax(&mut weights);
            prop_assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            let mut shifted: Vec<f64> = scores.iter().map(|score| score + shift).collect();
            let sum = log_sum_exp(&mut shifted);
            prop_assert!(weights.iter().zip(&shifted).all(|(a, b)| (a - b).abs() < 1e-13));
            let expected = scores.iter().map(|score| score.exp()).sum::<f64>().ln() + shift;
            prop_assert!((sum - expected).abs() < 1e-12);
        }
    }

    /// Written out: one value after the other.
    fn first_highest(row: &[f32]) -> Option<usize> {
        let numbers = row.iter().enumerate().filter(|(_, value)| !value.is_nan());
        numbers
            .fold(None, |best: Option<(usize, f32)>, (place, &value)| match best {
                Some((_, highest)) if highest >= value => best,
                _ => Some((place, value)),
            })
            .map(|(place, _)| place)
    }

    proptest! {
        #[test]
        fn the_first_of_the_highest_is_found(values in prop::collection::vec(-3i8..4, 0..200), nan in prop::collection::vec(any::<bool>(), 200)) {
            let row: Vec<f32> = values.iter().zip(nan).map(|(&value, nan)| if nan { f32::NAN } else { f32::from(value) }).collect();
            prop_assert_eq!(place_of_highest(&row), first_highest(&row));
        }
    }

    #[test]
    fn a_row_without_numbers_has_no_highest_and_one_of_infinities_its_first() {
        assert_eq!(place_of_highest(&[f64::NAN; 40]), None);
        assert_eq!(place_of_highest::<f32>(&[]), None);
        assert_eq!(place_of_highest(&[f64::NAN, f64::NEG_INFINITY, f64::NEG_INFINITY]), Some(1));
    }

    #[test]
    fn one_nan_spoils_the_row() {
        let mut row = [0.0f32, f32::NAN, 1.0];
        softmax(&mut row);
        assert!(row.iter().all(|weight| weight.is_nan()));
    }
}
