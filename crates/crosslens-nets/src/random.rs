//! Random generators that can be asked for by number, so that nothing depends on the order of asking.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator that belongs to these numbers.
///
/// ```text
/// key ← mix(key ⊕ part + golden ratio) for each part, mix being the finaliser of SplitMix64
/// ```
pub(crate) fn generator(parts: &[u64]) -> Xoshiro256PlusPlus {
    let key = parts.iter().fold(0u64, |key, &part| mix((key ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15)));
    Xoshiro256PlusPlus::seed_from_u64(key)
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn the_order_of_parts_matters() {
        let first = |parts: &[u64]| generator(parts).random::<u64>();
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
    }
}
