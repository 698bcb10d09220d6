//! Marian's and T5's tokenizers against those of transformers.

use serde::Deserialize;

use serde_json::json;

use crate::fixtures::{BothSides, Folder, golden_json, marian, model_bytes, none_of, t5, with_added_tokens};

#[derive(Deserialize)]
pub(crate) struct T5 {
    /// Text, ids, ids decoded.
    pub(crate) cases: Vec<(String, Vec<u32>, String)>,
}

#[test]
fn both_sides_of_marian_are_encoded_as_transformers_does() {
    for name in ["marian", "marian-separate"] {
        let (golden, tokenizer): (BothSides, _) = (golden_json(name), marian(name).tokenizer());
        golden.holds(name, &tokenizer);
    }
}

#[test]
fn t5_is_encoded_as_transformers_does() {
    let (golden, tokenizer): (T5, _) = (golden_json("t5"), t5().tokenizer());
    let mut differences = Vec::new();
    for (text, ids, decoded) in &golden.cases {
        let ours = tokenizer.encode_source(text).expect("ids");
        if ours.ids != *ids || ours != tokenizer.encode_target(text).expect("ids") {
            differences.push(format!("{text:?} {:?}\n  ours   {:?}\n  golden {ids:?}", ours.tokens, ours.ids));
        }
        let ours = tokenizer.decode(ids).expect("text");
        if ours != *decoded {
            differences.push(format!("decoded {ids:?}\n  ours   {ours:?}\n  golden {decoded:?}"));
        }
    }
    none_of("t5", golden.cases.len(), &differences);
}

/// As transformers saved tokens that were added before 4.34.
#[test]
fn added_tokens_of_older_folders_are_found() {
    for kind in ["marian", "t5", "m2m100"] {
        let (folder, golden) = with_added_tokens(kind);
        let mut tokenizer = folder.tokenizer();
        if kind == "m2m100" {
            tokenizer.choose_languages("fr", "zu").expect("known languages");
        }
        golden.holds(kind, &tokenizer);
    }
}

/// Newer folders list them in their configuration, and what else lies about says nothing.
#[test]
fn added_tokens_of_the_configuration_come_first() {
    let (folder, _) = with_added_tokens("t5");
    let config = json!({ "extra_ids": 0, "added_tokens_decoder": { "600": { "content": "[OTHER]", "special": false } } });
    let tokenizer = folder.with("tokenizer_config.json", config.to_string()).tokenizer();
    let finds = |text: &str| tokenizer.encode_source(text).expect("ids").ids.contains(&600);
    assert!(finds("a [OTHER]") && !finds("a [NEW]"));
    t5().with("added_tokens.json", "{\"[NEW]\": -1}").refused("added_tokens.json", &["line 1"]);
}

#[test]
fn a_language_code_is_one_token() {
    let tokenizer = marian("marian").tokenizer();
    let encoded = tokenizer.encode_source(">>fra<< bare").expect("ids");
    assert_eq!((encoded.tokens[0].as_str(), tokenizer.source_token(encoded.ids[0])), (">>fra<<", Some(">>fra<<")));
    assert_eq!(encoded.words[..2], [Some(0), Some(1)]);
    assert_eq!((encoded.tokens.last().map(String::as_str), encoded.words.last()), (Some("</s>"), Some(&None)));
}

#[test]
fn separate_vocabularies_name_their_own_tokens() {
    let tokenizer = marian("marian-separate").tokenizer();
    let encoded = tokenizer.encode_target("bare").expect("ids");
    let names = |side: fn(&crosslens_pretrained::text::TextTokenizer, u32) -> Option<&str>| {
        encoded.ids.iter().map(|&id| side(&tokenizer, id).expect("a token").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(|tokenizer, id| tokenizer.target_token(id)), encoded.tokens);
    assert_ne!(names(|tokenizer, id| tokenizer.source_token(id)), encoded.tokens);
    assert_ne!(tokenizer.source_size(), tokenizer.target_size());
}

/// 20 sentinels behind 600 or so pieces: the first has the last id.
#[test]
fn sentinels_count_from_the_end() {
    let tokenizer = t5().tokenizer();
    let last = tokenizer.source_size() as u32 - 1;
    assert_eq!((tokenizer.source_token(last), tokenizer.source_token(last - 19)), (Some("<extra_id_0>"), Some("<extra_id_19>")));
    let without_config = Folder::new().with("spiece.model", model_bytes("unigram-nmt_nfkc"));
    let default = without_config.tokenizer();
    assert_eq!(default.source_size(), tokenizer.source_size() + 80);
}
