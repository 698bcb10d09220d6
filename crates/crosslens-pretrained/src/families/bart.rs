//! BART and Marian: norms after each part, biases everywhere, positions added to the words.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::{SiteKind, Visible};

use super::Family;
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Attention, Linear, Norm, Positions, Table};
use crate::model::{Model, Readout};
use crate::stack::{FeedForward, Layer, NormPlace, Stack};
use crate::weights::Weights;

/// What PyTorch adds to a variance unless told otherwise; these configurations do not tell.
const EPSILON: f32 = 1e-5;
/// Learned positions of BART begin in this row: an old way to keep rows for padding.
const FIRST_POSITION: usize = 2;

/// Most positions that are computed: unlike learned ones, no tensor bounds them.
const MOST_POSITIONS: usize = 1 << 14;

/// What both sides share.
struct Shape {
    d: usize,
    activation: Activation,
    word_scale: f32,
    n_positions: usize,
}

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let is_bart = family == Family::Bart;
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let name = config.text("activation_function", "gelu")?;
    let activation = Activation::named(name);
    let d = size("d_model", 1024)?;
    let shape = Shape {
        d,
        activation: activation
            .ok_or_else(|| config.wrong("activation_function", format!("is `{name}`; known are {}", Activation::KNOWN)))?,
        word_scale: if config.flag("scale_embedding", false)? { (d as f32).sqrt() } else { 1.0 },
        n_positions: size("max_position_embeddings", 1024)?,
    };
    let n_source = size("vocab_size", if is_bart { 50265 } else { 58101 })?;
    let is_shared = is_bart || config.flag("share_encoder_decoder_embeddings", true)?;
    let n_target = if is_shared { n_source } else { size("decoder_vocab_size", n_source)? };

    // With the readout a model stands under `model.`; without it, it stands alone.
    let prefix = if weights.has("model.encoder.layers.0.self_attn.q_proj.weight") { "model." } else { "" };
    let name = |rest: &str| format!("{prefix}{rest}");
    let (shared, of_encoder, of_decoder) =
        (name("shared.weight"), name("encoder.embed_tokens.weight"), name("decoder.embed_tokens.weight"));
    let (source, target) = if is_shared {
        let words = weights.first_of(&[&shared, &of_encoder, &of_decoder]).to_owned();
        let words = Arc::new(weights.table(&words, n_source, d)?);
        (words.clone(), words)
    } else {
        (Arc::new(weights.table(&of_encoder, n_source, d)?), Arc::new(weights.table(&of_decoder, n_target, d)?))
    };
    [&shared, &of_encoder, &of_decoder].into_iter().for_each(|name| weights.pass_over(name));

    let encoder = stack(&mut weights, &name("encoder"), family, config, &shape, source)?;
    let decoder = stack(&mut weights, &name("decoder"), family, config, &shape, target.clone())?;
    let table = if weights.has("lm_head.weight") { Arc::new(weights.table("lm_head.weight", n_target, d)?) } else { target };
    let bias = if weights.has("final_logits_bias") { Some(weights.read("final_logits_bias", &[1, n_target])?) } else { None };
    weights.refuse_rest()?;

    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias, scale: 1.0, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

fn stack(
    weights: &mut Weights,
    name: &str,
    family: Family,
    config: &Fields,
    shape: &Shape,
    words: Arc<Table>,
) -> Result<Stack, PretrainedError> {
    let is_decoder = name.ends_with("decoder");
    let side = if is_decoder { "decoder" } else { "encoder" };
    let of_side = |field: &str, otherwise| config.size(&format!("{side}_{field}"), Some(otherwise));
    let (n_layers, n_heads, d_feed) = (of_side("layers", 12)?, of_side("attention_heads", 16)?, of_side("ffn_dim", 4096)?);
    if !shape.d.is_multiple_of(n_heads) {
        return Err(config.wrong(&format!("{side}_attention_heads"), format!("is {n_heads}, which does not divide d_model = {}", shape.d)));
    }
    let positions = format!("{name}.embed_positions.weight");
    let positions = match family {
        Family::Bart => Positions::learned(weights, &positions, shape.n_positions, FIRST_POSITION, shape.d)?,
        _ if weights.has(&positions) => Positions::learned(weights, &positions, shape.n_positions, 0, shape.d)?,
        _ if shape.n_positions > MOST_POSITIONS => {
            let what = format!("is {}; at most {MOST_POSITIONS} is allowed", shape.n_positions);
            return Err(config.wrong("max_position_embeddings", what));
        }
        _ => Positions::sinusoids(shape.n_positions, shape.d),
    };
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &name, shape.d, EPSILON);
    let embedding_norm = if family == Family::Bart { Some(norm(weights, format!("{name}.layernorm_embedding"))?) } else { None };
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.layers.{number}");
        let visible = if is_decoder { Visible::Causal } else { Visible::All };
        let own = attention(weights, &format!("{layer}.self_attn"), shape.d, n_heads, visible)?;
        let own = (norm(weights, format!("{layer}.self_attn_layer_norm"))?, own);
        let cross = if is_decoder {
            let cross = attention(weights, &format!("{layer}.encoder_attn"), shape.d, n_heads, Visible::All)?;
            Some((norm(weights, format!("{layer}.encoder_attn_layer_norm"))?, cross))
        } else {
            None
        };
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.fc1"), shape.d, d_feed, true)?,
            gate: None,
            activation: shape.activation,
            second: Linear::read(weights, &format!("{layer}.fc2"), d_feed, shape.d, true)?,
        };
        layers.push(Layer { attention: own, cross, feed_forward: (norm(weights, format!("{layer}.final_layer_norm"))?, feed) });
    }
    Ok(Stack {
        kind: if is_decoder { SiteKind::DecoderSelf } else { SiteKind::EncoderSelf },
        words,
        word_scale: shape.word_scale,
        positions: Some(positions),
        embedding_norm,
        norm_place: NormPlace::After,
        layers,
        final_norm: None,
    })
}

fn attention(weights: &mut Weights, name: &str, d: usize, n_heads: usize, visible: Visible) -> Result<Attention, PretrainedError> {
    let mut part = |part: &str| Linear::read(weights, &format!("{name}.{part}"), d, d, true);
    let (query, key, value, output) = (part("q_proj")?, part("k_proj")?, part("v_proj")?, part("out_proj")?);
    let scale = ((d / n_heads) as f32).powf(-0.5);
    Ok(Attention { query, key, value, output, n_heads, scale, visible, bias: None })
}
