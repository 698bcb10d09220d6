//! The Transformer: layers of attention and feed-forward maps on both sides, no recurrence.
//!
//! Equations and names stand in `docs/math.md`. One idea a file: `affine`, `norm`, `attention`, `feed_forward` and `embedding` are the
//! pieces, each forward and backward; `residual` is the way around a sublayer; `encoder` and `decoder` put them together; `shard` runs
//! them on a part of a batch; `steps` writes token by token.

mod affine;
mod attention;
mod config;
mod decoder;
mod description;
mod embedding;
mod encoder;
mod feed_forward;
mod norm;
mod observe;
mod residual;
mod shard;
mod stepper;
mod steps;

use crosslens_kernels::{Packed, Real};

pub use config::{Activation, NormPlace, StepVectors, TransformerConfig};
pub(crate) use stepper::Writing;

pub(crate) use shard::{Shard, Shared};

use decoder::Decoder;
use embedding::{Embedding, EmbeddingShape};
use encoder::Encoder;

use super::config::NetworkConfig;
use super::layout::{Layout, Start};
use super::linear::Linear;
use super::prepared::{Context, Maps};
use super::readout::Readout;

/// A Transformer without its weights.
#[derive(Clone, Debug)]
pub(crate) struct Transformer {
    pub(crate) config: NetworkConfig,
    own: TransformerConfig,
    source: Embedding,
    target: Embedding,
    encoder: Encoder,
    decoder: Decoder,
    readout: Readout,
}

/// What all layers of one side have alike.
#[derive(Clone, Copy, Debug)]
struct LayerShape {
    d: usize,
    heads: usize,
    d_inner: usize,
    norm: NormPlace,
    activation: Activation,
}

/// Where a backward pass adds to, and room to work in.
struct Backward<'a, F> {
    context: Context<'a, F>,
    gradient: &'a mut [F],
    scratch: &'a mut Scratch<F>,
}

/// Gradients that live no longer than one sublayer.
#[derive(Clone, Debug, Default)]
struct Scratch<F> {
    packed: Packed<F>,
    d_states: Vec<F>,
    d_inner: Vec<F>,
    d_contexts: Vec<F>,
    d_queries: Vec<F>,
    d_keys: Vec<F>,
    d_values: Vec<F>,
    d_scores: Vec<F>,
}

impl<F: Real> Scratch<F> {
    /// Room for the gradient of a sublayer's states, taken out so that the rest can be lent.
    fn take_states(&mut self, len: usize) -> Vec<F> {
        let mut states = std::mem::take(&mut self.d_states);
        states.resize(len, F::ZERO);
        states
    }
}

impl Transformer {
    /// Builds the network for so many words of source and target, and lays out its parameters.
    pub(crate) fn new(config: &NetworkConfig, n_words: [usize; 2], layout: &mut Layout, maps: &mut Maps) -> Self {
        let own = config.transformer.unwrap_or_default();
        let (d, heads) = (config.hidden, config.heads);
        let scale = own.embedding_scale.unwrap_or_else(|| (d as f64).sqrt());
        let mut embedding = |side: &str, n_words: usize, has_start: bool| {
            Embedding::new(&EmbeddingShape { side, n_words, has_start, d, scale, positions: own.positions }, layout)
        };
        let (source, target) = (embedding("encoder", n_words[0], false), embedding("decoder", n_words[1], true));
        let shape = LayerShape { d, heads, d_inner: own.d_inner(d), norm: own.norm, activation: own.activation };
        let (n_encoder, n_decoder) = (config.layers, own.decoder_layers.unwrap_or(config.layers));
        // Sites: attention across first, then the encoder's to itself, then the decoder's.
        let encoder = Encoder::new(shape, n_encoder, n_decoder * heads, layout, maps);
        let decoder = Decoder::new(shape, n_decoder, (n_decoder + n_encoder) * heads, layout, maps);
        let linear = if own.tied_readout {
            Linear::turned(target.tokens, n_words[1], maps)
        } else {
            Linear::new("readout", d, n_words[1], layout, maps)
        };
        let bias = config.readout_bias.then(|| layout.vector("readout_bias", n_words[1], Start::Zero));
        let readout = Readout { linear, bias, d_input: d, n_words: n_words[1] };
        Self { config: config.clone(), own, source, target, encoder, decoder, readout }
    }
}
