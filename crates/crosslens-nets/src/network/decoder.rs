//! The decoder: layers, attention and readout, all steps at once where the inputs are known, step by step where they are not.
//!
//! Both ways fill the same buffers with the same numbers, so one backward pass serves both.

use std::ops::Range;

use crosslens_analysis::Token;
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, add};

use super::attention::{Attention, AttentionTrace, Sides};
use super::config::Family;
use super::dropout::{self, Dropout, Order, Site};
use super::hook::ShardHook;
use super::inputs::{LocalTokens, Table};
use super::layer::{Layer, Trace};
use super::linear::Linear;
use super::packing::Packing;
use super::prepared::Context;
use super::readout::{Readout, likeliest};
use super::rows::{Selection, StepBuffers, gather, map_rows, zeroed};

/// The decoder's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    pub(crate) family: Family,
    pub(crate) layers: Vec<Layer>,
    pub(crate) attention: Option<Attention>,
    /// Luong's `[c ; z] → a`.
    pub(crate) attentional: Option<Linear>,
    /// Width of what is fed back into the first layer; 0 for nothing.
    pub(crate) d_feed: usize,
    pub(crate) reads: ReadoutInput,
    pub(crate) readout: Readout,
}

/// What the readout reads of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadoutInput {
    State,
    /// Side by side.
    StateAndContext,
    Context,
    /// Luong's.
    Attentional,
}

/// What the decoder did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderTrace<F> {
    pub(crate) layers: Vec<Trace<F>>,
    /// Fed tokens, step-major.
    pub(crate) fed: Vec<Token>,
    /// `[row, n]`, step-major: inputs of the layers above the first, after dropout.
    inputs: Vec<Vec<F>>,
    masks: Vec<Vec<F>>,
    d_inputs: Vec<F>,
    /// `[row, d_feed]`, step-major.
    feed: Vec<F>,
    d_feed: Vec<F>,
    /// `[target row, d_context + n]` and `[target row, n]`, sentence-major.
    joined: Vec<F>,
    d_joined: Vec<F>,
    attentional: Vec<F>,
    d_attentional: Vec<F>,
    /// `[target row, d_readout]`, sentence-major, after dropout.
    pub(crate) readout_input: Vec<F>,
    pub(crate) d_readout_input: Vec<F>,
    readout_mask: Vec<F>,
    step_logits: Vec<F>,
    step_rows: Vec<F>,
    buffers: StepBuffers<F>,
}

/// What the decoder reads besides its own buffers.
#[derive(Clone, Copy)]
pub(crate) struct DecoderInput<'a, F> {
    pub(crate) sides: Sides<'a>,
    pub(crate) context: Context<'a, F>,
    pub(crate) table: &'a Table<F>,
    pub(crate) local: &'a LocalTokens,
    /// Dropout and the number in the batch of the shard's first sentence.
    pub(crate) dropout: Option<(Dropout, usize)>,
    pub(crate) hook: Option<ShardHook<'a, F>>,
}

impl Decoder {
    fn top(&self) -> usize {
        self.layers.len() - 1
    }

    fn n(&self) -> usize {
        self.layers[0].n
    }

    fn d_context(&self) -> usize {
        self.attention.as_ref().map_or(0, |attention| attention.d_context)
    }

    /// How much of the readout's input comes from the state (Luong's: the attentional one); the rest is the context.
    pub(crate) fn d_readout_state(&self) -> usize {
        if self.reads == ReadoutInput::Context { 0 } else { self.n() }
    }

    /// Makes room for a shard and draws its masks.
    pub(crate) fn reserve<F: Real>(&self, trace: &mut DecoderTrace<F>, packing: &Packing, dropout: Option<(Dropout, usize)>) {
        let (n, n_rows) = (self.n(), packing.n_rows());
        trace.layers.resize_with(self.layers.len(), Trace::default);
        trace.inputs.resize_with(self.layers.len(), Vec::new);
        trace.masks.resize_with(self.layers.len(), Vec::new);
        for (number, (layer, layer_trace)) in self.layers.iter().zip(&mut trace.layers).enumerate() {
            layer.reserve(layer_trace, packing);
            if number > 0 {
                trace.inputs[number].resize(n_rows * n, F::ZERO);
                if let Some((dropout, first)) = dropout {
                    dropout.mask(&mut trace.masks[number], packing, n, Site::DecoderInput(number), first, Order::Step);
                }
            }
        }
        zeroed(&mut trace.feed, n_rows * self.d_feed);
        if self.attentional.is_some() {
            trace.joined.resize(n_rows * (self.d_context() + n), F::ZERO);
            trace.d_joined.resize(n_rows * (self.d_context() + n), F::ZERO);
            trace.attentional.resize(n_rows * n, F::ZERO);
            trace.d_attentional.resize(n_rows * n, F::ZERO);
        }
        trace.readout_input.resize(n_rows * self.readout.d_input, F::ZERO);
        trace.d_readout_input.resize(n_rows * self.readout.d_input, F::ZERO);
        if let Some((dropout, first)) = dropout {
            dropout.mask(&mut trace.readout_mask, packing, self.readout.d_input, Site::Readout, first, Order::Sentence);
        }
    }

    /// After a step on its own: goes on with `packing`'s sentences, each from where the sentence `rows` names has come to.
    pub(crate) fn go_on<F: Real>(&self, trace: &mut DecoderTrace<F>, rows: &[usize], packing: &Packing) {
        let n = self.n();
        let reached: Vec<_> = self.layers.iter().zip(&mut trace.layers).map(|(layer, trace)| layer.take_states(trace)).collect();
        let attentional = std::mem::take(&mut trace.attentional);
        self.reserve(trace, packing, None);
        for (layer, (hidden, cells)) in trace.layers.iter_mut().zip(&reached) {
            gather(&mut layer.start, hidden, rows, n);
            if !cells.is_empty() {
                gather(&mut layer.start_cell, cells, rows, n);
            }
        }
        if self.d_feed > 0 && self.family == Family::Luong {
            gather(&mut trace.feed, &attentional, rows, n);
        }
    }

    /// Runs on the tokens in `trace.fed`.
    pub(crate) fn forward_known<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &mut AttentionTrace<F>,
        input: DecoderInput<'_, F>,
    ) {
        let packing = input.sides.target;
        if self.d_feed > 0 {
            for step in 0..packing.n_steps() {
                self.forward_step(trace, attention, step, input);
            }
            return self.assemble(trace, attention, Selection::All, input);
        }
        let width = self.layers[0].width();
        for (number, layer) in self.layers.iter().enumerate() {
            if number > 0 {
                self.read_below(trace, number, 0..packing.n_rows(), input);
            }
            let DecoderTrace { layers, fed, .. } = trace;
            layer.forward(&mut layers[number], packing, input.context, |gates, rows| {
                if number == 0 {
                    input.table.read(gates, width, input.local, &fed[rows.clone()], &packing.step_of[rows]);
                }
            });
        }
        self.attend_late(trace, attention, Selection::All, input);
        self.assemble(trace, attention, Selection::All, input);
    }

    /// Runs on its own likeliest tokens; `trace.fed` holds the start tokens and receives the rest.
    pub(crate) fn forward_free<F: Real>(&self, trace: &mut DecoderTrace<F>, attention: &mut AttentionTrace<F>, input: DecoderInput<'_, F>) {
        let packing = input.sides.target;
        for step in 0..packing.n_steps() {
            self.forward_step(trace, attention, step, input);
            self.assemble(trace, attention, Selection::Step(step), input);
            if step + 1 == packing.n_steps() {
                break;
            }
            let next = packing.rows(step + 1);
            let rows = &packing.to_sentence[packing.rows(step)][..next.len()];
            trace.step_rows.resize(rows.len() * self.readout.d_input, F::ZERO);
            gather(&mut trace.step_rows, &trace.readout_input, rows, self.readout.d_input);
            self.readout.logits(&trace.step_rows, &mut trace.step_logits, input.context);
            for (logits, row) in trace.step_logits.chunks_exact(self.readout.n_words).zip(next) {
                trace.fed[row] = likeliest(logits);
            }
        }
    }

    pub(crate) fn forward_step<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &mut AttentionTrace<F>,
        step: usize,
        input: DecoderInput<'_, F>,
    ) {
        let (packing, width) = (input.sides.target, self.layers[0].width());
        let rows = packing.rows(step);
        let gates = &mut trace.layers[0].gates[rows.start * width..rows.end * width];
        input.table.read(gates, width, input.local, &trace.fed[rows.clone()], &packing.step_of[rows.clone()]);
        if self.d_feed > 0 {
            self.feed(trace, attention, step, input);
            let feed = &trace.feed[rows.start * self.d_feed..rows.end * self.d_feed];
            let feed = Matrix::new(feed, rows.len(), self.d_feed);
            self.layers[0].read_feed(&mut trace.layers[0], feed, rows.clone(), input.context);
        }
        for (number, layer) in self.layers.iter().enumerate() {
            if number > 0 {
                self.read_below(trace, number, rows.clone(), input);
            }
            layer.forward_step(&mut trace.layers[number], packing, step, input.context);
        }
        self.attend_late(trace, attention, Selection::Step(step), input);
    }

    /// Inputs of layer `number` from the states of the layer below.
    fn read_below<F: Real>(&self, trace: &mut DecoderTrace<F>, number: usize, rows: Range<usize>, input: DecoderInput<'_, F>) {
        let range = rows.start * self.n()..rows.end * self.n();
        let inputs = &mut trace.inputs[number][range.clone()];
        inputs.copy_from_slice(&trace.layers[number - 1].hidden[range.clone()]);
        if input.dropout.is_some() {
            dropout::apply(inputs, &trace.masks[number][range]);
        }
        let inputs = Matrix::new(inputs, rows.len(), self.n());
        self.layers[number].read_input(&mut trace.layers[number], inputs, rows, input.context);
    }

    /// Fills the feed of a step: Bahdanau's context, asked for by the previous state, or Luong's previous attentional state.
    fn feed<F: Real>(&self, trace: &mut DecoderTrace<F>, attention: &mut AttentionTrace<F>, step: usize, input: DecoderInput<'_, F>) {
        let (packing, n) = (input.sides.target, self.n());
        let rows = packing.rows(step);
        let sentence_rows = &packing.to_sentence[rows.clone()];
        let feed = &mut trace.feed[rows.start * self.d_feed..rows.end * self.d_feed];
        if self.family == Family::Luong {
            if step > 0 {
                for (feed, &row) in feed.chunks_exact_mut(n).zip(sentence_rows) {
                    feed.copy_from_slice(&trace.attentional[(row - 1) * n..][..n]);
                }
            }
            return;
        }
        let top = &trace.layers[self.top()];
        let before = if step == 0 { &top.start } else { &top.hidden[packing.rows(step - 1).start * n..] };
        for (state, &row) in before.chunks_exact(n).zip(sentence_rows) {
            attention.query_states[row * n..][..n].copy_from_slice(state);
        }
        let mechanism = self.attention.as_ref().expect("a network that is fed a context has attention");
        mechanism.forward(attention, input.sides, Selection::Step(step), input.context, input.hook);
        gather(feed, &attention.contexts, sentence_rows, self.d_feed);
    }

    /// Attention of the current state, and Luong's attentional state.
    fn attend_late<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &mut AttentionTrace<F>,
        selection: Selection,
        input: DecoderInput<'_, F>,
    ) {
        let Some(mechanism) = self.attention.as_ref().filter(|_| self.family != Family::Bahdanau) else { return };
        let n = self.n();
        let (packing, top) = (input.sides.target, &trace.layers[self.top()]);
        let rows = step_major(selection, packing);
        for row in rows.clone() {
            attention.query_states[packing.to_sentence[row] * n..][..n].copy_from_slice(&top.hidden[row * n..][..n]);
        }
        mechanism.forward(attention, input.sides, selection, input.context, input.hook);
        let Some(linear) = &self.attentional else { return };
        let d_context = self.d_context();
        for &row in &packing.to_sentence[rows.clone()] {
            let joined = &mut trace.joined[row * (d_context + n)..][..d_context + n];
            joined[..d_context].copy_from_slice(&attention.contexts[row * d_context..][..d_context]);
            joined[d_context..].copy_from_slice(&attention.query_states[row * n..][..n]);
        }
        let map = &input.context.prepared.get(linear.map).forward;
        let selected = selection.rows(packing);
        map_rows(selected, &trace.joined, map, &mut trace.attentional, Write::Over, &mut trace.buffers);
        for &row in &packing.to_sentence[rows] {
            let state = &mut trace.attentional[row * n..][..n];
            crosslens_kernels::vectorised(
                #[inline(always)]
                || state.iter_mut().for_each(|x| *x = x.tanh_fast()),
            );
        }
    }

    /// The readout's input for the selected rows.
    pub(crate) fn assemble<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &AttentionTrace<F>,
        selection: Selection,
        input: DecoderInput<'_, F>,
    ) {
        let (packing, n, d, d_context) = (input.sides.target, self.n(), self.readout.d_input, self.d_context());
        let top = &trace.layers[self.top()];
        for row in step_major(selection, packing) {
            let place = packing.to_sentence[row];
            let target = &mut trace.readout_input[place * d..][..d];
            let state = &top.hidden[row * n..][..n];
            match self.reads {
                ReadoutInput::State => target.copy_from_slice(state),
                ReadoutInput::StateAndContext => {
                    target[..n].copy_from_slice(state);
                    target[n..].copy_from_slice(&attention.contexts[place * d_context..][..d_context]);
                }
                ReadoutInput::Context => target.copy_from_slice(&attention.contexts[place * d_context..][..d_context]),
                ReadoutInput::Attentional => target.copy_from_slice(&trace.attentional[place * n..][..n]),
            }
            if input.dropout.is_some() {
                dropout::apply(target, &trace.readout_mask[place * d..][..d]);
            }
        }
        if let Some(hook) = input.hook {
            self.replace_readout_input(trace, selection, packing, hook);
        }
    }

    /// Lets the hook replace the readout's input of the selected rows.
    fn replace_readout_input<F: Real>(&self, trace: &mut DecoderTrace<F>, selection: Selection, packing: &Packing, hook: ShardHook<'_, F>) {
        let d = self.readout.d_input;
        for row in step_major(selection, packing) {
            let step = packing.step_of[row] as usize;
            let sentence = packing.sentences[row - packing.rows(step).start];
            let input = &mut trace.readout_input[packing.to_sentence[row] * d..][..d];
            let (state, context) = input.split_at_mut(self.d_readout_state());
            hook.readout(sentence, step, state, context);
        }
    }

    /// Runs back from `d_readout_input`; leaves gradients in the layers' starts and in the key states, and adds those of all parameters but
    /// the readout's, the attention's and the first layer's input weights. `seen` is shown the gradients of the first layer's gates.
    pub(crate) fn backward<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &mut AttentionTrace<F>,
        input: DecoderInput<'_, F>,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
        mut seen: impl FnMut(&[F], Range<usize>),
    ) {
        let packing = input.sides.target;
        self.disassemble(trace, attention, input);
        if self.d_feed == 0 {
            self.unattend_late(trace, attention, Selection::All, input);
            for number in (0..self.layers.len()).rev() {
                self.layers[number].backward(&mut trace.layers[number], packing, input.context, gradient, scratch, |gates, rows| {
                    if number == 0 {
                        seen(gates, rows);
                    }
                });
                if number > 0 {
                    self.pass_below(trace, number, 0..packing.n_rows(), input);
                }
            }
        } else {
            for step in (0..packing.n_steps()).rev() {
                self.unattend_late(trace, attention, Selection::Step(step), input);
                for number in (0..self.layers.len()).rev() {
                    self.layers[number].backward_step(&mut trace.layers[number], packing, step, input.context);
                    if number > 0 {
                        self.pass_below(trace, number, packing.rows(step), input);
                    }
                }
                self.unfeed(trace, attention, step, input);
            }
            for (layer, trace) in self.layers.iter().zip(&trace.layers) {
                layer.add_hidden_gradients(trace, packing, 0..packing.n_steps(), input.context.layout, gradient, scratch);
                layer.add_vector_gradients(trace, packing, input.context.layout, gradient);
            }
            seen(&trace.layers[0].gates, 0..packing.n_rows());
        }
        self.add_gradients(trace, packing, input.context, gradient, scratch);
    }

    /// Splits the gradient of the readout's input among states, contexts and attentional states.
    fn disassemble<F: Real>(&self, trace: &mut DecoderTrace<F>, attention: &mut AttentionTrace<F>, input: DecoderInput<'_, F>) {
        let (packing, n, d, d_context) = (input.sides.target, self.n(), self.readout.d_input, self.d_context());
        if input.dropout.is_some() {
            dropout::apply(&mut trace.d_readout_input, &trace.readout_mask);
        }
        let top = self.top();
        for row in 0..packing.n_rows() {
            let place = packing.to_sentence[row];
            let d_input = &trace.d_readout_input[place * d..][..d];
            let d_state = &mut trace.layers[top].d_hidden[row * n..][..n];
            match self.reads {
                ReadoutInput::State => add(d_state, d_input),
                ReadoutInput::StateAndContext => {
                    add(d_state, &d_input[..n]);
                    attention.d_contexts[place * d_context..][..d_context].copy_from_slice(&d_input[n..]);
                }
                ReadoutInput::Context => attention.d_contexts[place * d_context..][..d_context].copy_from_slice(d_input),
                ReadoutInput::Attentional => trace.d_attentional[place * n..][..n].copy_from_slice(d_input),
            }
        }
    }

    /// Back through [`Decoder::attend_late`].
    fn unattend_late<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        attention: &mut AttentionTrace<F>,
        selection: Selection,
        input: DecoderInput<'_, F>,
    ) {
        let Some(mechanism) = self.attention.as_ref().filter(|_| self.family != Family::Bahdanau) else { return };
        let (packing, n, d_context) = (input.sides.target, self.n(), self.d_context());
        let rows = step_major(selection, packing);
        let top = self.top();
        if let Some(linear) = &self.attentional {
            for &row in &packing.to_sentence[rows.clone()] {
                let states = &trace.attentional[row * n..][..n];
                for (d, &a) in trace.d_attentional[row * n..][..n].iter_mut().zip(states) {
                    *d *= F::ONE - a * a;
                }
            }
            let map = &input.context.prepared.get(linear.map).backward;
            map_rows(selection.rows(packing), &trace.d_attentional, map, &mut trace.d_joined, Write::Over, &mut trace.buffers);
            for row in rows.clone() {
                let place = packing.to_sentence[row];
                let d_joined = &trace.d_joined[place * (d_context + n)..][..d_context + n];
                attention.d_contexts[place * d_context..][..d_context].copy_from_slice(&d_joined[..d_context]);
                add(&mut trace.layers[top].d_hidden[row * n..][..n], &d_joined[d_context..]);
            }
        }
        mechanism.backward(attention, input.sides, selection, input.context);
        for row in rows {
            let d_query = &attention.d_query_states[packing.to_sentence[row] * n..][..n];
            add(&mut trace.layers[top].d_hidden[row * n..][..n], d_query);
        }
    }

    fn pass_below<F: Real>(&self, trace: &mut DecoderTrace<F>, number: usize, rows: Range<usize>, input: DecoderInput<'_, F>) {
        let n = self.n();
        let range = rows.start * n..rows.end * n;
        trace.d_inputs.resize(rows.len() * n, F::ZERO);
        let d_inputs = MatrixMut::new(&mut trace.d_inputs, rows.len(), n);
        self.layers[number].input_gradient(&trace.layers[number], rows, d_inputs, input.context.prepared);
        if input.dropout.is_some() {
            dropout::apply(&mut trace.d_inputs, &trace.masks[number][range.clone()]);
        }
        add(&mut trace.layers[number - 1].d_hidden[range], &trace.d_inputs);
    }

    /// Back through [`Decoder::feed`].
    fn unfeed<F: Real>(&self, trace: &mut DecoderTrace<F>, attention: &mut AttentionTrace<F>, step: usize, input: DecoderInput<'_, F>) {
        let (packing, n) = (input.sides.target, self.n());
        let rows = packing.rows(step);
        let sentence_rows = &packing.to_sentence[rows.clone()];
        if self.family == Family::Luong && step == 0 {
            return;
        }
        trace.d_feed.resize(rows.len() * self.d_feed, F::ZERO);
        let d_feed = MatrixMut::new(&mut trace.d_feed, rows.len(), self.d_feed);
        self.layers[0].feed_gradient(&trace.layers[0], rows, d_feed, input.context.prepared);
        if self.family == Family::Luong {
            for (d_feed, &row) in trace.d_feed.chunks_exact(n).zip(sentence_rows) {
                add(&mut trace.d_attentional[(row - 1) * n..][..n], d_feed);
            }
            return;
        }
        for (d_feed, &row) in trace.d_feed.chunks_exact(self.d_feed).zip(sentence_rows) {
            add(&mut attention.d_contexts[row * self.d_feed..][..self.d_feed], d_feed);
        }
        let mechanism = self.attention.as_ref().expect("a network that is fed a context has attention");
        mechanism.backward(attention, input.sides, Selection::Step(step), input.context);
        let top = self.top();
        let layer = &mut trace.layers[top];
        let d_before = if step == 0 { &mut layer.d_start } else { &mut layer.d_hidden[packing.rows(step - 1).start * n..] };
        for (d_state, &row) in d_before.chunks_exact_mut(n).zip(sentence_rows) {
            add(d_state, &attention.d_query_states[row * n..][..n]);
        }
    }

    /// Adds the gradients of what lies between layers, attention and readout.
    fn add_gradients<F: Real>(
        &self,
        trace: &DecoderTrace<F>,
        packing: &Packing,
        context: Context<'_, F>,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
    ) {
        let layout = context.layout;
        for (number, layer) in self.layers.iter().enumerate() {
            if number > 0 {
                let input = Matrix::new(&trace.inputs[number], packing.n_rows(), self.n());
                layer.add_input_gradients(&trace.layers[number], input, layout, gradient, scratch);
            }
        }
        if self.d_feed > 0 {
            let feed = Matrix::new(&trace.feed, packing.n_rows(), self.d_feed);
            self.layers[0].add_feed_gradients(&trace.layers[0], feed, layout, gradient, scratch);
        }
        if let Some(linear) = &self.attentional {
            linear.add_gradient(&trace.joined, &trace.d_attentional, layout, gradient, scratch);
        }
    }
}

/// The selected rows in step-major order.
fn step_major(selection: Selection, packing: &Packing) -> Range<usize> {
    match selection {
        Selection::All => 0..packing.n_rows(),
        Selection::Step(step) => packing.rows(step),
    }
}
