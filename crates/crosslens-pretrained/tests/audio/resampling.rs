//! Samples at any pace become samples at 16 kHz, in amplitude, in phase, in length and at their time.

use crate::fixtures::{Wav, read_whole, tone};

const RATES: [u32; 9] = [8_000, 11_025, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 44_101];

/// Away from the ends, where the sound meets silence, every sample of a tone is what the formula says at 16 kHz.
#[test]
fn tones_keep_amplitude_and_phase() {
    for rate in RATES {
        for hertz in [50.0, 1_000.0, 3_500.0, 7_000.0] {
            if hertz > 0.45 * f64::from(rate) {
                continue;
            }
            let samples = read_whole(&Wav::float(rate).file(tone(rate, hertz, 0.8, 2 * rate as usize)));
            assert_eq!(samples.len(), 32_000);
            for (i, x) in tone(16_000, hertz, 0.8, 22_000).enumerate().skip(10_000) {
                assert!((f64::from(samples[i]) - x).abs() < 1e-3, "{hertz} Hz at {rate}: sample {i} is {} instead of {x}", samples[i]);
            }
        }
    }
}

/// A tone above 8 kHz cannot be told at 16 kHz; without a filter 9 kHz would be heard as 7 kHz.
#[test]
fn tones_too_high_vanish() {
    for rate in [22_050, 44_100, 48_000] {
        for hertz in [8_200.0, 9_000.0, 10_500.0] {
            let samples = read_whole(&Wav::float(rate).file(tone(rate, hertz, 0.8, 2 * rate as usize)));
            let loudest = samples[6_000..26_000].iter().fold(0.0_f32, |loudest, sample| loudest.max(sample.abs()));
            assert!(loudest < 1e-3, "{hertz} Hz at {rate}: {loudest}");
        }
    }
}

/// A sample is 1/16 ms.
#[test]
fn clicks_stay_at_their_time() {
    for rate in RATES {
        for at in [0.0, 0.01, 0.5, 0.7771, 1.49] {
            let place = (at * f64::from(rate)).round() as usize;
            let mut sound = vec![0.0; 3 * rate as usize / 2];
            sound[place] = 1.0;
            let samples = read_whole(&Wav::float(rate).file(sound));
            let loudest = (0..samples.len()).max_by(|&a, &b| samples[a].abs().total_cmp(&samples[b].abs())).expect("samples");
            let expected = place as f64 * 16_000.0 / f64::from(rate);
            assert!((loudest as f64 - expected).abs() <= 1.0, "{at} s at {rate}: sample {loudest} instead of {expected}");
        }
    }
}

#[test]
fn lengths_are_right_to_the_sample() {
    for rate in RATES {
        for n in [2, 7, 1_000, 1_023, 1_024, 1_025, 3_072, 6_143, 6_144, 33_333, 100_001] {
            let expected = (n as f64 * 16_000.0 / f64::from(rate)).round() as usize;
            if expected > 0 {
                assert_eq!(read_whole(&Wav::integer(rate, 8).file(vec![0.0; n])).len(), expected, "{n} samples at {rate}");
            }
        }
    }
}
