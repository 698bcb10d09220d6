use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A word's number in its vocabulary.
pub type Token = u32;

/// The words of one side, numbered from 0.
///
/// ```
/// let words = crosslens_analysis::Vocabulary::new(["run", "walk", "<eos>"])?;
/// assert_eq!(words.token("walk"), Some(1));
/// assert_eq!(words.word(2), Some("<eos>"));
/// # Ok::<(), crosslens_analysis::VocabularyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    words: Vec<String>,
    tokens: HashMap<String, Token>,
}

/// Why a list of words is no vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The same word twice.
    #[error("the word `{word}` stands twice in the vocabulary")]
    Duplicate {
        /// The word.
        word: String,
    },
    /// More words than a [`Token`] can number.
    #[error("the vocabulary has {n_words} words, more than 2^32 − 1")]
    TooMany {
        /// How many there were.
        n_words: usize,
    },
}

impl Vocabulary {
    /// Numbers the words in the order given.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Result<Self, VocabularyError> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        let mut tokens = HashMap::with_capacity(words.len());
        for (number, word) in words.iter().enumerate() {
            let token = Token::try_from(number).map_err(|_| VocabularyError::TooMany { n_words: words.len() })?;
            if tokens.insert(word.clone(), token).is_some() {
                return Err(VocabularyError::Duplicate { word: word.clone() });
            }
        }
        Ok(Self { words, tokens })
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word at all.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of a word.
    pub fn token(&self, word: &str) -> Option<Token> {
        self.tokens.get(word).copied()
    }

    /// The word of a number.
    pub fn word(&self, token: Token) -> Option<&str> {
        self.words.get(token as usize).map(String::as_str)
    }

    /// All words in order.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// A sentence as text, words separated by blanks; an unknown number is written `<?>`.
    pub fn text(&self, tokens: &[Token]) -> String {
        let words: Vec<&str> = tokens.iter().map(|&token| self.word(token).unwrap_or("<?>")).collect();
        words.join(" ")
    }
}

impl TryFrom<Vec<String>> for Vocabulary {
    type Error = VocabularyError;

    fn try_from(words: Vec<String>) -> Result<Self, VocabularyError> {
        Self::new(words)
    }
}

impl From<Vocabulary> for Vec<String> {
    fn from(vocabulary: Vocabulary) -> Self {
        vocabulary.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_twice_is_refused() {
        let error = Vocabulary::new(["run", "walk", "run"]).expect_err("`run` stands twice");
        assert_eq!(error, VocabularyError::Duplicate { word: "run".into() });
    }

    #[test]
    fn an_unknown_number_is_shown_as_such() {
        let words = Vocabulary::new(["run", "walk"]).expect("two words");
        assert_eq!(words.text(&[1, 0, 7]), "walk run <?>");
    }
}
