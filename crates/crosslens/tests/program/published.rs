//! Folders as they are published: weights beside SentencePiece models, which nobody converted.
//!
//! The tokenizers are the golden ones of `crosslens-pretrained`, the weights those of its tiny models, with as many words as the tokenizer
//! knows.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use super::common::{seen, succeed};

/// Dimensions of the tiny models.
const D: usize = 16;
/// A source and a target whose words are of several pieces.
const SOURCE: &str = "the little house is small";
const TARGET: &str = "la petite maison";

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crosslens-pretrained/tests/golden").join(path)
}

fn unpacked(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(golden(&format!("tokenizers/{name}.gz"))).expect("golden tokenizers are committed");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("whole");
    bytes
}

fn about(name: &str) -> Value {
    serde_json::from_slice(&unpacked(&format!("{name}.json"))).expect("JSON")
}

/// Copies a tiny model to `folder/name`; `words` and `bias` get `n_words` rows of other numbers, its settings `changes`.
fn model(folder: &Path, name: &str, words: &str, bias: Option<&str>, n_words: usize, changes: &Value) {
    let (from, to) = (golden(name), folder.join(name));
    std::fs::create_dir(&to).expect("a folder");
    let read = |file: &str| std::fs::read(from.join(file)).expect("golden models are committed");
    let bytes = read("model.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).expect("tensors");
    let table: Vec<u8> = (0..n_words * D).flat_map(|place| (1.5 * (place as f32 * 0.7).sin()).to_le_bytes()).collect();
    let zeros = vec![0; 4 * n_words];
    let mut names: Vec<&str> = tensors.names();
    names.sort_unstable();
    let views = names.into_iter().map(|name| {
        let stored = tensors.tensor(name).expect("a tensor");
        let (shape, data) = match name {
            name if name == words => (vec![n_words, D], &table[..]),
            name if Some(name) == bias => (vec![1, n_words], &zeros[..]),
            _ => (stored.shape().to_vec(), stored.data()),
        };
        (name, TensorView::new(Dtype::F32, shape, data).expect("a tensor"))
    });
    std::fs::write(to.join("model.safetensors"), safetensors::serialize(views, None).expect("tensors")).expect("writable");
    for file in ["config.json", "generation_config.json"] {
        let mut settings: Value = serde_json::from_slice(&read(file)).expect("JSON");
        for (key, value) in changes.as_object().expect("changes") {
            // Only what stood there before.
            if let Some(setting) = settings.get_mut(key) {
                *setting = value.clone();
            }
        }
        std::fs::write(to.join(file), settings.to_string()).expect("writable");
    }
}

/// A T5 with `spiece.model`.
fn t5(folder: &Path) {
    model(folder, "t5", "shared.weight", None, 640, &json!({ "vocab_size": 640 }));
    let about = about("t5");
    std::fs::write(folder.join("t5/spiece.model"), unpacked(&format!("{}.model", about["model"].as_str().expect("a name"))))
        .expect("writable");
    std::fs::write(folder.join("t5/tokenizer_config.json"), about["config"].to_string()).expect("writable");
}

/// A Marian with `source.spm`, `target.spm` and `vocab.json`.
fn marian(folder: &Path) {
    let about = about("marian");
    let pad = about["vocab"]["<pad>"].as_u64().expect("a number");
    let changes = json!({
        "vocab_size": pad + 1, "decoder_vocab_size": pad + 1, "pad_token_id": pad, "decoder_start_token_id": pad, "bad_words_ids": [[pad]],
    });
    model(folder, "marian", "model.shared.weight", Some("final_logits_bias"), pad as usize + 1, &changes);
    for (file, key) in [("source.spm", "source_model"), ("target.spm", "target_model")] {
        std::fs::write(folder.join("marian").join(file), unpacked(&format!("{}.model", about[key].as_str().expect("a name"))))
            .expect("writable");
    }
    std::fs::write(folder.join("marian/vocab.json"), about["vocab"].to_string()).expect("writable");
    std::fs::write(folder.join("marian/tokenizer_config.json"), about["config"].to_string()).expect("writable");
}

/// All attention of a sentence.
fn attended(folder: &Path, model: &str, target: &[&str]) -> Value {
    succeed(folder, &[&["attend", model, "--source", SOURCE, "-o", "x.json"], target].concat());
    serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON")
}

fn names(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).expect("tokens")
}

/// The word of each piece: `▁` begins one, what is unknown belongs to it, the end has none.
fn words(pieces: &[String]) -> Vec<Option<usize>> {
    let mut n_words = 0;
    let mut word = |piece: &String| {
        n_words += usize::from(piece.starts_with('▁'));
        (piece != "</s>").then(|| n_words - 1)
    };
    pieces.iter().map(&mut word).collect()
}

/// Without a target, attention is that of what `translate` writes, its likeliest token each time.
#[test]
fn attention_is_that_of_the_model_s_own_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    marian(folder);
    let line = succeed(folder, &["translate", "marian", SOURCE, "--beams", "1", "--json"]).stdout;
    let written: Value = serde_json::from_slice(&line).expect("JSON");
    let vocabulary = about("marian")["vocab"].clone();
    let name = |id: &Value| {
        let found = vocabulary.as_object().expect("tokens").iter().find(|(_, number)| *number == id);
        found.expect("a token of the vocabulary").0.clone()
    };
    let tokens: Vec<String> = written["tokens"].as_array().expect("tokens").iter().map(name).collect();
    assert!(tokens.len() > 3, "{tokens:?}");
    let attended = attended(folder, "marian", &[]);
    assert_eq!(names(&attended["predicted"]), tokens);
    assert_eq!(names(&attended["fed"])[1..], tokens[..tokens.len() - 1]);
}

/// Links of words from attention between pieces: source pieces added up, target pieces averaged; the row that predicts a piece, or with
/// `--shifted` the one that reads it.
#[test]
fn links_are_between_words_of_several_pieces() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    t5(folder);
    marian(folder);
    std::fs::write(folder.join("pair.tsv"), format!("{SOURCE}\t{TARGET}\n")).expect("writable");
    for model in ["t5", "marian"] {
        let attended = attended(folder, model, &["--target", TARGET]);
        let (source, mut target) = (names(&attended["source"]), names(&attended["fed"]));
        target.remove(0);
        let n_queries = target.len() + 1;
        let (source_words, target_words) = (words(&source), words(&target));
        let count = |words: &[Option<usize>]| words.iter().flatten().max().map_or(0, |last| last + 1);
        assert_eq!((count(&source_words), count(&target_words)), (5, 3), "{source:?} {target:?}");
        assert!(source.len() > 7 && target.len() > 4, "words of several pieces: {source:?} {target:?}");
        for (layer, head) in [(0, 1), (1, 2)] {
            let rows: Vec<Vec<Vec<f64>>> = serde_json::from_value(attended[format!("cross_attentions.{layer}")].clone()).expect("heads");
            assert_eq!(rows[head].len(), n_queries);
            for (option, shift) in [(None, 0), (Some("--shifted"), 1)] {
                let mut expected: Vec<(usize, usize)> = (0..3)
                    .map(|word| {
                        let mut weights = [0.0; 5];
                        for (piece, _) in target_words.iter().enumerate().filter(|(_, of)| **of == Some(word)) {
                            for (weight, source_word) in rows[head][piece + shift].iter().zip(&source_words) {
                                if let Some(source_word) = source_word {
                                    weights[*source_word] += weight;
                                }
                            }
                        }
                        (0..5)
                            .max_by(|&a, &b| weights[a].total_cmp(&weights[b]))
                            .map(|source_word| (source_word, word))
                            .expect("five words")
                    })
                    .collect();
                let heads = format!("{layer}.{head}");
                let arguments = ["align", model, "--corpus", "pair.tsv", "--heads", &heads];
                let output = succeed(folder, &[&arguments[..], option.as_slice()].concat());
                let mut found: Vec<(usize, usize)> = String::from_utf8(output.stdout)
                    .expect("text")
                    .split_whitespace()
                    .map(|link| {
                        let (source, target) = link.split_once('-').expect("a link");
                        (source.parse().expect("a number"), target.parse().expect("a number"))
                    })
                    .collect();
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "{model} {heads} {option:?}");
            }
        }
    }
}

/// Every way a folder can be wrong ends in exit code 1 and a message that names it.
#[test]
fn folders_that_lie_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    t5(folder);
    let (config, weights) = (folder.join("t5/config.json"), folder.join("t5/model.safetensors"));
    let (settings, bytes) = (std::fs::read(&config).expect("settings"), std::fs::read(&weights).expect("weights"));
    let refused = |says: &[&str]| {
        let seen = seen(folder, &["translate", "t5", SOURCE]);
        assert!(seen.starts_with("exit 1") && says.iter().all(|says| seen.contains(says)), "{says:?}: {seen}");
    };
    let with = |key: &str, value: Value, says: &[&str]| {
        let mut settings: Value = serde_json::from_slice(&settings).expect("JSON");
        settings[key] = value;
        std::fs::write(&config, settings.to_string()).expect("writable");
        refused(says);
    };
    with("model_type", json!("flow5"), &["flow5", "marian"]);
    with("model_type", json!("gpt2"), &["gpt2", "decoder only"]);
    with("d_ff", json!(25), &["has the shape"]);
    with("num_layers", json!(3), &["has no tensor"]);
    with("num_layers", json!(1), &["encoder.block.1", "has no use for"]);
    std::fs::write(&config, &settings).expect("writable");
    let tensors = SafeTensors::deserialize(&bytes).expect("tensors");
    let without = "encoder.block.0.layer.0.SelfAttention.q.weight";
    let some = tensors.tensors().into_iter().filter(|(name, _)| name != without);
    std::fs::write(&weights, safetensors::serialize(some, None).expect("tensors")).expect("writable");
    refused(&["has no tensor", without]);
    let one = tensors.tensor(without).expect("a tensor");
    let more = tensors.tensors().into_iter().chain([("encoder.block.7.layer.0.SelfAttention.q.weight".to_owned(), one)]);
    std::fs::write(&weights, safetensors::serialize(more, None).expect("tensors")).expect("writable");
    refused(&["encoder.block.7.layer.0.SelfAttention.q.weight"]);
    std::fs::write(&weights, &bytes).expect("writable");
    std::fs::write(folder.join("t5/spiece.model"), b"no pieces").expect("writable");
    refused(&["spiece.model"]);
}
