//! Spectra against transformers: `tests/golden/make_audio.py` wrote down what WhisperFeatureExtractor makes of these sounds.

use std::f64::consts::TAU;

use crosslens_pretrained::audio::{LogMel, WINDOW, Windows};
use safetensors::SafeTensors;

use crate::fixtures::golden_bytes;

/// The extractor computes in single precision and is off its own double precision by up to 5e-5.
const TOLERANCE: f32 = 1e-4;

fn mel(n_mels: usize) -> LogMel {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("preprocessor_config.json"), format!(r#"{{"feature_size": {n_mels}}}"#)).expect("a file");
    LogMel::read(folder.path()).expect("a configuration that makes sense")
}

fn seconds(n_samples: usize) -> impl Iterator<Item = f64> {
    (0..n_samples).map(|i| i as f64 / 16_000.0)
}

/// Uniform in [-0.3, 0.3): a linear congruence modulo 2^64, its upper 24 bits.
fn noise(n_samples: usize) -> impl Iterator<Item = f64> {
    let next = |state: &mut u64, _| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(((*state >> 40) as f64 / 16_777_216.0 - 0.5) * 0.6)
    };
    (0..n_samples).scan(7301, next)
}

fn sound(name: &str) -> Vec<f32> {
    let samples: Vec<f64> = match name {
        "sweep" => seconds(192_000).map(|t| 0.6 * (TAU * (50.0 + (7500.0 - 50.0) / 24.0 * t) * t).sin()).collect(),
        "noise" => noise(496_000).collect(),
        "silence" => vec![0.0; 48_000],
        "square" => seconds(80_048).map(|t| (3.0 * (TAU * 220.0 * t).sin()).clamp(-1.0, 1.0)).collect(),
        "moment" => seconds(320_000).map(|t| if (t - 9.0).abs() < 0.25 { 0.9 } else { 2e-5 } * (TAU * 440.0 * t).sin()).collect(),
        other => panic!("no sound {other}"),
    };
    samples.into_iter().map(|sample| sample as f32).collect()
}

#[test]
fn spectra_are_those_of_transformers() {
    let bytes = golden_bytes("mel.safetensors");
    let golden = SafeTensors::deserialize(&bytes).expect("golden values are whole");
    let frames = golden.tensor("frames").expect("frames");
    let frames: Vec<usize> = frames.data().as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as usize).collect();
    for name in ["sweep", "noise", "silence", "square", "moment"] {
        let mut windows = Windows::over(std::iter::once(sound(name)));
        let window = windows.window().expect("samples").expect("a window").samples;
        for n_mels in [80, 128] {
            let spectra = mel(n_mels).of(window);
            assert_eq!(spectra.len(), 3000 * n_mels);
            let expected = golden.tensor(&format!("{name}.{n_mels}")).expect("a sound");
            assert_eq!(expected.shape(), [frames.len(), n_mels]);
            let expected = expected.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            let found = frames.iter().flat_map(|frame| &spectra[frame * n_mels..][..n_mels]);
            let off = found.zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
            assert!(off < TOLERANCE, "{name} in {n_mels} mels is off by {off}");
        }
    }
}

/// A frame of zeros is not transformed; one that is all but zero is, and gives the same.
#[test]
fn silence_that_is_passed_over_is_exact() {
    let mel = mel(80);
    let mut samples = vec![0.0; WINDOW];
    samples[..48_000].copy_from_slice(&sound("noise")[..48_000]);
    let passed_over = mel.of(&samples);
    samples[48_000..].fill(1e-30);
    assert_eq!(mel.of(&samples), passed_over);
}
