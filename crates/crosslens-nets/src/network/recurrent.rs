//! A recurrent encoder-decoder: its layers and what connects them.

use super::attention::Attention;
use super::config::{Family, Inputs, NetworkConfig, NetworkError};
use super::decoder::{Decoder, ReadoutInput};
use super::encoder::EncoderLayer;
use super::inputs::{InputSpace, LocalTokens};
use super::layer::{Layer, LayerShape};
use super::layout::{Layout, Start};
use super::linear::Linear;
use super::positions;
use super::prepared::Maps;
use super::readout::Readout;
use crate::random::generator;

/// Most dimensions a rotation of positions may have; drawing one costs their cube.
const MAX_ROTATED: usize = 2048;

/// A recurrent network without its weights.
#[derive(Clone, Debug)]
pub(crate) struct Recurrent {
    pub(crate) config: NetworkConfig,
    pub(crate) encoder: Vec<EncoderLayer>,
    /// By layer, for bidirectional encoders.
    pub(crate) bridges: Vec<Linear>,
    pub(crate) decoder: Decoder,
    pub(crate) source_space: InputSpace,
    pub(crate) target_space: InputSpace,
    pub(crate) rotation: Option<Vec<f64>>,
}

impl Recurrent {
    /// Builds the network for so many words of source and target, and lays out its parameters.
    pub(crate) fn new(
        config: &NetworkConfig,
        n_words: [usize; 2],
        seed: u64,
        layout: &mut Layout,
        maps: &mut Maps,
    ) -> Result<Self, NetworkError> {
        let [n_source_words, n_target_words] = n_words;
        let d = input_size(config, n_source_words, n_target_words)?;
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
                Layer::new(&shape, layout, maps)
            };
            let forward = layer(&format!("encoder.{number}"));
            let backward = config.bidirectional.then(|| layer(&format!("encoder.{number}.backward")));
            encoder.push(EncoderLayer { forward, backward });
        }

        let attention = Attention::new(config, layout, maps);
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
            layers.push(Layer::new(&shape, layout, maps));
        }
        let n_bridges = if config.bidirectional { config.layers } else { 0 };
        let bridges =
            (0..n_bridges).map(|number| Linear::new(&format!("decoder.{number}.initial_from_backward"), n, n, layout, maps)).collect();
        let attentional = (config.family == Family::Luong).then(|| Linear::new("attentional", d_context + n, n, layout, maps));
        let (reads, d_input) = match config.family {
            Family::Ved => (ReadoutInput::State, n),
            Family::Aed | Family::Bahdanau => (ReadoutInput::StateAndContext, n + d_context),
            Family::Ao => (ReadoutInput::Context, d_context),
            Family::Luong => (ReadoutInput::Attentional, n),
            Family::Transformer => unreachable!("Network::new builds Transformers elsewhere"),
        };
        let linear = Linear::new("readout", d_input, n_target_words, layout, maps);
        layout.write_over(linear.tensor);
        let bias = config.readout_bias.then(|| layout.vector("readout_bias", n_target_words, Start::Zero));
        let readout = Readout { linear, bias, d_input, n_words: n_target_words };
        let first_layers = [Some(&encoder[0].forward), encoder[0].backward.as_ref(), Some(&layers[0])].into_iter().flatten();
        let mut tabled: Vec<_> = first_layers.flat_map(|layer| [layer.gates_from_input, layer.gates_bias]).collect();
        tabled.extend([source_space.embedding, target_space.embedding].into_iter().flatten());
        layout.put_tabled_first(&tabled);
        if config.positions.is_some() && d > MAX_ROTATED {
            return Err(NetworkError::OutOfRange { field: "inputs.size", value: d.to_string(), range: "at most 2048 with positions" });
        }
        let decoder = Decoder { family: config.family, layers, attention, attentional, d_feed, reads, readout };
        let rotation = config.positions.map(|_| positions::random_rotation(d, &mut generator(&[seed, 0x0726])));
        Ok(Self { config: config.clone(), encoder, bridges, decoder, source_space, target_space, rotation })
    }

    pub(crate) fn is_recurrent(&self) -> bool {
        self.config.family != Family::Ao
    }

    pub(crate) fn decoder_table(&self) -> usize {
        1 + usize::from(self.config.bidirectional)
    }

    /// The layer, space and tokens of a table.
    pub(crate) fn table<'a>(
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
