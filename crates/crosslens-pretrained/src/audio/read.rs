//! Files of sound, read piece by piece.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decode::{Decoder, Losses};
use super::error::AudioError;
use super::resample::Resampler;
use super::{SAMPLE_RATE, kind, ogg};

/// A piece has at least so many samples, unless it is the last.
const LEAST_CHUNK: usize = SAMPLE_RATE as usize;

/// A sound in a file, as mono samples at 16 kHz.
///
/// WAV (8 to 32 bits, and floats), FLAC, MP3 and Ogg Vorbis are read. Channels are mixed by their mean. A sound of `n` samples at `rate`
/// becomes one of `round(n · 16000 / rate)`, each at its time. Memory does not depend on the length.
///
/// ```no_run
/// # fn main() -> Result<(), crosslens_pretrained::audio::AudioError> {
/// let mut sound = crosslens_pretrained::audio::SoundFile::open("talk.mp3")?;
/// let mut n_samples = 0;
/// while let Some(samples) = sound.next_chunk()? {
///     n_samples += samples.len();
/// }
/// if let Some(warning) = sound.warning() {
///     eprintln!("{warning}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct SoundFile {
    path: PathBuf,
    decoder: Decoder,
    /// None once the sound has ended.
    resampler: Option<Resampler>,
    /// Decoded while opening, to see that there is sound.
    first: Option<Vec<f32>>,
    n_samples: u64,
}

impl SoundFile {
    /// Opens a file and decodes its first second, so that what is no sound is refused here.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AudioError> {
        let path = path.as_ref();
        let failed = |source| AudioError::Read { path: path.to_owned(), source };
        // Before it is opened: a pipe would wait for ever.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(std::io::Error::other("it is not a file")));
        }
        let mut file = File::open(path).map_err(failed)?;
        kind::check(&mut file, path)?;
        let is_cut = ogg::is_cut(&mut file).map_err(failed)?;
        let decoder = Decoder::open(file, path, is_cut)?;
        let mut sound = Self { path: path.to_owned(), resampler: Some(Resampler::new(decoder.rate())), decoder, first: None, n_samples: 0 };
        sound.first = sound.decode_chunk()?;
        if sound.first.is_none() {
            return Err(AudioError::NoSamples { path: path.to_owned() });
        }
        Ok(sound)
    }

    /// The next samples, about a second of them, never none; `None` at the end. After an error there is nothing more.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError> {
        let chunk = match self.first.take() {
            Some(first) => Some(first),
            None => self.decode_chunk()?,
        };
        self.n_samples += chunk.as_ref().map_or(0, |samples| samples.len() as u64);
        Ok(chunk)
    }

    /// How long the sound is, if its header says so. Only reading it shows whether that is true.
    pub fn duration(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.decoder.promised_secs()?).ok()
    }

    /// Whether the sound ended before its header said it would, or before its last packet. Known once it was read to its end.
    pub fn is_truncated(&self) -> bool {
        self.resampler.is_none() && self.decoder.losses().truncated
    }

    /// What was missing in the file, in words for its user. Complete once it was read to its end.
    pub fn warning(&self) -> Option<String> {
        let &Losses { truncated, n_damaged } = self.decoder.losses();
        let mut parts = Vec::new();
        if truncated && self.resampler.is_none() {
            let there = self.n_samples as f64 / f64::from(SAMPLE_RATE);
            let promised = self.decoder.promised_secs().filter(|&promised| promised > there);
            parts.push(match promised {
                Some(promised) => format!("breaks off at {there:.1} s of the {promised:.1} s that its header promises"),
                None => format!("breaks off at {there:.1} s"),
            });
        }
        match n_damaged {
            0 => {}
            1 => parts.push("has a damaged stretch, which became silence".into()),
            n => parts.push(format!("has {n} damaged stretches, which became silence")),
        }
        (!parts.is_empty()).then(|| format!("`{}` {}", self.path.display(), parts.join(" and ")))
    }

    fn decode_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError> {
        let mut chunk = Vec::with_capacity(LEAST_CHUNK);
        while let Some(mut resampler) = self.resampler.take() {
            // On an error the resampler is gone, and with it the rest of the sound.
            if let Some(stretch) = self.decoder.next()? {
                if stretch.rate != resampler.rate() && !stretch.samples.is_empty() {
                    std::mem::replace(&mut resampler, Resampler::new(stretch.rate)).finish(&mut chunk);
                }
                resampler.push(&stretch.samples, &mut chunk);
                self.resampler = Some(resampler);
            } else {
                resampler.finish(&mut chunk);
            }
            if chunk.len() >= LEAST_CHUNK {
                break;
            }
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}
