//! Pretrained encoder-decoder models.
