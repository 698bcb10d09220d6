use serde::{Deserialize, Serialize};

use crate::network::config::NetworkError;

/// Where layer norms stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlace {
    /// Before each sublayer, `x + f(norm(x))`, and once more at the end of each stack.
    #[default]
    Pre,
    /// After each sum, `norm(x + f(x))`, as in the first Transformer.
    Post,
}

/// What stands between the two maps of a feed-forward sublayer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(x, 0)`.
    #[default]
    Relu,
    /// `x·Φ(x)`, with Φ approximated by a hyperbolic tangent.
    Gelu,
}

/// What is added to a token's vector to say where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StepVectors {
    /// Sines and cosines in turn, not rotated; sentences may have any length.
    Sinusoidal {
        /// The longest wave length over 2π. Default: 10000.
        #[serde(default = "default_time_scale")]
        time_scale: f64,
    },
    /// A learned row for each step, on each side.
    Learned {
        /// Steps of the longest sentence that can be read.
        size: usize,
    },
}

impl Default for StepVectors {
    fn default() -> Self {
        Self::Sinusoidal { time_scale: default_time_scale() }
    }
}

fn default_time_scale() -> f64 {
    10_000.0
}

/// What a Transformer has beyond what all networks have: `[network.transformer]`.
///
/// `network.hidden` is the width of its states, `network.layers` the number of encoder layers, `network.heads` the heads of every
/// attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransformerConfig {
    /// Decoder layers. Default: as many as the encoder has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_layers: Option<usize>,
    /// Width inside feed-forward sublayers. Default: four times `hidden`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<usize>,
    /// Where norms stand. Default: `pre`.
    pub norm: NormPlace,
    /// What stands inside feed-forward sublayers. Default: `relu`.
    pub activation: Activation,
    /// Factor of token vectors before positions are added. Default: `√hidden`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_scale: Option<f64>,
    /// Whether logits are read out by the decoder's token vectors instead of a matrix of their own.
    pub tied_readout: bool,
    /// How positions are told. Default: `sinusoidal`.
    pub positions: StepVectors,
}

/// Largest widths and numbers taken seriously.
const MAX_WIDTH: usize = 1 << 16;
const MAX_LAYERS: usize = 64;
const MAX_POSITIONS: usize = 1 << 16;

impl TransformerConfig {
    /// Says whether every number makes sense for states of this width.
    pub(crate) fn check(&self, hidden: usize, heads: usize) -> Result<(), NetworkError> {
        let out_of_range = |field, value: String, range| Err(NetworkError::OutOfRange { field, value, range });
        if !hidden.is_multiple_of(heads) {
            return out_of_range("heads", heads.to_string(), "a divisor of network.hidden: heads share the width among them");
        }
        if let Some(layers) = self.decoder_layers.filter(|layers| !(1..=MAX_LAYERS).contains(layers)) {
            return out_of_range("transformer.decoder_layers", layers.to_string(), "between 1 and 64");
        }
        if let Some(width) = self.feed_forward.filter(|width| !(1..=MAX_WIDTH).contains(width)) {
            return out_of_range("transformer.feed_forward", width.to_string(), "between 1 and 65536");
        }
        if let Some(scale) = self.embedding_scale.filter(|scale| !(scale.is_finite() && *scale > 0.0)) {
            return out_of_range("transformer.embedding_scale", scale.to_string(), "a finite number above 0");
        }
        match self.positions {
            StepVectors::Sinusoidal { time_scale } if !(time_scale.is_finite() && time_scale >= 1.0) => {
                out_of_range("transformer.positions.time_scale", time_scale.to_string(), "a finite number of at least 1")
            }
            StepVectors::Learned { size } if !(1..=MAX_POSITIONS).contains(&size) => {
                out_of_range("transformer.positions.size", size.to_string(), "between 1 and 65536")
            }
            _ => Ok(()),
        }
    }

    /// Width inside feed-forward sublayers of a network of this width.
    pub(crate) fn d_inner(&self, hidden: usize) -> usize {
        self.feed_forward.unwrap_or(4 * hidden)
    }

    /// Steps of the longest sentence that can be read, where there is a limit.
    pub(crate) fn most_steps(&self) -> Option<usize> {
        match self.positions {
            StepVectors::Sinusoidal { .. } => None,
            StepVectors::Learned { size } => Some(size),
        }
    }
}
