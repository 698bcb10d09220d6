//! Random generators that can be asked for by number, so that nothing depends on the order of asking.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator that belongs to these numbers: `key ← mix(key ⊕ part)` for each part, from 0.
///
/// Of two lists that differ in their last part only, no two share a generator, since `mix` is a bijection.
pub(crate) fn generator(parts: &[u64]) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(parts.iter().fold(0, |key, &part| mix(key ^ part)))
}

/// A bijection of 64-bit numbers that spreads every input bit over all output bits: one step of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// 64 bits of a text, the same on every machine.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(mix(text.len() as u64), |hash, byte| mix(hash ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// The first outputs of SplitMix64 started at 0 are published with the generator.
    #[test]
    fn mixing_counts_through_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn the_order_of_parts_matters() {
        let first = |parts: &[u64]| generator(parts).random::<u64>();
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
    }
}
