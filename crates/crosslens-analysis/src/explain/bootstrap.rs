//! Intervals by resampling sentences.

/// How often sentence `number` is drawn in resample `replicate`: a Poisson number of mean 1, the same wherever and in whatever order it is
/// asked for, so that resamples stream and merge.
pub(super) fn weight(seed: u64, number: u64, replicate: u64) -> f64 {
    let uniform = (mix(mix(mix(seed) ^ number) ^ replicate) >> 11) as f64 / (1u64 << 53) as f64;
    let (mut count, mut probability) = (0.0, (-1.0f64).exp());
    let mut below = probability;
    while uniform >= below && count < 20.0 {
        count += 1.0;
        probability /= count;
        below += probability;
    }
    count
}

/// The middle 95 % of some values.
pub(super) fn interval(values: &mut [f64]) -> [f64; 2] {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len().max(1) - 1) as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        match (values.get(low), values.get(high)) {
            (Some(a), Some(b)) => a + (b - a) * (place - low as f64),
            _ => f64::NAN,
        }
    };
    [at(0.025), at(0.975)]
}

/// Splitmix64's finaliser.
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Poisson variable of mean 1 has variance 1 and is 0 with probability 1/e; three errors of 20,000 draws.
    #[test]
    fn weights_are_poisson() {
        let n = 20_000;
        let weights: Vec<f64> = (0..n).map(|number| weight(7, number, number % 13)).collect();
        let mean = weights.iter().sum::<f64>() / n as f64;
        let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / n as f64;
        let zeros = weights.iter().filter(|&&w| w == 0.0).count() as f64 / n as f64;
        assert!(
            (mean - 1.0).abs() < 0.022 && (variance - 1.0).abs() < 0.06 && (zeros - (-1.0f64).exp()).abs() < 0.011,
            "{mean} {variance} {zeros}"
        );
    }

    #[test]
    fn an_interval_holds_the_middle() {
        let mut values: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        assert_eq!(interval(&mut values), [25.0, 975.0]);
    }
}
