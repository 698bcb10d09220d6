//! Windows that move as far as their user says.

use crosslens_pretrained::audio::{AudioError, Samples, WINDOW, Window, Windows};
use proptest::prelude::*;

use crate::fixtures::{Wav, on_disk};

/// Sample i of the sound is i, cut into pieces of these lengths.
fn counted(lengths: Vec<usize>) -> impl Iterator<Item = Vec<f32>> {
    lengths.into_iter().scan(0, |begun, length| {
        *begun += length;
        Some((*begun - length..*begun).map(|i| i as f32).collect())
    })
}

fn check(window: Window<'_>, offset: usize, n_samples: usize) {
    assert_eq!((window.offset, window.n_real, window.samples.len()), (offset as u64, (n_samples - offset).min(WINDOW), WINDOW));
    for (i, &sample) in window.samples.iter().enumerate() {
        assert_eq!(sample, if i < window.n_real { (offset + i) as f32 } else { 0.0 }, "sample {i} of the window at {offset}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// However the sound comes in pieces and however far each step goes, the window shows the sound from there on.
    #[test]
    fn windows_show_the_sound_where_they_are(
        lengths in proptest::collection::vec(0..200_000_usize, 0..8),
        steps in proptest::collection::vec(prop_oneof![0..3_usize, 0..600_000_usize], 0..6),
    ) {
        let n_samples: usize = lengths.iter().sum();
        let mut windows = Windows::over(counted(lengths));
        let mut offset = 0;
        for step in steps.into_iter().chain([n_samples]) {
            match windows.window().expect("samples") {
                Some(window) => check(window, offset, n_samples),
                None => prop_assert_eq!(offset, n_samples),
            }
            windows.advance(step).expect("samples");
            offset = (offset + step).min(n_samples);
            prop_assert_eq!(windows.offset(), offset as u64);
        }
        prop_assert_eq!(windows.window().expect("samples"), None);
    }
}

#[test]
fn fixed_steps_cover_the_sound_once() {
    let mut windows = Windows::over(counted(vec![16_000; 95]));
    let mut real = Vec::new();
    while let Some(window) = windows.window().expect("samples") {
        assert_eq!(window.offset_secs(), window.offset as f64 / 16_000.0);
        real.push(window.n_real);
        windows.advance(WINDOW).expect("samples");
    }
    assert_eq!(real, [480_000, 480_000, 480_000, 80_000]);
}

#[test]
fn a_file_tells_of_its_loss_through_the_windows() {
    let mut bytes = Wav::integer(16_000, 8).header(700_000);
    bytes.extend(vec![192; 600_000]);
    let file = on_disk("cut.wav", &bytes);
    let mut windows = Windows::over(crosslens_pretrained::audio::SoundFile::open(&file.path).expect("a sound"));
    let first = windows.window().expect("samples").expect("a window");
    assert!(first.samples.iter().all(|&sample| sample == 0.5));
    windows.advance(WINDOW).expect("samples");
    assert_eq!(windows.window().expect("samples").expect("a window").n_real, 120_000);
    assert!(windows.source().is_truncated());
}

/// A source that fails.
struct Failing;

impl Samples for Failing {
    fn next_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError> {
        Err(AudioError::NoSamples { path: "some.wav".into() })
    }
}

#[test]
fn errors_of_the_source_come_through() {
    let mut windows = Windows::over(Failing);
    assert!(windows.window().is_err());
    assert!(windows.advance(1).is_err());
}
