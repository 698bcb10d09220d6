//! `tokenizer.json` files that the library would take, and then panic over or never come back from.

use std::hint::black_box;

use crosslens_pretrained::text::TokenizerError;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::allocation::most_held;
use crate::fixtures::{Folder, LIBRARY, chain, library_file};

/// What any of these may hold: the golden vocabularies are small, and where a panic tells where it stood that takes 80 MB.
const MUCH: usize = 256 << 20;

fn golden(name: &str) -> Value {
    serde_json::from_slice(&library_file(name)).expect("JSON")
}

/// A golden file with other fields, `/` between the names of those within each other.
fn with(name: &str, fields: &[(&str, Value)]) -> Folder {
    let mut content = golden(name);
    for (path, value) in fields {
        let (parent, field) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = if parent.is_empty() { String::new() } else { format!("/{parent}") };
        content.pointer_mut(&parent).expect("a part")[field] = value.clone();
    }
    Folder::new().with("tokenizer.json", content.to_string())
}

fn of_type(kind: &str, fields: Value) -> Value {
    let mut part = fields;
    part["type"] = json!(kind);
    part
}

fn replace(found: &str, content: &str) -> Value {
    of_type("Replace", json!({ "pattern": { "String": found }, "content": content }))
}

/// Opens and uses it: whatever it says, that ends, and asks for little.
fn used(folder: &Folder, text: &str, ids: &[u32]) -> Result<(), TokenizerError> {
    let (result, most) = most_held(|| {
        let tokenizer = folder.open()?;
        black_box(tokenizer.encode_source(text)?);
        black_box(tokenizer.encode_target(text)?);
        black_box(tokenizer.target_words(ids));
        black_box(tokenizer.decode(ids)?);
        Ok(())
    });
    assert!(most < MUCH, "{most} bytes");
    result
}

#[test]
fn settings_that_the_library_panics_over() {
    let template = |single: Value, ids: Value| {
        let tokens = json!({ "x": { "id": "x", "ids": ids, "tokens": ["x"] } });
        of_type("TemplateProcessing", json!({ "single": single, "pair": [], "special_tokens": tokens }))
    };
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let other = json!({ "Sequence": { "id": "B", "type_id": 0 } });
    let token = json!({ "SpecialToken": { "id": "x", "type_id": 0 } });
    let many: Vec<u32> = vec![1; 2000];
    let doubling = |n: usize| json!(vec![replace("a", "aa"); n]);
    let expression = |pattern: &str| of_type("Replace", json!({ "pattern": { "Regex": pattern }, "content": "x".repeat(5000) }));
    let delimiters = json!(vec![of_type("CTC", json!({ "pad_token": "<pad>", "word_delimiter_token": "", "cleanup": true })); 40]);
    let sequence = |list: &str, steps: Value| of_type("Sequence", json!({ list: steps }));
    let bytes = json!(vec![of_type("ByteLevel", json!({ "add_prefix_space": false, "trim_offsets": true, "use_regex": false })); 40]);
    let nothing = of_type("Replace", json!({ "pattern": { "Regex": "." }, "content": "" }));
    let emptied = json!([nothing, of_type("Strip", json!({ "content": "a", "start": 0, "stop": 1 }))]);
    let prefix = [("model/continuing_subword_prefix", json!("é")), ("model/merges", json!([["a", "bé"]]))];
    for (name, fields, words) in [
        ("t5-tokenizer", vec![("pre_tokenizer", of_type("FixedLength", json!({ "length": 0 })))], "`length`"),
        ("t5-tokenizer", vec![("pre_tokenizer", json!({ "length": 0 }))], "tokenizer.json"),
        ("t5-tokenizer", vec![("decoder", sequence("decoders", emptied))], "gives up"),
        ("t5-tokenizer", vec![("normalizer", sequence("normalizers", doubling(40)))], "1099511627776 times as long"),
        ("t5-tokenizer", vec![("normalizer", sequence("normalizers", doubling(70)))], "more than 64 steps"),
        ("t5-tokenizer", vec![("decoder", sequence("decoders", doubling(40)))], "1099511627776 times as long"),
        ("t5-tokenizer", vec![("decoder", sequence("decoders", delimiters))], "1099511627776 times as long"),
        ("t5-tokenizer", vec![("normalizer", expression("x?"))], "5001 times as long"),
        ("t5-tokenizer", vec![("normalizer", of_type("Prepend", json!({ "prepend": "x".repeat(1000) })))], "`prepend`"),
        ("bart-tokenizer", vec![("pre_tokenizer", sequence("pretokenizers", bytes))], "1099511627776 times as long"),
        ("bart-tokenizer", vec![("post_processor", template(json!([text, text]), json!([1])))], "names the text 2 times"),
        ("bart-tokenizer", vec![("post_processor", template(json!([]), json!([1])))], "names the text 0 times"),
        ("bart-tokenizer", vec![("post_processor", template(json!([text, token]), json!(many)))], "2000 tokens"),
        ("bart-tokenizer", vec![("post_processor", template(json!([other]), json!([1])))], "gives up"),
        ("bart-tokenizer", prefix.to_vec(), "lacks the prefix `é`"),
        ("bart-tokenizer", vec![("model/dropout", json!(2.0))], "tokenizer.json"),
        ("bart-tokenizer", vec![("model/continuing_subword_prefix", json!("x".repeat(100)))], "lacks the prefix"),
        ("t5-tokenizer", vec![("model/unk_id", json!(1u64 << 40))], "tokenizer.json"),
        ("t5-tokenizer", vec![("model/vocab", json!([["a", f64::MAX], ["b", null]]))], "tokenizer.json"),
    ] {
        let folder = with(name, &fields);
        let error = chain(&used(&folder, "bare é mi ééééééééééééééé aaaaaaaaaaaa", &[5, 6, 7]).expect_err(words));
        assert!(error.contains("tokenizer.json") && error.contains(words), "{words}: {error}");
    }
}

/// The library takes the last of two, so that what is looked at must not be the first.
#[test]
fn fields_that_stand_twice_are_refused() {
    let mut content = golden("bart-tokenizer");
    content["model"]["continuing_subword_prefix"] = json!("é");
    let merges = content["model"]["merges"].take();
    content["model"]["merges"] = json!([]);
    let (text, broken) = (content.to_string(), r#"[["a", "bé"]]"#);
    let model = json!({ "type": "BPE", "continuing_subword_prefix": null, "vocab": content["model"]["vocab"], "merges": merges });
    let twice = [
        format!(r#"{},"model":{model}}}"#, &text[..text.len() - 1]),
        text.replacen(r#""merges":[]"#, &format!(r#""merges":[],"merges":{broken}"#), 1),
        text.replacen(r#""continuing_subword_prefix":"é""#, r#""continuing_subword_prefix":null,"continuing_subword_prefix":"é""#, 1),
    ];
    for text in twice {
        assert!(text.len() > content.to_string().len(), "a field stands twice");
        let error = chain(&used(&Folder::new().with("tokenizer.json", text), "bare", &[5]).expect_err("two of a field"));
        assert!(error.contains("tokenizer.json") && error.contains("duplicate field"), "{error}");
    }
}

/// They belong to batches, and are not asked.
#[test]
fn padding_and_cutting_without_measure_do_nothing() {
    let padding = json!({ "strategy": { "Fixed": 1u64 << 60 }, "direction": "Right", "pad_to_multiple_of": 0, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "<pad>" });
    let truncation = json!({ "direction": "Left", "max_length": 1, "strategy": "OnlySecond", "stride": 1u64 << 60 });
    let text = "bare mi to lu";
    let whole = with("bart-tokenizer", &[]).tokenizer().encode_source(text).expect("ids");
    let folder = with("bart-tokenizer", &[("padding", padding), ("truncation", truncation)]);
    assert_eq!(folder.tokenizer().encode_source(text).expect("ids"), whole);
}

/// Every place in a tree of JSON.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        // Of long lists, such as vocabularies, a few.
        Value::Array(values) => {
            values.iter().enumerate().take(4).for_each(|(number, value)| places(value, &format!("{path}/{number}"), found))
        }
        Value::Object(fields) => {
            let escaped = |field: &str| field.replace('~', "~0").replace('/', "~1");
            fields.iter().take(20).for_each(|(field, value)| places(value, &format!("{path}/{}", escaped(field)), found));
        }
        _ => {}
    }
}

/// What a field may be changed to: numbers at the ends of their types, empty and foreign texts, steps of other kinds.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(0),
        json!(1),
        json!(-1),
        json!(u32::MAX),
        json!(u64::MAX),
        json!(-1e308),
        json!(1e308),
        json!(true),
        json!(false),
        json!(""),
        json!(" "),
        json!("é"),
        json!("a"),
        json!("▁"),
        json!("<unk>"),
        json!("("),
        json!([]),
        json!({}),
        json!({ "String": "" }),
        json!({ "Regex": "(a|b|ab)*?" }),
        json!({ "Fixed": u64::MAX }),
        of_type("FixedLength", json!({ "length": 3 })),
        of_type("Strip", json!({ "content": "▁", "start": 9, "stop": 9 })),
        of_type("Strip", json!({ "strip_left": true, "strip_right": true })),
        of_type("BertProcessing", json!({ "sep": ["</s>", 1], "cls": ["<s>", u32::MAX] })),
        of_type("RobertaProcessing", json!({ "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": true })),
        of_type("Split", json!({ "pattern": { "Regex": "" }, "behavior": "MergedWithNext", "invert": true })),
        of_type("Metaspace", json!({ "replacement": "a", "prepend_scheme": "first", "split": true })),
        of_type("ByteFallback", json!({})),
        of_type("Fuse", json!({})),
        of_type("Punctuation", json!({ "behavior": "Contiguous" })),
        of_type("UnicodeScripts", json!({})),
        of_type("WordPiece", json!({ "prefix": "", "cleanup": true })),
        replace("", "ab"),
        of_type("WordLevel", json!({ "vocab": { "a": 0 }, "unk_token": "none" })),
    ]
}

#[test]
fn any_field_can_be_anything() {
    let values = values();
    let wholes = LIBRARY.map(|name| {
        let (content, mut found) = (golden(name), Vec::new());
        places(&content, "", &mut found);
        (content, found)
    });
    let changes = proptest::collection::vec((any::<Index>(), any::<Index>()), 1..4);
    let texts = prop_oneof!["[a-z▁é ]{0,20}", any::<String>()];
    let ids = proptest::collection::vec(0..400_u32, 0..9);
    let config = ProptestConfig::with_cases(128);
    proptest!(config, |(which in 0..LIBRARY.len(), changes in changes, text in texts, ids in ids)| {
        let (mut content, found) = wholes[which].clone();
        for (place, value) in changes {
            if let Some(part) = content.pointer_mut(&found[place.index(found.len())]) {
                *part = values[value.index(values.len())].clone();
            }
        }
        used(&Folder::new().with("tokenizer.json", content.to_string()), &text, &ids).ok();
    });
}
