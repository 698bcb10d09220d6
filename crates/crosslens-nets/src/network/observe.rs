//! What a network did with each sentence, for tests and for whoever wants to look.

use std::sync::Mutex;

use crosslens_analysis::{Answer, Pair, Token};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, product};

use super::attention::Sides;
use super::engine::lock;
use super::hook::Hook;
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
    /// `[target step, n]`: the states that ask, with Bahdanau those of the step before; empty without attention.
    pub queries: Vec<F>,
}

impl<F: Real> Engine<F> {
    /// Runs a batch without gradient and returns what happened to each sentence.
    pub fn observe(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding) -> Vec<Observation<F>> {
        let mut map = Packed::new();
        let readout = &network.decoder.readout;
        map.pack(Matrix::new(&weights[network.layout.range(readout.linear.tensor)], readout.d_input, readout.n_words));
        self.watch(network, weights, pairs, feeding, None, |shard, sentence| {
            let logits = shard.logits(network, weights, &map, sentence);
            Observation { logits, ..shard.observe(network, sentence) }
        })
    }

    /// Runs a batch without gradient, under a hook if there is one; returns, in their order, what `look` makes of each sentence.
    pub(crate) fn watch<T: Send>(
        &mut self,
        network: &Network,
        weights: &[F],
        pairs: &[Pair],
        feeding: Feeding,
        hook: Option<&dyn Hook<F>>,
        look: impl Fn(&Shard<F>, usize) -> T + Sync,
    ) -> Vec<T> {
        let seen = Mutex::new(Vec::new());
        self.run(network, weights, pairs, feeding, None, false, hook, |number, shard| {
            let of_shard: Vec<T> = (0..shard.target.n_sentences()).map(|sentence| look(shard, sentence)).collect();
            lock(&seen).push((number, of_shard));
        });
        let mut seen = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.sort_by_key(|(number, _)| *number);
        seen.into_iter().flat_map(|(_, of_shard)| of_shard).collect()
    }
}

impl<F: Real> Shard<F> {
    /// A sentence's predictions and its mean cross-entropy.
    pub(crate) fn answer(&self, sentence: usize) -> Answer {
        let rows = self.target.sentence_rows(sentence);
        let losses = &self.readout.losses[rows.clone()];
        Answer { predicted: self.predicted[rows].to_vec(), loss: losses.iter().sum::<f64>() / losses.len() as f64 }
    }

    /// What happened to a sentence, but for its logits.
    pub(crate) fn observe(&self, network: &Network, sentence: usize) -> Observation<F> {
        let sides = Sides::paired(&self.source, &self.target);
        let (n, d_key) = (network.config.hidden, network.config.d_key());
        let rows = sides.target.sentence_rows(sentence);
        let mut observation = Observation { predicted: self.predicted[rows.clone()].to_vec(), ..Observation::default() };
        let decoder = self.decoder.layers.last().expect("a decoder has a layer");
        for step in 0..rows.len() {
            let row = sides.target.rows(step).start + sides.target.ranks[sentence];
            observation.fed.push(self.decoder.fed[row]);
            observation.decoder.extend_from_slice(&decoder.hidden[row * n..][..n]);
        }
        let top = network.encoder.len() - 1;
        let outputs = self.encoder[top].outputs(&network.encoder[top]);
        for step in 0..sides.source.lengths[sentence] {
            let row = sides.source.rows(step).start + sides.source.ranks[sentence];
            observation.encoder.extend_from_slice(&outputs[row * d_key..][..d_key]);
        }
        if let Some(attention) = &network.decoder.attention {
            observation.attention = attention.weights_of(&self.attention, sides, sentence).to_vec();
            observation.queries = self.attention.query_states[rows.start * n..rows.end * n].to_vec();
        }
        observation
    }

    /// A sentence's logits, `[target step, target word]`.
    fn logits(&self, network: &Network, weights: &[F], readout_map: &Packed<F>, sentence: usize) -> Vec<F> {
        let rows = self.target.sentence_rows(sentence);
        let readout = &network.decoder.readout;
        let mut logits = match readout.bias {
            Some(bias) => weights[network.layout.range(bias)].repeat(rows.len()),
            None => vec![F::ZERO; rows.len() * readout.n_words],
        };
        let input = &self.decoder.readout_input[rows.start * readout.d_input..rows.end * readout.d_input];
        let input = Matrix::new(input, rows.len(), readout.d_input);
        product(MatrixMut::new(&mut logits, rows.len(), readout.n_words), input, readout_map, Write::Add);
        logits
    }
}
