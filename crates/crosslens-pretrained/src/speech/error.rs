//! Why speech cannot be written down.

use std::path::PathBuf;

use crosslens_analysis::timing::TimingError;

use crate::PretrainedError;
use crate::audio::AudioError;
use crate::text::TokenizerError;

/// Why a model cannot write down what it hears.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// Its weights or its configuration.
    #[error(transparent)]
    Model(#[from] PretrainedError),
    /// Its tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The sound.
    #[error(transparent)]
    Audio(#[from] AudioError),
    /// Attention that gives no times.
    #[error("the times of words cannot be found")]
    Timing(#[from] TimingError),
    /// A model of something else.
    #[error("the model `{folder}` is of the family {family}, which hears nothing; models of speech are of the family whisper")]
    NotSpeech {
        /// The model's folder.
        folder: PathBuf,
        /// What it is.
        family: &'static str,
    },
    /// A language that the model has no token for.
    #[error("the model `{folder}` does not know the language `{asked}`; it knows {known}")]
    Language {
        /// The model's folder.
        folder: PathBuf,
        /// The language asked for.
        asked: String,
        /// Those there are.
        known: String,
    },
    /// A language or a task for a model that has one of each.
    #[error("the model `{folder}` writes down English and nothing else: leave {what} out, or take a model of many languages")]
    EnglishOnly {
        /// The model's folder.
        folder: PathBuf,
        /// What was asked for.
        what: &'static str,
    },
    /// A prompt that its files do not have the tokens for.
    #[error("the model `{folder}` has no token {token}: {cure}")]
    NoToken {
        /// The model's folder.
        folder: PathBuf,
        /// The token.
        token: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// A head that was asked for and is not there.
    #[error("the model has no head {head} in layer {layer} of its {n_layers} decoder layers, counted from 0")]
    NoSuchHead {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
        /// How many layers there are.
        n_layers: usize,
    },
    /// Heads that are not there.
    #[error("`{path}`: field `alignment_heads` {what}")]
    Heads {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}
