//! Tokens that are found in text before it is cut into pieces, such as `</s>` or `<extra_id_0>`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sentencepiece::Trie;
use super::settings::AddedToken;

/// The special tokens of a tokenizer.
#[derive(Clone, Debug)]
pub(super) struct Special {
    by_id: BTreeMap<u32, AddedToken>,
    texts: Trie,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// To be cut into pieces.
    Text(Range<usize>),
    /// A special token, by its id.
    Token(u32, Range<usize>),
}

impl Special {
    /// Of tokens with the same text the one with the lowest id counts.
    pub(super) fn new(by_id: BTreeMap<u32, AddedToken>) -> Self {
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        for (&id, token) in by_id.iter().filter(|(_, token)| !token.content.is_empty()) {
            ids.entry(&token.content).or_insert(id);
        }
        let texts = Trie::new(ids.into_iter().collect()).unwrap_or_default();
        Self { by_id, texts }
    }

    /// The text of the special token with this id.
    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|token| token.content.as_str())
    }

    /// Whether decoding leaves this id out.
    pub(super) fn is_left_out(&self, id: u32) -> bool {
        self.by_id.get(&id).is_some_and(|token| token.special)
    }

    /// The largest id.
    pub(super) fn last_id(&self) -> Option<u32> {
        self.by_id.last_key_value().map(|(&id, _)| id)
    }

    /// Splits a text at its special tokens, the leftmost first and of those the longest.
    pub(super) fn split(&self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut start = 0;
        let mut strips_next = false;
        let mut at = 0;
        while at < text.len() {
            let Some((length, id)) = self.texts.longest_prefix(&text.as_bytes()[at..]) else {
                at += 1;
                continue;
            };
            let token = &self.by_id[&id];
            push_text(&mut parts, text, start..at, strips_next, token.lstrip);
            parts.push(Part::Token(id, at..at + length));
            strips_next = token.rstrip;
            at += length;
            start = at;
        }
        push_text(&mut parts, text, start..text.len(), strips_next, false);
        parts
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str, range: Range<usize>, strips_start: bool, strips_end: bool) {
    let Range { mut start, mut end } = range;
    if strips_start {
        start = end - text[start..end].trim_start_matches(is_space).len();
    }
    if strips_end {
        end = start + text[start..end].trim_end_matches(is_space).len();
    }
    if start < end {
        parts.push(Part::Text(start..end));
    }
}

/// What Python's `str.strip` takes away: whitespace, and the four separators among the control characters.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str, strips: bool) -> AddedToken {
        AddedToken { content: content.into(), lstrip: strips, rstrip: strips, special: true }
    }

    #[test]
    fn the_longest_token_is_found_and_takes_its_spaces() {
        let special = Special::new([(7, token("<x>", true)), (8, token("<x>2", false)), (9, token("</s>", false))].into());
        let parts = special.split("a <x> b</s><x>2 é");
        let expected =
            [Part::Text(0..1), Part::Token(7, 2..5), Part::Text(6..7), Part::Token(9, 7..11), Part::Token(8, 11..15), Part::Text(15..18)];
        assert_eq!(parts, expected);
    }

    #[test]
    fn text_without_tokens_is_one_part() {
        assert_eq!(Special::new(BTreeMap::new()).split("é"), [Part::Text(0..2)]);
        assert_eq!(Special::new(BTreeMap::new()).split(""), []);
    }
}
