//! Memory does not depend on the length of a sound.

use std::io::Write;
use std::path::Path;

use crosslens_pretrained::audio::{LogMel, SoundFile, WINDOW, Window, Windows};
use crosslens_pretrained::speech::{Heard, Hears, Passages, SpeechError, TimestampRule};

use crate::allocation::most_held;
use crate::fixtures::{Wav, golden_bytes, on_disk};

/// 8-bit samples of the lowest value, which a file system that knows of holes does not even store.
fn write_hours(path: &Path, rate: u32, seconds: u32) {
    let mut file = std::fs::File::create(path).expect("a file");
    let header = Wav::integer(rate, 8).header(rate * seconds);
    file.write_all(&header).expect("room");
    file.set_len(u64::from(rate * seconds) + header.len() as u64).expect("room");
}

/// Seconds heard through windows, and the most memory meanwhile.
fn hear(path: &Path) -> (f64, usize) {
    most_held(|| {
        let mut windows = Windows::over(SoundFile::open(path).expect("a sound"));
        let mut n_heard = 0;
        while let Some(window) = windows.window().expect("samples") {
            n_heard += window.n_real;
            windows.advance(WINDOW).expect("samples");
        }
        n_heard as f64 / 16_000.0
    })
}

#[test]
fn half_an_hour_takes_no_more_memory_than_a_minute_and_a_half() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.wav");
    let [short, long] = [90, 1_800].map(|seconds| {
        write_hours(&path, 8_000, seconds);
        let (heard, most) = hear(&path);
        assert_eq!(heard, f64::from(seconds));
        most
    });
    // Two windows of floats take 3.8 MB.
    assert!(long < 6_000_000, "{long} bytes");
    assert!(long <= short + 100_000, "{long} bytes instead of {short}");
}

/// 33,000 samples at 44.1 kHz, again and again: ten minutes. Of MP3s what their encoder put around each is heard too.
#[test]
fn long_mp3s_and_oggs_take_no_more_memory_than_short_ones() {
    for name in ["tone.mp3", "tone.ogg"] {
        let one = golden_bytes(name);
        let [short, long] = [80, 800].map(|n_copies| {
            let file = on_disk(name, &one.repeat(n_copies));
            let (heard, most) = hear(&file.path);
            let each = heard / n_copies as f64;
            assert!((0.748..0.82).contains(&each), "{name}: {heard} s of {n_copies} copies");
            most
        });
        assert!(long < 10_000_000, "{name}: {long} bytes");
        assert!(long <= short + 100_000, "{name}: {long} bytes instead of {short}");
    }
}

/// Hears nothing, and counts how much of it there was.
#[derive(Default)]
struct Deaf {
    n_windows: usize,
    n_samples: u64,
}

impl Hears for Deaf {
    fn hear(&mut self, window: Window<'_>) -> Result<Heard, SpeechError> {
        assert_eq!(window.offset, self.n_samples, "windows follow each other");
        self.n_windows += 1;
        self.n_samples += window.n_real as u64;
        Ok(Heard::default())
    }
}

/// Decoded and cut into windows as for a model, with one that does nothing in its place. At 16 kHz, where nothing is resampled: that is
/// most of the time, and its memory is measured above.
#[test]
fn ten_hours_are_listened_to_in_bounded_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.wav");
    write_hours(&path, 16_000, 36_000);
    let mut deaf = Deaf::default();
    let timestamps = TimestampRule { first: 2, end: 0, latest_first: None };
    let (heard_secs, most) = most_held(|| {
        let mut passages = Passages::over(SoundFile::open(&path).expect("a sound"), &mut deaf, Some(timestamps));
        for passage in passages.by_ref() {
            assert!(passage.expect("samples").segments.is_empty());
        }
        passages.heard_secs()
    });
    assert_eq!((heard_secs, deaf.n_windows, deaf.n_samples), (36_000.0, 1_200, 576_000_000));
    // A window of floats takes 1.9 MB; what is read after it and room to grow as much again.
    assert!(most < 6_000_000, "{most} bytes");
}

/// The spectra of a window are 3000 frames of 80; besides there is little.
#[test]
fn spectra_take_little_more_than_their_size() {
    let mel = LogMel::read(Path::new("/nowhere")).expect("defaults");
    let samples = vec![0.1; WINDOW];
    let (spectra, most) = most_held(|| mel.of(&samples));
    assert!(most < spectra.len() * 4 + 100_000, "{most} bytes");
}
