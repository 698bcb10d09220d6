//! Sound: files become samples, samples become windows of 30 seconds, windows become the spectra that Whisper reads.
//!
//! ```text
//! SoundFile ──► Windows ──► LogMel
//! any file      480,000      [3000, n_mels]
//! ```
//! Everything is mono at 16 kHz from [`SoundFile`] on, and passes in pieces: hours of sound take no more memory than a minute.

mod decode;
mod error;
mod filters;
mod kind;
mod mel;
mod ogg;
mod read;
mod resample;
mod windows;

pub use error::AudioError;
pub use mel::LogMel;
pub use read::SoundFile;
pub use windows::{Samples, Window, Windows};

/// Samples a second, everywhere behind [`SoundFile`].
pub const SAMPLE_RATE: u32 = 16_000;
/// Samples from one frame of a spectrum to the next: 10 ms.
pub const HOP: usize = 160;
/// Samples of the 30 seconds that a model hears at once.
pub const WINDOW: usize = 480_000;
