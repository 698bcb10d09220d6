//! From what somebody typed, or a page sends back, to tokens.

use crosslens_analysis::{Token, Vocabulary, Words};
use crosslens_nets::tasks::END_WORD;

use super::LiveError;

/// The words of one side as somebody spelled them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// A text: of a network trained on text, read by the run's own rules; of any other trained here, its words separated by blanks, and
    /// where sentences end in a word of their own, that is added if it is missing. Of another model, whatever that reads.
    Text(String),
    /// Exactly these words.
    Words(Vec<String>),
}

/// Words of a vocabulary.
pub(super) fn tokens(vocabulary: &Vocabulary, side: &'static str, spelled: &Spelled, most: usize) -> Result<Vec<Token>, LiveError> {
    let words: Vec<&str> = match spelled {
        Spelled::Text(text) => text.split_whitespace().collect(),
        Spelled::Words(words) => words.iter().map(String::as_str).collect(),
    };
    if words.is_empty() {
        return Err(LiveError::Empty { side });
    }
    let is_text = matches!(spelled, Spelled::Text(_));
    let end = vocabulary.token(END_WORD).filter(|_| is_text && words.last() != Some(&END_WORD));
    let n_words = words.len() + usize::from(end.is_some());
    check_length(side, n_words, most)?;
    let known = |word: &str| vocabulary.token(word).ok_or_else(|| LiveError::UnknownWord { side, word: word.to_owned() });
    words.into_iter().map(known).chain(end.map(Ok)).collect()
}

pub(super) fn check_length(side: &'static str, n_words: usize, most: usize) -> Result<(), LiveError> {
    if n_words > most { Err(LiveError::TooLong { side, n_words, most }) } else { Ok(()) }
}

/// Finds tokens by their names, of which there may be hundreds of thousands.
pub(super) struct ByName {
    side: &'static str,
    /// Sorted by their names.
    tokens: Vec<Token>,
}

impl ByName {
    pub(super) fn new(side: &'static str, words: &Words) -> Self {
        let mut tokens: Vec<Token> = (0..words.count).collect();
        tokens.sort_by(|&a, &b| words.name(a).cmp(&words.name(b)));
        Self { side, tokens }
    }

    /// The tokens of these names.
    pub(super) fn find(&self, words: &Words, names: &[String]) -> Result<Vec<Token>, LiveError> {
        let find = |name: &String| {
            let place = self.tokens.binary_search_by(|&token| words.name(token).as_ref().cmp(name.as_str()));
            let unknown = |_| LiveError::UnknownWord { side: self.side, word: name.clone() };
            Ok(self.tokens[place.map_err(unknown)?])
        };
        names.iter().map(find).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_names_or_numbers() {
        let words = Words { count: 4, names: vec!["b".into(), "a".into()], start: None, end: None };
        let by_name = ByName::new("source", &words);
        let find = |names: &[&str]| by_name.find(&words, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(find(&["a", "b", "#3", "a"]).expect("known"), [1, 0, 3, 1]);
        assert_eq!(find(&["c"]).expect_err("unknown").to_string(), "the source word `c` is not in the model's vocabulary");
    }
}
