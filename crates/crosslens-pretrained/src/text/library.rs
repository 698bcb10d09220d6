//! `tokenizer.json`, opened by the `tokenizers` library, which wrote it.
//!
//! The library trusts its files. What would make it run out of memory is looked at before; where it panics all the same, that is an error
//! of the file.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tokenizers::Tokenizer;

use super::error::TokenizerError;
use super::files;
use super::languages::{Kind, Languages};
use super::settings::Settings;
use super::steps::Steps;
use super::words::{WordCounter, Words};
use super::{Encoded, byte_level, word_pieces};

const FILE: &str = "tokenizer.json";

/// A tokenizer of the library.
#[derive(Clone, Debug)]
pub(super) struct Library {
    path: PathBuf,
    tokenizer: Tokenizer,
    tokens: HashMap<u32, String>,
    /// What stands for a space in tokens, if anything does.
    space_mark: Option<char>,
}

/// The parts of the file that are looked at before the library does.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
}

/// What is looked at of a model whose pieces say that they go on.
#[derive(Deserialize)]
struct WithPrefix {
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
}

/// The merges of byte-pair encoding, `["a", "b"]` or in older files `"a b"`.
#[derive(Deserialize)]
struct WithMerges {
    #[serde(default)]
    merges: Vec<Value>,
}

#[derive(Deserialize)]
struct Of<T> {
    model: T,
}

impl Library {
    /// Opens the tokenizer if the folder has one.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, TokenizerError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = files::json_bytes(&path)?;
        Self::read(path, &bytes).map(Some)
    }

    /// The tokenizer that `vocab.json` and `merges.txt`, or `vocab.txt`, of older folders make up, if the folder has them.
    pub(super) fn assemble(folder: &Path) -> Result<Option<Self>, TokenizerError> {
        let assembled = match byte_level::as_library(folder)? {
            None => word_pieces::as_library(folder)?,
            found => found,
        };
        assembled.map(|(path, bytes)| Self::read(path, &bytes)).transpose()
    }

    /// Reads what `tokenizer.json` holds; `path` is the file to name in errors.
    fn read(path: PathBuf, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let parts: Parts = serde_json::from_slice(bytes).map_err(|source| TokenizerError::Json { path: path.clone(), source })?;
        let refused = |reason: String| TokenizerError::Library { path: path.clone(), reason };
        let Parts { normalizer, pre_tokenizer, post_processor, decoder } = &parts;
        Steps { normalizer, pre_tokenizer, post_processor, decoder }.check().map_err(refused)?;
        check_merges(bytes).map_err(refused)?;

        let opened = guarded(|| {
            let mut tokenizer = Tokenizer::from_bytes(bytes)?;
            // A file may say how batches were padded and cut when it was saved; neither belongs to the text.
            tokenizer.with_padding(None).with_truncation(None)?;
            let tokens = tokenizer.get_vocab(true).into_iter().map(|(token, id)| (id, token)).collect();
            Ok((tokenizer, tokens))
        });
        let (tokenizer, tokens) = opened.map_err(refused)?;
        Ok(Self { space_mark: space_mark(&parts.decoder), path, tokenizer, tokens })
    }

    /// The languages among its special tokens.
    pub(super) fn languages(&self, folder: &Path, kind: Kind, settings: &Settings) -> Result<Option<Languages>, TokenizerError> {
        let added = self.tokenizer.get_added_tokens_decoder();
        let is_language = |token: &str| kind.is_language(token);
        let languages: Vec<_> = added.into_iter().filter(|(_, token)| token.special && is_language(&token.content)).collect();
        if languages.is_empty() {
            return Ok(None);
        }
        let missing = || TokenizerError::MissingToken { path: self.path.clone(), token: settings.end().to_owned() };
        let end = self.tokenizer.token_to_id(settings.end()).ok_or_else(missing)?;
        let languages = languages.into_iter().map(|(id, token)| (token.content, id)).collect();
        Ok(Languages::new(folder, kind, settings, languages, (settings.end().to_owned(), end)))
    }

    /// A text with what the file itself puts around it.
    pub(super) fn encode(&self, text: &str) -> Result<Encoded, TokenizerError> {
        self.encode_with(text, true)
    }

    /// A text without what stands around it.
    pub(super) fn encode_bare(&self, text: &str) -> Result<Encoded, TokenizerError> {
        self.encode_with(text, false)
    }

    fn encode_with(&self, text: &str, adds_special_tokens: bool) -> Result<Encoded, TokenizerError> {
        let words = Words::of(text);
        let encoding = guarded(|| self.tokenizer.encode(text, adds_special_tokens)).map_err(|reason| self.failed(reason))?;
        let is_added = encoding.get_special_tokens_mask();
        let words = encoding.get_offsets().iter().zip(is_added).map(|(&(begin, _), &added)| words.at(begin).filter(|_| added == 0));
        Ok(Encoded { ids: encoding.get_ids().to_vec(), tokens: encoding.get_tokens().to_vec(), words: words.collect() })
    }

    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        guarded(|| self.tokenizer.decode(ids, true)).map_err(|reason| self.failed(reason))
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(&id).map(String::as_str)
    }

    pub(super) fn size(&self) -> usize {
        self.tokens.keys().max().map_or(0, |&id| id as usize + 1)
    }

    pub(super) fn words(&self, ids: &[u32]) -> Option<Vec<Option<usize>>> {
        let mut counter = WordCounter::new(self.space_mark?, false);
        let added = self.tokenizer.get_added_vocabulary();
        let is_text = |token: &&str| !added.is_special_token(token) || *token == "<unk>";
        Some(ids.iter().map(|&id| self.token(id).filter(is_text).map(|token| counter.word_of(token))).collect())
    }

    fn failed(&self, reason: String) -> TokenizerError {
        TokenizerError::Failed { path: self.path.clone(), reason }
    }
}

/// What the library answers. Where it panics, the file asks for what cannot be done: that is an answer too, and not the end of the program.
fn guarded<T>(question: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    // What a panic may have left half done is a cache of the library's, whose locks then panic again and end up here.
    match catch_unwind(AssertUnwindSafe(question)) {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("the library that wrote it gives up over one of its settings ({})", words.unwrap_or("it does not say which")))
        }
    }
}

/// The library cuts as many bytes as the prefix has off the second part of every merge, whatever they are, and takes the rest for text.
fn check_merges(bytes: &[u8]) -> Result<(), String> {
    // Of a field that is there twice the library takes the last; here it is refused, and so is what is of another kind.
    let unread = |error: serde_json::Error| format!("its model: {error}");
    let Of { model: WithPrefix { continuing_subword_prefix } } = serde_json::from_slice(bytes).map_err(unread)?;
    let Some(prefix) = continuing_subword_prefix else { return Ok(()) };
    let Of { model: WithMerges { merges } } = serde_json::from_slice(bytes).map_err(unread)?;
    let second = |merge: &Value| match merge {
        Value::String(both) => both.split_once(' ').map(|(_, second)| second.to_owned()),
        both => both.get(1)?.as_str().map(str::to_owned),
    };
    match merges.iter().filter_map(second).find(|second| !second.starts_with(&prefix)) {
        Some(second) => Err(format!("`merges` of its model put on `{second}`, which lacks the prefix `{prefix}`")),
        None => Ok(()),
    }
}

/// `Ġ` of byte-level tokenizers, `▁` of those that follow SentencePiece.
fn space_mark(decoder: &Value) -> Option<char> {
    let kind = |part: &Value, wanted: &str| part["type"] == wanted;
    let parts = match &decoder["decoders"] {
        Value::Array(parts) => parts.as_slice(),
        _ => std::slice::from_ref(decoder),
    };
    parts.iter().find_map(|part| {
        if kind(part, "ByteLevel") {
            return Some('Ġ');
        }
        let replaced =
            kind(part, "Metaspace").then(|| &part["replacement"]).or_else(|| kind(part, "Replace").then(|| &part["pattern"]["String"]));
        replaced.and_then(Value::as_str).and_then(|text| text.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_mark_of_spaces_is_known_from_the_decoder() {
        assert_eq!(space_mark(&json!({"type": "ByteLevel"})), Some('Ġ'));
        assert_eq!(space_mark(&json!({"type": "Metaspace", "replacement": "_"})), Some('_'));
        let sequence = json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]});
        assert_eq!(space_mark(&sequence), Some('▁'));
        assert_eq!(space_mark(&Value::Null), None);
    }
}
