//! Captions of pictures, and the lines of text that are read from them.

use std::path::{Path, PathBuf};

use crosslens_analysis::{Signal, Token};
use crosslens_pretrained::text::{TextTokenizer, TokenizerError};
use crosslens_pretrained::{Decoding, Device, Model, PretrainedError, Written};

use crate::Translation;
use crate::eyes::{Eyes, SightError};

/// Why a picture gets no caption.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptionError {
    /// The model's weights, its configuration, or what it does to pictures.
    #[error(transparent)]
    Model(#[from] PretrainedError),
    /// Its tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The picture.
    #[error(transparent)]
    Sight(#[from] SightError),
    /// A model of sentences or sounds.
    #[error("the model `{model}` is a {family}, which reads no pictures")]
    Blind {
        /// Its folder.
        model: PathBuf,
        /// Its kind, such as `t5`.
        family: &'static str,
        /// Whether it reads sounds.
        hears: bool,
    },
}

/// A model of pictures with its tokenizer and what it does to pictures.
#[derive(Debug)]
pub struct Captioner {
    model: Model,
    text: TextTokenizer,
    eyes: Eyes,
}

impl Captioner {
    /// Opens a folder of Hugging Face's: weights, tokenizer and preprocessor_config.json. Products are made on the device.
    pub fn open(path: &Path, device: &Device) -> Result<Self, CaptionError> {
        let model = Model::open_on(path, device)?;
        let Some(eyes) = Eyes::of(&model)? else {
            return Err(CaptionError::Blind { model: path.to_owned(), family: model.family(), hears: model.reads_signals() });
        };
        Ok(Self { model, text: TextTokenizer::open(path)?, eyes })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A picture's file as the encoder reads it.
    pub fn signal(&self, path: &Path) -> Result<Signal, CaptionError> {
        Ok(self.eyes.read(path)?)
    }

    /// What the model writes about a picture's file, the best first.
    pub fn caption(&self, path: &Path, how: &Decoding) -> Result<Vec<Translation>, CaptionError> {
        let caption = |Written { tokens, score, .. }: Written| {
            // A tokenizer may not know that what ends a text is none of it.
            let said: Vec<Token> = tokens.iter().copied().filter(|token| !how.rules.ends.contains(token)).collect();
            let text = self.text.decode(&said)?.trim().to_owned();
            Ok(Translation { text, tokens, score })
        };
        self.model.write(&self.signal(path)?, how)?.into_iter().map(caption).collect()
    }
}
