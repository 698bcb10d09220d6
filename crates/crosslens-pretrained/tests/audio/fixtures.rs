//! Sounds by formula, and WAVs written byte by byte.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use crosslens_pretrained::audio::{AudioError, SoundFile};
use tempfile::TempDir;

/// How a WAV holds its samples.
#[derive(Clone, Copy)]
pub(crate) struct Wav {
    pub(crate) rate: u32,
    pub(crate) n_channels: u16,
    pub(crate) bits: u16,
    /// Whether samples are floating-point numbers.
    pub(crate) float: bool,
}

impl Wav {
    /// One channel of 32-bit floats, which lose nothing.
    pub(crate) fn float(rate: u32) -> Self {
        Self { rate, n_channels: 1, bits: 32, float: true }
    }

    /// One channel of integers.
    pub(crate) fn integer(rate: u32, bits: u16) -> Self {
        Self { rate, n_channels: 1, bits, float: false }
    }

    /// The header of a file whose samples take so many bytes.
    pub(crate) fn header(self, n_bytes: u32) -> Vec<u8> {
        let frame = self.n_channels.wrapping_mul(self.bits / 8);
        let mut bytes = b"RIFF".to_vec();
        bytes.extend(n_bytes.saturating_add(36).to_le_bytes());
        bytes.extend(b"WAVEfmt ");
        bytes.extend(16_u32.to_le_bytes());
        bytes.extend(if self.float { 3_u16 } else { 1 }.to_le_bytes());
        bytes.extend(self.n_channels.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend(self.rate.wrapping_mul(u32::from(frame)).to_le_bytes());
        bytes.extend(frame.to_le_bytes());
        bytes.extend(self.bits.to_le_bytes());
        bytes.extend(b"data");
        bytes.extend(n_bytes.to_le_bytes());
        bytes
    }

    /// A file of samples `[frame, channel]` between −1 and 1.
    pub(crate) fn file(self, samples: impl IntoIterator<Item = f64>) -> Vec<u8> {
        let data: Vec<u8> = samples.into_iter().flat_map(|sample| self.sample(sample)).collect();
        let mut bytes = self.header(data.len() as u32);
        bytes.extend(data);
        bytes
    }

    fn sample(self, sample: f64) -> Vec<u8> {
        let largest = f64::from(self.bits - 1).exp2() - 1.0;
        let integer = (sample * largest).round() as i64;
        match (self.float, self.bits) {
            (true, 32) => (sample as f32).to_le_bytes().to_vec(),
            (true, _) => sample.to_le_bytes().to_vec(),
            (false, 8) => vec![(integer + 128) as u8],
            (false, bits) => integer.to_le_bytes()[..usize::from(bits / 8)].to_vec(),
        }
    }
}

/// `amplitude · sin(2π·hertz·i/rate)` for `i` below `n`.
pub(crate) fn tone(rate: u32, hertz: f64, amplitude: f64, n: usize) -> impl Iterator<Item = f64> + Clone {
    (0..n).map(move |i| amplitude * (TAU * hertz * i as f64 / f64::from(rate)).sin())
}

/// The amplitude of a tone in samples at 16 kHz, and the root mean square of what is left without it.
pub(crate) fn heard(samples: &[f32], hertz: f64) -> (f64, f64) {
    let waves = |i: usize| (TAU * hertz * i as f64 / 16_000.0).sin_cos();
    let n = samples.len() as f64;
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (i, &sample) in samples.iter().enumerate() {
        let (s, c) = waves(i);
        sine += 2.0 * f64::from(sample) * s / n;
        cosine += 2.0 * f64::from(sample) * c / n;
    }
    let rest = samples.iter().enumerate().map(|(i, &sample)| {
        let (s, c) = waves(i);
        (f64::from(sample) - sine * s - cosine * c).powi(2)
    });
    (sine.hypot(cosine), (rest.sum::<f64>() / n).sqrt())
}

/// A file that lives as long as its folder.
pub(crate) struct OnDisk {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

pub(crate) fn on_disk(name: &str, bytes: &[u8]) -> OnDisk {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    OnDisk { path, _folder: folder }
}

/// A file that was made by another program.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/audio").join(name)
}

pub(crate) fn golden_bytes(name: &str) -> Vec<u8> {
    std::fs::read(golden(name)).expect("golden sounds are committed")
}

/// All samples of a file, and what was said of it afterwards.
pub(crate) struct Read {
    pub(crate) samples: Vec<f32>,
    pub(crate) truncated: bool,
    pub(crate) warning: Option<String>,
}

pub(crate) fn read(path: &Path) -> Result<Read, AudioError> {
    let mut sound = SoundFile::open(path)?;
    let mut samples = Vec::new();
    while let Some(chunk) = sound.next_chunk()? {
        assert!(!chunk.is_empty(), "a piece has samples");
        samples.extend(chunk);
    }
    Ok(Read { samples, truncated: sound.is_truncated(), warning: sound.warning() })
}

/// All samples of a file that is whole.
pub(crate) fn read_whole(bytes: &[u8]) -> Vec<f32> {
    let file = on_disk("sound.wav", bytes);
    let Read { samples, truncated, warning } = read(&file.path).expect("a sound");
    assert!(!truncated && warning.is_none(), "{warning:?}");
    samples
}

/// Why a file is refused, with every cause.
pub(crate) fn refusal(name: &str, bytes: &[u8]) -> String {
    let file = on_disk(name, bytes);
    let error = read(&file.path).err().expect("not to be read");
    let message = error.to_string();
    assert!(message.contains(&file.path.display().to_string()), "no file is named in: {message}");
    message.replace(&file.path.display().to_string(), name)
}
