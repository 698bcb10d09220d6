//! An encoder or a decoder: embeddings, then layers of attention and feed-forward maps.

use std::ops::Range;
use std::sync::Arc;

use crosslens_analysis::{SiteKind, Token};
use crosslens_kernels::add;

use crate::layers::{
    Activation, At, Attention, Keys, Linear, Need, Norm, Pace, Positions, Question, Scratch, Spans, Table, Watch, rows_at_a_time,
};
use crate::senses::{Sense, Source};

/// Most rows that go through a feed-forward layer at a time, without a matrix unit: of 2048 numbers each they take 690 KB between its two maps.
const WIDE_ROWS: usize = 84;

/// Where norms stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormPlace {
    /// Before each part of a layer: `x + f(norm(x))`.
    Before,
    /// After: `norm(x + f(x))`.
    After,
}

/// `W₂·f(W₁ x)`, or `W₂·(f(W₁ x) ∘ G x)` with a gate.
pub(crate) struct FeedForward {
    pub(crate) first: Linear,
    pub(crate) gate: Option<Linear>,
    pub(crate) activation: Activation,
    pub(crate) second: Linear,
}

/// One layer; each part has its norm.
pub(crate) struct Layer {
    pub(crate) attention: (Norm, Attention),
    pub(crate) cross: Option<(Norm, Attention)>,
    pub(crate) feed_forward: (Norm, FeedForward),
}

/// What enters a stack.
pub(crate) enum Reads {
    /// Tokens: rows of a table, times a number.
    Words { table: Arc<Table>, scale: f32 },
    /// A sound or a picture.
    Signal(Box<dyn Sense>),
}

/// An encoder or a decoder.
pub(crate) struct Stack {
    pub(crate) kind: SiteKind,
    pub(crate) reads: Reads,
    pub(crate) positions: Option<Positions>,
    pub(crate) embedding_norm: Option<Norm>,
    pub(crate) norm_place: NormPlace,
    pub(crate) layers: Vec<Layer>,
    /// What stands after the last layer, in order.
    pub(crate) ending: Vec<Ending>,
}

/// Something that stands after the last layer.
pub(crate) enum Ending {
    Norm(Norm),
    Linear(Linear),
    Activation(Activation),
}

/// What a decoder is asked about: the encoder's output.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) states: &'a [f32],
    pub(crate) spans: &'a Spans,
}

/// A way through a stack.
pub(crate) struct Pass {
    pub(crate) layers: Range<usize>,
    /// Where it is the weights alone, the last of the layers stops at its last attention.
    pub(crate) need: Need,
    pub(crate) pace: Pace,
}

impl Pass {
    /// All rows of some sentences, to the end of these layers.
    pub(crate) fn of_sentences(layers: Range<usize>) -> Self {
        Self { layers, need: Need::Output, pace: Pace::Sentences }
    }
}

/// Buffers that are used again from layer to layer.
#[derive(Default)]
pub(crate) struct Buffers {
    normed: Vec<f32>,
    part: Vec<f32>,
    hidden: Vec<f32>,
    gate: Vec<f32>,
    attention: Scratch,
}

impl Stack {
    pub(crate) fn d(&self) -> usize {
        match &self.reads {
            Reads::Words { table, .. } => table.d(),
            Reads::Signal(sense) => sense.d(),
        }
    }

    /// Dimensions of what it ends in.
    pub(crate) fn d_end(&self) -> usize {
        let d_out = |ending: &Ending| if let Ending::Linear(map) = ending { Some(map.d_out()) } else { None };
        self.ending.iter().rev().find_map(d_out).unwrap_or(self.d())
    }

    /// How many tokens it knows; 0 where it reads none.
    pub(crate) fn n_words(&self) -> usize {
        match &self.reads {
            Reads::Words { table, .. } => table.rows(),
            Reads::Signal(_) => 0,
        }
    }

    /// The vectors `[rows, d]` that enter the first layer; `first_step` is the position of each source's first step. The sources are
    /// checked: they are of the kind that is read here.
    pub(crate) fn embed<'s>(&self, sources: impl Iterator<Item = Source<'s>>, first_step: usize) -> Vec<f32> {
        let mut rows = Vec::new();
        for source in sources {
            let from = rows.len();
            let mut read: &[Token] = &[];
            match (&self.reads, source) {
                (Reads::Words { table, scale }, Source::Tokens(tokens)) => {
                    tokens.iter().for_each(|&token| table.append(token as usize, token as usize + 1, &mut rows));
                    if *scale != 1.0 {
                        rows[from..].iter_mut().for_each(|x| *x *= scale);
                    }
                    read = tokens;
                }
                (Reads::Signal(sense), Source::Signal(signal)) => rows.extend(sense.rows(signal.values())),
                _ => unreachable!("sources are checked before they are read"),
            }
            if let Some(positions) = &self.positions {
                positions.add(first_step, read, &mut rows[from..]);
            }
        }
        if let Some(norm) = &self.embedding_norm {
            norm.apply_in_place(&mut rows);
        }
        rows
    }

    /// Sends rows through some layers.
    pub(crate) fn run(&self, rows: &mut [f32], spans: &Spans, memory: Option<Memory<'_>>, pass: Pass, watch: &mut dyn Watch) {
        let Pass { layers, need, pace } = pass;
        let mut buffers = Buffers::default();
        for number in layers.clone() {
            let layer = &self.layers[number];
            let last = need == Need::Weights && number + 1 == layers.end;
            let need_of = |is_last_part: bool| if last && is_last_part { Need::Weights } else { Need::Output };
            let at = At { kind: self.kind, layer: number };
            let (norm, attention) = &layer.attention;
            let wanted = need_of(layer.cross.is_none());
            self.part(rows, norm, &mut buffers, |states, buffers, result| {
                watch.states(at, states, states);
                let keys = attention.keys(states, pace, wanted);
                let question = Question {
                    at,
                    queries: states,
                    query_spans: spans,
                    first_step: 0,
                    key_states: states,
                    key_spans: spans,
                    pace,
                    need: wanted,
                };
                let width = attention.key.d_out();
                attention.answer(&question, of_sentences(&keys, spans, width), watch, buffers, result);
                wanted
            });
            if let (Some((norm, attention)), Some(memory)) = (&layer.cross, memory) {
                let at = At { kind: SiteKind::Cross, layer: number };
                let wanted = need_of(true);
                self.part(rows, norm, &mut buffers, |states, buffers, result| {
                    watch.states(at, states, memory.states);
                    // Those of whole sentences at any pace, as searches have them.
                    let keys = attention.keys(memory.states, Pace::Sentences, wanted);
                    let question = Question {
                        at,
                        queries: states,
                        query_spans: spans,
                        first_step: 0,
                        key_states: memory.states,
                        key_spans: memory.spans,
                        pace,
                        need: wanted,
                    };
                    let width = attention.key.d_out();
                    attention.answer(&question, of_sentences(&keys, memory.spans, width), watch, buffers, result);
                    wanted
                });
            }
            if last {
                return;
            }
            self.feed_forward(layer, pace, rows, &mut buffers);
        }
    }

    /// What stands after the last layer.
    pub(crate) fn finish(&self, pace: Pace, rows: &mut Vec<f32>) {
        for ending in &self.ending {
            match ending {
                Ending::Norm(norm) => norm.apply_in_place(rows),
                Ending::Activation(activation) => activation.apply(rows),
                Ending::Linear(map) => {
                    let mut mapped = Vec::new();
                    map.apply(rows, pace, &mut mapped);
                    *rows = mapped;
                }
            }
        }
    }

    /// One part of a layer with its norm and its residual path; `work` fills its result and says how much it gave.
    fn part(&self, rows: &mut [f32], norm: &Norm, buffers: &mut Buffers, work: impl FnOnce(&[f32], &mut Scratch, &mut Vec<f32>) -> Need) {
        let Buffers { normed, part, attention, .. } = buffers;
        match self.norm_place {
            NormPlace::Before => {
                norm.apply(rows, normed);
                if work(normed, attention, part) == Need::Output {
                    add(rows, part);
                }
            }
            NormPlace::After => {
                if work(rows, attention, part) == Need::Output {
                    add(rows, part);
                    norm.apply_in_place(rows);
                }
            }
        }
    }

    /// Some rows at a time, from the norm to the residual path, so that what stands between the two maps, which is wide, stays near.
    fn feed_forward(&self, layer: &Layer, pace: Pace, rows: &mut [f32], buffers: &mut Buffers) {
        let (norm, feed) = &layer.feed_forward;
        let Buffers { normed, part, hidden, gate, .. } = buffers;
        let n_near = rows_at_a_time(rows.len() / self.d(), WIDE_ROWS);
        for rows in rows.chunks_mut(n_near * self.d()) {
            let input = match self.norm_place {
                NormPlace::Before => {
                    norm.apply(rows, normed);
                    &*normed
                }
                NormPlace::After => &*rows,
            };
            feed.first.apply(input, pace, hidden);
            feed.activation.apply(hidden);
            if let Some(map) = &feed.gate {
                map.apply(input, pace, gate);
                hidden.iter_mut().zip(gate.iter()).for_each(|(x, gate)| *x *= gate);
            }
            feed.second.apply(hidden, pace, part);
            add(rows, part);
            if self.norm_place == NormPlace::After {
                norm.apply_in_place(rows);
            }
        }
    }
}

fn of_sentences<'k>(keys: &'k Keys, spans: &'k Spans, width: usize) -> impl Fn(usize) -> (&'k [f32], &'k [f32]) {
    move |sentence| {
        let values = if keys.values.is_empty() { &[] } else { spans.of_sentence(sentence, &keys.values, width) };
        (spans.of_sentence(sentence, &keys.keys, width), values)
    }
}

/// What a decoder remembers from step to step: the keys and values of what it has read, for each hypothesis.
#[derive(Clone)]
pub(crate) struct Cache {
    /// Steps read.
    pub(crate) n_steps: usize,
    /// By layer, then by hypothesis.
    own: Vec<Vec<Keys>>,
    /// By layer: those of the encoder, the same for every hypothesis.
    memory: Arc<Vec<Keys>>,
    n_memory: usize,
}

impl Cache {
    /// Keeps these hypotheses, in this order, some perhaps more than once.
    pub(crate) fn keep(&mut self, hypotheses: &[usize]) {
        for layer in &mut self.own {
            *layer = hypotheses.iter().map(|&hypothesis| layer[hypothesis].clone()).collect();
        }
    }
}

impl Stack {
    /// An empty memory for one hypothesis about one source, of which the encoder made `n_memory` states.
    pub(crate) fn begin(&self, memory: &[f32], n_memory: usize) -> Cache {
        let keys =
            |layer: &Layer| layer.cross.as_ref().map_or_else(Keys::default, |(_, cross)| cross.keys(memory, Pace::Sentences, Need::Output));
        Cache {
            n_steps: 0,
            own: vec![vec![Keys::default()]; self.layers.len()],
            memory: Arc::new(self.layers.iter().map(keys).collect()),
            n_memory,
        }
    }

    /// Reads one more token of each hypothesis; returns the states `[hypothesis, d]` that the readout reads.
    pub(crate) fn step(&self, cache: &mut Cache, tokens: &[Token], watch: &mut dyn Watch) -> Vec<f32> {
        let mut rows = self.embed(tokens.iter().map(|token| Source::Tokens(std::slice::from_ref(token))), cache.n_steps);
        let mut buffers = Buffers::default();
        let spans = Spans::of(tokens.iter().map(|_| 1));
        let read = Spans::of(tokens.iter().map(|_| cache.n_steps + 1));
        let memory = Spans::of(tokens.iter().map(|_| cache.n_memory));
        let Cache { n_steps, own, memory: memory_keys, .. } = cache;
        for (number, layer) in self.layers.iter().enumerate() {
            let (norm, attention) = &layer.attention;
            let own = &mut own[number];
            let (at, first_step) = (|kind| At { kind, layer: number }, *n_steps);
            self.part(&mut rows, norm, &mut buffers, |states, scratch, result| {
                let new = attention.keys(states, Pace::Steps, Need::Output);
                let width = attention.key.d_out();
                for (hypothesis, kept) in own.iter_mut().enumerate() {
                    kept.keys.extend_from_slice(spans.of_sentence(hypothesis, &new.keys, width));
                    kept.values.extend_from_slice(spans.of_sentence(hypothesis, &new.values, width));
                }
                let keys = |hypothesis: usize| (own[hypothesis].keys.as_slice(), own[hypothesis].values.as_slice());
                attention.answer(&step_question(at(self.kind), states, &spans, first_step, &read), keys, watch, scratch, result);
                Need::Output
            });
            if let Some((norm, attention)) = &layer.cross {
                let Keys { keys, values } = &memory_keys[number];
                self.part(&mut rows, norm, &mut buffers, |states, scratch, result| {
                    let question = step_question(at(SiteKind::Cross), states, &spans, first_step, &memory);
                    attention.answer(&question, |_| (keys, values), watch, scratch, result);
                    Need::Output
                });
            }
            self.feed_forward(layer, Pace::Steps, &mut rows, &mut buffers);
        }
        *n_steps += 1;
        self.finish(Pace::Steps, &mut rows);
        rows
    }
}

/// What one step of each hypothesis asks; only the projections of the keys were kept.
fn step_question<'a>(at: At, queries: &'a [f32], query_spans: &'a Spans, first_step: usize, key_spans: &'a Spans) -> Question<'a> {
    Question { at, queries, query_spans, first_step, key_states: &[], key_spans, pace: Pace::Steps, need: Need::Output }
}
