//! What `tokenizer_config.json` says, as far as tokenizers made of SentencePiece models need it.

use std::collections::BTreeMap;
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
            let token = |(content, id): (String, u32)| {
                let special =
                    settings.additional().chain([settings.unknown(), settings.end(), settings.padding()]).any(|token| token == content);
                (id, AddedToken { content, lstrip: false, rstrip: false, special })
            };
            settings.beside = beside.into_iter().map(token).collect();
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
