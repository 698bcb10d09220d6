//! Tokens put together by their words give the words.

use std::cell::Cell;

use crosslens_pretrained::text::{Encoded, TextTokenizer};
use proptest::prelude::*;

use crate::fixtures::{Folder, library, marian, model_bytes, speaking, t5};

fn tokenizers() -> Vec<(&'static str, TextTokenizer)> {
    let spaces_kept = Folder::new().with("spiece.model", model_bytes("unigram-identity-spaces-kept"));
    let suffix = Folder::new().with("spiece.model", model_bytes("unigram-suffix"));
    vec![
        ("marian", marian("marian").tokenizer()),
        ("t5", t5().tokenizer()),
        ("spaces kept", spaces_kept.tokenizer()),
        ("suffix", suffix.tokenizer()),
        ("t5 of the library", library("t5-tokenizer").tokenizer()),
        ("bart", library("bart-tokenizer").tokenizer()),
        ("nllb", library("nllb-tokenizer").tokenizer()),
        ("nllb without the library", speaking("nllb")),
        ("m2m100", speaking("m2m100")),
        ("pegasus", speaking("pegasus")),
    ]
}

/// The text of each word's tokens, without marks of spaces.
fn put_together(encoded: &Encoded) -> Vec<String> {
    let n_words = encoded.words.iter().flatten().max().map_or(0, |&last| last + 1);
    let mut words = vec![String::new(); n_words];
    for (token, word) in encoded.tokens.iter().zip(&encoded.words) {
        if let Some(word) = word {
            words[*word].extend(token.chars().filter(|character| !matches!(character, '▁' | 'Ġ' | 'Ċ' | 'ĉ' | ' ' | '\n' | '\t')));
        }
    }
    words
}

fn texts() -> impl Strategy<Value = String> {
    let space = prop_oneof![6 => Just(" "), 1 => Just("  "), 1 => Just(" \n"), 1 => Just("\t")];
    // Letters that the models were trained on.
    let word = "[abceghilmnoqrstux]{1,9}|[abceghilmnoqrstux]{1,4}[.,!?']";
    (space.clone(), proptest::collection::vec((word, space), 0..12))
        .prop_map(|(first, words)| words.into_iter().fold(first.to_owned(), |text, (word, space)| text + &word + space))
}

#[test]
fn tokens_of_a_word_make_the_word() {
    let tokenizers = tokenizers();
    proptest!(|(text in texts())| {
        let words: Vec<&str> = text.split_whitespace().collect();
        for (name, tokenizer) in &tokenizers {
            let encoded = tokenizer.encode_target(&text).expect("tokens");
            prop_assert_eq!(&put_together(&encoded), &words, "{} {:?}", name, encoded);
        }
    });
}

/// What is known from the text is also known from the tokens alone, unless some are unknown and lose their marks.
#[test]
fn written_tokens_tell_their_words() {
    for (name, tokenizer) in tokenizers() {
        let n_known = Cell::new(0);
        proptest!(|(text in texts().prop_map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")))| {
            let encoded = tokenizer.encode_target(&text).expect("tokens");
            let is_known = encoded.ids.iter().zip(&encoded.tokens).all(|(&id, token)| tokenizer.target_token(id) == Some(token));
            if is_known {
                n_known.update(|n_known| n_known + 1);
                prop_assert_eq!(tokenizer.target_words(&encoded.ids), Some(encoded.words.clone()), "{} {:?}", name, encoded);
            }
        });
        assert!(n_known.get() > 50, "{name}: {}", n_known.get());
    }
}

/// Every script, and spaces that are not U+0020: a no-break space and an ideographic one separate words, a zero-width one does not.
#[test]
fn words_are_what_whitespace_separates() {
    let tokenizer = t5().tokenizer();
    let encoded = tokenizer.encode_source("語文\u{3000}κα\u{a0}ba\u{200b}re ☃").expect("tokens");
    let of = |wanted: usize| {
        let tokens = encoded.tokens.iter().zip(&encoded.words).filter(|(_, word)| **word == Some(wanted));
        tokens.map(|(token, _)| token.as_str()).collect::<String>()
    };
    assert_eq!([of(0), of(1), of(2), of(3)], ["▁語文", "▁κα", "▁ba▁re", "▁☃"]);
    assert_eq!(encoded.words.last(), Some(&None));
}

#[test]
fn a_word_starts_where_its_first_token_is() {
    let encoded = Encoded { words: vec![None, Some(0), Some(0), Some(1), None, None], ..Encoded::default() };
    assert_eq!(encoded.word_starts(), [true, true, false, true, true, true]);
}
