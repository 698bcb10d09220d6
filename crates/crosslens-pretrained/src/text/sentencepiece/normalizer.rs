//! Prepares text for being cut into pieces: replaces characters, removes and marks spaces, and remembers where everything came from.

use super::SPACE_MARK;
use super::character_map::CharacterMap;
use super::error::ModelError;
use super::model_file::NormalizerSpec;
use super::trie::Trie;

/// The rules of a model.
#[derive(Clone, Debug)]
pub(super) struct Normalizer {
    map: Option<CharacterMap>,
    add_dummy_prefix: bool,
    remove_extra_spaces: bool,
    escape_spaces: bool,
    space_is_suffix: bool,
}

/// Prepared text and the places it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Normalized {
    pub(super) text: String,
    /// For each byte of `text`, and for its end, a byte of the original.
    pub(super) origin: Vec<usize>,
}

impl Normalized {
    fn push(&mut self, text: &str, origin: usize) {
        self.text.push_str(text);
        self.origin.resize(self.text.len(), origin);
    }
}

impl Normalizer {
    pub(super) fn new(spec: &NormalizerSpec<'_>, space_is_suffix: bool) -> Result<Self, ModelError> {
        Ok(Self {
            map: (!spec.character_map.is_empty()).then(|| CharacterMap::read(spec.character_map)).transpose()?,
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_spaces: spec.remove_extra_spaces,
            escape_spaces: spec.escape_spaces,
            space_is_suffix,
        })
    }

    /// Whether decoding takes the first space away.
    pub(super) fn strips_first_space(&self) -> bool {
        self.add_dummy_prefix || self.remove_extra_spaces
    }

    /// Whether decoding takes all spaces at the beginning away.
    pub(super) fn strips_all_first_spaces(&self) -> bool {
        self.remove_extra_spaces
    }

    /// `text` prepared; what `user_defined` holds is left as it is. Nothing is added to text that is empty or all spaces.
    pub(super) fn normalize(&self, text: &str, user_defined: &Trie) -> Normalized {
        let mut result = Normalized::default();
        let mut at = 0;
        if self.remove_extra_spaces {
            while let (" ", length) = self.prefix(&text[at..], user_defined) {
                at += length;
            }
        }
        if at == text.len() {
            return result;
        }

        let space = if self.escape_spaces { SPACE_MARK } else { " " };
        if self.add_dummy_prefix && !self.space_is_suffix {
            result.push(space, at);
        }
        let mut after_space = self.remove_extra_spaces;
        while at < text.len() {
            let (mut replacement, length) = self.prefix(&text[at..], user_defined);
            if after_space {
                replacement = replacement.trim_start_matches(' ');
            }
            for part in replacement.split_inclusive(' ') {
                result.push(part.trim_end_matches(' '), at);
                if part.ends_with(' ') {
                    result.push(space, at);
                }
            }
            if !replacement.is_empty() {
                after_space = self.remove_extra_spaces && replacement.ends_with(' ');
            }
            at += length;
        }

        if self.remove_extra_spaces {
            while result.text.ends_with(space) {
                result.text.truncate(result.text.len() - space.len());
                at = result.origin[result.text.len()];
            }
            result.origin.truncate(result.text.len());
        }
        if self.add_dummy_prefix && self.space_is_suffix {
            result.push(space, at);
        }
        result.origin.push(at);
        result
    }

    /// What the beginning of `text` becomes, and how many of its bytes that is; nothing and 0 at the end.
    fn prefix<'a>(&'a self, text: &'a str, user_defined: &Trie) -> (&'a str, usize) {
        if let Some((length, _)) = user_defined.longest_prefix(text.as_bytes()) {
            return (&text[..length], length);
        }
        if let Some((length, replacement)) = self.map.as_ref().and_then(|map| map.longest(text)) {
            return (replacement, length);
        }
        let length = text.chars().next().map_or(0, char::len_utf8);
        (&text[..length], length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(spec: &NormalizerSpec<'_>, space_is_suffix: bool, text: &str) -> Normalized {
        Normalizer::new(spec, space_is_suffix).expect("rules").normalize(text, &Trie::default())
    }

    /// The mark has three bytes: the first stands for nothing and comes from the first word at 1, the second from the first of two
    /// spaces at 3.
    #[test]
    fn spaces_become_marks_and_keep_their_places() {
        let result = normalized(&NormalizerSpec::default(), false, " aé  b ");
        assert_eq!(result.text, "▁aé▁b");
        assert_eq!(result.origin, [1, 1, 1, 1, 2, 2, 4, 4, 4, 6, 7]);
    }

    #[test]
    fn a_mark_can_follow_its_word() {
        assert_eq!(normalized(&NormalizerSpec::default(), true, "a b ").text, "a▁b▁");
    }

    #[test]
    fn spaces_can_be_kept() {
        let spec = NormalizerSpec { remove_extra_spaces: false, ..NormalizerSpec::default() };
        assert_eq!(normalized(&spec, false, " a  b ").text, "▁▁a▁▁b▁");
        assert_eq!(normalized(&spec, false, " ").text, "▁▁");
    }

    #[test]
    fn nothing_comes_of_spaces_alone() {
        assert_eq!(normalized(&NormalizerSpec::default(), false, "   ").text, "");
    }
}
