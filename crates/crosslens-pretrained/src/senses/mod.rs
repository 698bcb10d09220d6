//! How encoders read what has no tokens: sounds and pictures.

mod sight;
mod sound;

use crosslens_analysis::{Pair, Signal, Token};

pub use sight::Grid;
pub(crate) use sight::{Frame, Sight};
pub(crate) use sound::Hearing;

/// The first map of such an encoder, from a signal to the vectors that positions are added to.
pub(crate) trait Sense: Send + Sync {
    /// Dimensions of a vector.
    fn d(&self) -> usize;

    /// How many vectors a signal of so many numbers gives; nothing if no signal has that many.
    fn n_steps(&self, n_values: usize) -> Option<usize>;

    /// What a signal should be, for messages: `3000 frames of 80 mels`.
    fn expects(&self) -> String;

    /// The vectors `[step, d]` of a signal whose size is right.
    fn rows(&self, values: &[f32]) -> Vec<f32>;

    /// Where its steps lie in a picture; nothing of sounds.
    fn grid(&self) -> Option<Grid> {
        None
    }
}

/// What an encoder reads.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A sentence.
    Tokens(&'a [Token]),
    /// A sound or a picture, as the model's features.
    Signal(&'a Signal),
}

impl<'a> From<&'a [Token]> for Source<'a> {
    fn from(tokens: &'a [Token]) -> Self {
        Self::Tokens(tokens)
    }
}

impl<'a, const N: usize> From<&'a [Token; N]> for Source<'a> {
    fn from(tokens: &'a [Token; N]) -> Self {
        Self::Tokens(tokens)
    }
}

impl<'a> From<&'a Vec<Token>> for Source<'a> {
    fn from(tokens: &'a Vec<Token>) -> Self {
        Self::Tokens(tokens)
    }
}

impl<'a> From<&'a Signal> for Source<'a> {
    fn from(signal: &'a Signal) -> Self {
        Self::Signal(signal)
    }
}

impl<'a> From<&'a Pair> for Source<'a> {
    fn from(pair: &'a Pair) -> Self {
        pair.signal.as_ref().map_or(Self::Tokens(&pair.source), Self::Signal)
    }
}
