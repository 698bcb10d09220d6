//! What can go wrong with a tokenizer.

use std::path::PathBuf;

use super::sentencepiece::ModelError;

/// Why a tokenizer cannot be opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The folder has no tokenizer of a kind that is known.
    #[error(
        "`{folder}` has no tokenizer; looked for tokenizer.json, for source.spm with target.spm and vocab.json (Marian), for \
         sentencepiece.bpe.model (mBART, NLLB, XLM-RoBERTa as in small TrOCRs, and with vocab.json M2M100; config.json or \
         tokenizer_config.json must say which), for spiece.model (T5, Pegasus), for vocab.json with merges.txt (Whisper, BART, GPT-2), \
         and for vocab.txt (BERT, BLIP)"
    )]
    NotFound {
        /// The folder.
        folder: PathBuf,
    },
    /// A Marian folder lacks one of its files.
    #[error("the Marian tokenizer in `{folder}` lacks {missing}; copy it from where the model comes from")]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// The file's name.
        missing: &'static str,
    },
    /// A language that the tokenizer has no token for.
    #[error("the tokenizer in `{folder}` has no language `{code}` among its {n_known}")]
    UnknownLanguage {
        /// The folder.
        folder: PathBuf,
        /// What was asked for.
        code: String,
        /// How many it has.
        n_known: usize,
    },
    /// A text without a language where the tokenizer writes it down.
    #[error("the tokenizer in `{folder}` marks every text with its language; choose languages first")]
    NoLanguage {
        /// The folder.
        folder: PathBuf,
    },
    /// Languages where the tokenizer knows of none.
    #[error("the tokenizer in `{folder}` has no languages to choose from")]
    NoLanguages {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is larger than any tokenizer is.
    #[error("`{path}` has {n_bytes} bytes; no tokenizer is larger than {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        n_bytes: u64,
        /// The largest that is read.
        limit: u64,
    },
    /// A file is no usable SentencePiece model.
    #[error("`{path}` is no usable SentencePiece model")]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ModelError,
    },
    /// A file is not the JSON that it should be.
    #[error("`{path}` is not valid")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A vocabulary or a model lacks a token that must be there.
    #[error("`{path}` lacks the token `{token}`")]
    MissingToken {
        /// The file.
        path: PathBuf,
        /// The token.
        token: String,
    },
    /// A value of a configuration makes no sense.
    #[error("`{field}` in `{path}` is {value}; {cure}")]
    Setting {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        cure: &'static str,
    },
    /// `tokenizer.json` is not what the `tokenizers` library writes.
    #[error("`{path}` is no tokenizer that can be used: {reason}")]
    Library {
        /// The file.
        path: PathBuf,
        /// What the library says.
        reason: String,
    },
    /// A text cannot be encoded, or ids not decoded.
    #[error("the tokenizer of `{path}` failed: {reason}")]
    Failed {
        /// The tokenizer's file.
        path: PathBuf,
        /// What the library says.
        reason: String,
    },
}
