//! Layers under the names that fairseq gave them, which BART, its relatives, Whisper and TrOCR's decoder share.

use crosslens_analysis::{SiteKind, Token, Visible};

use super::d_head;
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Activation, Attention, Linear, Norm, Positions};
use crate::stack::{FeedForward, Layer};
use crate::weights::Weights;

/// What PyTorch adds to a variance unless told otherwise; these configurations do not tell.
const EPSILON: f32 = 1e-5;
/// Learned positions of BART, mBART and TrOCR begin in this row: an old way to keep rows for padding.
pub(super) const FIRST_POSITION: usize = 2;
/// Most positions that are computed: unlike learned ones, no tensor bounds them.
const MOST_POSITIONS: usize = 1 << 14;
/// Most numbers of computed positions, 64 MB: as many positions of 1024 numbers, where published models have a quarter of that.
const MOST_NUMBERS: usize = 1 << 24;
/// The padding token where a configuration does not name one.
const PADDING: Token = 1;

/// An encoder or a decoder.
pub(super) struct Side {
    /// What the names of its tensors begin with, such as `model.decoder`.
    pub(super) name: String,
    pub(super) kind: SiteKind,
    /// Dimensions of its states, and of those it asks.
    pub(super) d: usize,
    pub(super) d_asked: usize,
    pub(super) activation: Activation,
    pub(super) keys_have_bias: bool,
    /// Layers, heads and the width inside feed-forward layers that a configuration means that does not say.
    pub(super) otherwise: [usize; 3],
}

impl Side {
    pub(super) fn layers(&self, weights: &mut Weights, config: &Fields) -> Result<Vec<Layer>, PretrainedError> {
        let is_decoder = self.kind == SiteKind::DecoderSelf;
        let side = if is_decoder { "decoder" } else { "encoder" };
        let of_side = |field: &str, otherwise| config.size(&format!("{side}_{field}"), Some(otherwise));
        let [n_layers, n_heads, d_feed] = self.otherwise;
        let (n_layers, n_heads, d_feed) = (of_side("layers", n_layers)?, of_side("attention_heads", n_heads)?, of_side("ffn_dim", d_feed)?);
        d_head(config, &format!("{side}_attention_heads"), n_heads, ("d_model", self.d))?;
        // Grows as tensors are found: a configuration may claim any number of layers.
        let mut layers = Vec::new();
        for number in 0..n_layers {
            let layer = format!("{}.layers.{number}", self.name);
            let visible = if is_decoder { Visible::Causal } else { Visible::All };
            let attention = self.attention(weights, &format!("{layer}.self_attn"), (n_heads, self.d), visible)?;
            let cross = if is_decoder {
                Some(self.attention(weights, &format!("{layer}.encoder_attn"), (n_heads, self.d_asked), Visible::All)?)
            } else {
                None
            };
            let feed = FeedForward {
                first: Linear::read(weights, &format!("{layer}.fc1"), self.d, d_feed, true)?,
                gate: None,
                activation: self.activation,
                second: Linear::read(weights, &format!("{layer}.fc2"), d_feed, self.d, true)?,
            };
            let norm = Norm::layer(weights, &format!("{layer}.final_layer_norm"), self.d, EPSILON)?;
            layers.push(Layer { attention, cross, feed_forward: (norm, feed) });
        }
        Ok(layers)
    }

    /// An attention and its norm.
    fn attention(
        &self,
        weights: &mut Weights,
        name: &str,
        (n_heads, d_keys): (usize, usize),
        visible: Visible,
    ) -> Result<(Norm, Attention), PretrainedError> {
        let mut part = |part: &str, d_in, has_bias| Linear::read(weights, &format!("{name}.{part}"), d_in, self.d, has_bias);
        let (query, key) = (part("q_proj", self.d, true)?, part("k_proj", d_keys, self.keys_have_bias)?);
        let (value, output) = (part("v_proj", d_keys, true)?, part("out_proj", self.d, true)?);
        let scale = ((self.d / n_heads) as f32).powf(-0.5);
        let norm = Norm::layer(weights, &format!("{name}_layer_norm"), self.d, EPSILON)?;
        Ok((norm, Attention { query, key, value, output, n_heads, scale, visible, bias: None }))
    }

    /// A norm beside the layers, where there is one.
    pub(super) fn norm(&self, weights: &mut Weights, is_there: bool, part: &str) -> Result<Option<Norm>, PretrainedError> {
        if is_there { Norm::layer(weights, &format!("{}.{part}", self.name), self.d, EPSILON).map(Some) } else { Ok(None) }
    }
}

/// Refuses more positions of `d` numbers than anybody computes.
pub(super) fn few_enough(config: &Fields, n: usize, d: usize) -> Result<(), PretrainedError> {
    let most = MOST_POSITIONS.min(MOST_NUMBERS / d);
    if n > most {
        let what = format!("is {n}; at most {most} is allowed where positions of d_model = {d} numbers are computed");
        return Err(config.wrong("max_position_embeddings", what));
    }
    Ok(())
}

/// Positions computed as fairseq does, counted from the padding token's number.
pub(super) fn sinusoids(config: &Fields, n: usize, d: usize) -> Result<Positions, PretrainedError> {
    few_enough(config, n, d)?;
    if d < 4 {
        return Err(config.wrong("d_model", format!("is {d}; computed positions need 4")));
    }
    Ok(Positions::fairseq_sinusoids(n, d, config.tokens("pad_token_id")?.first().copied().unwrap_or(PADDING)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Of 1024 numbers or fewer there may be 16384, of 4096 a quarter of them.
    #[test]
    fn the_wider_positions_are_the_fewer_are_computed() {
        let config = Fields::none(Path::new("config.json"));
        let is_allowed = |n, d| few_enough(&config, n, d).is_ok();
        assert!(is_allowed(1 << 14, 1) && is_allowed(1 << 14, 1 << 10) && is_allowed(1 << 12, 1 << 12));
        assert!(!is_allowed((1 << 14) + 1, 1) && !is_allowed((1 << 12) + 1, 1 << 12) && !is_allowed(1, 1 << 25));
        let error = few_enough(&config, 1 << 14, 1 << 12).expect_err("too many").to_string();
        assert!(error.contains("`max_position_embeddings` is 16384; at most 4096 is allowed"), "{error}");
    }
}
