//! Layers as wide as those of every published model, few of them and not as many on both sides, with weights drawn by chance: tiny, base,
//! small, medium, large, and large-v3 with its 128 mels.

use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Signal, SiteKind, Token};
use crosslens_pretrained::{Decoding, Model, Subject, TokenNames, Wanted};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

const WORDS: usize = 60;
const STEPS: usize = 1500;
const POSITIONS: usize = 8;

struct Shape {
    d: usize,
    n_heads: usize,
    n_mels: usize,
    encoder_layers: usize,
    decoder_layers: usize,
}

/// Numbers between −1 and 1, always the same.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Every tensor's name and shape.
fn tensors(shape: &Shape) -> Vec<(String, Vec<usize>)> {
    let &Shape { d, n_mels, encoder_layers, decoder_layers, .. } = shape;
    let mut all = vec![
        ("encoder.conv1.weight".to_owned(), vec![d, n_mels, 3]),
        ("encoder.conv2.weight".to_owned(), vec![d, d, 3]),
        ("encoder.conv1.bias".to_owned(), vec![d]),
        ("encoder.conv2.bias".to_owned(), vec![d]),
        ("encoder.embed_positions.weight".to_owned(), vec![STEPS, d]),
        ("decoder.embed_positions.weight".to_owned(), vec![POSITIONS, d]),
        ("decoder.embed_tokens.weight".to_owned(), vec![WORDS, d]),
    ];
    for (side, n_layers) in [("encoder", encoder_layers), ("decoder", decoder_layers)] {
        let mut norms = vec![format!("{side}.layer_norm")];
        for layer in (0..n_layers).map(|number| format!("{side}.layers.{number}")) {
            for attention in ["self_attn", "encoder_attn"].iter().take(if side == "decoder" { 2 } else { 1 }) {
                norms.push(format!("{layer}.{attention}_layer_norm"));
                for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    all.push((format!("{layer}.{attention}.{part}.weight"), vec![d, d]));
                    all.extend((part != "k_proj").then(|| (format!("{layer}.{attention}.{part}.bias"), vec![d])));
                }
            }
            norms.push(format!("{layer}.final_layer_norm"));
            for (part, d_in, d_out) in [("fc1", d, 4 * d), ("fc2", 4 * d, d)] {
                all.push((format!("{layer}.{part}.weight"), vec![d_out, d_in]));
                all.push((format!("{layer}.{part}.bias"), vec![d_out]));
            }
        }
        for norm in norms {
            all.push((format!("{norm}.weight"), vec![d]));
            all.push((format!("{norm}.bias"), vec![d]));
        }
    }
    all
}

fn write(folder: &Path, shape: &Shape) {
    let mut chance = Chance(7);
    let stored: Vec<(String, Vec<usize>, Vec<u8>)> = tensors(shape)
        .into_iter()
        .map(|(name, shape)| {
            // Sums over what a row reads stay about as large as what is read; tables of positions and words are as they are.
            let spread =
                if shape.len() > 1 && !name.contains("embed") { (3.0 / shape[1..].iter().product::<usize>() as f32).sqrt() } else { 0.5 };
            let numbers = (0..shape.iter().product::<usize>()).flat_map(|_| (spread * chance.next()).to_le_bytes()).collect();
            (format!("model.{name}"), shape, numbers)
        })
        .collect();
    let views = stored.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a tensor")));
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).expect("writable");
    let &Shape { d, n_heads, n_mels, encoder_layers, decoder_layers } = shape;
    let config = json!({
        "model_type": "whisper", "vocab_size": WORDS, "num_mel_bins": n_mels, "d_model": d, "activation_function": "gelu",
        "encoder_layers": encoder_layers, "encoder_attention_heads": n_heads, "encoder_ffn_dim": 4 * d, "max_source_positions": STEPS,
        "decoder_layers": decoder_layers, "decoder_attention_heads": n_heads, "decoder_ffn_dim": 4 * d,
        "max_target_positions": POSITIONS, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1, "decoder_start_token_id": 2,
    });
    std::fs::write(folder.join("config.json"), config.to_string()).expect("writable");
}

/// Attention is that of every head to every step, and what is written step by step is what the whole text makes likeliest.
fn check(shape: &Shape) {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), shape);
    let model = Arc::new(Model::open(folder.path()).expect("a model"));
    let mut chance = Chance(11);
    let sound = Signal::new((0..2 * STEPS * shape.n_mels).map(|_| chance.next()).collect());
    let mut how = Decoding::greedy(&model);
    how.rules.max_tokens = 3;
    let written = model.write(&sound, &how).expect("a text").remove(0).tokens;
    let fed: Vec<Token> = std::iter::once(2).chain(written[..written.len() - 1].iter().copied()).collect();
    let logits = model.logits_of(&sound, &fed).expect("logits");
    assert!(logits.iter().all(|logit| logit.is_finite()));
    let likeliest = |row: &[f32]| (0..WORDS).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("words") as Token;
    assert_eq!(logits.chunks_exact(WORDS).map(likeliest).collect::<Vec<_>>(), written);

    let names = TokenNames { source: (0..STEPS).map(|step| step.to_string()).collect(), target: Vec::new() };
    let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
    let subject = Subject::new(model, names, wanted, 1).expect("a subject");
    let pair = Pair { signal: Some(sound), ..Pair::new((0..STEPS as Token).collect(), written) };
    let recorded = subject.record(&[pair], Fed::Target).expect("attention").remove(0);
    assert_eq!(recorded.attention.len(), shape.decoder_layers * shape.n_heads);
    for weights in &recorded.attention {
        assert_eq!(weights.len(), fed.len() * STEPS);
        for row in weights.chunks_exact(STEPS) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4 && row.iter().all(|weight| *weight >= 0.0));
        }
    }
}

#[test]
fn layers_of_whisper_tiny_listen() {
    check(&Shape { d: 384, n_heads: 6, n_mels: 80, encoder_layers: 2, decoder_layers: 1 });
}

#[test]
fn layers_of_whisper_base_small_and_medium_listen() {
    for (d, n_heads) in [(512, 8), (768, 12), (1024, 16)] {
        check(&Shape { d, n_heads, n_mels: 80, encoder_layers: 1, decoder_layers: 1 });
    }
}

/// Large and large-v2 are as wide and read 80 mels, as the smaller ones do.
#[test]
fn layers_of_whisper_large_v3_and_its_turbo_listen() {
    check(&Shape { d: 1280, n_heads: 20, n_mels: 128, encoder_layers: 1, decoder_layers: 2 });
}
