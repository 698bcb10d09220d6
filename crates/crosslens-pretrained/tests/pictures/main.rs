//! Pictures against Pillow and transformers, against broken files and against arbitrary bytes.

#[path = "../audio/allocation.rs"]
mod allocation;
mod broken_pictures;
mod broken_settings;
mod fixtures;
mod golden;
mod memory;
mod never_panics;
mod orientation;
