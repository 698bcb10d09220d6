//! What a network did with each sentence, for tests and for whoever wants to look.

use crosslens_analysis::{Pair, Token};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, product};

use super::attention::Sides;
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
        self.evaluate(network, weights, pairs, feeding);
        let mut map = Packed::new();
        let readout = &network.decoder.readout;
        let words = readout.n_words;
        map.pack(Matrix::new(&weights[network.layout.range(readout.linear.tensor)], readout.d_input, words));
        let mut observations = Vec::with_capacity(pairs.len());
        for shard in self.shards() {
            let sides = Sides { source: &shard.source, target: &shard.target };
            let (n, d_key) = (network.config.hidden, network.config.d_key());
            for sentence in 0..sides.target.n_sentences() {
                let rows = sides.target.sentence_rows(sentence);
                let mut observation = Observation { predicted: shard.predicted[rows.clone()].to_vec(), ..Observation::default() };
                let top = shard.decoder.layers.last().expect("a decoder has a layer");
                for step in 0..rows.len() {
                    let row = sides.target.rows(step).start + sides.target.ranks[sentence];
                    observation.fed.push(shard.decoder.fed[row]);
                    observation.decoder.extend_from_slice(&top.hidden[row * n..][..n]);
                }
                let outputs = &shard.encoder.last().expect("an encoder has a layer").outputs;
                for step in 0..sides.source.lengths[sentence] {
                    let row = sides.source.rows(step).start + sides.source.ranks[sentence];
                    observation.encoder.extend_from_slice(&outputs[row * d_key..][..d_key]);
                }
                if let Some(attention) = &network.decoder.attention {
                    observation.attention = attention.weights_of(&shard.attention, sides, sentence).to_vec();
                }
                observation.logits = match readout.bias {
                    Some(bias) => rows.clone().flat_map(|_| weights[network.layout.range(bias)].to_vec()).collect(),
                    None => vec![F::ZERO; rows.len() * words],
                };
                let input = &shard.decoder.readout_input[rows.start * readout.d_input..rows.end * readout.d_input];
                let logits = MatrixMut::new(&mut observation.logits, rows.len(), words);
                product(logits, Matrix::new(input, rows.len(), readout.d_input), &map, Write::Add);
                observations.push(observation);
            }
        }
        observations
    }
}
