//! Networks and sentences for tests.
use crosslens_analysis::Pair;
use crosslens_nets::network::{
    Activation, Cell, Family, Inputs, Network, NetworkConfig, NormPlace, Positions, Score, StepVectors, TransformerConfig,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const SOURCE_WORDS: usize = 4;
pub(crate) const TARGET_WORDS: usize = 5;

/// Every combination of the switches of recurrent networks that makes sense, small.
pub(crate) fn all_configs() -> Vec<NetworkConfig> {
    let mut configs = Vec::new();
    let scores = std::iter::once(None).chain(Score::ALL.map(Some));
    for family in Family::ALL {
        for cell in Cell::ALL {
            for score in scores.clone() {
                for (layers, bidirectional, input_feeding, heads) in switches() {
                    // The two kinds of inputs, biases and positions touch nothing of each other: alternate instead of multiplying.
                    let number = configs.len();
                    configs.push(NetworkConfig {
                        cell,
                        score,
                        layers,
                        bidirectional,
                        input_feeding,
                        heads,
                        hidden: 3,
                        readout_bias: number.is_multiple_of(2),
                        inputs: if number % 3 == 0 { Inputs::Embedding { size: 2 } } else { Inputs::OneHot { size: 6 } },
                        positions: (family == Family::Ao || number % 5 == 0).then_some(Positions { amplitude: 0.5, time_scale: 10.0 }),
                        ..NetworkConfig::of(family)
                    });
                    if configs[number].check().is_err() {
                        configs.pop();
                    }
                }
            }
        }
    }
    configs
}

/// Every combination of a Transformer's switches, small; numbers of layers and heads alternate.
pub(crate) fn transformer_configs() -> Vec<NetworkConfig> {
    let config = |bits: usize| {
        let is = |bit: usize| bits >> bit & 1 == 1;
        let own = TransformerConfig {
            norm: if is(0) { NormPlace::Post } else { NormPlace::Pre },
            positions: if is(1) { StepVectors::Learned { size: 9 } } else { StepVectors::Sinusoidal { time_scale: 100.0 } },
            activation: if is(2) { Activation::Gelu } else { Activation::Relu },
            tied_readout: is(3),
            feed_forward: Some(5),
            decoder_layers: is(4).then_some(2),
            embedding_scale: is(1).then_some(1.5),
        };
        let (layers, heads, readout_bias) = (1 + usize::from(is(5)), 1 + usize::from(is(4)), is(5));
        NetworkConfig { layers, heads, readout_bias, hidden: 4, transformer: Some(own), ..NetworkConfig::of(Family::Transformer) }
    };
    (0..64).map(config).collect()
}

/// Three layers and three heads, of every family that can have them: what two of each may hide, a middle one that is neither first nor last.
pub(crate) fn threefold_configs() -> Vec<NetworkConfig> {
    let with_attention = Family::ALL.into_iter().filter(|&family| family != Family::Ved);
    let config = |family: Family| {
        let score = if family == Family::Transformer { NetworkConfig::of(family).score } else { Some(Score::Qkv) };
        NetworkConfig { layers: 3, heads: 3, hidden: 6, score, ..NetworkConfig::of(family) }
    };
    with_attention.map(config).collect()
}

fn switches() -> impl Iterator<Item = (usize, bool, bool, usize)> {
    (0..16).map(|bits| (1 + (bits & 1), bits & 2 != 0, bits & 4 != 0, 1 + (bits >> 3)))
}

pub(crate) fn network(config: &NetworkConfig) -> Network {
    Network::new(config, SOURCE_WORDS, TARGET_WORDS, 5).expect("a network that makes sense")
}

pub(crate) fn generator(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Sentences of 1 to `longest` random words.
pub(crate) fn pairs(n: usize, longest: usize, seed: u64) -> Vec<Pair> {
    let mut rng = generator(seed);
    let mut sentence = |words: usize| {
        let length = rng.random_range(1..=longest);
        (0..length).map(|_| rng.random_range(0..words as u32)).collect()
    };
    (0..n).map(|_| Pair::new(sentence(SOURCE_WORDS), sentence(TARGET_WORDS))).collect()
}

/// Weights drawn so that nothing is zero or saturated.
pub(crate) fn weights(network: &Network, seed: u64) -> Vec<f64> {
    let mut rng = generator(seed);
    (0..network.layout().len()).map(|_| rng.random_range(-0.7..0.7)).collect()
}

/// The network's name in messages.
pub(crate) fn name(config: &NetworkConfig) -> String {
    if let Some(own) = config.transformer {
        return format!("transformer layers {} heads {} bias {} {own:?}", config.layers, config.heads, config.readout_bias);
    }
    format!(
        "{} {} {:?} layers {} bidirectional {} feeding {} heads {} {:?} bias {}",
        config.family.name(),
        config.cell.name(),
        config.score.map(Score::name),
        config.layers,
        config.bidirectional,
        config.input_feeding,
        config.heads,
        config.inputs,
        config.readout_bias
    )
}
