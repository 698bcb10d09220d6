//! What a network reads and writes ([`Pair`], [`Vocabulary`]), independent of any network.

mod pair;
mod vocabulary;

pub use pair::Pair;
pub use vocabulary::{Token, Vocabulary, VocabularyError};
