//! `vocab.json` and `merges.txt` without a `tokenizer.json`: which tokens are special.

use std::path::Path;

use crosslens_pretrained::text::TextTokenizer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// `Hi` is one token by its merge, `Ġ` a space.
fn folder(vocabulary: &Value, files: &[(&str, Value)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).expect("writable");
    write("vocab.json", &vocabulary.to_string());
    write("merges.txt", "#version: 0.2\nH i\n");
    files.iter().for_each(|(name, content)| write(name, &content.to_string()));
    folder
}

fn open(folder: &Path) -> TextTokenizer {
    TextTokenizer::open(folder).expect("a tokenizer")
}

/// Numbered as RoBERTa's begins.
fn roberta() -> Value {
    json!({ "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "H": 4, "i": 5, "Ġ": 6, "Hi": 7, "<mask>": 8, "<end>": 9 })
}

/// As `RobertaTokenizer` of transformers does without a word on special tokens: `Hi` becomes `<s>Hi</s>`, and back without them.
#[test]
fn special_tokens_of_a_vocabulary_are_not_text() {
    let folder = folder(&roberta(), &[]);
    let tokenizer = open(folder.path());
    assert_eq!(tokenizer.decode(&[2, 0, 7, 6, 7, 2, 1, 1]).expect("text"), "Hi Hi");
    assert_eq!(tokenizer.decode(&[9, 7]).expect("text"), "<end>Hi", "nobody says that this one is special");
    assert_eq!(tokenizer.encode_target("Hi").expect("ids").ids, [0, 7, 2]);
    assert_eq!(tokenizer.target_words(&[0, 7, 6, 7, 2]).expect("words"), [None, Some(0), Some(1), Some(1), None]);
}

/// Either file may name them; a token beside the vocabulary is special too.
#[test]
fn files_say_which_tokens_are_special() {
    let ends = json!({ "eos_token": { "content": "<end>", "lstrip": false } });
    for name in ["tokenizer_config.json", "special_tokens_map.json"] {
        let folder = folder(&roberta(), &[(name, ends.clone()), ("added_tokens.json", json!({ "<more>": 10 }))]);
        assert_eq!(open(folder.path()).decode(&[0, 7, 9, 10]).expect("text"), "Hi", "{name}");
    }
    let listed =
        json!({ "added_tokens_decoder": { "10": { "content": "<more>", "special": true }, "9": { "content": "<end>", "special": true } } });
    let folder = folder(&roberta(), &[("tokenizer_config.json", listed)]);
    assert_eq!(open(folder.path()).decode(&[9, 7, 10]).expect("text"), "Hi");
}

#[test]
fn gpt2_ends_its_texts_and_puts_nothing_around_them() {
    let folder = folder(&json!({ "H": 0, "i": 1, "Ġ": 2, "Hi": 3, "<|endoftext|>": 4 }), &[]);
    let tokenizer = open(folder.path());
    assert_eq!(tokenizer.decode(&[4, 3, 4]).expect("text"), "Hi");
    assert_eq!(tokenizer.encode_target("Hi").expect("ids").ids, [3]);
}

#[test]
fn a_special_token_that_is_no_text_is_refused() {
    let folder = folder(&roberta(), &[("special_tokens_map.json", json!({ "eos_token": 7 }))]);
    let refused = TextTokenizer::open(folder.path()).expect_err("no text").to_string();
    assert!(refused.contains("special_tokens_map.json"), "{refused}");
}
