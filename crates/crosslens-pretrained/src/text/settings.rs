//! What `tokenizer_config.json` says, as far as tokenizers made of SentencePiece models need it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::error::TokenizerError;
use super::files;

pub(super) const FILE: &str = "tokenizer_config.json";

/// Where older folders keep additional special tokens.
const SPECIAL_TOKENS: &str = "special_tokens_map.json";

/// Where folders that transformers saved before 4.34 keep tokens that were added: their ids by their texts.
const ADDED_TOKENS: &str = "added_tokens.json";

/// The one field of that file that is needed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecialTokens {
    additional_special_tokens: Option<Vec<Token>>,
}

/// The fields that matter; the file has many others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    /// Marian: whether the target has a vocabulary of its own.
    pub(super) separate_vocabs: Option<bool>,
    /// T5: how many sentinels follow the pieces.
    pub(super) extra_ids: Option<u64>,
    /// The class of transformers that it was saved by.
    pub(super) tokenizer_class: Option<String>,
    /// Pegasus: by how much pieces are moved.
    pub(super) offset: Option<u64>,
    /// M2M100: which list of languages.
    pub(super) language_codes: Option<String>,
    /// NLLB: whether the language stands after a source instead of before it.
    pub(super) legacy_behaviour: Option<bool>,
    /// The language of sources.
    pub(super) src_lang: Option<String>,
    /// The language of targets.
    pub(super) tgt_lang: Option<String>,
    additional_special_tokens: Option<Vec<Token>>,
    pub(super) unk_token: Option<Token>,
    pub(super) eos_token: Option<Token>,
    pub(super) pad_token: Option<Token>,
    bos_token: Option<Token>,
    sep_token: Option<Token>,
    cls_token: Option<Token>,
    mask_token: Option<Token>,
    /// Tokens found in text before anything else, by their ids.
    pub(super) added_tokens_decoder: BTreeMap<u32, AddedToken>,
    /// The same from a file of their own, which counts where the configuration has none; they come after everything else.
    #[serde(skip)]
    beside: BTreeMap<u32, AddedToken>,
}

/// A token, as its text or as an object with its text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Token {
    Text(String),
    Object { content: String },
}

/// A token that is not of the model.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AddedToken {
    pub(super) content: String,
    /// Whether it takes the spaces before it along.
    #[serde(default)]
    pub(super) lstrip: bool,
    /// Whether it takes the spaces after it along.
    #[serde(default)]
    pub(super) rstrip: bool,
    /// Whether decoding leaves it out.
    #[serde(default)]
    pub(super) special: bool,
}

impl Token {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(content) | Self::Object { content } => content,
        }
    }
}

impl Settings {
    pub(super) fn open(folder: &Path) -> Result<Self, TokenizerError> {
        let mut settings: Self = files::json_if_there(&folder.join(FILE))?.unwrap_or_default();
        if settings.additional_special_tokens.is_none() {
            let map: SpecialTokens = files::json_if_there(&folder.join(SPECIAL_TOKENS))?.unwrap_or_default();
            settings.additional_special_tokens = map.additional_special_tokens;
        }
        if settings.added_tokens_decoder.is_empty() {
            let beside: BTreeMap<String, u32> = files::json_if_there(&folder.join(ADDED_TOKENS))?.unwrap_or_default();
            let special = settings.special();
            let token = |(content, id): (String, u32)| {
                let special = special.contains(&content[..]);
                (id, AddedToken { content, lstrip: false, rstrip: false, special })
            };
            let beside = beside.into_iter().map(token).collect();
            settings.beside = beside;
        }
        Ok(settings)
    }

    /// The tokens that were added, whichever file has them.
    pub(super) fn added(&self) -> impl Iterator<Item = (u32, AddedToken)> {
        self.added_tokens_decoder.iter().chain(&self.beside).map(|(&id, token)| (id, token.clone()))
    }

    /// Special tokens beyond those that have a name, such as languages, in their order.
    pub(super) fn additional(&self) -> impl Iterator<Item = &str> {
        self.additional_special_tokens.iter().flatten().map(Token::text)
    }

    /// All special tokens that have a name, by the files or by default, and those beyond.
    fn special(&self) -> HashSet<&str> {
        let named = [&self.bos_token, &self.sep_token, &self.cls_token, &self.mask_token];
        let named = named.into_iter().flatten().map(Token::text).chain(["<s>", "<mask>"]);
        self.additional().chain(named).chain([self.unknown(), self.end(), self.padding()]).collect()
    }

    /// Whether this is one of the special tokens that the files name.
    pub(super) fn names(&self, token: &str) -> bool {
        self.additional().any(|other| other == token) || self.added_tokens_decoder.values().any(|other| other.content == token)
    }

    pub(super) fn unknown(&self) -> &str {
        self.unk_token.as_ref().map_or("<unk>", Token::text)
    }

    pub(super) fn end(&self) -> &str {
        self.eos_token.as_ref().map_or("</s>", Token::text)
    }

    pub(super) fn padding(&self) -> &str {
        self.pad_token.as_ref().map_or("<pad>", Token::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What decoding leaves out, whichever file names it; `<mask>` is named by none.
    #[test]
    fn special_tokens_of_a_file_beside_are_those_that_have_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
        write(FILE, r#"{ "sep_token": "<sep>", "cls_token": { "content": "<cls>" } }"#);
        write(SPECIAL_TOKENS, r#"{ "additional_special_tokens": ["<one>"] }"#);
        write(ADDED_TOKENS, r#"{ "<sep>": 5, "<cls>": 6, "<one>": 7, "<mask>": 8, "</s>": 9, "word": 10 }"#);
        let settings = Settings::open(folder.path()).expect("settings");
        let special: Vec<u32> = settings.added().filter(|(_, token)| token.special).map(|(id, _)| id).collect();
        assert_eq!((special, settings.added().count()), (vec![5, 6, 7, 8, 9], 6));
    }
}
