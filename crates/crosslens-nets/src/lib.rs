//! Sequence tasks and the classical encoder-decoder networks, trained with explicit gradients.

pub mod network;
mod random;
pub mod tasks;
pub mod train;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct TheReadme;
