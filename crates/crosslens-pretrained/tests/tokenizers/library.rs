//! `tokenizer.json` files of T5, BART and NLLB, made by the Python side of the library.

use serde::Deserialize;

use crate::fixtures::{LIBRARY, golden_json, library, none_of};

#[derive(Deserialize)]
struct Golden {
    /// Ids, ids decoded without special tokens.
    cases: Vec<(Vec<u32>, String)>,
}

#[test]
fn files_of_the_library_are_read_as_it_reads_them() {
    for name in LIBRARY {
        let lines: Vec<String> = match name {
            "t5-tokenizer" => golden_json::<crate::marian_and_t5::T5>("t5").cases.into_iter().map(|case| case.0).collect(),
            _ => golden_json("lines"),
        };
        let (golden, tokenizer): (Golden, _) = (golden_json(name), library(name).tokenizer());
        assert_eq!(lines.len(), golden.cases.len());
        let mut differences = Vec::new();
        for (line, (ids, decoded)) in lines.iter().zip(&golden.cases) {
            let ours = tokenizer.encode_source(line).expect("ids");
            if ours.ids != *ids {
                differences.push(format!("{line:?} {:?}\n  ours   {:?}\n  golden {ids:?}", ours.tokens, ours.ids));
            }
            let ours = tokenizer.decode(ids).expect("text");
            if ours != *decoded {
                differences.push(format!("decoded {ids:?}\n  ours   {ours:?}\n  golden {decoded:?}"));
            }
        }
        none_of(name, lines.len(), &differences);
    }
}

/// The golden file of T5 says to cut after 5 tokens and to pad to 64.
#[test]
fn nothing_is_cut_or_padded() {
    let encoded = library("t5-tokenizer").tokenizer().encode_source("bare mi to lu bare mi to lu bare mi").expect("ids");
    assert!((10..64).contains(&encoded.ids.len()), "{:?}", encoded.tokens);
}

#[test]
fn tokens_have_names() {
    let tokenizer = library("bart-tokenizer").tokenizer();
    let encoded = tokenizer.encode_source("bare mi").expect("ids");
    let names: Vec<_> = encoded.ids.iter().map(|&id| tokenizer.target_token(id).expect("a token")).collect();
    assert_eq!(names, encoded.tokens);
    assert_eq!((names.first(), names.last()), (Some(&"<s>"), Some(&"</s>")));
}
