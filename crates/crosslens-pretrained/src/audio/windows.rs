//! The stretches of 30 seconds that a model hears, one after the other.

use super::error::AudioError;
use super::read::SoundFile;
use super::{SAMPLE_RATE, WINDOW};

/// Where samples come from, piece by piece.
pub trait Samples {
    /// The next samples at 16 kHz, `None` at the end.
    fn next_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError>;
}

impl Samples for SoundFile {
    fn next_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError> {
        SoundFile::next_chunk(self)
    }
}

impl<I: Iterator<Item = Vec<f32>>> Samples for I {
    fn next_chunk(&mut self) -> Result<Option<Vec<f32>>, AudioError> {
        Ok(self.next())
    }
}

/// 30 seconds of a sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window<'a> {
    /// `[480000]`; after the end of the sound there is silence.
    pub samples: &'a [f32],
    /// How many of them are sound: from 1 to 480,000.
    pub n_real: usize,
    /// Samples of the sound before the first of these.
    pub offset: u64,
}

impl Window<'_> {
    /// Seconds of the sound before this window.
    pub fn offset_secs(&self) -> f64 {
        self.offset as f64 / f64::from(SAMPLE_RATE)
    }
}

/// A window that moves forward over a sound as far as its user says, who may have understood less of it than 30 seconds.
///
/// Holds one window and the piece after it.
///
/// ```
/// # use crosslens_pretrained::audio::Windows;
/// let mut windows = Windows::over(std::iter::once(vec![0.5; 500_000]));
/// let first = windows.window()?.expect("there is sound");
/// assert_eq!((first.offset, first.n_real), (0, 480_000));
/// windows.advance(470_000)?;
/// let second = windows.window()?.expect("there is more");
/// assert_eq!((second.offset, second.n_real, second.samples.len()), (470_000, 30_000, 480_000));
/// windows.advance(30_000)?;
/// assert_eq!(windows.window()?, None);
/// # Ok::<(), crosslens_pretrained::audio::AudioError>(())
/// ```
pub struct Windows<S> {
    source: S,
    /// The samples from `offset` on that were read, and silence behind them after the end.
    held: Vec<f32>,
    /// How many of `held` are sound.
    n_real: usize,
    offset: u64,
    ended: bool,
}

impl<S: Samples> Windows<S> {
    /// Starts at the beginning of a sound.
    pub fn over(source: S) -> Self {
        Self { source, held: Vec::new(), n_real: 0, offset: 0, ended: false }
    }

    /// The window at this place; `None` where the sound has ended.
    pub fn window(&mut self) -> Result<Option<Window<'_>>, AudioError> {
        while self.n_real < WINDOW && self.read()? {}
        if self.n_real == 0 {
            return Ok(None);
        }
        if self.held.len() < WINDOW {
            self.held.resize(WINDOW, 0.0);
        }
        Ok(Some(Window { samples: &self.held[..WINDOW], n_real: self.n_real.min(WINDOW), offset: self.offset }))
    }

    /// Moves forward by so many samples, at most to the end of the sound.
    pub fn advance(&mut self, n_samples: usize) -> Result<(), AudioError> {
        let mut left = n_samples;
        loop {
            let n_passed = left.min(self.n_real);
            self.held.drain(..n_passed);
            self.n_real -= n_passed;
            self.offset += n_passed as u64;
            left -= n_passed;
            if left == 0 || !self.read()? {
                return Ok(());
            }
        }
    }

    /// Samples of the sound before this place.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the samples come from, to ask for what it noticed.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads one piece; false at the end.
    fn read(&mut self) -> Result<bool, AudioError> {
        if self.ended {
            return Ok(false);
        }
        let Some(chunk) = self.source.next_chunk()? else {
            self.ended = true;
            return Ok(false);
        };
        self.held.extend_from_slice(&chunk);
        self.n_real += chunk.len();
        Ok(true)
    }
}
