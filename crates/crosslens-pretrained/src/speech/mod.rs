//! Speech, written down: Whisper's prompts, timestamps and windows, and the times of words by its attention.
//!
//! ```text
//! samples ──► windows ──► tokens ──► segments ──► words
//! audio       Passages    Listener   by timestamps  by alignment heads
//! ```
//! [`Speech::open`] takes a folder; [`Speech::listen`] walks over a sound of any length, holding one window.
//!
//! ```no_run
//! use crosslens_pretrained::audio::SoundFile;
//! use crosslens_pretrained::speech::{Listening, Speech};
//!
//! let speech = Speech::open("whisper-tiny".as_ref())?;
//! for passage in speech.listen(SoundFile::open("talk.mp3")?, &Listening::default())? {
//!     for segment in passage?.segments {
//!         let segment = speech.segment(&segment, None)?;
//!         println!("{:.2} {}", segment.start, segment.text);
//!     }
//! }
//! # Ok::<(), crosslens_pretrained::speech::SpeechError>(())
//! ```

mod error;
mod heads;
mod joining;
mod passages;
mod pieces;
mod segments;
mod spoken;
mod timestamps;
mod tokens;
mod transcribe;

pub use error::SpeechError;
pub use heads::{AlignmentHeads, row_times};
pub use passages::{Passage, Passages};
pub use spoken::{Heard, Hears, Spoken, SpokenSegment};
pub use timestamps::{STEP_SECS, TimestampRule};
pub use tokens::{SpeechTokens, Task};
pub use transcribe::{Listener, Listening, Speech};
