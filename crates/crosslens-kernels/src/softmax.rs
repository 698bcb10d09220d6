use crate::Real;

/// Sums kept apart, so that the loop vectorises and the order never changes.
const PARTIAL_SUMS: usize = 8;

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

#[inline(always)]
fn highest<F: Real>(row: &[F]) -> F {
    let mut highest = F::of(f64::NEG_INFINITY);
    for &score in row {
        if score > highest {
            highest = score;
        }
    }
    highest
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

    #[test]
    fn one_nan_spoils_the_row() {
        let mut row = [0.0f32, f32::NAN, 1.0];
        softmax(&mut row);
        assert!(row.iter().all(|weight| weight.is_nan()));
    }
}
