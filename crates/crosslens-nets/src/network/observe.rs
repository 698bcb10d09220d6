//! What a network did with each sentence, for tests and for whoever wants to look.

use std::sync::Mutex;

use crosslens_analysis::{Answer, Pair, Token};
use crosslens_kernels::Real;

use super::attention::Sides;
use super::engine::{Pass, lock};
use super::hook::Hook;
use super::packing::Packing;
use super::prepared::Context;
use super::shard::Shard;
use super::{Engine, Feeding, Network, Recurrent};

/// One sentence as the network saw it; matrices are row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation<F> {
    /// Tokens fed to the decoder.
    pub fed: Vec<Token>,
    /// Likeliest tokens.
    pub predicted: Vec<Token>,
    /// `[target step, target word]`.
    pub logits: Vec<F>,
    /// `[head, target step, source step]`, the heads of a Transformer layer by layer; empty without attention.
    pub attention: Vec<F>,
    /// `[source step, d_key]`: the encoder's top outputs.
    pub encoder: Vec<F>,
    /// `[target step, n]`: the decoder's top states.
    pub decoder: Vec<F>,
    /// `[target step, n]`: the states that ask, with Bahdanau those of the step before; of a Transformer `[layer, target step, n]`. Empty
    /// without attention.
    pub queries: Vec<F>,
    /// How the encoder asks itself; only Transformers do.
    pub encoder_self: SelfAttention<F>,
    /// How the decoder asks itself.
    pub decoder_self: SelfAttention<F>,
}

/// Attention of one side to itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelfAttention<F> {
    /// `[layer, head, step, step]`, zero for keys that may not be seen.
    pub weights: Vec<F>,
    /// `[layer, step, n]`: the states that ask and are asked, normed where norms stand before attention.
    pub states: Vec<F>,
}

/// A shard that has been run, to be looked at.
pub(crate) trait Watched<F> {
    /// Number of sentences.
    fn n_sentences(&self) -> usize;
    /// A sentence's predictions and its mean cross-entropy.
    fn answer(&self, sentence: usize) -> Answer;
    /// What happened to a sentence, but for its logits.
    fn observe(&self, sentence: usize) -> Observation<F>;
    /// A sentence's logits, `[target step, target word]`.
    fn logits(&self, sentence: usize) -> Vec<F>;
}

/// A network's shard.
pub(crate) struct Ran<'a, N, S, F> {
    pub(crate) network: &'a N,
    pub(crate) shard: &'a S,
    pub(crate) context: Context<'a, F>,
}

impl<F: Real> Engine<F> {
    /// Runs a batch without gradient and returns what happened to each sentence.
    pub fn observe(&mut self, network: &Network, weights: &[F], pairs: &[Pair], feeding: Feeding) -> Vec<Observation<F>> {
        self.watch(network, weights, pairs, feeding, None, |shard, sentence| {
            let logits = shard.logits(sentence);
            Observation { logits, ..shard.observe(sentence) }
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
        look: impl Fn(&dyn Watched<F>, usize) -> T + Sync,
    ) -> Vec<T> {
        let seen = Mutex::new(Vec::new());
        self.run(network, weights, Pass { hook, ..Pass::plain(pairs, feeding) }, |number, shard| {
            let of_shard: Vec<T> = (0..shard.n_sentences()).map(|sentence| look(shard, sentence)).collect();
            lock(&seen).push((number, of_shard));
        });
        let mut seen = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.sort_by_key(|(number, _)| *number);
        seen.into_iter().flat_map(|(_, of_shard)| of_shard).collect()
    }
}

/// The answer of a sentence from what all rows of its shard came to.
pub(crate) fn answer(packing: &Packing, sentence: usize, predicted: &[Token], losses: &[f64]) -> Answer {
    let rows = packing.sentence_rows(sentence);
    let losses = &losses[rows.clone()];
    Answer { predicted: predicted[rows].to_vec(), loss: losses.iter().sum::<f64>() / losses.len() as f64 }
}

impl<F: Real> Watched<F> for Ran<'_, Recurrent, Shard<F>, F> {
    fn n_sentences(&self) -> usize {
        self.shard.target.n_sentences()
    }

    fn answer(&self, sentence: usize) -> Answer {
        answer(&self.shard.target, sentence, &self.shard.predicted, &self.shard.readout.losses)
    }

    fn observe(&self, sentence: usize) -> Observation<F> {
        let Self { network, shard, .. } = self;
        let sides = Sides::paired(&shard.source, &shard.target);
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
            observation.queries = shard.attention.query_states[rows.start * n..rows.end * n].to_vec();
        }
        observation
    }

    fn logits(&self, sentence: usize) -> Vec<F> {
        let (rows, readout) = (self.shard.target.sentence_rows(sentence), &self.network.decoder.readout);
        let mut logits = Vec::new();
        let input = &self.shard.decoder.readout_input[rows.start * readout.d_input..rows.end * readout.d_input];
        readout.logits(input, &mut logits, self.context);
        logits
    }
}
