//! How pictures become what a model sees.

use std::path::{Path, PathBuf};

use crosslens_analysis::Signal;
use crosslens_pretrained::picture::{Picture, PictureError, Pixels, Processor};
use crosslens_pretrained::{Grid, Model, PretrainedError};

/// Why a picture is not seen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SightError {
    /// It cannot be read.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// An image processor that was made for another model. As many pixels in another shape would scramble the patches.
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

/// What a model does to pictures before it looks at them.
#[derive(Debug)]
pub(crate) struct Eyes {
    processor: Processor,
    /// The model's folder.
    model: PathBuf,
    /// Pixels that the model reads.
    height: usize,
    width: usize,
}

impl Eyes {
    /// Those of a model; none if it reads no pictures.
    pub(crate) fn of(model: &Model) -> Result<Option<Self>, PretrainedError> {
        let Some(Grid { height, width, .. }) = model.grid() else { return Ok(None) };
        Ok(Some(Self { processor: Processor::read(model.folder())?, model: model.folder().to_owned(), height, width }))
    }

    /// A file as the encoder reads it.
    pub(crate) fn read(&self, path: &Path) -> Result<Signal, SightError> {
        let Pixels { values, height: found_height, width: found_width } = self.processor.apply(&Picture::open(path)?)?;
        let &Self { height, width, .. } = self;
        if (found_height, found_width) != (height, width) {
            return Err(SightError::OtherSize { model: self.model.clone(), found_width, found_height, width, height });
        }
        Ok(Signal::new(values))
    }

    /// A file as its patches lie over it: resized and cut, not normalised.
    pub(crate) fn seen(&self, path: &Path) -> Result<Picture, SightError> {
        Ok(self.processor.seen(&Picture::open(path)?)?)
    }
}
