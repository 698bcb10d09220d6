//! When a word was said: from attention over frames of sound to times, and transcripts as files.
//!
//! Rows of alignment heads become the first frame of each token ([`token_times`]), tokens become [`TimedWord`]s ([`timed_words`]), words
//! and sentences a [`Transcript`], and that a file of any [`Format`]. Nothing here knows a model.
//!
//! ```
//! use crosslens_analysis::timing::{AttentionShape, Grouping, TokenTiming, group_pieces, timed_words, token_times};
//!
//! // Two heads look at frames 0–3 for the first token, at 4–7 for the second and at 8 and 9 for the end.
//! let head: Vec<f32> = (0..30).map(|at| if [0..4, 4..8, 8..10][at / 10].contains(&(at % 10)) { 0.25 } else { 0.01 }).collect();
//! let shape = AttentionShape { n_tokens: 3, n_frames: 10, n_real: 10 };
//! let times = token_times(&[&head, &head], shape, &TokenTiming { median_width: 1, ..TokenTiming::default() })?;
//! assert_eq!(times.first_frames, [0, 4, 8]);
//!
//! let grouped = group_pieces(&[Some(" good"), Some(" day"), None], Grouping::Spaces);
//! let words = timed_words(&grouped, &[-0.1, -0.3, 0.0], &times.starts(), 0.2)?;
//! assert_eq!((words[1].text.as_str(), words[1].start, words[1].end), ("day", 0.08, 0.16));
//! # Ok::<(), crosslens_analysis::timing::TimingError>(())
//! ```

mod error;
mod formats;
mod median;
mod subtitles;
mod tokens;
mod transcript;
mod words;

pub use error::{TimingError, WriteError};
pub use formats::{Cues, Format, UnknownFormat};
pub use tokens::{AttentionShape, TokenTimes, TokenTiming, token_times};
pub use transcript::{Segment, TimedWord, Transcript};
pub use words::{Grouped, Grouping, group_pieces, timed_words};

#[cfg(test)]
mod format_laws;
