//! Captions of pictures, and the lines of text that are read from them.

use std::path::{Path, PathBuf};

use crosslens_analysis::{Signal, Token};
use crosslens_pretrained::picture::{Picture, PictureError, Pixels, Processor};
use crosslens_pretrained::text::{TextTokenizer, TokenizerError};
use crosslens_pretrained::{Decoding, Model, PretrainedError, Written};

use crate::Translation;

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
    Picture(#[from] PictureError),
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
    /// An image processor that was made for another model.
    #[error(
        "the image processor of `{model}` makes pictures of {found_width} × {found_height} pixels; its model reads {width} × {height}: \
         copy preprocessor_config.json from where the model comes from"
    )]
    OtherSize {
        /// The model's folder.
        model: PathBuf,
        /// What is made.
        found_width: usize,
        /// What is made.
        found_height: usize,
        /// What is read.
        width: usize,
        /// What is read.
        height: usize,
    },
}

/// A model of pictures with its tokenizer and what it does to pictures.
#[derive(Debug)]
pub struct Captioner {
    model: Model,
    text: TextTokenizer,
    processor: Processor,
}

impl Captioner {
    /// Opens a folder of Hugging Face's: weights, tokenizer and preprocessor_config.json.
    pub fn open(path: &Path) -> Result<Self, CaptionError> {
        let model = Model::open(path)?;
        if model.grid().is_none() {
            return Err(CaptionError::Blind { model: path.to_owned(), family: model.family(), hears: model.reads_signals() });
        }
        let processor = Processor::read(path)?;
        Ok(Self { model, text: TextTokenizer::open(path)?, processor })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A picture's file as the encoder reads it.
    pub fn signal(&self, path: &Path) -> Result<Signal, CaptionError> {
        let Pixels { values, height: found_height, width: found_width } = self.processor.apply(&Picture::open(path)?)?;
        match self.model.grid() {
            Some(grid) if (grid.height, grid.width) != (found_height, found_width) => {
                let (height, width, model) = (grid.height, grid.width, self.model.folder().to_owned());
                Err(CaptionError::OtherSize { model, found_width, found_height, width, height })
            }
            _ => Ok(Signal::new(values)),
        }
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
