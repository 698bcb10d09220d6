//! Runs of words or characters.

use std::collections::HashMap;
use std::hash::Hash;

/// How often each run of `n` stands in a sequence, at most over several sequences.
pub(super) fn greatest_counts<'a, T: Hash + Eq>(sequences: &'a [Vec<T>], n: usize) -> HashMap<&'a [T], u64> {
    let mut greatest: HashMap<&'a [T], u64> = HashMap::new();
    for sequence in sequences {
        let mut counts: HashMap<&'a [T], u64> = HashMap::new();
        for run in sequence.windows(n) {
            let count = counts.entry(run).or_default();
            *count += 1;
            let most = greatest.entry(run).or_default();
            *most = (*most).max(*count);
        }
    }
    greatest
}

/// How many runs of a sequence are found among counted ones, each as often as it was counted at most.
pub(super) fn n_matches<'a, T: Hash + Eq>(sequence: &'a [T], n: usize, mut counts: HashMap<&'a [T], u64>) -> u64 {
    let mut n_matches = 0;
    for run in sequence.windows(n) {
        if let Some(left) = counts.get_mut(run).filter(|left| **left > 0) {
            *left -= 1;
            n_matches += 1;
        }
    }
    n_matches
}

/// How many runs of `n` a sequence of that length has.
pub(super) fn n_runs(length: usize, n: usize) -> u64 {
    (length + 1).saturating_sub(n) as u64
}
