//! One test for each way a folder's tokenizer can be broken, beyond its SentencePiece models.

use serde_json::{Value, json};

use crate::fixtures::{Folder, chain, library_file, marian, model_bytes, t5};

#[test]
fn empty_folder() {
    let folder = Folder::new();
    folder.refused(
        "",
        &[
            "tokenizer.json",
            "source.spm",
            "target.spm",
            "vocab.json",
            "spiece.model",
            "sentencepiece.bpe.model",
            "XLM-RoBERTa",
            "vocab.txt",
        ],
    );
}

#[test]
fn folder_that_is_not_there() {
    let folder = Folder::new();
    let error = crosslens_pretrained::text::TextTokenizer::open(&folder.path("absent")).expect_err("no folder");
    assert!(chain(&error).contains("absent"), "{error}");
}

#[test]
fn marian_without_its_vocabulary() {
    let folder = marian("marian");
    std::fs::remove_file(folder.path("vocab.json")).expect("a file");
    folder.refused("", &["lacks vocab.json"]);
}

#[test]
fn marian_without_its_target_model() {
    let folder = marian("marian");
    std::fs::remove_file(folder.path("target.spm")).expect("a file");
    folder.refused("", &["lacks target.spm"]);
}

#[test]
fn marian_without_the_vocabulary_that_its_configuration_promises() {
    let folder = marian("marian-separate");
    std::fs::remove_file(folder.path("target_vocab.json")).expect("a file");
    folder.refused("", &["lacks target_vocab.json"]);
}

fn marian_with_vocabulary(content: &str) -> Folder {
    marian("marian").with("vocab.json", content)
}

#[test]
fn vocabulary_that_is_no_object() {
    marian_with_vocabulary("[\"</s>\", \"<unk>\"]").refused("vocab.json", &["expected an object of tokens and their ids"]);
    marian_with_vocabulary("12").refused("vocab.json", &["expected an object of tokens and their ids"]);
}

#[test]
fn vocabulary_that_is_no_json() {
    marian_with_vocabulary("{\"</s>\": 0, ").refused("vocab.json", &["EOF"]);
    marian_with_vocabulary("").refused("vocab.json", &["EOF"]);
}

#[test]
fn vocabulary_with_ids_that_are_none() {
    for id in ["-1", "1.5", "\"1\"", "4294967296", "1e300", "null", "[]"] {
        marian_with_vocabulary(&format!("{{\"</s>\": 0, \"<unk>\": {id}}}")).refused("vocab.json", &["line 1"]);
    }
}

#[test]
fn vocabulary_without_the_unknown_token() {
    marian_with_vocabulary("{\"</s>\": 0}").refused("vocab.json", &["lacks the token `<unk>`"]);
}

#[test]
fn vocabulary_without_the_end() {
    marian_with_vocabulary("{\"<unk>\": 0}").refused("vocab.json", &["lacks the token `</s>`"]);
}

/// An id of four thousand million is allowed, and costs nothing.
#[test]
fn vocabulary_with_a_large_id() {
    let (tokenizer, most) = crate::allocation::most_held(|| marian_with_vocabulary("{\"</s>\": 0, \"<unk>\": 4294967295}").tokenizer());
    assert_eq!(tokenizer.source_token(u32::MAX), Some("<unk>"));
    assert!(most < 16 << 20, "{most}");
}

#[test]
fn vocabulary_of_deep_brackets() {
    marian_with_vocabulary(&"[".repeat(100_000)).refused("vocab.json", &["line 1"]);
}

#[test]
fn configuration_that_is_no_json() {
    t5().with("tokenizer_config.json", "{").refused("tokenizer_config.json", &["EOF"]);
}

#[test]
fn configuration_with_too_many_sentinels() {
    t5().with("tokenizer_config.json", "{\"extra_ids\": 1152921504606846976}")
        .refused("tokenizer_config.json", &["`extra_ids`", "1152921504606846976"]);
    t5().with("tokenizer_config.json", "{\"extra_ids\": -1}").refused("tokenizer_config.json", &["-1"]);
}

#[test]
fn model_that_is_a_folder() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("spiece.model")).expect("a folder");
    folder.refused("spiece.model", &["cannot read"]);
}

#[test]
fn model_of_a_gigabyte() {
    let folder = Folder::new().with("spiece.model", model_bytes("unigram-nmt_nfkc"));
    let file = std::fs::File::options().write(true).open(folder.path("spiece.model")).expect("a file");
    file.set_len(1 << 30).expect("a sparse file");
    let error = folder.open().expect_err("too large");
    assert!(chain(&error).contains("1073741824 bytes"), "{error}");
}

fn with_library(content: impl AsRef<[u8]>) -> Folder {
    Folder::new().with("tokenizer.json", content)
}

#[test]
fn library_file_of_rubbish() {
    for content in ["", "{", "[]", "null", "12", "\u{0}\u{1}", "{}", "{\"model\": 1}", "{\"version\": \"1.0\"}", "{\"version\": \"9\"}"] {
        with_library(content).refused("tokenizer.json", &[]);
    }
    with_library([0xff, 0xfe]).refused("tokenizer.json", &[]);
}

#[test]
fn library_file_without_a_vocabulary() {
    let mut content: Value = serde_json::from_slice(&library_file("t5-tokenizer")).expect("JSON");
    content["model"]["vocab"] = json!([]);
    with_library(content.to_string()).refused("tokenizer.json", &["no tokenizer that can be used"]);
}

#[test]
fn library_file_with_merges_of_nothing() {
    let mut content: Value = serde_json::from_slice(&library_file("bart-tokenizer")).expect("JSON");
    content["model"]["merges"] = json!([["zz", "qqq"]]);
    with_library(content.to_string()).refused("tokenizer.json", &["no tokenizer that can be used"]);
}

/// The library would take it, and panic over the first line.
#[test]
fn library_file_whose_character_map_points_outside() {
    let mut content: Value = serde_json::from_slice(&library_file("t5-tokenizer")).expect("JSON");
    content["normalizer"]["precompiled_charsmap"] = json!("CAAAAAD8//8A/P//YQA=");
    with_library(content.to_string()).refused("tokenizer.json", &["map of characters points outside itself"]);
    content["normalizer"]["precompiled_charsmap"] = json!("no base64!");
    with_library(content.to_string()).refused("tokenizer.json", &["base64"]);
}
