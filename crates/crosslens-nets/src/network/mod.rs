//! The networks: a configuration becomes a layout of parameters and the passes over them.
//!
//! Equations and names stand in `docs/math.md`.

mod additive;
mod attention;
mod cells;
mod config;
mod decoder;
mod description;
mod dropout;
mod encoder;
pub(crate) mod engine;
pub(crate) mod hook;
mod inputs;
mod layer;
mod layout;
mod linear;
mod observe;
mod packing;
mod positions;
mod prepared;
mod readout;
mod recurrence;
mod rows;
pub(crate) mod shard;
mod stepping;

use crosslens_analysis::Token;
use crosslens_kernels::Real;

pub use crosslens_analysis::Outcome;

pub use config::{Cell, Family, Inputs, NetworkConfig, NetworkError, Positions, Score};
pub use engine::{Engine, Feeding};
pub use layout::{Layout, Tensor};
pub use observe::Observation;
pub use recurrence::{ConstantInput, Place, Recurrence, RecurrenceError};
pub use stepping::{Stepper, Stepping};

pub(crate) use cells::gru_reset_after_forward;
pub(crate) use packing::Packing;
pub(crate) use readout::likeliest;

use attention::Attention;
use decoder::Decoder;
use encoder::EncoderLayer;
use inputs::{InputSpace, LocalTokens};
use layer::{Layer, LayerShape};
use layout::Start;
use linear::Linear;
use prepared::Maps;
use readout::Readout;

use crate::random::generator;

/// Most numbers a network may train: a gigabyte of weights.
const MAX_PARAMETERS: usize = 1 << 28;
/// Most dimensions a rotation of positions may have; drawing one costs their cube.
const MAX_ROTATED: usize = 2048;

/// A network without its weights: what is connected to what, and which parameter is where.
#[derive(Clone, Debug)]
pub struct Network {
    config: NetworkConfig,
    layout: Layout,
    maps: Maps,
    encoder: Vec<EncoderLayer>,
    /// By layer, for bidirectional encoders.
    bridges: Vec<Linear>,
    decoder: Decoder,
    source_space: InputSpace,
    target_space: InputSpace,
    rotation: Option<Vec<f64>>,
}

impl Network {
    /// Builds the network for vocabularies of these sizes; `seed` draws the rotation of its positions.
    pub fn new(config: &NetworkConfig, n_source_words: usize, n_target_words: usize, seed: u64) -> Result<Self, NetworkError> {
        config.check()?;
        for (words, side) in [(n_source_words, "source_words"), (n_target_words, "target_words")] {
            if words == 0 {
                return Err(NetworkError::OutOfRange { field: side, value: "0".into(), range: "at least 1" });
            }
        }
        let d = input_size(config, n_source_words, n_target_words)?;
        let mut layout = Layout::default();
        let mut maps = Maps::default();
        let (n, cell) = (config.hidden, config.cell);
        let recurrent = config.family != Family::Ao;

        let is_learned = matches!(config.inputs, Inputs::Embedding { .. });
        let mut space = |name: &str, n_words: usize, has_start: bool| InputSpace {
            d,
            n_words,
            has_start,
            embedding: is_learned.then(|| layout.matrix(name, n_words + usize::from(has_start), d, Start::Normal(1.0))),
        };
        let source_space = space("encoder.embedding", n_source_words, false);
        let target_space = space("decoder.embedding", n_target_words, true);

        let mut encoder = Vec::with_capacity(config.layers);
        for number in 0..config.layers {
            let d_input = if number == 0 { d } else { config.d_key() };
            let mut layer = |name: &str| {
                let shape = LayerShape { name, cell, n, d_input, d_feed: 0, recurrent, has_initial: true };
                Layer::new(&shape, &mut layout, &mut maps)
            };
            let forward = layer(&format!("encoder.{number}"));
            let backward = config.bidirectional.then(|| layer(&format!("encoder.{number}.backward")));
            encoder.push(EncoderLayer { forward, backward });
        }

        let attention = Attention::new(config, &mut layout, &mut maps);
        let d_context = attention.as_ref().map_or(0, |attention| attention.d_context);
        let d_feed = match config.family {
            Family::Bahdanau => d_context,
            Family::Luong if config.input_feeding => n,
            _ => 0,
        };
        let mut layers = Vec::with_capacity(config.layers);
        for number in 0..config.layers {
            let (d_input, d_feed) = if number == 0 { (d, d_feed) } else { (n, 0) };
            let name = format!("decoder.{number}");
            let shape = LayerShape { name: &name, cell, n, d_input, d_feed, recurrent, has_initial: false };
            layers.push(Layer::new(&shape, &mut layout, &mut maps));
        }
        let n_bridges = if config.bidirectional { config.layers } else { 0 };
        let bridges = (0..n_bridges)
            .map(|number| Linear::new(&format!("decoder.{number}.initial_from_backward"), n, n, &mut layout, &mut maps))
            .collect();
        let attentional = (config.family == Family::Luong).then(|| Linear::new("attentional", d_context + n, n, &mut layout, &mut maps));
        let d_input = match config.family {
            Family::Ved | Family::Luong => n,
            Family::Aed | Family::Bahdanau => n + d_context,
            Family::Ao => d_context,
        };
        let linear = Linear::new("readout", d_input, n_target_words, &mut layout, &mut maps);
        let bias = config.readout_bias.then(|| layout.vector("readout_bias", n_target_words, Start::Zero));
        let readout = Readout { linear, bias, d_input, n_words: n_target_words };
        let first_layers = [Some(&encoder[0].forward), encoder[0].backward.as_ref(), Some(&layers[0])].into_iter().flatten();
        let mut tabled: Vec<_> = first_layers.flat_map(|layer| [layer.gates_from_input, layer.gates_bias]).collect();
        tabled.extend([source_space.embedding, target_space.embedding].into_iter().flatten());
        layout.put_tabled_first(&tabled);
        if layout.len() > MAX_PARAMETERS {
            return Err(NetworkError::TooLarge { parameters: layout.len(), most: MAX_PARAMETERS });
        }
        if config.positions.is_some() && d > MAX_ROTATED {
            return Err(NetworkError::OutOfRange { field: "inputs.size", value: d.to_string(), range: "at most 2048 with positions" });
        }
        let decoder = Decoder { family: config.family, layers, attention, attentional, d_feed, readout };
        let rotation = config.positions.map(|_| positions::random_rotation(d, &mut generator(&[seed, 0x0726])));
        Ok(Self { config: config.clone(), layout, maps, encoder, bridges, decoder, source_space, target_space, rotation })
    }

    /// How it was described.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Its parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn n_source_words(&self) -> usize {
        self.source_space.n_words
    }

    /// The number of the start token, one past the target's words.
    pub fn start_token(&self) -> Token {
        self.target_space.n_words as Token
    }

    /// Weights drawn as `docs/math.md` says.
    pub fn draw_weights<F: Real>(&self, seed: u64) -> Vec<F> {
        self.layout.draw(&mut generator(&[seed, 0x3E16]))
    }

    /// The rotation of the positions, `[d, d]`, where there are any: the one constant of a network.
    pub fn rotation(&self) -> Option<&[f64]> {
        self.rotation.as_deref()
    }

    /// Replaces the rotation, by one read from a file. Panics if there is none or its size differs.
    pub fn set_rotation(&mut self, rotation: Vec<f64>) {
        let own = self.rotation.as_mut().expect("only a network with positions has a rotation");
        assert_eq!(own.len(), rotation.len(), "size of the rotation");
        *own = rotation;
    }

    /// Dimensions of a token's vector.
    pub fn d_input(&self) -> usize {
        self.source_space.d
    }

    fn is_recurrent(&self) -> bool {
        self.config.family != Family::Ao
    }

    fn decoder_table(&self) -> usize {
        1 + usize::from(self.config.bidirectional)
    }

    /// The layer, space and tokens of a table.
    fn table<'a>(
        &'a self,
        number: usize,
        source: &'a LocalTokens,
        target: &'a LocalTokens,
    ) -> (&'a Layer, &'a InputSpace, &'a LocalTokens) {
        if number == self.decoder_table() {
            return (&self.decoder.layers[0], &self.target_space, target);
        }
        let layer = &self.encoder[0];
        let layer = if number == 0 { &layer.forward } else { layer.backward.as_ref().expect("the second table is the backward layer's") };
        (layer, &self.source_space, source)
    }
}

fn input_size(config: &NetworkConfig, n_source: usize, n_target: usize) -> Result<usize, NetworkError> {
    match config.inputs {
        Inputs::Embedding { size } => Ok(size),
        Inputs::OneHot { size: 0 } => Ok(n_source.max(n_target)),
        Inputs::OneHot { size } => {
            for (words, side) in [(n_source, "source"), (n_target, "target")] {
                if size < words {
                    return Err(NetworkError::OneHotTooSmall { size, words, side });
                }
            }
            Ok(size)
        }
    }
}
