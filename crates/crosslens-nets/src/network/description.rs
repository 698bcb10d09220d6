//! What a network is, in the words of an explanation: its streams of states, its attention heads and its readout.

use crosslens_analysis::{self as analysis, Consumed, Description, ScoreMap, Side, Site, SiteKind, Stream, Visible, Words};

use super::attention::Attention;
use super::config::{Cell, Family, NetworkConfig, Score};
use super::layout::{Layout, TensorId};
use super::linear::Linear;
use super::transformer::NormPlace;
use super::{Body, Network, Recurrent};

/// Places in [`Description::streams`].
pub(crate) const ENCODER: usize = 0;
pub(crate) const DECODER: usize = 1;

impl Network {
    /// The network with these weights, reading and writing these words.
    pub(crate) fn describe(&self, weights: &[f32], source: Words, target: Words) -> Description {
        let numbers = Numbers { layout: &self.layout, weights };
        let (streams, sites, readout) = match &self.body {
            Body::Recurrent(network) => (network.streams(), network.sites(numbers), network.linear_readout(numbers)),
            Body::Transformer(network) => (network.streams(), network.sites(numbers), None),
        };
        Description { model: in_words(&self.config), model_hash: self.hash(weights), source, target, streams, sites, readout }
    }
}

/// Weights by parameter.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'a> {
    layout: &'a Layout,
    weights: &'a [f32],
}

impl Numbers<'_> {
    /// One head's columns of a map `[d_in, heads · d_out]`.
    pub(crate) fn columns_of_head(self, linear: &Linear, head: usize, heads: usize) -> analysis::Linear {
        let (d_in, width) = self.layout.shape(linear.tensor);
        let d_out = width / heads;
        let rows = self.weights[self.layout.range(linear.tensor)].chunks_exact(width);
        let weights = rows.flat_map(|row| &row[head * d_out..][..d_out]).copied().collect();
        analysis::Linear { d_in, d_out, weights, bias: Vec::new() }
    }

    pub(crate) fn vector(self, tensor: Option<TensorId>) -> Vec<f32> {
        tensor.map_or_else(Vec::new, |tensor| self.weights[self.layout.range(tensor)].to_vec())
    }
}

impl Recurrent {
    fn streams(&self) -> Vec<Stream> {
        let consumed = if self.config.family == Family::Bahdanau { Consumed::Previous } else { Consumed::Current };
        let stream = |name: &str, side, consumed, d| Stream { name: name.into(), side, consumed, d };
        vec![
            stream("encoder", Side::Source, Consumed::Current, self.config.d_key()),
            stream("decoder", Side::Target, consumed, self.config.hidden),
        ]
    }

    fn sites(&self, numbers: Numbers<'_>) -> Vec<Site> {
        let Some(attention) = &self.decoder.attention else { return Vec::new() };
        let site = |head| Site {
            kind: SiteKind::Cross,
            layer: 0,
            head,
            query: DECODER,
            key: ENCODER,
            map: score_map(attention, head, numbers),
            visible: Visible::All,
            value: attention.value.as_ref().map(|value| numbers.columns_of_head(value, head, attention.heads)),
        };
        (0..attention.heads).map(site).collect()
    }

    /// The readout of state and context; `None` with Luong, whose attentional state lies between them and the logits.
    fn linear_readout(&self, numbers: Numbers<'_>) -> Option<analysis::Readout> {
        if self.config.family == Family::Luong {
            return None;
        }
        let (readout, d_state) = (&self.decoder.readout, self.decoder.d_readout_state());
        let map = analysis::Linear { bias: numbers.vector(readout.bias), ..numbers.columns_of_head(&readout.linear, 0, 1) };
        Some(analysis::Readout { map, d_state, d_context: readout.d_input - d_state })
    }
}

fn score_map(attention: &Attention, head: usize, numbers: Numbers<'_>) -> ScoreMap {
    let map = |linear: Option<Linear>| {
        let linear = linear.expect("every score has the maps that `Attention::new` gives it");
        numbers.columns_of_head(&linear, head, attention.heads)
    };
    match attention.score {
        Score::Dot | Score::ScaledDot => ScoreMap::Dot { scale: attention.scale() },
        Score::General => ScoreMap::Bilinear { query: map(attention.query) },
        Score::Additive => ScoreMap::Additive {
            query: map(attention.query),
            key: analysis::Linear { bias: numbers.vector(attention.bias), ..map(attention.key) },
            vector: numbers.vector(attention.vector),
        },
        Score::Qkv => {
            ScoreMap::Projected { query: map(attention.query), key: map(attention.key), scale: attention.scale(), position_bias: None }
        }
    }
}

impl Network {
    /// FNV-1a, 64 bits in hexadecimal digits, of the configuration, the weights and the rotation of positions.
    fn hash(&self, weights: &[f32]) -> String {
        let config = serde_json::to_vec(&self.config).expect("a configuration is plain numbers and names");
        let weights = weights.iter().flat_map(|weight| weight.to_bits().to_le_bytes());
        let rotation = self.rotation().unwrap_or_default().iter().flat_map(|number| number.to_bits().to_le_bytes());
        let hash = config
            .into_iter()
            .chain(weights)
            .chain(rotation)
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    }
}

/// A network for people: `AED, GRU, 128 units, dot`.
fn in_words(config: &NetworkConfig) -> String {
    let family = match config.family {
        Family::Ved => "VED",
        Family::Aed => "AED",
        Family::Ao => "AO",
        Family::Bahdanau => "Bahdanau",
        Family::Luong => "Luong",
        Family::Transformer => return transformer_in_words(config),
    };
    let cell = match config.cell {
        Cell::Vanilla => "vanilla RNN",
        Cell::Ugrnn => "UGRNN",
        Cell::Gru => "GRU",
        Cell::GruResetAfter => "GRU (reset after)",
        Cell::Lstm => "LSTM",
    };
    let mut words = vec![family.to_owned(), cell.to_owned(), format!("{} units", config.hidden)];
    if config.layers > 1 {
        words.push(format!("{} layers", config.layers));
    }
    if config.bidirectional {
        words.push("bidirectional".to_owned());
    }
    words.extend(config.score.map(|score| score.name().replace('-', " ")));
    if config.heads > 1 {
        words.push(format!("{} heads", config.heads));
    }
    if config.input_feeding {
        words.push("input feeding".to_owned());
    }
    words.join(", ")
}

/// `Transformer, 2 + 2 layers, 4 heads, 128 units, pre-norm`.
fn transformer_in_words(config: &NetworkConfig) -> String {
    let own = config.transformer.unwrap_or_default();
    let (n_encoder, n_decoder) = (config.layers, own.decoder_layers.unwrap_or(config.layers));
    let norm = match own.norm {
        NormPlace::Pre => "pre-norm",
        NormPlace::Post => "post-norm",
    };
    format!("Transformer, {n_encoder} + {n_decoder} layers, {} heads, {} units, {norm}", config.heads, config.hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_says_in_words_what_it_is() {
        assert_eq!(in_words(&NetworkConfig::of(Family::Ved)), "VED, GRU, 128 units");
        assert_eq!(in_words(&NetworkConfig::of(Family::Aed)), "AED, GRU, 128 units, dot");
        let config = NetworkConfig { layers: 2, score: Some(Score::Qkv), heads: 4, ..NetworkConfig::of(Family::Bahdanau) };
        assert_eq!(in_words(&config), "Bahdanau, GRU, 128 units, 2 layers, bidirectional, qkv, 4 heads");
        let config =
            NetworkConfig { cell: Cell::Lstm, score: Some(Score::ScaledDot), input_feeding: true, ..NetworkConfig::of(Family::Luong) };
        assert_eq!(in_words(&config), "Luong, LSTM, 128 units, scaled dot, input feeding");
        assert_eq!(in_words(&NetworkConfig::of(Family::Transformer)), "Transformer, 1 + 1 layers, 4 heads, 128 units, pre-norm");
    }

    #[test]
    fn the_hash_is_that_of_the_weights() {
        let network = Network::new(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Ao) }, 4, 5, 0).expect("a small network");
        let other_rotation = Network::new(network.config(), 4, 5, 1).expect("a small network");
        let weights = network.draw_weights::<f32>(7);
        let mut changed = weights.clone();
        changed[3] = -changed[3];
        assert_eq!(network.hash(&weights), network.clone().hash(&network.draw_weights::<f32>(7)));
        assert_ne!(network.hash(&weights), network.hash(&changed));
        assert_ne!(network.hash(&weights), other_rotation.hash(&weights));
    }
}
