use std::fmt;
use std::sync::Arc;

use crate::Token;

/// One source sentence and its target, as token ids.
///
/// The end token, where the vocabulary has one, is the last element of each side: a pair holds valid steps only, never padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// What the encoder reads; of a sound or a picture, the code of each of its steps.
    pub source: Vec<Token>,
    /// What the decoder should write.
    pub target: Vec<Token>,
    /// The sound or picture itself, where the source is one.
    pub signal: Option<Signal>,
}

impl Pair {
    /// Two sentences.
    pub fn new(source: Vec<Token>, target: Vec<Token>) -> Self {
        Self { source, target, signal: None }
    }
}

/// What an encoder reads where a source has no tokens: the numbers of a sound or a picture, in the order its model wants.
///
/// Only that model knows what they mean; everybody else passes them on, which costs nothing.
#[derive(Clone)]
pub struct Signal(Arc<[f32]>);

impl Signal {
    /// From a model's features.
    pub fn new(values: Vec<f32>) -> Self {
        Self(values.into())
    }

    /// The features.
    pub fn values(&self) -> &[f32] {
        &self.0
    }
}

/// The same numbers, bit for bit.
impl PartialEq for Signal {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.iter().map(|value| value.to_bits()).eq(other.0.iter().map(|value| value.to_bits()))
    }
}

impl Eq for Signal {}

impl fmt::Debug for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Signal({} numbers)", self.0.len())
    }
}
