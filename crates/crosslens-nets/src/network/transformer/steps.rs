//! The decoder one step at a time: keys and values of earlier steps are kept, so that a step costs no more than its own row.
//!
//! A *hypothesis* is one sequence being written; several may read the same source.

use crosslens_analysis::Token;
use crosslens_kernels::Real;

use super::Transformer;
use super::attention::{Attention, Hooked, Question};
use super::decoder::{DecoderLayer, Memory};
use super::embedding::Reading;
use super::feed_forward::FeedForwardTrace;
use super::norm::NormTrace;
use super::residual::ResidualTrace;
use crate::network::hook::ShardHook;
use crate::network::prepared::Context;

/// All hypotheses and what they keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps<F> {
    /// Steps made.
    step: usize,
    /// Steps there is room for.
    room: usize,
    /// Hypothesis → sentence of the memory.
    sentences: Vec<usize>,
    layers: Vec<LayerSteps<F>>,
    /// `[hypothesis, d]`.
    rows: Vec<F>,
    around: ResidualTrace<F>,
    feed_forward: FeedForwardTrace<F>,
    norm: NormTrace<F>,
    queries: Vec<F>,
    contexts: Vec<F>,
    weights: Vec<F>,
    logits: Vec<F>,
    /// By hypothesis, `[layer, head, source step]`: the weights on the source in the last step.
    looks: Vec<Vec<F>>,
    /// Room to put hypotheses in another order.
    spare: Vec<F>,
}

/// What one layer keeps.
#[derive(Clone, Debug, Default)]
struct LayerSteps<F> {
    /// Of the encoder's rows, `[source row, d]`.
    memory_keys: Vec<F>,
    memory_values: Vec<F>,
    /// Of earlier steps, `[hypothesis, room, d]`.
    keys: Vec<F>,
    values: Vec<F>,
    /// The states behind them, kept only where somebody may change the run.
    states: Vec<F>,
    /// Of this step, `[hypothesis, d]`.
    key: Vec<F>,
    value: Vec<F>,
}

/// What a step reads.
#[derive(Clone, Copy)]
pub(crate) struct Stepping<'a, F> {
    pub(crate) memory: Memory<'a, F>,
    pub(crate) reading: Reading<'a, F>,
    pub(crate) hook: Option<ShardHook<'a, F>>,
}

impl<F: Real> Steps<F> {
    /// Begins one hypothesis for each of `sentences`, with room for so many steps to begin with.
    pub(crate) fn start(
        &mut self,
        network: &Transformer,
        memory: Memory<'_, F>,
        sentences: impl Iterator<Item = usize>,
        room: usize,
        context: Context<'_, F>,
    ) {
        self.step = 0;
        self.room = room.max(1);
        self.sentences.clear();
        self.sentences.extend(sentences);
        self.layers.resize_with(network.decoder.layers.len(), LayerSteps::default);
        let len = self.sentences.len() * self.room * network.config.hidden;
        for (layer, kept) in network.decoder.layers.iter().zip(&mut self.layers) {
            layer.cross.key.forward(memory.rows, &mut kept.memory_keys, context);
            layer.cross.value.forward(memory.rows, &mut kept.memory_values, context);
            kept.keys.resize(len, F::ZERO);
            kept.values.resize(len, F::ZERO);
            kept.states.clear();
        }
    }

    /// A hypothesis's weights on the source in the last step, `[layer, head, source step]`.
    pub(crate) fn looks(&self, hypothesis: usize) -> &[F] {
        &self.looks[hypothesis]
    }

    /// Steps made.
    pub(crate) fn n_steps(&self) -> usize {
        self.step
    }

    /// Feeds one token to each of the first hypotheses, and leaves the others behind; returns the logits `[hypothesis, word]`.
    pub(crate) fn step(&mut self, network: &Transformer, tokens: &[Token], stepping: Stepping<'_, F>) -> &mut [F] {
        let Stepping { reading, hook, .. } = stepping;
        let (d, context, step) = (network.config.hidden, reading.context, self.step);
        self.sentences.truncate(tokens.len());
        if self.looks.len() < tokens.len() {
            self.looks.resize_with(tokens.len(), Vec::new);
        }
        self.looks.iter_mut().for_each(Vec::clear);
        if step == self.room {
            self.grow(d);
        }
        network.target.read(&mut self.rows, tokens.iter().map(|&token| (token, step)), reading);
        for number in 0..network.decoder.layers.len() {
            let layer = &network.decoder.layers[number];
            self.ask_itself(layer, number, d, stepping);
            self.ask_encoder(layer, number, d, stepping);
            let Self { rows, around, feed_forward, .. } = self;
            layer.around_feed_forward.enter(rows, around, context);
            layer.feed_forward.forward(feed_forward, &around.states, &mut around.result, context);
            layer.around_feed_forward.leave(rows, around, None, context);
        }
        if let Some(last) = &network.decoder.norm {
            last.apply(&mut self.norm, &mut self.rows, context);
        }
        if let Some(hook) = hook {
            for (row, &sentence) in self.rows.chunks_exact_mut(d).zip(&self.sentences) {
                hook.readout(sentence, step, row, &mut []);
            }
        }
        self.step += 1;
        network.readout.logits(&self.rows, &mut self.logits, context);
        &mut self.logits
    }

    fn ask_itself(&mut self, layer: &DecoderLayer, number: usize, d: usize, stepping: Stepping<'_, F>) {
        let Self { rows, around, queries, contexts, weights, layers, sentences, step, room, .. } = self;
        let (context, attention, kept) = (stepping.reading.context, &layer.attention, &mut layers[number]);
        layer.around_attention.enter(rows, around, context);
        attention.key.forward(&around.states, &mut kept.key, context);
        attention.value.forward(&around.states, &mut kept.value, context);
        if stepping.hook.is_some() {
            kept.states.resize(kept.keys.len(), F::ZERO);
        }
        for hypothesis in 0..sentences.len() {
            let place = (hypothesis * *room + *step) * d..(hypothesis * *room + *step + 1) * d;
            let own = hypothesis * d..(hypothesis + 1) * d;
            kept.keys[place.clone()].copy_from_slice(&kept.key[own.clone()]);
            kept.values[place.clone()].copy_from_slice(&kept.value[own.clone()]);
            if stepping.hook.is_some() {
                kept.states[place].copy_from_slice(&around.states[own]);
            }
        }
        let kept = &*kept;
        let seen = |rows: &'_ [F], hypothesis: usize| -> std::ops::Range<usize> {
            let start = hypothesis * *room * d;
            start..(start + (*step + 1) * d).min(rows.len())
        };
        let buffers = Buffers { queries, contexts, weights, looks: None };
        ask(attention, around, buffers, sentences, *step, stepping, d, |hypothesis, _| Known {
            keys: &kept.keys[seen(&kept.keys, hypothesis)],
            values: &kept.values[seen(&kept.values, hypothesis)],
            states: if kept.states.is_empty() { &[] } else { &kept.states[seen(&kept.states, hypothesis)] },
        });
        layer.around_attention.leave(rows, around, None, context);
    }

    fn ask_encoder(&mut self, layer: &DecoderLayer, number: usize, d: usize, stepping: Stepping<'_, F>) {
        let Self { rows, around, queries, contexts, weights, layers, sentences, step, looks, .. } = self;
        let (context, memory, kept) = (stepping.reading.context, stepping.memory, &layers[number]);
        layer.around_cross.enter(rows, around, context);
        let buffers = Buffers { queries, contexts, weights, looks: Some(looks) };
        ask(&layer.cross, around, buffers, sentences, *step, stepping, d, |_, sentence| {
            let rows = memory.packing.sentence_rows(sentence);
            let range = rows.start * d..rows.end * d;
            Known { keys: &kept.memory_keys[range.clone()], values: &kept.memory_values[range.clone()], states: &memory.rows[range] }
        });
        layer.around_cross.leave(rows, around, None, context);
    }

    /// Makes hypothesis `i` a copy of what hypothesis `order[i]` was. Panics if there is none.
    pub(crate) fn reorder(&mut self, order: &[usize], d: usize) {
        let Self { layers, spare, room, sentences, .. } = self;
        let block = *room * d;
        for kept in layers {
            for cache in [&mut kept.keys, &mut kept.values, &mut kept.states].into_iter().filter(|cache| !cache.is_empty()) {
                spare.clear();
                order.iter().for_each(|&from| spare.extend_from_slice(&cache[from * block..][..block]));
                std::mem::swap(cache, spare);
            }
        }
        let reordered = order.iter().map(|&from| sentences[from]).collect();
        *sentences = reordered;
    }

    /// Makes room for twice as many steps.
    fn grow(&mut self, d: usize) {
        let Self { layers, spare, room, .. } = self;
        let block = *room * d;
        *room *= 2;
        for kept in layers {
            for cache in [&mut kept.keys, &mut kept.values, &mut kept.states].into_iter().filter(|cache| !cache.is_empty()) {
                spare.clear();
                for rows in cache.chunks_exact(block) {
                    spare.extend_from_slice(rows);
                    spare.resize(spare.len() + block, F::ZERO);
                }
                std::mem::swap(cache, spare);
            }
        }
    }
}

/// Room for one question of all hypotheses.
struct Buffers<'a, F> {
    queries: &'a mut Vec<F>,
    contexts: &'a mut Vec<F>,
    weights: &'a mut Vec<F>,
    /// Receives the weights of each hypothesis.
    looks: Option<&'a mut [Vec<F>]>,
}

/// What one hypothesis may look at, rows of `d`.
struct Known<'a, F> {
    keys: &'a [F],
    values: &'a [F],
    states: &'a [F],
}

/// Asks for all hypotheses, from `around.states` to `around.result`; `known` is given the hypothesis and its sentence.
#[expect(clippy::too_many_arguments, reason = "internal; every argument is another object")]
fn ask<'k, F: Real>(
    attention: &Attention,
    around: &mut ResidualTrace<F>,
    buffers: Buffers<'_, F>,
    sentences: &[usize],
    step: usize,
    stepping: Stepping<'_, F>,
    d: usize,
    known: impl Fn(usize, usize) -> Known<'k, F>,
) {
    let (Buffers { queries, contexts, weights, mut looks }, context) = (buffers, stepping.reading.context);
    attention.query.forward(&around.states, queries, context);
    contexts.resize(queries.len(), F::ZERO);
    for (hypothesis, &sentence) in sentences.iter().enumerate() {
        let own = hypothesis * d..(hypothesis + 1) * d;
        let Known { keys, values, states } = known(hypothesis, sentence);
        weights.resize(attention.heads * (keys.len() / d), F::ZERO);
        let question = Question { queries: &queries[own.clone()], keys, values, first_step: step };
        let query_states = &around.states[own.clone()];
        let hooked = stepping.hook.map(|hook| Hooked { hook, sentence, query_states, key_states: states, context });
        attention.attend(question, weights, &mut contexts[own], hooked);
        if let Some(looks) = looks.as_deref_mut() {
            looks[hypothesis].extend_from_slice(weights);
        }
    }
    attention.mix(contexts, &mut around.result, context);
}
