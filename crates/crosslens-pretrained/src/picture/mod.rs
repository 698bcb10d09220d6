//! Pictures as models see them: read as Pillow reads them, prepared as transformers prepares them.
//!
//! [`Picture::open`] reads PNG, JPEG and WebP; [`Processor::read`] takes what is done to a picture from a model's folder.
//!
//! transformers 5 has two image processors of each kind: one works with torchvision, and is taken where that is installed, the other with
//! Pillow. This follows the one with Pillow (`backend="pil"`, "slow" in transformers 4): models were published with it, and it is defined
//! to the last bit. The other resizes tensors, and differs in how it rounds.

mod error;
mod jpeg;
mod process;
mod read;
mod resize;
mod settings;

pub use error::PictureError;
pub use process::{Pixels, Processor};
pub use read::Picture;
