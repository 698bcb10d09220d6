//! The triangles that gather frequencies as ears do.

use super::SAMPLE_RATE;

/// Below, the scale is linear; above, logarithmic.
const BEND_HZ: f64 = 1000.0;
const BEND_MEL: f64 = 15.0;
/// From 1000 Hz to 6400 Hz there are 27 mels.
const MELS_A_STEP: f64 = 27.0;
const STEP_RATIO: f64 = 6.4;

/// One triangle: a weight for each of a few frequencies in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    /// The first frequency's number.
    pub(super) first: usize,
    /// From there on; none where no frequency falls into the triangle.
    pub(super) weights: Vec<f64>,
}

/// Triangles over `n_bins` frequencies from 0 to 8000 Hz, equally spaced on Slaney's scale of mels and of equal area.
///
/// ```text
/// mel(f) = 3f/200                            below 1000 Hz
///        = 15 + 27·ln(f/1000)/ln(6.4)        above
/// c[0..n_mels+2]  equally spaced in mel from 0 to 8000 Hz
/// w[m,f] = 2/(c[m+2] − c[m]) · max(0, min((f − c[m])/(c[m+1] − c[m]), (c[m+2] − f)/(c[m+2] − c[m+1])))
/// ```
pub(super) fn mel_filters(n_mels: usize, n_bins: usize) -> Vec<Filter> {
    let highest = f64::from(SAMPLE_RATE) / 2.0;
    let mel_step = mel_of_hertz(highest) / (n_mels + 1) as f64;
    let corner = |number: usize| hertz_of_mel(number as f64 * mel_step);
    let hertz = |bin: usize| highest * bin as f64 / (n_bins - 1) as f64;
    let filters = (0..n_mels).map(|mel| {
        let [left, top, right] = [corner(mel), corner(mel + 1), corner(mel + 2)];
        let height = 2.0 / (right - left);
        let weight = |bin| height * ((hertz(bin) - left) / (top - left)).min((right - hertz(bin)) / (right - top));
        let first = (0..n_bins).find(|&bin| weight(bin) > 0.0).unwrap_or(0);
        Filter { first, weights: (first..n_bins).map(weight).take_while(|&weight| weight > 0.0).collect() }
    });
    filters.collect()
}

fn mel_of_hertz(hertz: f64) -> f64 {
    if hertz < BEND_HZ { hertz * BEND_MEL / BEND_HZ } else { BEND_MEL + MELS_A_STEP * (hertz / BEND_HZ).ln() / STEP_RATIO.ln() }
}

fn hertz_of_mel(mel: f64) -> f64 {
    if mel < BEND_MEL { mel * BEND_HZ / BEND_MEL } else { BEND_HZ * ((mel - BEND_MEL) * STEP_RATIO.ln() / MELS_A_STEP).exp() }
}

#[cfg(test)]
mod tests {
    use super::{hertz_of_mel, mel_filters, mel_of_hertz};

    /// 440 Hz · 3/200 = 6.6; 6400 Hz is 27 mels above the 15 of 1000 Hz.
    #[test]
    fn mels_are_linear_and_then_logarithmic() {
        for (hertz, mel) in [(0.0, 0.0), (440.0, 6.6), (1000.0, 15.0), (6400.0, 42.0)] {
            assert!((mel_of_hertz(hertz) - mel).abs() < 1e-12, "{hertz} Hz");
            assert!((hertz_of_mel(mel) - hertz).abs() < 1e-9, "{mel} mels");
        }
    }

    /// In 40 Hz steps a triangle of area 1 adds up to about 1/40; narrow ones, which catch one or two frequencies, are off by more.
    #[test]
    fn wide_triangles_have_the_same_area() {
        for filter in &mel_filters(80, 201)[60..] {
            let sum: f64 = filter.weights.iter().sum();
            assert!((sum * 40.0 - 1.0).abs() < 0.05, "{sum}");
        }
    }

    #[test]
    fn a_frequency_enters_two_triangles_at_most() {
        for n_mels in [1, 80, 128] {
            let mut n_entered = [0; 201];
            for filter in mel_filters(n_mels, 201) {
                (filter.first..filter.first + filter.weights.len()).for_each(|bin| n_entered[bin] += 1);
            }
            assert!(n_entered.iter().all(|&n| n <= 2));
        }
    }
}
