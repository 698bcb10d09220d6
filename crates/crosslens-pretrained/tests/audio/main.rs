//! Sounds: against formulas and against transformers, and everything that can be wrong with a file.

mod allocation;
mod broken_sounds;
mod fixtures;
mod formats;
mod length;
mod never_panics;
mod resampling;
mod settings;
mod spectra;
mod windows;
