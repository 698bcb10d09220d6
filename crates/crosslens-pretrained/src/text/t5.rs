//! T5 models: one SentencePiece model whose ids are the model's own, followed by sentinels.
//!
//! Follows the tokenizer with which T5 was published in transformers, `T5Tokenizer` on SentencePiece: special tokens are found
//! first, sentinels with the spaces around them; `</s>` ends both sides. With `p` pieces and `e` sentinels, `<extra_id_i>` has the id
//! `p + e − 1 − i`: they count from the end. What `legacy` of `tokenizer_config.json` says is not asked, as `T5Tokenizer` of transformers
//! 5.22.2 does not ask it: text behind a special token begins with a mark of spaces either way.

use std::collections::BTreeMap;
use std::path::Path;

use super::Encoded;
use super::error::TokenizerError;
use super::marian::open_model;
use super::sentencepiece::SentencePiece;
use super::settings::{self, AddedToken, Settings};
use super::special::{Part, Special, is_space};
use super::words::{WordCounter, Words};

const MODEL: &str = "spiece.model";
const SENTINELS: u64 = 100;
const MAX_SENTINELS: u64 = 100_000;

/// The tokenizer of a T5 model.
#[derive(Clone, Debug)]
pub(super) struct T5 {
    model: SentencePiece,
    special: Special,
    end: u32,
}

impl T5 {
    /// Opens the tokenizer if the folder has one.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, TokenizerError> {
        let path = folder.join(MODEL);
        if !path.exists() {
            return Ok(None);
        }
        let settings = Settings::open(folder)?;
        let model = open_model(&path)?;
        let end = model.id_of(settings.end());
        if end == model.unknown_id() {
            return Err(TokenizerError::MissingToken { path, token: settings.end().to_owned() });
        }

        let mut special: BTreeMap<u32, AddedToken> = BTreeMap::new();
        for token in [settings.unknown(), settings.end(), settings.padding()] {
            let id = model.id_of(token);
            if model.piece(id) == Some(token) {
                special.insert(id, AddedToken { content: token.to_owned(), lstrip: false, rstrip: false, special: true });
            }
        }
        let n_sentinels = settings.extra_ids.unwrap_or(SENTINELS);
        if n_sentinels > MAX_SENTINELS {
            let value = n_sentinels.to_string();
            let cure = "no model has more than 100,000 sentinels";
            return Err(TokenizerError::Setting { path: folder.join(settings::FILE), field: "extra_ids", value, cure });
        }
        let first = model.n_pieces() as u32;
        special.extend((0..n_sentinels as u32).map(|sentinel| {
            let content = format!("<extra_id_{}>", n_sentinels as u32 - 1 - sentinel);
            (first + sentinel, AddedToken { content, lstrip: true, rstrip: true, special: true })
        }));
        special.extend(settings.added());
        Ok(Some(Self { model, special: Special::new(special), end }))
    }

    pub(super) fn encode(&self, text: &str) -> Encoded {
        let words = Words::of(text);
        let mut encoded = Encoded::default();
        for part in self.special.split(text) {
            match part {
                Part::Token(id, range) => encoded.push(id, &text[range.clone()], words.at(range.start)),
                Part::Text(range) => encoded.push_pieces(&self.model, &text[range.clone()], range.start, &words, |_, id| id),
            }
        }
        encoded.push(self.end, self.token(self.end).unwrap_or_default(), None);
        encoded
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let tokens = ids.iter().filter(|&&id| !self.special.is_left_out(id)).filter_map(|&id| self.token(id));
        self.model.decode(tokens).trim_matches(is_space).to_owned()
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.special.token(id).or_else(|| self.model.piece(id))
    }

    pub(super) fn size(&self) -> usize {
        self.special.last_id().map_or(0, |id| id as usize + 1).max(self.model.n_pieces())
    }

    pub(super) fn words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let mut counter = WordCounter::new('\u{2581}', self.model.space_is_suffix());
        let is_text = |id: u32| !self.special.is_left_out(id) || id == self.model.unknown_id();
        ids.iter().map(|&id| self.token(id).filter(|_| is_text(id)).map(|token| counter.word_of(token))).collect()
    }
}
