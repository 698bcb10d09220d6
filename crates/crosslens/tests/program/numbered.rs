//! A tiny T5 of random weights with a tokenizer of numbered words, as a folder that is published.

use std::path::Path;

use serde_json::{Map, Value, json};

/// Random weights; see `crosslens-pretrained/tests/golden/make_pretrained.py`.
pub(crate) const T5: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-pretrained/tests/golden/t5");
/// Its vocabulary: `<pad>`, `</s>`, `<unk>` and the words.
pub(crate) const TOKENS: usize = 64;

/// Whole words w3 to w63, the end appended.
pub(crate) fn tokenizer() -> Value {
    let special = ["<pad>", "</s>", "<unk>"];
    let name = |id: usize| special.get(id).map_or_else(|| format!("w{id}"), |name| (*name).to_owned());
    let vocabulary: Map<String, Value> = (0..TOKENS).map(|id| (name(id), json!(id))).collect();
    let added = special.iter().enumerate().map(|(id, name)| {
        json!({ "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true })
    });
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let end = json!({ "SpecialToken": { "id": "</s>", "type_id": 0 } });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [text("A"), end],
            "pair": [text("A"), end, text("B"), end],
            "special_tokens": { "</s>": { "id": "</s>", "ids": [1], "tokens": ["</s>"] } }
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>" }
    })
}

/// Some words, the same for the same number.
pub(crate) fn words(number: usize, n: usize) -> String {
    (0..n).map(|i| format!("w{}", 3 + (number * 17 + i * i * 5 + i * 7) % (TOKENS - 3))).collect::<Vec<_>>().join(" ")
}

/// A folder with the model `t5`, the same without its tokenizer, and thirty pairs.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for model in ["t5", "mute"] {
        std::fs::create_dir(at(model)).expect("a folder");
        for file in ["config.json", "generation_config.json", "model.safetensors"] {
            std::fs::copy(Path::new(T5).join(file), at(model).join(file)).expect("a copy");
        }
    }
    std::fs::write(at("t5/tokenizer.json"), tokenizer().to_string()).expect("a tokenizer");
    let pair = |number: usize| format!("{}\t{}\n", words(number, 3 + number % 5), words(number + 1, 2 + number % 6));
    std::fs::write(at("pairs.tsv"), (0..30).map(pair).collect::<String>()).expect("a corpus");
    folder
}
