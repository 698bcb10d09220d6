//! Marian models: a SentencePiece model a side, whose pieces have the ids of a JSON vocabulary.
//!
//! Follows `MarianTokenizer` of transformers: special tokens are found first; a language code such as `>>fra<<` at the beginning is
//! one token; pieces that the vocabulary lacks become `<unk>`; `</s>` ends both sides.

use std::collections::BTreeMap;
use std::path::Path;

use super::Encoded;
use super::error::TokenizerError;
use super::files;
use super::sentencepiece::{SPACE_MARK, SentencePiece};
use super::settings::{AddedToken, Settings};
use super::special::{Part, Special, is_space};
use super::vocabulary::Vocabulary;
use super::words::{WordCounter, Words};

const SOURCE_MODEL: &str = "source.spm";
const TARGET_MODEL: &str = "target.spm";
const VOCABULARY: &str = "vocab.json";
const TARGET_VOCABULARY: &str = "target_vocab.json";

/// The tokenizer of a Marian model.
#[derive(Clone, Debug)]
pub(super) struct Marian {
    source: Side,
    target: Side,
}

/// One side of it.
#[derive(Clone, Debug)]
struct Side {
    model: SentencePiece,
    vocabulary: Vocabulary,
    special: Special,
    unknown: u32,
    end: u32,
}

impl Marian {
    /// Opens the tokenizer if the folder has one; some but not all of its files are an error.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, TokenizerError> {
        let is_there = |name: &&str| folder.join(name).exists();
        if ![SOURCE_MODEL, TARGET_MODEL].iter().any(is_there) {
            return Ok(None);
        }
        let settings = Settings::open(folder)?;
        let target_vocabulary = if settings.separate_vocabs == Some(true) { TARGET_VOCABULARY } else { VOCABULARY };
        let needed = [SOURCE_MODEL, TARGET_MODEL, VOCABULARY, target_vocabulary];
        if let Some(missing) = needed.into_iter().find(|name| !is_there(name)) {
            return Err(TokenizerError::Incomplete { folder: folder.to_owned(), missing });
        }
        Ok(Some(Self {
            source: Side::open(folder, SOURCE_MODEL, VOCABULARY, &settings)?,
            target: Side::open(folder, TARGET_MODEL, target_vocabulary, &settings)?,
        }))
    }

    pub(super) fn encode_source(&self, text: &str) -> Encoded {
        self.source.encode(text)
    }

    pub(super) fn encode_target(&self, text: &str) -> Encoded {
        self.target.encode(text)
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        self.target.decode(ids)
    }

    pub(super) fn source_token(&self, id: u32) -> Option<&str> {
        self.source.token(id)
    }

    pub(super) fn target_token(&self, id: u32) -> Option<&str> {
        self.target.token(id)
    }

    pub(super) fn sizes(&self) -> [usize; 2] {
        [&self.source, &self.target].map(|side| {
            let with_special = side.special.last_id().map_or(0, |id| id as usize + 1);
            side.vocabulary.size().max(with_special)
        })
    }

    pub(super) fn target_words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let mut counter = WordCounter::new('\u{2581}', self.target.model.space_is_suffix());
        let is_text = |id: u32| !self.target.special.is_left_out(id) || id == self.target.unknown;
        ids.iter().map(|&id| self.target.token(id).filter(|_| is_text(id)).map(|token| counter.word_of(token))).collect()
    }
}

impl Side {
    fn open(folder: &Path, model: &str, vocabulary: &str, settings: &Settings) -> Result<Self, TokenizerError> {
        let path = folder.join(vocabulary);
        let vocabulary = Vocabulary::open(&path)?;
        let required = |token: &str| {
            let missing = || TokenizerError::MissingToken { path: path.clone(), token: token.to_owned() };
            vocabulary.id(token).ok_or_else(missing)
        };
        let [unknown, end] = [required(settings.unknown())?, required(settings.end())?];

        let mut special: BTreeMap<u32, AddedToken> = BTreeMap::new();
        for token in [settings.unknown(), settings.end(), settings.padding()] {
            if let Some(id) = vocabulary.id(token) {
                special.insert(id, AddedToken { content: token.to_owned(), lstrip: false, rstrip: false, special: true });
            }
        }
        special.extend(settings.added());
        Ok(Self { model: open_model(&folder.join(model))?, vocabulary, special: Special::new(special), unknown, end })
    }

    fn token(&self, id: u32) -> Option<&str> {
        self.special.token(id).or_else(|| self.vocabulary.token(id))
    }

    fn encode(&self, text: &str) -> Encoded {
        let words = Words::of(text);
        let mut encoded = Encoded::default();
        for part in self.special.split(text) {
            match part {
                Part::Token(id, range) => encoded.push(id, &text[range.clone()], words.at(range.start)),
                Part::Text(range) => {
                    let (code, rest) = text[range.clone()].split_at(language_code(&text[range.clone()]));
                    if !code.is_empty() {
                        encoded.push(self.id(code), code, words.at(range.start));
                    }
                    let ids = |piece: &str, _| self.id(piece);
                    encoded.push_pieces(&self.model, rest, range.end - rest.len(), &words, ids);
                }
            }
        }
        encoded.push(self.end, self.token(self.end).unwrap_or_default(), None);
        encoded
    }

    fn id(&self, piece: &str) -> u32 {
        self.vocabulary.id(piece).unwrap_or(self.unknown)
    }

    fn decode(&self, ids: &[u32]) -> String {
        let tokens = ids.iter().filter(|&&id| !self.special.is_left_out(id)).filter_map(|&id| self.token(id));
        self.model.decode(tokens).replace(SPACE_MARK, " ").trim_matches(is_space).to_owned()
    }
}

/// The length in bytes of the language code that a text begins with.
fn language_code(text: &str) -> usize {
    if text.starts_with(">>") { text.find("<<").map_or(0, |place| place + 2) } else { 0 }
}

pub(super) fn open_model(path: &Path) -> Result<SentencePiece, TokenizerError> {
    let bytes = files::model_bytes(path)?;
    SentencePiece::from_bytes(&bytes).map_err(|source| TokenizerError::Model { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_code_stands_at_the_beginning() {
        assert_eq!([">>fra<< a", ">>fra a", " >>fra<< a", ">><<"].map(language_code), [7, 0, 0, 4]);
    }
}
