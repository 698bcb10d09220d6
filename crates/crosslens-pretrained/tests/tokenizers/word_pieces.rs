//! `vocab.txt` without a `tokenizer.json`, as `BertTokenizer` of transformers 5 reads it: what is expected here is what that gave.

use crosslens_pretrained::text::TextTokenizer;
use serde_json::json;

use crate::fixtures::Folder;

const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nun\n##aff\n##able\n,\nbus\n##es\n猫\n";

fn folder() -> Folder {
    Folder::new().with("vocab.txt", PIECES)
}

fn ids(tokenizer: &TextTokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode_target(text).expect("ids").ids
}

#[test]
fn texts_become_the_longest_pieces_and_back() {
    let tokenizer = folder().tokenizer();
    let read = tokenizer.encode_target("The unaffable, BUSES").expect("ids");
    assert_eq!(read.ids, [2, 5, 6, 7, 8, 9, 10, 11, 3]);
    assert_eq!(read.tokens, ["[CLS]", "the", "un", "##aff", "##able", ",", "bus", "##es", "[SEP]"]);
    assert_eq!(read.words, [None, Some(0), Some(1), Some(1), Some(1), Some(1), Some(2), Some(2), None]);
    assert_eq!(tokenizer.decode(&read.ids).expect("text"), "the unaffable, buses");
    assert_eq!(ids(&tokenizer, "xyz thé"), [2, 1, 5, 3]);
    assert_eq!(tokenizer.decode(&ids(&tokenizer, "the猫bus")).expect("text"), "the 猫 bus");
}

#[test]
fn a_folder_may_keep_capitals_apart() {
    let tokenizer = folder().with("tokenizer_config.json", json!({ "do_lower_case": false }).to_string()).tokenizer();
    assert_eq!(ids(&tokenizer, "The unaffable, BUSES"), [2, 1, 6, 7, 8, 9, 1, 3]);
    assert_eq!(ids(&tokenizer, "xyz thé"), [2, 1, 1, 3]);
}

/// BLIP's has two of them, which begin what it writes and reads.
#[test]
fn tokens_beside_the_pieces_are_no_text() {
    let tokenizer = folder().with("added_tokens.json", json!({ "[DEC]": 13, "[ENC]": 14 }).to_string()).tokenizer();
    assert_eq!((tokenizer.decode(&[13, 5, 3]).expect("text").as_str(), tokenizer.target_token(14)), ("the", Some("[ENC]")));
    let gap = folder().with("added_tokens.json", json!({ "[DEC]": 20 }).to_string());
    gap.refused("added_tokens.json", &["numbered from 13 on without gaps"]);
}

#[test]
fn pieces_that_lack_what_is_needed_are_refused() {
    for token in ["[UNK]", "[CLS]", "[SEP]"] {
        Folder::new().with("vocab.txt", PIECES.replace(token, "other")).refused("vocab.txt", &[&format!("lacks the token `{token}`")]);
    }
    let renamed = json!({ "unk_token": "[NONE]" }).to_string();
    folder().with("tokenizer_config.json", renamed).refused("vocab.txt", &["lacks the token `[NONE]`"]);
}
