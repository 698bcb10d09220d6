//! The map of characters that a model brings along: which text is replaced by which before it is cut into pieces.
//!
//! ```text
//! u32    n, bytes of the double array (little-endian, as everything)
//! [u32]  the double array: a prefix tree over bytes whose values are places in the texts
//! bytes  the texts, each ended by a NUL
//! ```
//! A unit of the double array is either a value (highest bit set: a place in the texts) or a node: bits 0–7 the byte that leads to it,
//! bit 8 whether a key ends there, bits 10–30 the offset to its children, in units of 256 if bit 9 is set. The child of node `n` along
//! byte `b` is unit `n ^ offset(n) ^ b`; the value of a key that ends at `n` is unit `n ^ offset(n)`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::ModelError;

/// No map is larger: those of SentencePiece itself have less than half a megabyte.
const MAX_MAP_BYTES: usize = 16 << 20;
/// No key is longer. Those of SentencePiece are a few characters.
const MAX_KEY_BYTES: usize = 256;
/// No replacement is longer. The longest in Unicode's normal forms is 33 bytes, that of U+FDFA.
const MAX_REPLACEMENT_BYTES: usize = 256;

/// A checked map: every node and every replacement that a text can lead to lies inside it.
#[derive(Clone, Debug)]
pub(crate) struct CharacterMap {
    units: Vec<u32>,
    texts: String,
}

fn broken(what: &'static str) -> ModelError {
    ModelError::CharacterMap { what }
}

/// The unit where the children of a node begin.
fn base(node: usize, unit: u32) -> usize {
    node ^ (((unit >> 10) as usize) << ((unit & 0x200) >> 6))
}

fn label(unit: u32) -> u32 {
    unit & 0x8000_00ff
}

fn ends_a_key(unit: u32) -> bool {
    unit & 0x100 != 0
}

impl CharacterMap {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        if bytes.len() > MAX_MAP_BYTES {
            return Err(broken("is larger than 16 MiB"));
        }
        let (n_bytes, rest) = bytes.split_first_chunk::<4>().ok_or(broken("is cut short"))?;
        let n_bytes = u32::from_le_bytes(*n_bytes) as usize;
        let (units, texts) = rest.split_at_checked(n_bytes).ok_or(broken("is cut short"))?;
        let (units, []) = units.as_chunks::<4>() else {
            return Err(broken("has a double array of no whole number of units"));
        };
        let units: Vec<u32> = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        let texts = std::str::from_utf8(texts).map_err(|_| broken("has replacements that are not UTF-8"))?.to_owned();

        let map = Self { units, texts };
        map.check()?;
        Ok(map)
    }

    /// As `tokenizer.json` has it.
    pub(crate) fn from_base64(encoded: &str) -> Result<Self, String> {
        let bytes = STANDARD.decode(encoded).map_err(|error| format!("its precompiled_charsmap is no base64: {error}"))?;
        Self::read(&bytes).map_err(|error| error.to_string())
    }

    /// Follows every path there is. Each node is looked at once, so that circles end too.
    fn check(&self) -> Result<(), ModelError> {
        let outside = || broken("points outside itself");
        let mut seen = vec![false; self.units.len()];
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            let unit = *self.units.get(node).ok_or_else(outside)?;
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            let base = base(node, unit);
            if base >= self.units.len() {
                return Err(outside());
            }
            if ends_a_key(unit) {
                let value = self.units[base] & 0x7fff_ffff;
                let replacement = self.replacement(value).ok_or_else(outside)?;
                if replacement.len() > MAX_REPLACEMENT_BYTES {
                    return Err(broken("has a replacement of more than 256 bytes"));
                }
            }
            let children = (1..=255).map(|byte| (base ^ byte as usize, byte));
            open.extend(
                children.filter(|&(child, byte)| self.units.get(child).is_some_and(|&unit| label(unit) == byte)).map(|(child, _)| child),
            );
        }
        Ok(())
    }

    /// Bytes of its longest replacement.
    pub(crate) fn longest_replacement(&self) -> usize {
        self.texts.split('\0').map(str::len).max().unwrap_or(0)
    }

    fn replacement(&self, value: u32) -> Option<&str> {
        self.texts.get(value as usize..)?.split('\0').next()
    }

    /// The longest key that `text` begins with: its length in bytes and what it is replaced by.
    pub(crate) fn longest(&self, text: &str) -> Option<(usize, &str)> {
        let mut longest = None;
        let mut base = base(0, *self.units.first()?);
        for (place, &byte) in text.as_bytes().iter().take(MAX_KEY_BYTES).enumerate() {
            let node = base ^ usize::from(byte);
            let Some(&unit) = self.units.get(node).filter(|&&unit| label(unit) == u32::from(byte)) else { break };
            base = self::base(node, unit);
            if ends_a_key(unit) && text.is_char_boundary(place + 1) {
                longest = self.units.get(base).map(|value| (place + 1, value & 0x7fff_ffff)).or(longest);
            }
        }
        let (length, value) = longest?;
        Some((length, self.replacement(value)?))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A map with one rule, `a` to `bc`: the root has its children at 256 (offset 256 = 1 << 8, so 256 << 10 in the unit),
    /// `a` is unit 256 ^ 97 and ends a key; its value is unit (256 ^ 97) ^ 512, that is 512 + (256 ^ 97).
    fn one_rule() -> Vec<u8> {
        let mut units = [0_u32; 1024];
        units[0] = 256 << 10;
        units[256 ^ 97] = 97 | 0x100 | 512 << 10;
        units[512 ^ 256 ^ 97] = 0x8000_0000 | 2;
        let units: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        [&(units.len() as u32).to_le_bytes()[..], &units, b"x\0bc\0"].concat()
    }

    #[test]
    fn a_key_is_replaced() {
        let map = CharacterMap::read(&one_rule()).expect("a map");
        assert_eq!(map.longest("ab"), Some((1, "bc")));
        assert_eq!(map.longest("ba"), None);
        assert_eq!(map.longest(""), None);
    }

    #[test]
    fn a_replacement_outside_the_texts_is_refused() {
        let mut bytes = one_rule();
        let value = 4 + 4 * (512 ^ 256 ^ 97);
        bytes[value] = 100;
        assert_eq!(CharacterMap::read(&bytes).expect_err("outside"), broken("points outside itself"));
    }

    #[test]
    fn a_value_outside_the_units_is_refused() {
        let mut bytes = one_rule();
        let node = 4 + 4 * (256 ^ 97);
        bytes[node..node + 4].copy_from_slice(&(97_u32 | 0x100 | 0x0010_0000 << 10).to_le_bytes());
        assert_eq!(CharacterMap::read(&bytes).expect_err("outside"), broken("points outside itself"));
    }

    #[test]
    fn a_circle_ends() {
        let mut bytes = one_rule();
        // The children of `a` are those of the root: `aaa…` goes on for ever.
        let node = 4 + 4 * (256 ^ 97);
        bytes[node..node + 4].copy_from_slice(&(97_u32 | 97 << 10).to_le_bytes());
        let map = CharacterMap::read(&bytes).expect("a map without keys");
        assert_eq!(map.longest(&"a".repeat(1000)), None);
    }
}
