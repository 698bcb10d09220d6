//! What can go wrong with a picture.

use std::error::Error;
use std::path::PathBuf;

/// Why a picture cannot be read or prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The system refuses.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// More bytes than a picture within the other limits needs.
    #[error("`{name}` has more than {limit} bytes, the most a picture may have here; save it smaller or in a better compressed format")]
    FileTooLarge {
        /// The file.
        name: String,
        /// The largest that is read.
        limit: u64,
    },
    /// Bytes of another kind.
    #[error("`{name}` {what}; PNG, JPEG and WebP pictures are read: save it as one of them")]
    NotAPicture {
        /// The file.
        name: String,
        /// What it is instead.
        what: String,
    },
    /// A picture without a pixel.
    #[error("`{name}` is {width} × {height} pixels, which is nothing to look at; save it anew")]
    Empty {
        /// The file.
        name: String,
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
    },
    /// More pixels than are read, found out before memory is taken for them.
    #[error(
        "`{name}` is {width} × {height} pixels; at most {side} on a side, {pixels} in all and {bytes} bytes of them are read: make it smaller"
    )]
    TooLarge {
        /// The file.
        name: String,
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
        /// The longest side that is read.
        side: u32,
        /// The most pixels that are read.
        pixels: u64,
        /// The most memory the pixels may take.
        bytes: u64,
    },
    /// The file ends before the picture does.
    #[error("`{name}` ends before its picture does; copy it anew from where it comes from")]
    Truncated {
        /// The file.
        name: String,
    },
    /// The file begins as a picture and does not go on as one.
    #[error("`{name}` is a damaged picture, or of a rare kind; copy it anew, or save it as an 8-bit PNG, JPEG or WebP")]
    Damaged {
        /// The file.
        name: String,
        /// What the decoder says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What a model would be shown is too large.
    #[error("a picture of {width} × {height} pixels becomes {seen_width} × {seen_height} for this model, more than {limit} in all; cut it")]
    SeenTooLarge {
        /// Pixels from left to right.
        width: usize,
        /// Pixels from top to bottom.
        height: usize,
        /// The same after resizing.
        seen_width: usize,
        /// The same after resizing.
        seen_height: usize,
        /// The most pixels a model is shown.
        limit: usize,
    },
}
