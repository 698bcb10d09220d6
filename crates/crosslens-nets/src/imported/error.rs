use std::path::PathBuf;

use crosslens_analysis::RecordingError;

/// Why a model of another program cannot be opened. Every variant names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A mapping that cannot be read.
    #[error("cannot read `{path}`")]
    Io {
        /// The mapping.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A mapping that makes no sense.
    #[error("`{path}`: {what}")]
    Mapping {
        /// The mapping.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Weights that are no whole safetensors file, or of another type.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// A tensor that the mapping names.
    #[error("`{path}` has no tensor `{tensor}`, of which the mapping makes `{made}`")]
    Missing {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is made of it.
        made: String,
    },
    /// A tensor that the mapping does not name.
    #[error("`{path}` has a tensor `{tensor}`, which the mapping neither uses nor ignores")]
    Unmapped {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A tensor that does not fit.
    #[error("`{path}`: `{tensor}` gives `{made}` the shape {found:?}, {expected:?} was expected")]
    Shape {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is made of it.
        made: &'static str,
        /// Its shape, that of its rows where only some are taken.
        found: Vec<u64>,
        /// The shape that fits the other tensors.
        expected: Vec<usize>,
    },
    /// A tensor without the axes or the rows that are asked for.
    #[error("`{path}`: `{tensor}` has the shape {found:?}, of which `{made}` cannot be made: {what}")]
    Rows {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What should be made of it.
        made: String,
        /// Its shape.
        found: Vec<u64>,
        /// What is in the way.
        what: String,
    },
    /// A weight that is no number.
    #[error("`{path}`: `{tensor}` holds a number that is not finite")]
    NotFinite {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// Heads that do not share the dimensions evenly.
    #[error("`{path}`: `{tensor}` gives `{made}` {width} rows, which {heads} heads cannot share")]
    Heads {
        /// The weights.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is made of it.
        made: &'static str,
        /// Dimensions of all heads together.
        width: usize,
        /// How many heads the mapping says there are.
        heads: usize,
    },
    /// Metadata that is not there or cannot be used.
    #[error("`{path}`: its metadata `{key}` {what}")]
    Metadata {
        /// The weights.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A table of words that is none.
    #[error("`{path}`: the words of the {side} {what}")]
    Table {
        /// The weights.
        path: PathBuf,
        /// Source or target.
        side: &'static str,
        /// What is wrong.
        what: String,
    },
    /// More numbers than are held.
    #[error("`{path}` is refused: the network would hold {numbers} numbers, at most {most} are held")]
    TooLarge {
        /// The weights.
        path: PathBuf,
        /// Weights, and the words' part of the gates.
        numbers: u64,
        /// The limit.
        most: u64,
    },
}
