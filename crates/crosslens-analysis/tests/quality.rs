//! BLEU and chrF against sacreBLEU, by `tests/golden/make_quality.py`.

use std::path::Path;

use crosslens_analysis::quality::{Bleu, BleuTokens, Chrf};
use serde_json::Value;

/// Both sides compute in f64 in nearly the same order.
const TOLERANCE: f64 = 1e-10;

fn golden() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/quality.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file is committed")).expect("it is JSON")
}

/// What was written and its references, sentence by sentence.
fn sentences(case: &Value) -> Vec<(&str, Vec<&str>)> {
    let list = case["sentences"].as_array().expect("sentences");
    list.iter()
        .map(|sentence| {
            let references = sentence["references"].as_array().expect("references");
            (sentence["written"].as_str().expect("a text"), references.iter().map(|text| text.as_str().expect("a text")).collect())
        })
        .collect()
}

fn assert_near(found: f64, expected: &Value, what: &str) {
    let expected = expected.as_f64().expect("a number");
    assert!((found - expected).abs() <= TOLERANCE, "{what}: {found} instead of {expected}");
}

#[test]
fn words_are_those_of_sacrebleu() {
    let golden = golden();
    let cases = golden["tokens"].as_array().expect("sentences");
    assert!(cases.len() > 50);
    for case in cases {
        let sentence = case["sentence"].as_str().expect("a text");
        assert_eq!(BleuTokens::V13a.words(sentence).join(" "), case["words"].as_str().expect("words"), "{sentence:?}");
    }
}

#[test]
fn bleu_is_that_of_sacrebleu() {
    let golden = golden();
    for case in golden["cases"].as_array().expect("cases") {
        for expected in case["bleu"].as_array().expect("settings") {
            let tokens = if expected["tokenize"] == "13a" { BleuTokens::V13a } else { BleuTokens::None };
            let bleu = Bleu { tokens, lowercase: expected["lowercase"] == true, effective_order: expected["effective_order"] == true };
            let what = format!("{} {expected}", case["name"]);
            let mut tally = bleu.tally();
            for (written, references) in sentences(case) {
                tally.add(written, &references).expect("there are references");
            }
            let score = tally.score();
            assert_near(score.score, &expected["score"], &what);
            assert_near(score.brevity_penalty, &expected["bp"], &what);
            for (precision, expected) in score.precisions.iter().zip(expected["precisions"].as_array().expect("four")) {
                assert_near(*precision, expected, &what);
            }
            assert_eq!(Value::from(score.matched.to_vec()), expected["counts"], "{what}");
            assert_eq!(Value::from(score.total.to_vec()), expected["totals"], "{what}");
            assert_eq!(
                (Value::from(score.n_written), Value::from(score.n_reference)),
                (expected["sys_len"].clone(), expected["ref_len"].clone())
            );
            assert_eq!(score.to_string(), expected["text"].as_str().expect("a line"));
            let (signature, _) =
                tally.signature().rsplit_once('|').map(|(front, end)| (front.to_owned(), end.to_owned())).expect("a version");
            assert_eq!(signature, expected["signature"].as_str().expect("a line"), "{what}");
        }
        let expected = case["sentence_bleu"].as_array().expect("a score a sentence");
        for ((written, references), expected) in sentences(case).iter().zip(expected) {
            let score = Bleu::default().sentence(written, references).expect("there are references");
            assert_near(score.score, expected, written);
        }
    }
}

#[test]
fn chrf_is_that_of_sacrebleu() {
    let golden = golden();
    for case in golden["cases"].as_array().expect("cases") {
        for expected in case["chrf"].as_array().expect("settings") {
            let number = |name: &str| expected[name].as_u64().expect("a number");
            let chrf = Chrf {
                char_order: number("char_order") as usize,
                word_order: number("word_order") as usize,
                beta: number("beta") as u32,
                lowercase: expected["lowercase"] == true,
            };
            let what = format!("{} {expected}", case["name"]);
            let mut tally = chrf.tally();
            for (written, references) in sentences(case) {
                tally.add(written, &references).expect("there are references");
            }
            assert_near(tally.score(), &expected["score"], &what);
            assert_eq!(chrf.name(), expected["metric"].as_str().expect("a name"));
            let signature = tally.signature();
            assert_eq!(signature.rsplit_once('|').map(|(front, _)| front), expected["signature"].as_str(), "{what}");

            for ((written, references), expected) in sentences(case).iter().zip(expected["sentences"].as_array().expect("scores")) {
                assert_near(chrf.sentence(written, references).expect("there are references"), expected, written);
            }
        }
    }
}
