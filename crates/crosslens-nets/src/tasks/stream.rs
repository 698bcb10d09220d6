use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Split;

/// The random generator of one pair, a function of its arguments alone, so that pairs can be made in any order and on any thread.
///
/// ```text
/// state = mix(mix(mix(seed) ^ s) ^ index)        s = 1 for train, 2 for test
/// ```
/// For one seed and split no two indices share a state, since `mix` is a bijection.
pub(super) fn generator(split: Split, seed: u64, index: u64) -> Xoshiro256PlusPlus {
    let stream = match split {
        Split::Train => 1,
        Split::Test => 2,
    };
    Xoshiro256PlusPlus::seed_from_u64(mix(mix(mix(seed) ^ stream) ^ index))
}

/// A bijection of 64-bit numbers that spreads every input bit over all output bits: one step of SplitMix64.
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::Rng;

    use super::*;

    /// The first outputs of SplitMix64 started at 0 are published with the generator.
    #[test]
    fn mixing_counts_through_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

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
