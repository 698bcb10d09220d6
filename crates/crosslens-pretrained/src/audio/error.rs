//! What can be wrong with a sound.

use std::path::PathBuf;

/// Why a sound cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    /// The system refuses.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file without a byte.
    #[error("`{path}` is empty: it has 0 bytes; copy or record it again")]
    NoBytes {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a sound, or one in a format that is not read.
    #[error(
        "`{path}` {found}; WAV, FLAC, MP3 and Ogg Vorbis are read, and others are converted by, for instance, `ffmpeg -i FILE sound.flac`"
    )]
    NotRead {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        found: String,
    },
    /// A sound whose beginning makes no sense.
    #[error("`{path}` is damaged: {reason}; WAV, FLAC, MP3 and Ogg Vorbis are read, so copy it again or convert it to one of these anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What its reader says.
        reason: String,
    },
    /// A container without a sound in it.
    #[error("`{path}` has no audio track; take a file with one of WAV, FLAC, MP3 or Ogg Vorbis")]
    NoTrack {
        /// The file.
        path: PathBuf,
    },
    /// A sound without a sample.
    #[error("`{path}` holds no sound: there is a header, but not one sample could be decoded; copy or record it again")]
    NoSamples {
        /// The file.
        path: PathBuf,
    },
    /// Samples that follow each other at a pace that no sound has.
    #[error("`{path}` says it has {found} samples a second; from {least} to {most} are read, so its header is wrong: write it anew")]
    Rate {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
    },
    /// No channel, or more than are read.
    #[error(
        "`{path}` says it has {found} channels; from 1 to {most} are read: mix it down, for instance with `ffmpeg -i FILE -ac 1 sound.flac`"
    )]
    Channels {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u16,
        /// The most.
        most: u16,
    },
    /// A sample that nothing can be computed from.
    #[error("`{path}` holds a sample of {value} at {at_secs:.3} s, which is no sound; write it anew with samples between -1 and 1")]
    NotASample {
        /// The file.
        path: PathBuf,
        /// The sample.
        value: f32,
        /// Where.
        at_secs: f64,
    },
}
