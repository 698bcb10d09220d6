//! `attend`: every attention matrix of a sentence, in three formats.

use std::collections::BTreeMap;
use std::path::Path;

use super::common::{TINY, seen, succeed};
use serde_json::Value;

fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    insta::assert_snapshot!(name, seen(folder, arguments));
}

fn train(folder: &Path, more: &[&str]) {
    succeed(folder, &[&["train", TINY, "--steps", "20", "--out", "run", "--quiet"], more].concat());
}

/// The arrays of a JSON file: shape and numbers by name.
fn arrays(json: &Value) -> BTreeMap<String, (Vec<usize>, Vec<f64>)> {
    fn flatten(value: &Value, depth: usize, shape: &mut Vec<usize>, numbers: &mut Vec<f64>) {
        match value {
            Value::Array(list) => {
                if shape.len() == depth {
                    shape.push(list.len());
                }
                assert_eq!(shape[depth], list.len(), "rows of one length");
                list.iter().for_each(|value| flatten(value, depth + 1, shape, numbers));
            }
            value => numbers.push(value.as_f64().expect("a number")),
        }
    }
    let is_array = |(name, _): &(&String, &Value)| !["source", "fed", "predicted"].contains(&name.as_str());
    let fields = json.as_object().expect("an object").iter().filter(is_array);
    fields
        .map(|(name, value)| {
            let (mut shape, mut numbers) = (Vec::new(), Vec::new());
            flatten(value, 0, &mut shape, &mut numbers);
            (name.clone(), (shape, numbers))
        })
        .collect()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn the_terms_add_up_to_the_scores_and_these_give_the_attention() {
    for score in ["dot", "additive"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        train(folder, &["--score", score]);
        succeed(folder, &["attend", "run", "-o", "x.json", "--scores", "--terms", "--states"]);
        let json = read_json(&folder.join("x.json"));
        let n = |name: &str| json[name].as_array().expect("words").len();
        let (n_keys, n_queries) = (n("source"), n("fed"));
        assert_eq!(n("predicted"), n_queries);
        assert_eq!(json["fed"][0], "<start>");
        let arrays = arrays(&json);
        let names: Vec<&str> = arrays.keys().map(String::as_str).collect();
        assert_eq!(names, ["cross_attentions.0", "scores.cross.0", "states.decoder", "states.encoder", "terms.cross.0"]);
        let n_terms = if score == "dot" { 9 } else { 6 };
        let shape = |name: &str| arrays[name].0.clone();
        assert_eq!(shape("cross_attentions.0"), [1, n_queries, n_keys]);
        assert_eq!(shape("scores.cross.0"), [1, n_queries, n_keys]);
        assert_eq!(shape("terms.cross.0"), [1, n_terms, n_queries, n_keys]);
        assert_eq!((shape("states.encoder")[0], shape("states.decoder")[0]), (n_keys, n_queries));

        let (attention, scores, terms) = (&arrays["cross_attentions.0"].1, &arrays["scores.cross.0"].1, &arrays["terms.cross.0"].1);
        for query in 0..n_queries {
            let row = &scores[query * n_keys..][..n_keys];
            let sum: f64 = row.iter().map(|score| score.exp()).sum();
            for (key, score) in row.iter().enumerate() {
                let place = query * n_keys + key;
                assert!((attention[place] - score.exp() / sum).abs() < 1e-5, "softmax at {query}, {key}");
                let total: f64 = (0..n_terms).map(|term| terms[term * n_queries * n_keys + place]).sum();
                assert!((total - score).abs() < 1e-4 * (1.0 + score.abs()), "terms at {query}, {key}: {total} and {score}");
            }
        }
    }
}

/// The files of a zip archive that stores them, from its local headers.
fn stored(bytes: &[u8]) -> Vec<(String, &[u8])> {
    let number = |at: usize, n: usize| bytes[at..at + n].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    let (mut files, mut at) = (Vec::new(), 0);
    while bytes[at..].starts_with(b"PK\x03\x04") {
        assert_eq!(number(at + 8, 2), 0, "stored");
        let (size, n_name, n_extra) = (number(at + 22, 4), number(at + 26, 2), number(at + 28, 2));
        let name = String::from_utf8(bytes[at + 30..at + 30 + n_name].to_vec()).expect("a name");
        let data = at + 30 + n_name + n_extra;
        files.push((name, &bytes[data..data + size]));
        at = data + size;
    }
    assert!(bytes[at..].starts_with(b"PK\x01\x02"), "the list of files follows");
    assert!(bytes[..bytes.len()].windows(4).any(|four| four == b"PK\x05\x06"), "and its end");
    files
}

#[test]
fn all_formats_say_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, &[]);
    for extension in ["json", "npz", "safetensors"] {
        succeed(folder, &["attend", "run", "--seed", "3", "-o", &format!("x.{extension}"), "--scores", "--states"]);
    }
    let json = read_json(&folder.join("x.json"));
    let expected = arrays(&json);
    let f32s = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().map(|four| f64::from(f32::from_le_bytes(*four))).collect::<Vec<_>>();
    // JSON has the shortest digits of the f32.
    let alike = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a as f32 == b as f32);

    let bytes = std::fs::read(folder.join("x.safetensors")).expect("a file");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    for side in ["source", "fed", "predicted"] {
        let words: Value = serde_json::from_str(header["__metadata__"][side].as_str().expect("text")).expect("JSON");
        assert_eq!(words, json[side], "{side}");
    }
    assert_eq!(header.as_object().expect("an object").len(), 1 + expected.len());
    for (name, (shape, numbers)) in &expected {
        assert_eq!(header[name]["shape"], serde_json::json!(shape), "{name}");
        let offset = |end: usize| 8 + length + header[name]["data_offsets"][end].as_u64().expect("an offset") as usize;
        assert!(alike(&f32s(&bytes[offset(0)..offset(1)]), numbers), "{name}");
    }

    let bytes = std::fs::read(folder.join("x.npz")).expect("a file");
    let files = stored(&bytes);
    assert_eq!(files.len(), 3 + expected.len());
    for (file, bytes) in files {
        let name = file.strip_suffix(".npy").expect("an npy file");
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"), "{name}");
        let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!(data % 64, 0);
        let header = std::str::from_utf8(&bytes[10..data]).expect("text");
        if let Some(words) = json[name].as_array().filter(|_| !expected.contains_key(name)) {
            let width = words.iter().map(|word| word.as_str().expect("a word").chars().count()).max().expect("some words");
            assert!(
                header.starts_with(&format!("{{'descr': '<U{width}', 'fortran_order': False, 'shape': ({}, )", words.len())),
                "{header}"
            );
            let characters: Vec<u32> = bytes[data..].as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four)).collect();
            let read: Vec<String> = characters
                .chunks(width)
                .map(|word| word.iter().filter(|&&c| c != 0).map(|&c| char::from_u32(c).expect("a character")).collect())
                .collect();
            assert_eq!(serde_json::json!(read), json[name], "{name}");
        } else {
            let (shape, numbers) = &expected[name];
            let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
            assert!(header.starts_with(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})")), "{header}");
            assert!(alike(&f32s(&bytes[data..]), numbers), "{name}");
        }
    }
}

#[test]
fn a_given_source_and_target_are_what_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--out", "run", "--quiet"]);
    let vocabularies = read_json(&folder.join("run/vocab.json"));
    let word = |side: &str, place: usize| vocabularies[side][place].as_str().expect("a word").to_owned();
    let source = format!("{} {} {}", word("source", 0), word("source", 1), word("source", 0));
    let target = format!("{} {}", word("target", 1), word("target", 1));
    let words = |json: &Value, side: &str| {
        json[side].as_array().expect("words").iter().map(|word| word.as_str().expect("a word").to_owned()).collect::<Vec<_>>().join(" ")
    };

    // The tiny task ends its sentences with `<eos>`, which the trained network writes after as many words as it read.
    succeed(folder, &["attend", "run", "--source", &source, "-o", "free.json"]);
    let free = read_json(&folder.join("free.json"));
    assert_eq!(words(&free, "source"), format!("{source} <eos>"));
    let predicted = words(&free, "predicted");
    assert!(predicted.ends_with(" <eos>") && predicted.matches("<eos>").count() == 1, "{predicted}");
    let fed = words(&free, "fed");
    assert_eq!(fed.strip_prefix("<start> "), predicted.strip_suffix(" <eos>"), "the decoder read its own words");

    succeed(folder, &["attend", "run", "--source", &source, "--target", &target, "-o", "forced.json"]);
    let forced = read_json(&folder.join("forced.json"));
    assert_eq!(words(&forced, "fed"), format!("<start> {target}"));
    assert_eq!(arrays(&forced)["cross_attentions.0"].0, [1, 3, 4]);

    // Components from a file that says the same as the default.
    succeed(folder, &["fit", "run", "-o", "run.stats.safetensors"]);
    succeed(folder, &["attend", "run", "--source", &source, "--terms", "-o", "own.json"]);
    succeed(folder, &["attend", "run", "--source", &source, "--terms", "--components", "run.stats.safetensors", "-o", "given.json"]);
    assert_eq!(read_json(&folder.join("own.json")), read_json(&folder.join("given.json")));
}

#[test]
fn what_cannot_be_attended_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--out", "run", "--quiet"]);
    let vocabularies = read_json(&folder.join("run/vocab.json"));
    let word = vocabularies["source"][0].as_str().expect("a word").to_owned();
    snapshot("attend", folder, &["attend", "run", "--seed", "3", "-o", "y.npz", "--states"]);
    snapshot("attend an unknown extension", folder, &["attend", "run", "-o", "x.csv"]);
    snapshot("attend without an extension", folder, &["attend", "run", "-o", "x"]);
    snapshot("attend an unknown word", folder, &["attend", "run", "--source", &format!("{word} {word}x"), "-o", "x.json"]);
    snapshot("attend a word unlike all", folder, &["attend", "run", "--source", "ÿÿÿÿ", "-o", "x.json"]);
    snapshot("attend an unknown target word", folder, &["attend", "run", "--source", &word, "--target", "nonsense", "-o", "x.json"]);
    snapshot("attend nothing", folder, &["attend", "run", "--source", " ", "-o", "x.json"]);
    snapshot("attend a target alone", folder, &["attend", "run", "--target", "a", "-o", "x.json"]);
    snapshot("attend into nowhere", folder, &["attend", "run", "-o", "nowhere/x.json"]);
    succeed(folder, &["train", TINY, "--arch", "ved", "--steps", "1", "--out", "ved", "--quiet"]);
    snapshot("attend without attention", folder, &["attend", "ved", "-o", "x.json"]);
    assert!(!folder.join("x.json").exists());
    snapshot("help of attend", folder, &["attend", "--help"]);
}
