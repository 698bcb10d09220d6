//! Sequence tasks: one file a task, each an endless (or finite) stream of pairs, made on demand from a seed.

use crosslens_analysis::{Pair, Vocabulary};

/// Which of two disjoint streams of a task a pair is drawn from.
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

/// A source of pairs that needs no data set: pair number `index` of a stream is computed when it is asked for.
pub trait Task: Send + Sync {
    /// The words of the source side.
    fn source_vocabulary(&self) -> &Vocabulary;

    /// The words of the target side.
    fn target_vocabulary(&self) -> &Vocabulary;

    /// The longest source and target.
    fn max_lengths(&self) -> Lengths;

    /// Pair number `index`; the same arguments always give the same pair.
    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair;
}
