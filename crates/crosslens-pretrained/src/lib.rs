//! Pretrained encoder-decoder models.

pub mod text;
