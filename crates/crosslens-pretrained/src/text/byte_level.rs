//! The files of byte-level tokenizers before there was `tokenizer.json`: `vocab.json`, `merges.txt` and `added_tokens.json`.
//!
//! Which tokens are special stands in `tokenizer_config.json` or `special_tokens_map.json`; what neither says follows from the vocabulary:
//!
//! ```text
//! with <s> and </s>   RoBERTa's: <s> </s> <unk> <pad> <mask>, and a text is <s> X </s>
//! else                GPT-2's and Whisper's: <|endoftext|>, and a text is X
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::TokenizerError;
use super::files;
use super::settings::{AddedToken, Token};

/// The first token that is a time and not special: it belongs to what a model of speech writes.
const FIRST_TIME: &str = "<|0.00|>";
const MASK: &str = "<mask>";

/// What the two files say of special tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    tokenizer_class: Option<String>,
    bos_token: Option<Token>,
    eos_token: Option<Token>,
    unk_token: Option<Token>,
    sep_token: Option<Token>,
    pad_token: Option<Token>,
    cls_token: Option<Token>,
    mask_token: Option<Token>,
    additional_special_tokens: Option<Vec<Token>>,
    added_tokens_decoder: BTreeMap<u32, AddedToken>,
}

impl Named {
    /// In the order of [`ROBERTA`].
    fn roles(&self) -> [Option<&str>; 7] {
        let Self { bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token, .. } = self;
        [bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token].map(|token| token.as_ref().map(Token::text))
    }
}

/// What begins, ends, is unknown, separates, pads, classifies and masks where no file says otherwise.
const ROBERTA: [Option<&str>; 7] = [Some("<s>"), Some("</s>"), Some("<unk>"), Some("</s>"), Some("<pad>"), Some("<s>"), Some(MASK)];
const GPT2: [Option<&str>; 7] = {
    let end = Some("<|endoftext|>");
    [end, end, end, None, None, None, None]
};

/// The special tokens of a folder.
struct Specials {
    names: BTreeSet<String>,
    /// Around every text, where anything is.
    around: Option<[String; 2]>,
    /// By number, those that a file lists beside the vocabulary.
    listed: BTreeMap<u32, AddedToken>,
}

impl Specials {
    fn of(folder: &Path, words: &Map<String, Value>) -> Result<Self, TokenizerError> {
        let read = |name: &str| Ok::<Named, TokenizerError>(files::json_if_there(&folder.join(name))?.unwrap_or_default());
        let (config, map) = (read("tokenizer_config.json")?, read("special_tokens_map.json")?);
        let other_class = |class: &str| class.starts_with("GPT2") || class.starts_with("Whisper");
        let is_roberta =
            words.contains_key("<s>") && words.contains_key("</s>") && !config.tokenizer_class.as_deref().is_some_and(other_class);
        let otherwise = if is_roberta { ROBERTA } else { GPT2 };
        let roles = config.roles().into_iter().zip(map.roles()).zip(otherwise);
        let roles: Vec<Option<&str>> = roles.map(|((config, map), otherwise)| config.or(map).or(otherwise)).collect();
        let around = match roles[..] {
            [_, _, _, Some(separator), _, Some(class), _] if is_roberta => Some([class.to_owned(), separator.to_owned()]),
            _ => None,
        };
        let more = [&config, &map].into_iter().flat_map(|named| named.additional_special_tokens.iter().flatten()).map(Token::text);
        let listed = config.added_tokens_decoder.values().filter(|token| token.special).map(|token| token.content.as_str());
        let names = roles.iter().flatten().copied().chain(more).chain(listed).map(str::to_owned).collect();
        Ok(Self { names, around, listed: config.added_tokens_decoder })
    }
}

/// The `tokenizer.json` that says the same, and the file it stands for; nothing where the folder has no such files.
pub(super) fn as_library(folder: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, TokenizerError> {
    let [vocabulary, merges, added] = ["vocab.json", "merges.txt", "added_tokens.json"].map(|name| folder.join(name));
    if !merges.exists() {
        return Ok(None);
    }
    let Some(words) = files::json_if_there::<Map<String, Value>>(&vocabulary)? else { return Ok(None) };
    let refused = |path: &Path, reason: String| TokenizerError::Library { path: path.to_owned(), reason };
    let rules = String::from_utf8(files::json_bytes(&merges)?).map_err(|error| refused(&merges, format!("it is no UTF-8: {error}")))?;
    let rules: Vec<&str> = rules.lines().filter(|line| !line.starts_with("#version") && !line.is_empty()).collect();
    if let Some(line) = rules.iter().find(|line| line.split(' ').count() != 2) {
        return Err(refused(&merges, format!("the line `{line}` is not two tokens")));
    }

    let specials = Specials::of(folder, &words)?;
    let mut by_number: BTreeMap<u64, String> = BTreeMap::new();
    let listed = specials.listed.iter().map(|(&number, token)| (token.content.clone(), u64::from(number)));
    for (name, number) in files::json_if_there::<BTreeMap<String, u64>>(&added)?.unwrap_or_default().into_iter().chain(listed) {
        if !words.contains_key(&name) {
            by_number.insert(number, name);
        }
    }
    // The library numbers them itself, one after the other.
    let from = words.len() as u64;
    if by_number.keys().zip(from..).any(|(number, expected)| *number != expected) {
        let cure = "save the tokenizer again with a newer transformers, which writes tokenizer.json";
        return Err(refused(&added, format!("its tokens are not numbered from {from} on without gaps; {cure}")));
    }
    let first_time = by_number.iter().find(|(_, name)| *name == FIRST_TIME).map_or(u64::MAX, |(number, _)| *number);
    let of_vocabulary = specials.names.iter().filter_map(|name| Some((words.get(name)?.as_u64()?, name)));
    let all: BTreeMap<u64, &String> = of_vocabulary.chain(by_number.iter().map(|(number, name)| (*number, name))).collect();
    let tokens = all.iter().map(|(number, name)| {
        let special = *number < first_time || specials.names.contains(*name);
        json!({ "id": number, "content": name, "single_word": false, "lstrip": *name == MASK, "rstrip": false, "normalized": false,
                "special": special })
    });
    let processor = specials.around.as_ref().and_then(|[class, separator]| {
        let pair = |name: &String| Some(json!([name, words.get(name)?.as_u64()?]));
        Some(json!({ "type": "RobertaProcessing", "sep": pair(separator)?, "cls": pair(class)?, "trim_offsets": true,
                     "add_prefix_space": false }))
    });
    let bytes = |prefix: bool| json!({ "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true });
    let whole = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": tokens.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": bytes(false), "post_processor": processor, "decoder": bytes(true),
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                   "fuse_unk": false, "byte_fallback": false, "vocab": words, "merges": rules }
    });
    Ok(Some((vocabulary, whole.to_string().into_bytes())))
}
