//! Multilingual models: a tiny M2M100 of random weights whose tokenizer has numbered words and three languages.

use std::path::Path;

use super::common::{seen, succeed};
use serde_json::{Map, Value, json};

/// Random weights; see `crosslens-pretrained/tests/golden/make_pretrained.py`.
const M2M100: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-pretrained/tests/golden/m2m_100");
/// Its vocabulary: four special tokens, the words, and at the end the languages.
const TOKENS: usize = 64;
const LANGUAGES: [&str; 3] = ["__de__", "__en__", "__fr__"];

fn tokenizer() -> Value {
    let special = ["<s>", "<pad>", "</s>", "<unk>"];
    let name = |id: usize| match id.checked_sub(TOKENS - LANGUAGES.len()) {
        Some(language) => LANGUAGES[language].to_owned(),
        None => special.get(id).map_or_else(|| format!("w{id}"), |name| (*name).to_owned()),
    };
    let vocabulary: Map<String, Value> = (0..TOKENS).map(|id| (name(id), json!(id))).collect();
    let added = (0..TOKENS).filter(|id| !name(*id).starts_with('w')).map(|id| {
        json!({ "id": id, "content": name(id), "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true })
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" },
        "post_processor": null,
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>" }
    })
}

/// A folder with the model `many`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("many");
    std::fs::create_dir(&model).expect("a folder");
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(Path::new(M2M100).join(file), model.join(file)).expect("a copy");
    }
    std::fs::write(model.join("tokenizer.json"), tokenizer().to_string()).expect("a tokenizer");
    configure(folder.path(), &json!({}));
    folder
}

/// Writes the tokenizer's settings.
fn configure(folder: &Path, settings: &Value) {
    let mut config = json!({ "tokenizer_class": "M2M100Tokenizer" });
    config.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
    std::fs::write(folder.join("many/tokenizer_config.json"), config.to_string()).expect("a file");
}

const SPEAKING: [&str; 4] = ["--source-language", "en", "--target-language", "fr"];

fn attended(folder: &Path, arguments: &[&str]) -> Value {
    succeed(folder, &[&["attend", "many", "--source", "w5 w6 w7", "-o", "x.json"], arguments].concat());
    serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON")
}

#[test]
fn the_target_s_language_is_written_first() {
    let folder = folder();
    let output = succeed(folder.path(), &[&["translate", "many", "w5 w6 w7", "--max-tokens", "8", "--json"], &SPEAKING[..]].concat());
    let written: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(written["tokens"][0], json!(63));
    assert!(!written["text"].as_str().expect("a text").contains("__fr__"), "{written}");
}

#[test]
fn languages_stand_around_source_and_target() {
    let folder = folder();
    let pair = attended(folder.path(), &[&SPEAKING[..], &["--target", "w8 w9"]].concat());
    assert_eq!(pair["source"], json!(["__en__", "w5", "w6", "w7", "</s>"]));
    assert_eq!(pair["fed"], json!(["</s>", "__fr__", "w8", "w9"]));
    let own = attended(folder.path(), &SPEAKING);
    assert_eq!(own["fed"][1], "__fr__");
}

/// What a folder says of itself needs no option, and an option wins.
#[test]
fn a_folder_may_say_its_languages() {
    let folder = folder();
    configure(folder.path(), &json!({ "src_lang": "en", "tgt_lang": "de" }));
    assert_eq!(attended(folder.path(), &[])["fed"][1], "__de__");
    assert_eq!(attended(folder.path(), &["--target-language", "fr"])["fed"][1], "__fr__");
}

#[test]
fn languages_that_are_missing_unknown_or_too_many_are_refused() {
    let folder = folder();
    let refused = |arguments: &[&str], words: &[&str]| {
        let seen = seen(folder.path(), arguments);
        assert!(seen.starts_with("exit 2"), "{seen}");
        words.iter().for_each(|word| assert!(seen.contains(word), "no `{word}` in {seen}"));
    };
    refused(&["translate", "many", "w5"], &["tells 3 languages apart", "--source-language", "de, en, fr"]);
    refused(&["translate", "many", "w5", "--source-language", "en"], &["--target-language", "tgt_lang"]);
    let unknown = ["translate", "many", "w5", "--source-language", "en", "--target-language", "fra"];
    refused(&unknown, &["no language `fra` for the target among its 3", "the nearest are fr, "]);
    std::fs::write(folder.path().join("pairs.tsv"), "w5 w6\tw7\nw8\tw9\n").expect("a corpus");
    for command in ["heads", "align"] {
        refused(&[command, "many", "--corpus", "pairs.tsv"], &["--source-language"]);
    }
    for command in ["fit", "record"] {
        refused(&[command, "many", "--corpus", "pairs.tsv", "-o", "x"], &["--source-language"]);
    }
    std::fs::write(folder.path().join("many/tokenizer.json"), tokenizer().to_string().replace("__", "_")).expect("a file");
    refused(&[&["translate", "many", "w5"], &SPEAKING[..]].concat(), &["tells no languages apart", "leave --source-language"]);
}

/// What the hint of `fit` and `record` names, they take; sums and recordings are those of these languages.
#[test]
fn states_are_summed_and_recorded_in_the_chosen_languages() {
    let folder = folder();
    std::fs::write(folder.path().join("pairs.tsv"), "w5 w6\tw7\nw8\tw9 w10\n").expect("a corpus");
    succeed(folder.path(), &[&["fit", "many", "--corpus", "pairs.tsv", "-o", "x.stats.safetensors"], &SPEAKING[..]].concat());
    let given = ["explain", "many", "--corpus", "pairs.tsv", "--components", "x.stats.safetensors", "--causal", "0"];
    succeed(folder.path(), &[&given[..], &SPEAKING[..]].concat());
    succeed(folder.path(), &[&["record", "many", "--corpus", "pairs.tsv", "--forced", "-o", "recorded"], &SPEAKING[..]].concat());
    succeed(folder.path(), &["explain", "recorded"]);
}

#[test]
fn heads_and_links_are_found_in_the_chosen_languages() {
    let folder = folder();
    let pair = |number: usize| format!("w{} w{} w9\tw{} w7\n", 4 + number, 20 + number, 30 + number);
    std::fs::write(folder.path().join("pairs.tsv"), (0..8).map(pair).collect::<String>()).expect("a corpus");
    let heads = ["heads", "many", "--corpus", "pairs.tsv", "--causal-samples", "2", "--bootstrap", "0", "--json"];
    succeed(folder.path(), &[&heads[..], &SPEAKING[..]].concat());
    let links = succeed(folder.path(), &[&["align", "many", "--corpus", "pairs.tsv"], &SPEAKING[..]].concat());
    assert_eq!(String::from_utf8(links.stdout).expect("text").lines().count(), 8);
}
