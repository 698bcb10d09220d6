//! Sequence tasks and the classical encoder-decoder networks, trained with explicit gradients.

pub mod fixed_points;
pub mod imported;
pub mod network;
mod random;
pub mod search;
mod subject;
pub mod tasks;
pub mod text;
pub mod train;

pub use crosslens_kernels::Threads;
pub use subject::{FedError, Subject};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct TheReadme;
