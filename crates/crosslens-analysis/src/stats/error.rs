//! What can be wrong with sums on disk.

use std::path::PathBuf;

use crate::RecordingError;

/// Why sums do not belong together, or not to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Two models.
    #[error("they are of two models, {left} and {right}")]
    Model {
        /// One hash.
        left: String,
        /// The other.
        right: String,
    },
    /// Other streams.
    #[error("they are of other streams, {left} and {right}")]
    Streams {
        /// The names on one side.
        left: String,
        /// Those on the other.
        right: String,
    },
    /// States of other sizes.
    #[error("the states of stream `{stream}` have {left} and {right} dimensions")]
    Dimensions {
        /// The stream.
        stream: String,
        /// Dimensions on one side.
        left: usize,
        /// Those on the other.
        right: usize,
    },
    /// States after other tokens.
    #[error("the states of stream `{stream}` have read the token of their own step in one, of the step before in the other")]
    Consumed {
        /// The stream.
        stream: String,
    },
    /// Other vocabularies.
    #[error("stream `{stream}` has {left} and {right} tokens")]
    Tokens {
        /// The stream.
        stream: String,
        /// Tokens on one side.
        left: u32,
        /// Those on the other.
        right: u32,
    },
    /// More states than can be counted.
    #[error("together stream `{stream}` has more than 2^53 states")]
    TooMany {
        /// The stream.
        stream: String,
    },
}

/// Why sums cannot be read, written or merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// The file, or an array in it, cannot be read or written.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// No sums.
    #[error("`{path}` holds no sums: {what}")]
    NotStats {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// Another version of the format.
    #[error("`{path}` has the schema `{found}`, this version reads `{known}`")]
    Schema {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What is read.
        known: &'static str,
    },
    /// Sums that contradict themselves.
    #[error("`{path}`: the sums of stream `{stream}` do not fit together: {what}")]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The stream.
        stream: String,
        /// What does not fit.
        what: String,
    },
    /// Files that do not belong together.
    #[error("`{left}` and `{right}` cannot be merged: {source}")]
    Mismatch {
        /// One file.
        left: PathBuf,
        /// The other.
        right: PathBuf,
        /// What differs.
        source: Mismatch,
    },
    /// Nothing to merge.
    #[error("there is no file to merge")]
    NoFile,
}
