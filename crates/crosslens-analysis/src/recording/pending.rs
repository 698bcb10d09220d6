//! Sentences that wait to become a shard.

use super::{check, name};
use crate::storage::safetensors::{Tensor, Values};
use crate::{Description, Recorded};

/// The flat arrays of a shard, growing.
#[derive(Debug, Default)]
pub(super) struct Pending {
    numbers: Vec<u64>,
    losses: Vec<f64>,
    source_lengths: Vec<u32>,
    target_lengths: Vec<u32>,
    predicted_known: Vec<u8>,
    target_known: Vec<u8>,
    attention_kept: Vec<u8>,
    source: Vec<u32>,
    fed: Vec<u32>,
    predicted: Vec<u32>,
    target: Vec<u32>,
    states: Vec<Vec<f32>>,
    attention: Vec<Vec<f32>>,
    n_bytes: u64,
}

impl Pending {
    pub(super) fn new(description: &Description) -> Self {
        let attention = vec![Vec::new(); description.sites.len()];
        Self { states: vec![Vec::new(); description.streams.len()], attention, ..Self::default() }
    }

    pub(super) fn n_sentences(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Bytes the shard will take, about.
    pub(super) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Takes a sentence that was checked.
    pub(super) fn push(&mut self, sentence: &Recorded) {
        let n_target = sentence.fed.len();
        let is_kept = check::is_kept(sentence);
        self.numbers.push(sentence.number);
        self.losses.push(sentence.loss.unwrap_or(f64::NAN));
        self.source_lengths.push(sentence.source.len() as u32);
        self.target_lengths.push(n_target as u32);
        self.predicted_known.push(u8::from(!sentence.predicted.is_empty()));
        self.target_known.push(u8::from(sentence.target.is_some()));
        self.attention_kept.push(u8::from(is_kept));

        self.source.extend(&sentence.source);
        self.fed.extend(&sentence.fed);
        let unknown = vec![0; n_target];
        self.predicted.extend(if sentence.predicted.is_empty() { &unknown } else { &sentence.predicted });
        self.target.extend(sentence.target.as_ref().unwrap_or(&unknown));

        let mut n_floats = 0;
        for (all, states) in self.states.iter_mut().zip(&sentence.states) {
            all.extend(states);
            n_floats += states.len();
        }
        for (all, weights) in self.attention.iter_mut().zip(&sentence.attention) {
            all.extend(weights);
            n_floats += weights.len();
        }
        self.n_bytes += 27 + 4 * (sentence.source.len() + 3 * n_target + n_floats) as u64;
    }

    /// Forgets all sentences and keeps the memory for the next.
    pub(super) fn clear(&mut self) {
        let Self { numbers, losses, source_lengths, target_lengths, source, fed, predicted, target, .. } = self;
        numbers.clear();
        losses.clear();
        [source_lengths, target_lengths, source, fed, predicted, target].into_iter().for_each(Vec::clear);
        [&mut self.predicted_known, &mut self.target_known, &mut self.attention_kept].into_iter().for_each(Vec::clear);
        self.states.iter_mut().chain(&mut self.attention).for_each(Vec::clear);
        self.n_bytes = 0;
    }

    /// The shard's arrays.
    pub(super) fn tensors(&self, description: &Description) -> Vec<Tensor<'_>> {
        let mut tensors = vec![
            flat(name::NUMBERS, self.numbers.len(), Values::U64(&self.numbers)),
            flat(name::LOSSES, self.losses.len(), Values::F64(&self.losses)),
            flat(name::SOURCE_LENGTHS, self.source_lengths.len(), Values::U32(&self.source_lengths)),
            flat(name::TARGET_LENGTHS, self.target_lengths.len(), Values::U32(&self.target_lengths)),
            flat(name::PREDICTED_KNOWN, self.predicted_known.len(), Values::U8(&self.predicted_known)),
            flat(name::TARGET_KNOWN, self.target_known.len(), Values::U8(&self.target_known)),
            flat(name::ATTENTION_KEPT, self.attention_kept.len(), Values::U8(&self.attention_kept)),
            flat(name::SOURCE, self.source.len(), Values::U32(&self.source)),
            flat(name::FED, self.fed.len(), Values::U32(&self.fed)),
            flat(name::PREDICTED, self.predicted.len(), Values::U32(&self.predicted)),
            flat(name::TARGET, self.target.len(), Values::U32(&self.target)),
        ];
        for (stream, states) in description.streams.iter().zip(&self.states) {
            let shape = vec![(states.len() / stream.d) as u64, stream.d as u64];
            tensors.push(Tensor { name: name::states(&stream.name), shape, values: Values::F32(states) });
        }
        for (site, weights) in self.attention.iter().enumerate() {
            tensors.push(flat(&name::attention(site), weights.len(), Values::F32(weights)));
        }
        tensors
    }
}

fn flat<'a>(name: &str, len: usize, values: Values<'a>) -> Tensor<'a> {
    Tensor { name: name.to_owned(), shape: vec![len as u64], values }
}
