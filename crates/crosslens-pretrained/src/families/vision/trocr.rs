//! TrOCR's decoder: BART's, over states of another width.

use std::sync::Arc;

use crosslens_analysis::{SiteKind, Token, Visible};

use super::{Writer, activation, d_head};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Attention, Linear, Norm, Positions};
use crate::stack::{FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// What PyTorch adds to a variance unless told otherwise; these configurations do not tell.
const EPSILON: f32 = 1e-5;
/// Learned positions begin in this row.
const FIRST_POSITION: usize = 2;
/// Most positions that are computed: unlike learned ones, no tensor bounds them.
const MOST_POSITIONS: usize = 1 << 14;
/// The padding token where a configuration does not name one.
const PADDING: Token = 1;

/// Reads `side.model.decoder.*`; the states it asks have `d_asked` dimensions.
pub(super) fn read(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words) = (size("d_model", 1024)?, size("vocab_size", 50265)?);
    let (n_layers, n_heads, d_feed) = (size("decoder_layers", 12)?, size("decoder_attention_heads", 16)?, size("decoder_ffn_dim", 4096)?);
    d_head(config, "decoder_attention_heads", n_heads, d)?;
    let act = activation(config, "activation_function", "gelu")?;
    let scale = if config.flag("scale_embedding", false)? { (d as f32).sqrt() } else { 1.0 };
    let name = format!("{side}.model.decoder");

    let table = Arc::new(weights.table(&format!("{name}.embed_tokens.weight"), n_words, d)?);
    let positions = positions(weights, &name, config, d)?;
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &name, d, EPSILON);
    let has_norm = config.flag("layernorm_embedding", true)?;
    let embedding_norm = if has_norm { Some(norm(weights, format!("{name}.layernorm_embedding"))?) } else { None };
    let attention = |weights: &mut Weights, name: &str, d_keys: usize, visible: Visible| {
        let mut part = |part: &str, d_in| Linear::read(weights, &format!("{name}.{part}"), d_in, d, true);
        let (query, key, value, output) = (part("q_proj", d)?, part("k_proj", d_keys)?, part("v_proj", d_keys)?, part("out_proj", d)?);
        let scale = ((d / n_heads) as f32).powf(-0.5);
        Ok::<_, PretrainedError>(Attention { query, key, value, output, n_heads, scale, visible, bias: None })
    };
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.layers.{number}");
        let own = attention(weights, &format!("{layer}.self_attn"), d, Visible::Causal)?;
        let cross = attention(weights, &format!("{layer}.encoder_attn"), d_asked, Visible::All)?;
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.fc1"), d, d_feed, true)?,
            gate: None,
            activation: act,
            second: Linear::read(weights, &format!("{layer}.fc2"), d_feed, d, true)?,
        };
        layers.push(Layer {
            attention: (norm(weights, format!("{layer}.self_attn_layer_norm"))?, own),
            cross: Some((norm(weights, format!("{layer}.encoder_attn_layer_norm"))?, cross)),
            feed_forward: (norm(weights, format!("{layer}.final_layer_norm"))?, feed),
        });
    }
    let readout = format!("{side}.output_projection.weight");
    let out = if weights.has(&readout) { Arc::new(weights.table(&readout, n_words, d)?) } else { table.clone() };
    let stack = Stack {
        kind: SiteKind::DecoderSelf,
        reads: Reads::Words { table, scale },
        positions: Some(positions),
        embedding_norm,
        norm_place: NormPlace::After,
        layers,
        ending: Vec::new(),
    };
    Ok(Writer { stack, table: out, bias: None })
}

fn positions(weights: &mut Weights, name: &str, config: &Fields, d: usize) -> Result<Positions, PretrainedError> {
    let n = config.size("max_position_embeddings", Some(512))?;
    let name = format!("{name}.embed_positions");
    if config.flag("use_learned_position_embeddings", true)? {
        return Positions::learned(weights, &format!("{name}.weight"), n, FIRST_POSITION, d);
    }
    if n > MOST_POSITIONS {
        return Err(config.wrong("max_position_embeddings", format!("is {n}; at most {MOST_POSITIONS} is allowed")));
    }
    if d < 4 {
        return Err(config.wrong("d_model", format!("is {d}; computed positions need 4")));
    }
    // Kept in old folders, and of no meaning.
    weights.pass_over(&format!("{name}._float_tensor"));
    let padding = config.tokens("pad_token_id")?.first().copied().unwrap_or(PADDING);
    Ok(Positions::fairseq_sinusoids(n, d, padding))
}
