//! Codes for what has no tokens: frames of sound and patches of pictures, put into `k` groups of like rows (k-means), so that a part of a
//! state can be told by its code as it is told by a word.
//!
//! ```
//! use crosslens_analysis::codes::Codebook;
//! use crosslens_kernels::Threads;
//!
//! let mut builder = Codebook::builder(2, 2, 7)?;
//! builder.add(&[0.0, 0.1, 5.0, 5.0, 0.1, 0.0], |frame| ("clip 1", frame))?;
//! let codebook = builder.finish(&Threads::new(1).expect("no thread is started"))?;
//! let codes = codebook.codes(&[0.0, 0.0, 4.0, 6.0])?;
//! assert_ne!(codes[0], codes[1]);
//! assert_eq!(codebook.nearest(1)[codes[1] as usize][0].label, &("clip 1", 1));
//! # Ok::<(), crosslens_analysis::codes::CodesError>(())
//! ```

mod builder;
mod codebook;
mod distances;
mod error;
mod lloyd;
mod seeding;

pub use builder::{CodebookBuilder, SAMPLE_ROWS};
pub use codebook::{Codebook, Nearest};
pub use error::CodesError;

#[cfg(test)]
mod laws;
