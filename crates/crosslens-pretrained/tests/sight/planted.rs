//! A model of pictures built by hand that says `red bus`, whatever it sees, and looks at known patches while it does.
//!
//! A ViT and a GPT-2 of one layer. Every step of the encoder has a dimension of its own, 0…20, as has every token of [`CHAIN`], 21…: what a
//! step or a token adds is 1 or 2 there and 0 elsewhere. Self-attention writes nothing, and pixels give 0.
//!
//! ```text
//! encoder   what is left of a step is its place
//! head 0    W_Q takes a token to the patch of the one after it, W_K reads the place          looks at what it names
//! head 1    W_Q = 0, b_Q the class vector                                                    always looks there
//! feed      takes a token to the one after it                                                so that this is written
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value, json};

/// What is said, and the patch that is looked at for it: row and column from 1.
pub(crate) const NAMED: [(&str, (usize, usize)); 2] = [("red", (1, 2)), ("bus", (3, 4))];
pub(crate) const ROWS: usize = 4;
pub(crate) const COLUMNS: usize = 5;
/// The class vector, then the patches.
pub(crate) const STEPS: usize = 1 + ROWS * COLUMNS;
const PATCH: usize = 8;
const D: usize = 48;
const HEADS: usize = 2;

const START: usize = 0;
const PAD: usize = 1;
const END: usize = 2;
const RED: usize = 3;
const BUS: usize = 4;
const WORDS: usize = 5;
const POSITIONS: usize = 10;

/// Each token and the one written after it.
const CHAIN: [(usize, usize); 4] = [(START, RED), (RED, BUS), (BUS, END), (END, END)];
const FEED: usize = CHAIN.len();

/// The dimension of a token.
fn dimension(token: usize) -> usize {
    STEPS + CHAIN.iter().position(|(known, _)| *known == token).expect("a token of the chain")
}

/// The step of the encoder that a patch is.
pub(crate) fn step((row, column): (usize, usize)) -> usize {
    1 + (row - 1) * COLUMNS + column - 1
}

/// The step that is looked at while a token is read.
fn looks_at(token: usize) -> usize {
    match token {
        START => step(NAMED[0].1),
        RED => step(NAMED[1].1),
        _ => 0,
    }
}

fn tensor(shape: &[usize], set: impl IntoIterator<Item = (usize, usize, f32)>) -> (Vec<usize>, Vec<f32>) {
    let mut numbers = vec![0.0; shape.iter().product()];
    let columns = shape.last().copied().unwrap_or(1);
    set.into_iter().for_each(|(row, column, number)| numbers[row * columns + column] = number);
    (shape.to_vec(), numbers)
}

fn norm(tensors: &mut BTreeMap<String, (Vec<usize>, Vec<f32>)>, name: &str) {
    tensors.insert(format!("{name}.weight"), (vec![D], vec![1.0; D]));
    tensors.insert(format!("{name}.bias"), tensor(&[D], []));
}

/// Writes the folder.
pub(crate) fn plant(folder: &Path) {
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> = BTreeMap::new();
    let places = (0..STEPS).map(|step| (step, step, 1.0));
    for (name, value) in [
        ("embeddings.cls_token", tensor(&[1, 1, D], [])),
        ("embeddings.position_embeddings", tensor(&[1, STEPS, D], places)),
        ("embeddings.patch_embeddings.projection.weight", tensor(&[D, 3, PATCH, PATCH], [])),
        ("embeddings.patch_embeddings.projection.bias", tensor(&[D], [])),
        ("encoder.layer.0.intermediate.dense.weight", tensor(&[FEED, D], [])),
        ("encoder.layer.0.intermediate.dense.bias", tensor(&[FEED], [])),
        ("encoder.layer.0.output.dense.weight", tensor(&[D, FEED], [])),
        ("encoder.layer.0.output.dense.bias", tensor(&[D], [])),
    ] {
        tensors.insert(format!("encoder.{name}"), value);
    }
    for part in ["attention.query", "attention.key", "attention.value", "output.dense"] {
        tensors.insert(format!("encoder.encoder.layer.0.attention.{part}.weight"), tensor(&[D, D], []));
        tensors.insert(format!("encoder.encoder.layer.0.attention.{part}.bias"), tensor(&[D], []));
    }
    for name in ["encoder.layer.0.layernorm_before", "encoder.layer.0.layernorm_after", "layernorm"] {
        norm(&mut tensors, &format!("encoder.{name}"));
    }

    // GPT-2 stores its matrices turned: [in, out].
    let decoder = "decoder.transformer";
    let words = CHAIN.iter().map(|(token, _)| (*token, dimension(*token), 2.0));
    tensors.insert(format!("{decoder}.wte.weight"), tensor(&[WORDS, D], words));
    tensors.insert(format!("{decoder}.wpe.weight"), tensor(&[POSITIONS, D], []));
    let looks = CHAIN.iter().map(|(token, _)| (dimension(*token), looks_at(*token), 2.0));
    let reads = (0..HEADS).flat_map(|head| (0..STEPS).map(move |step| (step, head * D / HEADS + step, 1.0)));
    let next = CHAIN.iter().enumerate().map(|(place, (_, next))| (place, dimension(*next), 4.0));
    for (name, value) in [
        ("attn.c_attn.weight", tensor(&[D, 3 * D], [])),
        ("attn.c_attn.bias", tensor(&[3 * D], [])),
        ("attn.c_proj.weight", tensor(&[D, D], [])),
        ("attn.c_proj.bias", tensor(&[D], [])),
        ("crossattention.q_attn.weight", tensor(&[D, D], looks)),
        ("crossattention.q_attn.bias", tensor(&[D], [(0, D / HEADS, 20.0)])),
        ("crossattention.c_attn.weight", tensor(&[D, 2 * D], reads)),
        ("crossattention.c_attn.bias", tensor(&[2 * D], [])),
        ("crossattention.c_proj.weight", tensor(&[D, D], [])),
        ("crossattention.c_proj.bias", tensor(&[D], [])),
        ("mlp.c_fc.weight", tensor(&[D, FEED], (0..FEED).map(|token| (STEPS + token, token, 1.0)))),
        ("mlp.c_fc.bias", tensor(&[FEED], [])),
        ("mlp.c_proj.weight", tensor(&[FEED, D], next)),
        ("mlp.c_proj.bias", tensor(&[D], [])),
    ] {
        tensors.insert(format!("{decoder}.h.0.{name}"), value);
    }
    for name in ["h.0.ln_1", "h.0.ln_cross_attn", "h.0.ln_2", "ln_f"] {
        norm(&mut tensors, &format!("{decoder}.{name}"));
    }

    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let stored: Vec<_> = tensors.iter().map(|(name, (shape, numbers))| (name, shape, bytes(numbers))).collect();
    let views = stored.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("a tensor")));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).expect("tensors")).expect("writable");
    let size = json!({ "height": ROWS * PATCH, "width": COLUMNS * PATCH });
    let config = json!({
        "model_type": "vision-encoder-decoder", "decoder_start_token_id": START, "eos_token_id": END, "pad_token_id": PAD,
        "max_length": POSITIONS,
        "encoder": {
            "model_type": "vit", "hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": HEADS, "intermediate_size": FEED,
            "hidden_act": "relu", "image_size": [ROWS * PATCH, COLUMNS * PATCH], "patch_size": PATCH, "num_channels": 3,
        },
        "decoder": {
            "model_type": "gpt2", "vocab_size": WORDS, "n_embd": D, "n_layer": 1, "n_head": HEADS, "n_inner": FEED,
            "n_positions": POSITIONS, "activation_function": "relu", "add_cross_attention": true, "bos_token_id": START,
            "eos_token_id": END, "pad_token_id": PAD,
        },
    });
    let processor = json!({
        "image_processor_type": "ViTImageProcessor", "do_resize": true, "size": size, "resample": 2, "do_rescale": true,
        "rescale_factor": 1.0 / 255.0, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    });
    for (name, content) in [("config.json", config), ("preprocessor_config.json", processor), ("tokenizer.json", tokenizer())] {
        std::fs::write(folder.join(name), content.to_string()).expect("writable");
    }
}

/// Whole words.
fn tokenizer() -> Value {
    let special = ["<s>", "<pad>", "</s>"];
    let names = special.iter().copied().chain(NAMED.map(|(word, _)| word));
    let vocabulary: Map<String, Value> = names.enumerate().map(|(id, name)| (name.to_owned(), json!(id))).collect();
    let added = special.iter().enumerate().map(|(id, name)| {
        json!({ "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true })
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<pad>" }
    })
}
