//! Texts and tokens of an imported model.

use crosslens_analysis::{TensorFile, Token, Vocabulary, Words};

use super::ImportError;
use super::mapping::{Given, JoinedWords, SideMapping, Table};
use super::weights::value;

/// A word, or a character where texts are split into these, that a model does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not among the words of the model")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
}

/// The words of one side.
#[derive(Clone, Debug)]
pub struct SideTable {
    words: Vocabulary,
    start: Token,
    end: Token,
    /// Whether a text is split into characters, else at blanks.
    is_of_characters: bool,
    is_lower_cased: bool,
}

impl SideTable {
    /// The words that the mapping speaks of, of which there must be `n_words`.
    pub(super) fn read(file: &TensorFile, side: &'static str, mapping: &SideMapping, n_words: usize) -> Result<Self, ImportError> {
        let wrong = |what: String| ImportError::Table { path: file.path().to_owned(), side, what };
        let words = Vocabulary::new(listed(file, &mapping.table)?).map_err(|error| wrong(format!("are no table: {error}")))?;
        if words.len() != n_words {
            return Err(wrong(format!("are {}, but `{side}.embedding` has {n_words} rows", words.len())));
        }
        let special = |name: &str, given: &Given<Token>| {
            let token: Token = value(file, given)?;
            match words.word(token) {
                Some(_) => Ok(token),
                None => Err(wrong(format!("are {n_words}, and the {name} token {token} is not among them"))),
            }
        };
        let (start, end) = (special("start", &mapping.start)?, special("end", &mapping.end)?);
        if start == end {
            return Err(wrong(format!("begin and end with the same token, {start}")));
        }
        let is_of_characters = words.words().iter().all(|word| word.chars().count() == 1 || is_named(word));
        Ok(Self { words, start, end, is_of_characters, is_lower_cased: mapping.lower_case })
    }

    /// All words by number.
    pub fn words(&self) -> &Vocabulary {
        &self.words
    }

    /// The token a sentence begins with.
    pub fn start(&self) -> Token {
        self.start
    }

    /// The token a sentence ends with.
    pub fn end(&self) -> Token {
        self.end
    }

    /// What a text is split into, known or not: its characters where every word of the table but those in angle brackets is one character,
    /// else what blanks separate.
    pub fn split(&self, text: &str) -> Vec<String> {
        if !self.is_of_characters {
            return text.split_whitespace().map(str::to_owned).collect();
        }
        let text = if self.is_lower_cased { text.to_lowercase() } else { text.to_owned() };
        text.chars().map(String::from).collect()
    }

    /// The tokens of a text, without start and end. Nothing is left out: what the table does not have is an error.
    pub fn tokens(&self, text: &str) -> Result<Vec<Token>, UnknownWord> {
        self.split(text).into_iter().map(|word| self.words.token(&word).ok_or(UnknownWord { word })).collect()
    }

    /// The text of tokens: what comes before the end, without names in angle brackets that stand for no text.
    pub fn text(&self, tokens: &[Token]) -> String {
        let words = tokens.iter().take_while(|&&token| token != self.end).filter_map(|&token| self.words.word(token));
        let words: Vec<&str> = words.filter(|word| !is_named(word)).collect();
        words.join(if self.is_of_characters { "" } else { " " })
    }

    /// The words as an explanation wants them.
    pub(super) fn described(&self) -> Words {
        Words { count: self.words.len() as Token, names: self.words.words().to_vec(), start: Some(self.start), end: Some(self.end) }
    }
}

/// Whether a word stands for no text, such as `<eos>`.
fn is_named(word: &str) -> bool {
    word.starts_with('<') && word.ends_with('>')
}

fn listed(file: &TensorFile, table: &Table) -> Result<Vec<String>, ImportError> {
    match table {
        Table::Listed(words) => Ok(words.clone()),
        Table::Metadata(JoinedWords { metadata, separator }) => {
            let wrong = |what: &str| ImportError::Metadata { path: file.path().to_owned(), key: metadata.clone(), what: what.to_owned() };
            if separator.is_empty() {
                return Err(wrong("cannot be split: the mapping gives it no separator"));
            }
            let text = file.metadata(metadata).ok_or_else(|| wrong("is not there"))?;
            Ok(text.split(separator.as_str()).map(str::to_owned).collect())
        }
    }
}
