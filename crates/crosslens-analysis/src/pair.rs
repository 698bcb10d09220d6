use crate::Token;

/// One source sentence and its target, as token ids.
///
/// The end token, where the vocabulary has one, is the last element of each side: a pair holds valid steps only, never padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// What the encoder reads.
    pub source: Vec<Token>,
    /// What the decoder should write.
    pub target: Vec<Token>,
}
