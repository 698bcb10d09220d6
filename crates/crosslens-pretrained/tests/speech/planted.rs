//! A Whisper built by hand that says `the cat sat down`, whatever it hears, and looks at known seconds while it does.
//!
//! An encoder and a decoder of one layer. Every second of sound has a dimension of its own, 0…29, as has every token of [`CHAIN`], 30…: what
//! a step or a token adds is 1 there and 0 elsewhere. Self-attention writes nothing.
//!
//! ```text
//! encoder   convolutions give 0; what is left of a step is its second
//! head 0    W_Q takes a token to the seconds of the one after it, W_K reads the second       follows the sound
//! head 1    W_Q = 0, b_Q the first second                                                    always looks there
//! feed      takes a token to the one after it                                                so that this is written
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

/// What is said, and the seconds that are looked at for it.
pub(crate) const SAID: [(&str, Range<usize>); 4] = [("the", 0..2), ("cat", 2..5), ("sat", 5..6), ("down", 6..8)];
const SECONDS: usize = 30;
const STEPS: usize = 1500;
const MELS: usize = 80;
const D: usize = 64;
/// A dimension that neither seconds nor tokens have.
const LOUD: usize = 60;
const HEADS: usize = 2;

const END: usize = 8;
const START: usize = 9;
const ENGLISH: usize = 10;
const GERMAN: usize = 11;
const TRANSLATE: usize = 12;
const TRANSCRIBE: usize = 13;
const NO_SPEECH: usize = 14;
const NO_TIMESTAMPS: usize = 15;
const FIRST_TIME: usize = 16;
/// When all is said: 8 seconds.
const LAST_TIME: usize = FIRST_TIME + 8 * 50;
const WORDS: usize = FIRST_TIME + STEPS + 1;

/// Each token and the one written after it.
const CHAIN: [(usize, usize); 12] = [
    (START, ENGLISH),
    (ENGLISH, TRANSCRIBE),
    (GERMAN, TRANSCRIBE),
    (TRANSCRIBE, FIRST_TIME),
    (NO_TIMESTAMPS, 0),
    (FIRST_TIME, 0),
    (0, 1),
    (1, 2),
    (2, 3),
    (3, LAST_TIME),
    (LAST_TIME, END),
    (END, END),
];
const FEED: usize = CHAIN.len();

/// The dimension of a token.
fn dimension(token: usize) -> usize {
    SECONDS + CHAIN.iter().position(|(known, _)| *known == token).expect("a token of the chain")
}

fn matrix(rows: usize, columns: usize, set: impl IntoIterator<Item = (usize, usize, f32)>) -> (Vec<usize>, Vec<f32>) {
    let mut numbers = vec![0.0; rows * columns];
    set.into_iter().for_each(|(row, column, number)| numbers[row * columns + column] = number);
    (vec![rows, columns], numbers)
}

fn vector(n: usize, value: f32) -> (Vec<usize>, Vec<f32>) {
    (vec![n], vec![value; n])
}

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Writes the folder.
pub(crate) fn plant(folder: &Path) {
    save(folder, &tensors());
}

/// Writes one whose convolutions let through how loud a frame is, the mean of its mels, and whose head 1 looks at loud frames.
pub(crate) fn plant_listening(folder: &Path) {
    let mut tensors = tensors();
    let mut set = |name: &str, place: usize, value: f32| {
        tensors.get_mut(&format!("model.{name}")).expect("a tensor of the model").1[place] = value;
    };
    // The middle of three taps of [out, in, tap].
    (0..MELS).for_each(|mel| set("encoder.conv1.weight", (LOUD * MELS + mel) * 3 + 1, 1.0 / MELS as f32));
    set("encoder.conv2.weight", (LOUD * D + LOUD) * 3 + 1, 1.0);
    set("decoder.layers.0.encoder_attn.k_proj.weight", (D - 1) * D + LOUD, 1.0);
    set("decoder.layers.0.encoder_attn.q_proj.bias", D / HEADS, 0.0);
    set("decoder.layers.0.encoder_attn.q_proj.bias", D - 1, 20.0);
    save(folder, &tensors);
}

fn tensors() -> Tensors {
    let mut tensors = Tensors::new();
    for (name, d_in) in [("conv1", MELS), ("conv2", D)] {
        tensors.insert(format!("model.encoder.{name}.weight"), (vec![D, d_in, 3], vec![0.0; D * d_in * 3]));
        tensors.insert(format!("model.encoder.{name}.bias"), vector(D, 0.0));
    }
    tensors.insert("model.encoder.embed_positions.weight".into(), matrix(STEPS, D, (0..STEPS).map(|step| (step, step / 50, 1.0))));
    tensors.insert("model.decoder.embed_positions.weight".into(), matrix(40, D, []));
    let words = CHAIN.iter().map(|(token, _)| (*token, dimension(*token), 2.0));
    tensors.insert("model.decoder.embed_tokens.weight".into(), matrix(WORDS, D, words));
    for side in ["encoder", "decoder"] {
        let layer = format!("model.{side}.layers.0");
        let mut norms =
            vec![format!("model.{side}.layer_norm"), format!("{layer}.self_attn_layer_norm"), format!("{layer}.final_layer_norm")];
        let mut attentions = vec![format!("{layer}.self_attn")];
        if side == "decoder" {
            norms.push(format!("{layer}.encoder_attn_layer_norm"));
            attentions.push(format!("{layer}.encoder_attn"));
        }
        for norm in norms {
            tensors.insert(format!("{norm}.weight"), vector(D, 1.0));
            tensors.insert(format!("{norm}.bias"), vector(D, 0.0));
        }
        for attention in attentions {
            for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                tensors.insert(format!("{attention}.{part}.weight"), matrix(D, D, []));
                if part != "k_proj" {
                    tensors.insert(format!("{attention}.{part}.bias"), vector(D, 0.0));
                }
            }
        }
        tensors.insert(format!("{layer}.fc1.weight"), matrix(FEED, D, []));
        tensors.insert(format!("{layer}.fc1.bias"), vector(FEED, 0.0));
        tensors.insert(format!("{layer}.fc2.weight"), matrix(D, FEED, []));
        tensors.insert(format!("{layer}.fc2.bias"), vector(D, 0.0));
    }
    // The seconds of the token after a token: those of a word, and after the last what is left.
    let seconds_after = |token: usize| match token {
        NO_TIMESTAMPS | FIRST_TIME => SAID[0].1.clone(),
        word @ 0..=2 => SAID[word + 1].1.clone(),
        3 => 8..SECONDS,
        _ => 0..0,
    };
    let looks = CHAIN.iter().flat_map(|(token, _)| seconds_after(*token).map(|second| (second, dimension(*token), 2.0)));
    let mut set = |part: &str, value| tensors.insert(format!("model.decoder.layers.0.{part}"), value);
    set("encoder_attn.q_proj.weight", matrix(D, D, looks));
    let reads = (0..HEADS).flat_map(|head| (0..SECONDS).map(move |second| (head * D / HEADS + second, second, 1.0)));
    set("encoder_attn.k_proj.weight", matrix(D, D, reads));
    let (shape, mut bias) = vector(D, 0.0);
    bias[D / HEADS] = 20.0;
    set("encoder_attn.q_proj.bias", (shape, bias));
    set("fc1.weight", matrix(FEED, D, (0..FEED).map(|token| (token, SECONDS + token, 1.0))));
    set("fc2.weight", matrix(D, FEED, CHAIN.iter().enumerate().map(|(place, (_, next))| (dimension(*next), place, 4.0))));
    tensors
}

fn save(folder: &Path, tensors: &Tensors) {
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let stored: Vec<_> = tensors.iter().map(|(name, (shape, numbers))| (name, shape, bytes(numbers))).collect();
    let views = stored.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("a tensor")));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).expect("tensors")).expect("writable");
    let config = json!({
        "model_type": "whisper", "vocab_size": WORDS, "num_mel_bins": MELS, "d_model": D, "activation_function": "relu",
        "encoder_layers": 1, "encoder_attention_heads": HEADS, "encoder_ffn_dim": FEED, "max_source_positions": STEPS,
        "decoder_layers": 1, "decoder_attention_heads": HEADS, "decoder_ffn_dim": FEED, "max_target_positions": 40,
        "pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START,
    });
    write(folder, "config.json", &config);
    write(folder, "generation_config.json", &generation());
    write(folder, "tokenizer.json", &tokenizer());
    write(folder, "preprocessor_config.json", &json!({ "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MELS }));
}

pub(crate) fn write(folder: &Path, name: &str, content: &Value) {
    std::fs::write(folder.join(name), content.to_string()).expect("writable");
}

/// As models say it today.
pub(crate) fn generation() -> Value {
    json!({
        "pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START, "max_length": 40,
        "is_multilingual": true, "lang_to_id": { "<|en|>": ENGLISH, "<|de|>": GERMAN },
        "task_to_id": { "translate": TRANSLATE, "transcribe": TRANSCRIBE }, "no_timestamps_token_id": NO_TIMESTAMPS,
        "max_initial_timestamp_index": 50, "alignment_heads": [[0, 0]], "suppress_tokens": [], "begin_suppress_tokens": [END],
    })
}

/// As the first models said it: everything else is in the tokens' names.
pub(crate) fn old_generation() -> Value {
    json!({
        "pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START, "max_length": 40,
        "forced_decoder_ids": [[1, null], [2, TRANSCRIBE]], "begin_suppress_tokens": [END],
    })
}

/// The names of the special tokens, by their numbers.
pub(crate) fn special_tokens() -> Vec<(usize, String)> {
    let names = ["endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "nospeech", "notimestamps"];
    let named = names.iter().enumerate().map(|(place, name)| (END + place, format!("<|{name}|>")));
    let times = (0..=STEPS).map(|step| (FIRST_TIME + step, format!("<|{:.2}|>", step as f64 * 0.02)));
    assert_eq!(END + names.len() - 2, NO_SPEECH);
    named.chain(times).collect()
}

/// The tokens of text: those of [`SAID`], and some nobody says.
pub(crate) fn vocabulary() -> Value {
    let words = SAID.iter().map(|(word, _)| format!("Ġ{word}")).chain(["Ã", "¤", "x", "y"].map(str::to_owned));
    Value::Object(words.enumerate().map(|(token, word)| (word, json!(token))).collect())
}

/// Whole words, each byte a token where there is none.
fn tokenizer() -> Value {
    let added = special_tokens().into_iter().map(|(id, content)| {
        let special = id < FIRST_TIME;
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": special })
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                   "fuse_unk": false, "byte_fallback": false, "ignore_merges": true, "vocab": vocabulary(), "merges": [] }
    })
}

/// A file of so many seconds of a quiet hum: 16 bits, 16 kHz.
pub(crate) fn wav(seconds: f64) -> Vec<u8> {
    wave((0..(seconds * 16_000.0) as usize).map(|at| (2000.0 * (at as f64 * 0.07).sin()) as i16).collect())
}

/// A file of ten seconds, of which these are noise and the others silence.
pub(crate) fn noise(loud: Range<usize>) -> Vec<u8> {
    let mut state = 1u32;
    let mut sample = |at: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if loud.contains(&(at / 16_000)) { ((state >> 16) as i16) / 8 } else { 0 }
    };
    wave((0..160_000).map(&mut sample).collect())
}

fn wave(samples: Vec<i16>) -> Vec<u8> {
    let n_bytes = (2 * samples.len()) as u32;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(36 + n_bytes).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend_from_slice(&16_000u32.to_le_bytes());
    bytes.extend_from_slice(&32_000u32.to_le_bytes());
    bytes.extend_from_slice(b"\x02\0\x10\0data");
    bytes.extend_from_slice(&n_bytes.to_le_bytes());
    samples.iter().for_each(|sample| bytes.extend_from_slice(&sample.to_le_bytes()));
    bytes
}
