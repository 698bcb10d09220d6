//! GPT-2 with cross-attention: norms before each part, matrices stored turned, queries, keys and values in one of them.

use std::sync::Arc;

use crosslens_analysis::{SiteKind, Visible};

use super::{Writer, activation, d_head, epsilon, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Attention, Norm, Origin, Positions};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Reads `side.transformer.*`; the states it asks have `d_asked` dimensions, which are its own.
pub(super) fn read(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words, n_positions) = (size("n_embd", 768)?, size("vocab_size", 50257)?, size("n_positions", 1024)?);
    let (n_layers, n_heads, d_feed) = (size("n_layer", 12)?, size("n_head", 12)?, size("n_inner", 4 * d)?);
    let d_head = d_head(config, "n_head", n_heads, ("n_embd", d))?;
    if d_asked != d {
        return Err(config.wrong("cross_attention_hidden_size", format!("is {d_asked}; GPT-2 asks states of its own {d} dimensions")));
    }
    if !config.flag("add_cross_attention", true)? {
        return Err(config.wrong("add_cross_attention", "is false; without it a decoder sees nothing of the picture"));
    }
    let act = activation(config, "activation_function", "gelu_new")?;
    let epsilon = epsilon(config, "layer_norm_epsilon", 1e-5)?;
    let is_scaled = config.flag("scale_attn_weights", true)?;
    let by_layer = config.flag("scale_attn_by_inverse_layer_idx", false)?;
    let name = format!("{side}.transformer");

    let table = Arc::new(weights.table(&format!("{name}.wte.weight"), n_words, d)?);
    let positions = Positions::learned(weights, &format!("{name}.wpe.weight"), n_positions, 0, d)?;
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &name, d, epsilon);
    let turned = |name: String, d_in, d_out| Origin { name, d_in, d_out, turned: true, has_bias: true };
    let whole = |weights: &mut Weights, name: String, d_in, d_out| turned(name, d_in, d_out).map(weights, 0..d_out);
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.h.{number}");
        let scale = if is_scaled { (d_head as f32).powf(-0.5) } else { 1.0 } / if by_layer { (number + 1) as f32 } else { 1.0 };
        let all = turned(format!("{layer}.attn.c_attn"), d, 3 * d);
        let own = Attention {
            query: all.map(weights, 0..d)?,
            key: all.map(weights, d..2 * d)?,
            value: all.map(weights, 2 * d..3 * d)?,
            output: whole(weights, format!("{layer}.attn.c_proj"), d, d)?,
            n_heads,
            scale,
            visible: Visible::Causal,
            bias: None,
        };
        let both = turned(format!("{layer}.crossattention.c_attn"), d, 2 * d);
        let cross = Attention {
            query: whole(weights, format!("{layer}.crossattention.q_attn"), d, d)?,
            key: both.map(weights, 0..d)?,
            value: both.map(weights, d..2 * d)?,
            output: whole(weights, format!("{layer}.crossattention.c_proj"), d, d)?,
            n_heads,
            scale,
            visible: Visible::All,
            bias: None,
        };
        let feed = FeedForward {
            first: whole(weights, format!("{layer}.mlp.c_fc"), d, d_feed)?,
            gate: None,
            activation: act,
            second: whole(weights, format!("{layer}.mlp.c_proj"), d_feed, d)?,
        };
        layers.push(Layer {
            attention: (norm(weights, format!("{layer}.ln_1"))?, own),
            cross: Some((norm(weights, format!("{layer}.ln_cross_attn"))?, cross)),
            feed_forward: (norm(weights, format!("{layer}.ln_2"))?, feed),
        });
        // Masks that old folders keep.
        for part in ["attn", "crossattention"] {
            ["bias", "masked_bias"].iter().for_each(|mask| weights.pass_over(&format!("{layer}.{part}.{mask}")));
        }
    }
    let ending = vec![Ending::Norm(norm(weights, format!("{name}.ln_f"))?)];
    let out = readout(weights, &format!("{side}.lm_head.weight"), config, table.clone())?;
    let stack = Stack {
        kind: SiteKind::DecoderSelf,
        reads: Reads::Words { table, scale: 1.0 },
        positions: Some(positions),
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers,
        ending,
    };
    Ok(Writer { stack, table: out, bias: None })
}
