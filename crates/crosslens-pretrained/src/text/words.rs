//! To which word of a text a token belongs.
//!
//! Words are what whitespace separates (`char::is_whitespace`). Alignments speak of them, models of tokens.

/// Where the words of a text end.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    ends: Vec<usize>,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        // `split_whitespace` gives parts of `text`, so that the distance of the addresses is the place.
        let end = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize + word.len();
        Self { ends: text.split_whitespace().map(end).collect() }
    }

    /// The word of a token that begins at byte `begin`, be that in the word or in the space before it. The last word if there is
    /// none after it; nothing if there are no words.
    pub(crate) fn at(&self, begin: usize) -> Option<usize> {
        let word = self.ends.partition_point(|&end| end <= begin);
        Some(word.min(self.ends.len().checked_sub(1)?))
    }
}

/// Counts the words that tokens make when only the tokens are known, such as those that a model wrote.
#[derive(Clone, Debug)]
pub(crate) struct WordCounter {
    mark: char,
    mark_is_suffix: bool,
    word: usize,
    word_has_text: bool,
    after_mark: bool,
}

impl WordCounter {
    /// `mark` stands for a space in tokens.
    pub(crate) fn new(mark: char, mark_is_suffix: bool) -> Self {
        Self { mark, mark_is_suffix, word: 0, word_has_text: false, after_mark: false }
    }

    /// The word of the next token. A token of marks alone belongs to the word after it (before it, where marks end words).
    pub(crate) fn word_of(&mut self, token: &str) -> usize {
        let mut first = None;
        for character in token.chars() {
            if character == self.mark {
                self.after_mark = true;
                continue;
            }
            if self.after_mark && self.word_has_text {
                self.word += 1;
            }
            self.after_mark = false;
            self.word_has_text = true;
            first.get_or_insert(self.word);
        }
        let is_after = self.after_mark && self.word_has_text && !self.mark_is_suffix;
        first.unwrap_or(self.word + usize::from(is_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes: two spaces, "ab" at 2, a no-break space of two bytes at 4, "c" at 6, a space at 7.
    #[test]
    fn a_token_belongs_to_the_word_it_begins_in_or_before() {
        let words = Words::of("  ab\u{a0}c ");
        let of: Vec<_> = (0..8).map(|begin| words.at(begin)).collect();
        assert_eq!(of, [0, 0, 0, 0, 1, 1, 1, 1].map(Some));
        assert_eq!(Words::of(" ").at(0), None);
    }

    fn counted(tokens: &[&str], mark_is_suffix: bool) -> Vec<usize> {
        let mut counter = WordCounter::new('▁', mark_is_suffix);
        tokens.iter().map(|token| counter.word_of(token)).collect()
    }

    #[test]
    fn a_mark_begins_a_word() {
        assert_eq!(counted(&["▁a", "b", "▁", "c", "▁", "▁d", "▁e▁f", "g"], false), [0, 0, 1, 1, 2, 2, 3, 4]);
        assert_eq!(counted(&["a", "▁b"], false), [0, 1]);
    }

    #[test]
    fn a_mark_ends_a_word() {
        assert_eq!(counted(&["a", "b▁", "c", "▁", "d▁"], true), [0, 0, 1, 1, 2]);
    }
}
