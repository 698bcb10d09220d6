//! Whisper: convolutions over a log-mel spectrum, norms before each part, no bias in the maps of keys.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::{SiteKind, Visible};

use super::Family;
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Attention, Linear, Norm, Positions};
use crate::model::{Model, Readout};
use crate::senses::Hearing;
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// What PyTorch adds to a variance unless told otherwise; these configurations do not tell.
const EPSILON: f32 = 1e-5;
/// A minute of sound a step would be absurd: no file may ask for more.
const MOST_STEPS: usize = 1 << 14;

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words, n_mels) = (size("d_model", 384)?, size("vocab_size", 51865)?, size("num_mel_bins", 80)?);
    let n_steps = size("max_source_positions", 1500)?;
    if n_steps > MOST_STEPS {
        return Err(config.wrong("max_source_positions", format!("is {n_steps}; at most {MOST_STEPS} is allowed")));
    }
    let n_target = size("max_target_positions", 448)?;
    let name = config.text("activation_function", "gelu")?;
    let activation = Activation::named(name)
        .ok_or_else(|| config.wrong("activation_function", format!("is `{name}`; known are {}", Activation::KNOWN)))?;
    let prefix = if weights.has("model.encoder.conv1.weight") { "model." } else { "" };
    let (encoder, decoder) = (format!("{prefix}encoder"), format!("{prefix}decoder"));

    // The encoder's convolutions end in this function whatever the layers use.
    let hearing = Hearing::read(&mut weights, &encoder, (n_mels, d, n_steps), Activation::Gelu)?;
    let table = Arc::new(weights.table(&format!("{decoder}.embed_tokens.weight"), n_words, d)?);
    let positions = |weights: &mut Weights, side: &str, n| Positions::learned(weights, &format!("{side}.embed_positions.weight"), n, 0, d);
    let of_encoder = positions(&mut weights, &encoder, n_steps)?;
    let of_decoder = positions(&mut weights, &decoder, n_target)?;
    let encoder = stack(&mut weights, &encoder, config, (d, activation), Reads::Signal(Box::new(hearing)), of_encoder)?;
    // `scale_embedding` stands in every configuration, and no version of the model uses it.
    let words = Reads::Words { table: table.clone(), scale: 1.0 };
    let decoder = stack(&mut weights, &decoder, config, (d, activation), words, of_decoder)?;
    let table = if weights.has("proj_out.weight") { Arc::new(weights.table("proj_out.weight", n_words, d)?) } else { table };
    weights.refuse_rest()?;

    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias: None, scale: 1.0, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

fn stack(
    weights: &mut Weights,
    name: &str,
    config: &Fields,
    (d, activation): (usize, Activation),
    reads: Reads,
    positions: Positions,
) -> Result<Stack, PretrainedError> {
    let is_decoder = name.ends_with("decoder");
    let side = if is_decoder { "decoder" } else { "encoder" };
    let of_side = |field: &str, otherwise| config.size(&format!("{side}_{field}"), Some(otherwise));
    let (n_layers, n_heads, d_feed) = (of_side("layers", 4)?, of_side("attention_heads", 6)?, of_side("ffn_dim", 1536)?);
    if !d.is_multiple_of(n_heads) {
        return Err(config.wrong(&format!("{side}_attention_heads"), format!("is {n_heads}, which does not divide d_model = {d}")));
    }
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &name, d, EPSILON);
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.layers.{number}");
        let visible = if is_decoder { Visible::Causal } else { Visible::All };
        let own = attention(weights, &format!("{layer}.self_attn"), d, n_heads, visible)?;
        let own = (norm(weights, format!("{layer}.self_attn_layer_norm"))?, own);
        let cross = if is_decoder {
            let cross = attention(weights, &format!("{layer}.encoder_attn"), d, n_heads, Visible::All)?;
            Some((norm(weights, format!("{layer}.encoder_attn_layer_norm"))?, cross))
        } else {
            None
        };
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.fc1"), d, d_feed, true)?,
            gate: None,
            activation,
            second: Linear::read(weights, &format!("{layer}.fc2"), d_feed, d, true)?,
        };
        layers.push(Layer { attention: own, cross, feed_forward: (norm(weights, format!("{layer}.final_layer_norm"))?, feed) });
    }
    Ok(Stack {
        kind: if is_decoder { SiteKind::DecoderSelf } else { SiteKind::EncoderSelf },
        reads,
        positions: Some(positions),
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers,
        ending: vec![Ending::Norm(norm(weights, format!("{name}.layer_norm"))?)],
    })
}

fn attention(weights: &mut Weights, name: &str, d: usize, n_heads: usize, visible: Visible) -> Result<Attention, PretrainedError> {
    let mut part = |part: &str, has_bias| Linear::read(weights, &format!("{name}.{part}"), d, d, has_bias);
    let (query, key, value, output) = (part("q_proj", true)?, part("k_proj", false)?, part("v_proj", true)?, part("out_proj", true)?);
    let scale = ((d / n_heads) as f32).powf(-0.5);
    Ok(Attention { query, key, value, output, n_heads, scale, visible, bias: None })
}
