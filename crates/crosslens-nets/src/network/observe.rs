//! What a network did with each sentence, for tests and for whoever wants to look.

use std::sync::Mutex;

use crosslens_analysis::{Pair, Token};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, product};

use super::attention::Sides;
use super::engine::lock;
use super::shard::Shard;
use super::{Engine, Feeding, Network};

/// One sentence as the network saw it; matrices are row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation<F> {
    /// Tokens fed to the decoder.
    pub fed: Vec<Token>,
    /// Likeliest tokens.
    pub predicted: Vec<Token>,
    /// `[target step, target word]`.
    pub logits: Vec<F>,
    /// `[head, target step, source step]`; empty without attention.
    pub attention: Vec<F>,
    /// `[source step, d_key]`: the encoder's top outputs.
    pub encoder: Vec<F>,
    /// `[target step, n]`: the decoder's top states.
    pub decoder: Vec<F>,
}

impl<F: Real> Engine<F> {
    /// Runs a batch without gradient and returns what happened to each sentence.
    pub fn observe(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding) -> Vec<Observation<F>> {
        let mut map = Packed::new();
        let readout = &network.decoder.readout;
        map.pack(Matrix::new(&weights[network.layout.range(readout.linear.tensor)], readout.d_input, readout.n_words));
        let seen = Mutex::new(Vec::new());
        self.run(network, weights, pairs, feeding, None, false, |number, shard| {
            let observations = (0..shard.target.n_sentences()).map(|sentence| observe(network, weights, &map, shard, sentence)).collect();
            lock(&seen).push((number, observations));
        });
        let mut seen: Vec<(usize, Vec<Observation<F>>)> = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.sort_by_key(|(number, _)| *number);
        seen.into_iter().flat_map(|(_, observations)| observations).collect()
    }
}

fn observe<F: Real>(network: &Network, weights: &[F], readout_map: &Packed<F>, shard: &Shard<F>, sentence: usize) -> Observation<F> {
    let sides = Sides { source: &shard.source, target: &shard.target };
    let (n, d_key) = (network.config.hidden, network.config.d_key());
    let rows = sides.target.sentence_rows(sentence);
    let mut observation = Observation { predicted: shard.predicted[rows.clone()].to_vec(), ..Observation::default() };
    let decoder = shard.decoder.layers.last().expect("a decoder has a layer");
    for step in 0..rows.len() {
        let row = sides.target.rows(step).start + sides.target.ranks[sentence];
        observation.fed.push(shard.decoder.fed[row]);
        observation.decoder.extend_from_slice(&decoder.hidden[row * n..][..n]);
    }
    let top = network.encoder.len() - 1;
    let outputs = shard.encoder[top].outputs(&network.encoder[top]);
    for step in 0..sides.source.lengths[sentence] {
        let row = sides.source.rows(step).start + sides.source.ranks[sentence];
        observation.encoder.extend_from_slice(&outputs[row * d_key..][..d_key]);
    }
    if let Some(attention) = &network.decoder.attention {
        observation.attention = attention.weights_of(&shard.attention, sides, sentence).to_vec();
    }
    let readout = &network.decoder.readout;
    observation.logits = match readout.bias {
        Some(bias) => weights[network.layout.range(bias)].repeat(rows.len()),
        None => vec![F::ZERO; rows.len() * readout.n_words],
    };
    let input = &shard.decoder.readout_input[rows.start * readout.d_input..rows.end * readout.d_input];
    let logits = MatrixMut::new(&mut observation.logits, rows.len(), readout.n_words);
    product(logits, Matrix::new(input, rows.len(), readout.d_input), readout_map, Write::Add);
    observation
}
