//! Tokenizers against the libraries they follow, against broken files and against arbitrary text.

mod allocation;
mod broken_models;
mod broken_tokenizers;
mod byte_level;
mod fixtures;
mod hostile_libraries;
mod library;
mod marian_and_t5;
mod never_panics;
mod relatives;
mod sentencepiece;
mod word_pieces;
mod words;
