use rand_xoshiro::Xoshiro256PlusPlus;

use super::Split;
use crate::random;

/// The random generator of one pair, a function of its arguments alone, so that pairs can be made in any order and on any thread.
/// For one seed and split no two indices share a generator.
pub(super) fn generator(split: Split, seed: u64, index: u64) -> Xoshiro256PlusPlus {
    let stream = match split {
        Split::Train => 1,
        Split::Test => 2,
    };
    random::generator(&[seed, stream, index])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::Rng;

    use super::*;

    #[test]
    fn neighbouring_seeds_splits_and_indices_start_differently() {
        let mut starts = BTreeSet::new();
        for seed in 0..8 {
            for split in [Split::Train, Split::Test] {
                for index in 0..256 {
                    starts.insert(generator(split, seed, index).next_u64());
                }
            }
        }
        assert_eq!(starts.len(), 8 * 2 * 256);
    }
}
