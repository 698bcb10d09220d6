//! Arrays in files, as recordings and sums are kept: read piece by piece and taken for hostile, written whole or not at all.

pub(crate) mod arrays;
pub(crate) mod dtype;
pub(crate) mod files;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod safetensors;
pub(crate) mod tensors;
