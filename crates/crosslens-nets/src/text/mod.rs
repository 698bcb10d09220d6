//! Sentences of real text: from a line to tokens and back, by words or by pieces of words, with vocabularies learnt from a corpus.

mod codec;
mod files;
mod subwords;
pub mod words;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use codec::fold;
pub use codec::{Encoded, TextCodec};
pub use files::{HELD_OUT_FILE, TextFiles};

/// The word for every word that is not in a vocabulary; always its first.
pub const UNKNOWN_WORD: &str = "<unk>";

/// What a text is cut into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// Words, by the rules of [`words`]; each side has a vocabulary of its own.
    #[default]
    Words,
    /// Pieces learnt by byte-pair encoding from both sides together.
    Bpe,
    /// Pieces of a unigram model learnt from both sides together.
    Unigram,
}

impl Units {
    /// All of them, in the order of the help text.
    pub const ALL: [Self; 3] = [Self::Words, Self::Bpe, Self::Unigram];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Bpe => "bpe",
            Self::Unigram => "unigram",
        }
    }
}

/// How texts become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextConfig {
    /// What a text is cut into.
    pub units: Units,
    /// The most words of each side, or pieces of both; the most frequent are taken.
    pub vocabulary: usize,
    /// Whether capitals become small letters.
    pub lowercase: bool,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self { units: Units::Words, vocabulary: 8000, lowercase: false }
    }
}

/// Why texts cannot be turned into tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The library for pieces of words says no.
    #[error("pieces of words cannot be made: {reason}")]
    Tokenizer {
        /// What it says.
        reason: String,
    },
    /// A file is not what it should be.
    #[error("`{path}` is damaged or not ours: {what}")]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The system says no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Nothing to read.
    #[error("the text is empty; give it at least one word")]
    Empty,
}
