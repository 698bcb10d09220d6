//! Sequence tasks: one file a task, each an endless stream of pairs, made on demand from a seed.
//!
//! A task is described by a [`TaskConfig`], checked and turned into a [`Task`] by [`TaskConfig::build`].

use crosslens_analysis::{Pair, Token, Vocabulary};

use crate::text::TextFiles;

mod config;
mod corpus;
mod error;
mod escan;
mod joining;
#[cfg(test)]
mod laws;
mod listed;
mod one_to_one;
pub(crate) mod preparing;
mod scan;
pub mod scan_grammar;
mod sentences;
mod sort;
mod stream;
mod translation;

pub use config::{NAMES, TaskConfig};
pub use corpus::{CorpusConfig, CorpusTask};
pub use error::TaskError;
pub use escan::{Escan, EscanConfig, PERIOD_WORD};
pub use listed::Listed;
pub use one_to_one::{OneToOne, OneToOneConfig};
pub use preparing::{Preparing, Stage};
pub use scan::{Scan, ScanConfig, ScanSplit};
pub use sort::{Sort, SortConfig};
pub use translation::{AlignedPair, Translation, TranslationConfig};

/// The word that ends a sentence whose length varies; always the last of its vocabulary, and absent where all sentences are equally long.
pub const END_WORD: &str = "<eos>";

/// Which of two streams of a task a pair is drawn from.
///
/// The streams of one seed are independent of each other. Where a task has few sentences the same one may turn up in both;
/// [`Scan`] keeps them apart, by its [`ScanSplit`], and so does [`Translation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// What a network is trained on.
    Train,
    /// What it is judged on.
    Test,
}

/// The longest sentences of a task, the end token included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Source steps.
    pub source: usize,
    /// Target steps.
    pub target: usize,
}

/// A source of pairs: pair number `index` of a stream is computed when it is asked for, or looked up in a list ([`Listed`]).
pub trait Task: Send + Sync {
    /// The words of the source side.
    fn source_vocabulary(&self) -> &Vocabulary;

    /// The words of the target side.
    fn target_vocabulary(&self) -> &Vocabulary;

    /// The longest source and target.
    fn max_lengths(&self) -> Lengths;

    /// Pair number `index`; the same arguments always give the same pair.
    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair;

    /// A batch of pairs from number `first` on; a task may take them in another order, as long as the same arguments give the same batch.
    fn batch(&self, split: Split, seed: u64, first: u64, n_pairs: usize, pairs: &mut Vec<Pair>) {
        pairs.clear();
        pairs.extend((0..n_pairs as u64).map(|number| self.pair(split, seed, first + number)));
    }

    /// How its texts become tokens, where it is made of text.
    fn text(&self) -> Option<&TextFiles> {
        None
    }

    /// What is worth saying of it before training, a line each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The vocabulary of words that are distinct by construction.
fn vocabulary<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Vocabulary {
    Vocabulary::new(words).expect("the words of a task are distinct and few: checked when it is built")
}

/// The number of [`END_WORD`], which the vocabulary must have.
fn end_token(vocabulary: &Vocabulary) -> Token {
    vocabulary.token(END_WORD).expect("the vocabulary of a task with sentences of several lengths has an end word")
}
