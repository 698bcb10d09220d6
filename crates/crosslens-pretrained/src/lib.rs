//! Pretrained encoder-decoder models, opened from the folders they are published in.
//!
//! [`Model::open`] reads a Hugging Face folder of a T5, BART, Marian, mBART, Pegasus, M2M100 (NLLB), Whisper, TrOCR or BLIP model, among
//! others; [`Model::write`] lets it translate, write down speech or describe a picture. Products run on the
//! kernels of this project rather than on a tensor framework, unless a [`Device`] is asked for: rows of different sentences lie side by side without padding, and the bits of
//! a row do not depend on the others, so that a sentence gives the same attention alone and in any batch.

pub mod audio;
mod decode;
mod device;
mod drawn;
mod error;
mod families;
mod fields;
mod generation;
mod layers;
mod model;
mod pickle;
pub mod picture;
mod senses;
pub mod speech;
mod stack;
mod subject;
pub mod text;
mod weights;

pub use decode::{Decoding, Drawing, Sampling, Written};
pub use device::{Device, DeviceError, DeviceKind};
pub use error::PretrainedError;
pub use generation::{EarlyStopping, Generation};
pub use model::Model;
pub use senses::{Grid, Source};
pub use subject::{Subject, TokenNames, Wanted};
