//! Pegasus, mBART, NLLB, XLM-RoBERTa and M2M100 against the tokenizers of transformers, and how languages are chosen.

use crosslens_pretrained::text::{Opening, TextTokenizer, TokenizerError};
use serde_json::json;

use crate::fixtures::{BothSides, Folder, RELATIVES, chain, golden_json, library_file, model_bytes, relative, speaking};

#[test]
fn both_sides_are_encoded_as_transformers_does() {
    for name in RELATIVES {
        let (golden, tokenizer): (BothSides, _) = (golden_json(name), speaking(name));
        golden.holds(name, &tokenizer);
    }
}

/// What stands around the pieces of a source and of a target.
fn around(tokenizer: &TextTokenizer) -> [Vec<String>; 2] {
    [tokenizer.encode_source("bare"), tokenizer.encode_target("bare")].map(|encoded| {
        let encoded = encoded.expect("tokens");
        let without_word = encoded.tokens.iter().zip(&encoded.words);
        without_word.map(|(token, word)| if word.is_some() { "X".to_owned() } else { token.clone() }).collect::<Vec<_>>()
    })
}

fn collapsed(tokens: &[String]) -> String {
    let mut tokens = tokens.to_vec();
    tokens.dedup();
    tokens.join(" ")
}

#[test]
fn languages_stand_where_each_model_expects_them() {
    for (name, source, target) in [
        ("pegasus", "X </s>", "X </s>"),
        ("xlm-roberta", "<s> X </s>", "<s> X </s>"),
        ("mbart", "X </s> fr_XX", "X </s>"),
        ("mbart50", "fr_XX X </s>", "sl_SI X </s>"),
        ("nllb", "fra_Latn X </s>", "zul_Latn X </s>"),
        ("nllb-legacy", "X </s> ace_Arab", "fra_Latn X </s>"),
        ("m2m100", "__fr__ X </s>", "__zu__ X </s>"),
    ] {
        assert_eq!(around(&speaking(name)).map(|tokens| collapsed(&tokens)), [source, target], "{name}");
    }
}

#[test]
fn a_decoder_is_told_the_target_s_language() {
    let id = |tokenizer: &TextTokenizer, code: &str| tokenizer.languages().and_then(|languages| languages.token(code)).expect("a language");
    for (name, code) in [("mbart50", "sl_SI"), ("nllb", "zul_Latn"), ("m2m100", "zu")] {
        let tokenizer = speaking(name);
        let opening = tokenizer.languages().and_then(|languages| languages.opening());
        assert_eq!(opening, Some(Opening::First(id(&tokenizer, code))), "{name}");
    }
    let tokenizer = speaking("mbart");
    assert_eq!(tokenizer.languages().and_then(|languages| languages.opening()), Some(Opening::Start(id(&tokenizer, "ro_RO"))));
    assert!(speaking("pegasus").languages().is_none() && speaking("xlm-roberta").languages().is_none());
}

/// M2M100's languages are written as people write them, and as tokens too.
#[test]
fn languages_are_known_by_their_codes() {
    let tokenizer = speaking("m2m100");
    let languages = tokenizer.languages().expect("languages");
    assert_eq!((languages.codes().count(), languages.codes().next()), (100, Some("af")));
    assert_eq!(languages.token("__en__"), languages.token("en"));
    assert_eq!(languages.code(languages.token("en").expect("English")), Some("en"));
    assert_eq!(speaking("nllb-legacy").languages().expect("languages").codes().collect::<Vec<_>>(), ["fra_Latn", "ace_Arab", "eng_Latn"]);
}

#[test]
fn a_text_without_a_language_is_refused() {
    let tokenizer = relative("nllb").tokenizer();
    assert!(matches!(tokenizer.encode_source("bare"), Err(TokenizerError::NoLanguage { .. })));
}

#[test]
fn unknown_languages_are_refused() {
    let mut tokenizer = relative("mbart").tokenizer();
    let error = tokenizer.choose_languages("en_XX", "tlh_QO").expect_err("no Klingon");
    assert!(chain(&error).contains("`tlh_QO` among its 25"), "{error}");
    let error = relative("pegasus").tokenizer().choose_languages("en", "fr").expect_err("one language");
    assert!(chain(&error).contains("no languages"), "{error}");
}

#[test]
fn the_languages_that_a_folder_names_are_usual() {
    let config = json!({"tokenizer_class": "MBartTokenizer", "src_lang": "en_XX", "tgt_lang": "ro_RO"});
    let tokenizer = relative("mbart").with("tokenizer_config.json", config.to_string()).tokenizer();
    let languages = tokenizer.languages().expect("languages");
    assert_eq!((languages.usual_source(), languages.usual_target()), (Some("en_XX"), Some("ro_RO")));
}

#[test]
fn languages_that_a_folder_numbers_have_those_numbers() {
    let token = |content: &str| json!({ "content": content, "special": true });
    let config = json!({"tokenizer_class": "NllbTokenizer", "added_tokens_decoder": {"700": token("eng_Latn"), "650": token("fra_Latn")}});
    let tokenizer = relative("nllb").with("tokenizer_config.json", config.to_string()).tokenizer();
    let languages = tokenizer.languages().expect("languages");
    assert_eq!(languages.codes().collect::<Vec<_>>(), ["fra_Latn", "eng_Latn"]);
    assert_eq!(languages.token("eng_Latn"), Some(700));
}

/// `tokenizer.json` puts `eng_Latn` before every text; what was asked for takes its place.
#[test]
fn asked_languages_replace_those_of_the_library_s_file() {
    let folder = |config: &str| {
        let folder =
            Folder::new().with("tokenizer.json", library_file("nllb-tokenizer")).with("config.json", "{\"model_type\": \"m2m_100\"}");
        folder.with("tokenizer_config.json", config)
    };
    let mut tokenizer = folder("{}").tokenizer();
    assert_eq!(around(&tokenizer).map(|tokens| collapsed(&tokens)), ["eng_Latn X </s>", "eng_Latn X </s>"]);
    tokenizer.choose_languages("fra_Latn", "eng_Latn").expect("known languages");
    assert_eq!(around(&tokenizer).map(|tokens| collapsed(&tokens)), ["fra_Latn X </s>", "eng_Latn X </s>"]);
    let mut tokenizer = folder("{\"legacy_behaviour\": true}").tokenizer();
    tokenizer.choose_languages("fra_Latn", "eng_Latn").expect("known languages");
    assert_eq!(around(&tokenizer).map(|tokens| collapsed(&tokens)), ["X </s> fra_Latn", "eng_Latn X </s>"]);
    let decoded = tokenizer.decode(&tokenizer.encode_target("bare mi").expect("ids").ids).expect("text");
    assert_eq!(decoded, "bare mi");
}

#[test]
fn pegasus_moves_its_pieces_by_its_offset() {
    let of = |config: &str| Folder::new().with("spiece.model", model_bytes("unigram-nmt_nfkc")).with("tokenizer_config.json", config);
    let ids = |config: &str| of(config).tokenizer().encode_source("bare").expect("ids").ids;
    let (usual, none) =
        (ids("{\"tokenizer_class\": \"PegasusTokenizer\"}"), ids("{\"tokenizer_class\": \"PegasusTokenizer\", \"offset\": 0}"));
    assert_eq!(usual[0], none[0] + 103);
    assert_eq!((usual.last(), none.last()), (Some(&1), Some(&1)));
    of("{\"tokenizer_class\": \"PegasusTokenizer\", \"offset\": 4294967295}").refused("tokenizer_config.json", &["`offset`", "4294967295"]);
}

#[test]
fn m2m100_without_its_vocabulary() {
    let folder = relative("m2m100");
    std::fs::remove_file(folder.path("vocab.json")).expect("a file");
    folder.refused("vocab.json", &["cannot read"]);
    relative("m2m100").with("vocab.json", "{\"<unk>\": 3}").refused("vocab.json", &["lacks the token `</s>`"]);
}
