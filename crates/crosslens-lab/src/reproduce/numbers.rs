//! Small statistics.

use crosslens_analysis::geometry::pearson;

/// The mean; 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The standard deviation with `n − 1`; 0 of fewer than two.
pub(super) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Pearson's correlation; 0 where one side never changes, no number where one has what is none.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    if a.iter().chain(b).any(|x| x.is_nan()) { f64::NAN } else { pearson(a, b).unwrap_or(0.0) }
}

/// Spearman's correlation: that of the ranks, equal values sharing theirs; no number where one side has what is none.
pub(super) fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    correlation(&ranks(a), &ranks(b))
}

/// The place of each in their order, from 0; what is no number has none.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |x: f64| values.iter().filter(|y| **y < x).count() as f64;
    let equal = |x: f64| values.iter().filter(|y| **y == x).count() as f64;
    values.iter().map(|&x| if x.is_nan() { x } else { below(x) + (equal(x) - 1.0) / 2.0 }).collect()
}

/// `exp(x) / Σ exp(x)`.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deviations of 1, 2, 6 from 3 are −2, −1, 3: their squares add up to 14, over 2 is 7.
    #[test]
    fn small_statistics_are_those_of_the_textbook() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((deviation(&[1.0, 2.0, 6.0]) - 7.0_f64.sqrt()).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[-2.0, -4.0, -6.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 2.0], &[5.0, 5.0]), 0.0);
        assert!((rank_correlation(&[1.0, 10.0, 100.0], &[2.0, 3.0, 4.0]) - 1.0).abs() < 1e-12);
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [1.5, 0.0, 1.5]);
        assert_eq!(softmax(&[0.0, 0.0]), [0.5, 0.5]);
    }

    /// A network without shares must not let a law hold that is about all of them.
    #[test]
    fn what_is_no_number_is_seen_in_every_correlation() {
        let rising = [1.0, 2.0, 3.0, 4.0];
        assert!((rank_correlation(&rising, &rising) - 1.0).abs() < 1e-12);
        for place in 0..4 {
            let mut holed = rising;
            holed[place] = f64::NAN;
            assert!(rank_correlation(&rising, &holed).is_nan() && rank_correlation(&holed, &rising).is_nan());
            assert!(correlation(&rising, &holed).is_nan() && correlation(&holed, &rising).is_nan());
        }
    }
}
