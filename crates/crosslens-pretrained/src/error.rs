//! What can be wrong with a model that somebody else made.

use std::path::PathBuf;

/// Why a pretrained model cannot be opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PretrainedError {
    /// The system refuses.
    #[error("cannot {action} `{path}`")]
    Io {
        /// Such as `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No model, or one whose weights are in no form that is read here.
    #[error("`{path}` {what}")]
    NotAModel {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// A file that is not what its name says.
    #[error("`{path}`: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A configuration that makes no sense.
    #[error("`{path}`: field `{field}` {what}")]
    Config {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What is wrong with it.
        what: String,
    },
    /// A kind of model that is not known.
    #[error("`{path}`: field `model_type` is `{found}`, which is not known here; known are {known}")]
    UnknownType {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What it could say.
        known: String,
    },
    /// A model without an encoder.
    #[error("`{path}`: a model of type `{found}` has a decoder only, hence no attention from a decoder to an encoder to explain")]
    DecoderOnly {
        /// The file.
        path: PathBuf,
        /// Its type.
        found: String,
    },
    /// A tensor that is not there.
    #[error("`{path}` has no tensor `{name}`, which its config.json asks for")]
    MissingTensor {
        /// The folder.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor nobody asks for.
    #[error("`{path}` has a tensor `{name}` that a model of its config.json has no use for")]
    ExtraTensor {
        /// The folder.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor of another shape.
    #[error("`{path}`: tensor `{name}` has the shape {found:?}; its config.json asks for {expected:?}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
    },
    /// A tensor of numbers that are no weights.
    #[error("`{path}`: tensor `{name}` holds numbers of the type {found}; weights are F32, F16, BF16 or F64")]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The type.
        found: String,
    },
    /// A weight that is no number.
    #[error("`{path}`: tensor `{name}` holds a number that is not finite")]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A sentence without a token.
    #[error("the {side} is empty")]
    Empty {
        /// Source or target.
        side: &'static str,
    },
    /// A token beyond the vocabulary.
    #[error("token {token} of the {side} is not among the model's {count}")]
    UnknownToken {
        /// Source or target.
        side: &'static str,
        /// The token.
        token: u32,
        /// How many it knows.
        count: usize,
    },
    /// More tokens than the model has positions for, or more than are taken.
    #[error("the {side} has {found} tokens; the model takes {most} at most: cut the text")]
    TooLong {
        /// Source or target.
        side: &'static str,
        /// Tokens.
        found: usize,
        /// Positions.
        most: usize,
    },
    /// A sound or a picture for a model of sentences.
    #[error("the model `{model}` reads sentences, neither sounds nor pictures")]
    NotASignal {
        /// The model's folder.
        model: PathBuf,
    },
    /// A sentence for a model of sounds or pictures.
    #[error("the model `{model}` reads no tokens but {expected}")]
    NotTokens {
        /// The model's folder.
        model: PathBuf,
        /// What it reads.
        expected: String,
    },
    /// A sound or a picture of another size.
    #[error("a signal of {found} numbers is not what the model `{model}` reads: {expected}")]
    WrongSignal {
        /// The model's folder.
        model: PathBuf,
        /// Numbers given.
        found: usize,
        /// What it reads.
        expected: String,
    },
    /// A sound or a picture with a number that is none.
    #[error("the signal for the model `{model}` holds a number that is not finite")]
    BrokenSignal {
        /// The model's folder.
        model: PathBuf,
    },
    /// A device that cannot be had, or cannot take the weights.
    #[error(transparent)]
    Device(#[from] crate::DeviceError),
    /// Codes that do not belong to a signal.
    #[error("{found} codes are given for a signal of {expected} steps")]
    Codes {
        /// Codes given.
        found: usize,
        /// Steps of the signal.
        expected: usize,
    },
}
