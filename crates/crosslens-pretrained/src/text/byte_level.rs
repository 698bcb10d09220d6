//! The files of byte-level tokenizers before there was `tokenizer.json`: `vocab.json`, `merges.txt` and `added_tokens.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::TokenizerError;
use super::files;

/// The first token that is a time and not special: it belongs to what a model of speech writes.
const FIRST_TIME: &str = "<|0.00|>";

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

    let mut by_number: BTreeMap<u64, String> = BTreeMap::new();
    for (name, number) in files::json_if_there::<BTreeMap<String, u64>>(&added)?.unwrap_or_default() {
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
    let tokens = by_number.iter().map(|(number, name)| {
        let special = *number < first_time;
        json!({ "id": number, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": special })
    });
    let bytes = |prefix: bool| json!({ "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true });
    let whole = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": tokens.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": bytes(false), "post_processor": null, "decoder": bytes(true),
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                   "fuse_unk": false, "byte_fallback": false, "vocab": words, "merges": rules }
    });
    Ok(Some((vocabulary, whole.to_string().into_bytes())))
}
