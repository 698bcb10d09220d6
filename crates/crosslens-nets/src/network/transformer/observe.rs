//! What a Transformer did with each sentence.

use crosslens_analysis::Answer;
use crosslens_kernels::Real;

use super::{Shard, Transformer};
use crate::network::observe::{Observation, Ran, Watched, answer};
use crate::network::packing::Packing;

impl<F: Real> Watched<F> for Ran<'_, Transformer, Shard<F>, F> {
    fn n_sentences(&self) -> usize {
        self.shard.target.n_sentences()
    }

    fn answer(&self, sentence: usize) -> Answer {
        answer(&self.shard.target, sentence, &self.shard.predicted, &self.shard.readout.losses)
    }

    fn observe(&self, sentence: usize) -> Observation<F> {
        let Self { network, shard, .. } = self;
        let (source, target, d) = (&shard.source, &shard.target, network.config.hidden);
        let rows = target.sentence_rows(sentence);
        let mut seen = Observation {
            fed: shard.fed[rows.clone()].to_vec(),
            predicted: shard.predicted[rows].to_vec(),
            encoder: of_sentence(source, sentence, &shard.encoder.rows, d).to_vec(),
            decoder: of_sentence(target, sentence, &shard.decoder.rows, d).to_vec(),
            ..Observation::default()
        };
        for (layer, trace) in network.encoder.layers.iter().zip(&shard.encoder.layers) {
            seen.encoder_self.weights.extend_from_slice(layer.attention.weights_of(&trace.attention, source, source, sentence));
            seen.encoder_self.states.extend_from_slice(of_sentence(source, sentence, &trace.around_attention.states, d));
        }
        for (layer, trace) in network.decoder.layers.iter().zip(&shard.decoder.layers) {
            seen.decoder_self.weights.extend_from_slice(layer.attention.weights_of(&trace.attention, target, target, sentence));
            seen.decoder_self.states.extend_from_slice(of_sentence(target, sentence, &trace.around_attention.states, d));
            seen.attention.extend_from_slice(layer.cross.weights_of(&trace.cross, target, source, sentence));
            seen.queries.extend_from_slice(of_sentence(target, sentence, &trace.around_cross.states, d));
        }
        seen
    }

    fn logits(&self, sentence: usize) -> Vec<F> {
        let (network, shard) = (self.network, self.shard);
        let mut logits = Vec::new();
        network.readout.logits(of_sentence(&shard.target, sentence, &shard.decoder.rows, network.config.hidden), &mut logits, self.context);
        logits
    }
}

/// The rows of one sentence of a matrix `[row, d]`.
fn of_sentence<'m, F>(packing: &Packing, sentence: usize, matrix: &'m [F], d: usize) -> &'m [F] {
    let rows = packing.sentence_rows(sentence);
    &matrix[rows.start * d..rows.end * d]
}
