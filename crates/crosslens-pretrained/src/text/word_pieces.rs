//! `vocab.txt` of BERT's tokenizers, as BLIP's has it, before there was `tokenizer.json`: a piece a line, numbered from 0.
//!
//! ```text
//! a text   cleaned, in lower case and without accents unless told otherwise, cut at spaces, punctuation and Chinese characters;
//!          of each word the longest pieces that are known, `##` before those within it; a word that has none is [UNK]
//! read     [CLS] X [SEP]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::TokenizerError;
use super::files;
use super::settings::{self, Token};

/// What `tokenizer_config.json` may say of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    do_lower_case: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    strip_accents: Option<bool>,
    pad_token: Option<Token>,
    unk_token: Option<Token>,
    cls_token: Option<Token>,
    sep_token: Option<Token>,
    mask_token: Option<Token>,
}

/// The `tokenizer.json` that says the same, and the file it stands for; nothing where the folder has no such file.
pub(super) fn as_library(folder: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, TokenizerError> {
    let path = folder.join("vocab.txt");
    if !path.exists() {
        return Ok(None);
    }
    let refused = |path: &Path, reason: String| TokenizerError::Library { path: path.to_owned(), reason };
    let text = String::from_utf8(files::json_bytes(&path)?).map_err(|error| refused(&path, format!("it is no UTF-8: {error}")))?;
    let pieces: Map<String, Value> = text.lines().enumerate().map(|(number, piece)| (piece.to_owned(), json!(number))).collect();

    let told: Told = files::json_if_there(&folder.join(settings::FILE))?.unwrap_or_default();
    let name = |token: &Option<Token>, otherwise: &str| token.as_ref().map_or(otherwise, Token::text).to_owned();
    let [pad, unknown, class, separator, mask] = [
        name(&told.pad_token, "[PAD]"),
        name(&told.unk_token, "[UNK]"),
        name(&told.cls_token, "[CLS]"),
        name(&told.sep_token, "[SEP]"),
        name(&told.mask_token, "[MASK]"),
    ];
    let numbered = |token: &str| {
        let missing = || TokenizerError::MissingToken { path: path.clone(), token: token.to_owned() };
        pieces.get(token).cloned().ok_or_else(missing)
    };
    numbered(&unknown)?;
    let around = json!({ "type": "BertProcessing", "sep": [&separator, numbered(&separator)?], "cls": [&class, numbered(&class)?] });

    let added = folder.join("added_tokens.json");
    let beside: BTreeMap<String, u64> = files::json_if_there(&added)?.unwrap_or_default();
    let mut beside: Vec<(u64, String)> =
        beside.into_iter().filter(|(token, _)| !pieces.contains_key(token)).map(|(token, number)| (number, token)).collect();
    beside.sort();
    // The library numbers them itself, one after the other.
    let from = pieces.len() as u64;
    if beside.iter().zip(from..).any(|((number, _), expected)| *number != expected) {
        let cure = "save the tokenizer again with a newer transformers, which writes tokenizer.json";
        return Err(refused(&added, format!("its tokens are not numbered from {from} on without gaps; {cure}")));
    }
    let of_pieces =
        [pad, unknown.clone(), class, separator, mask].into_iter().filter_map(|token| Some((pieces.get(&token)?.as_u64()?, token)));
    let all: BTreeMap<u64, String> = of_pieces.chain(beside).collect();
    let special = all.iter().map(|(number, token)| {
        json!({ "id": number, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true })
    });
    let whole = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": told.tokenize_chinese_chars.unwrap_or(true),
                        "strip_accents": told.strip_accents, "lowercase": told.do_lower_case.unwrap_or(true) },
        "pre_tokenizer": { "type": "BertPreTokenizer" }, "post_processor": around,
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": { "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                   "vocab": pieces }
    });
    Ok(Some((path, whole.to_string().into_bytes())))
}
