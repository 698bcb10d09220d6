//! The encoder's stack of layers, one or both directions.

use std::ops::Range;

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real};

use super::dropout::{self, Dropout, Order, Site};
use super::layer::{Layer, Trace};
use super::packing::Packing;
use super::prepared::Context;
use super::rows::{gather, scatter_add, zeroed};

/// One layer of the encoder.
#[derive(Clone, Debug)]
pub(crate) struct EncoderLayer {
    pub(crate) forward: Layer,
    pub(crate) backward: Option<Layer>,
}

impl EncoderLayer {
    /// Width of the layer's output.
    pub(crate) fn d_output(&self) -> usize {
        self.forward.n * (1 + usize::from(self.backward.is_some()))
    }

    /// The directions with their numbers: 0 forward, 1 backward.
    pub(crate) fn directions(&self) -> impl Iterator<Item = (usize, &Layer)> {
        std::iter::once(&self.forward).chain(self.backward.as_ref()).enumerate()
    }
}

/// What one layer did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncoderTrace<F> {
    /// By direction; the backward one runs over its sentences from their ends.
    pub(crate) directions: [Trace<F>; 2],
    /// `[row, d_input]` by direction, for layers above the first.
    inputs: [Vec<F>; 2],
    d_inputs: Vec<F>,
    /// `[row, 2n]`, step-major: both directions side by side; unused where there is only one.
    joined: Vec<F>,
    d_joined: Vec<F>,
    mask: Vec<F>,
}

impl<F: Real> EncoderTrace<F> {
    /// `[row, d_output]`, step-major.
    pub(crate) fn outputs(&self, layer: &EncoderLayer) -> &[F] {
        if layer.backward.is_some() { &self.joined } else { &self.directions[0].hidden }
    }

    /// The gradient of the outputs, to be added to.
    pub(crate) fn d_outputs_mut(&mut self, layer: &EncoderLayer) -> &mut [F] {
        if layer.backward.is_some() { &mut self.d_joined } else { &mut self.directions[0].d_hidden }
    }

    /// Makes room for a shard; gradients are zero.
    pub(crate) fn reserve(&mut self, layer: &EncoderLayer, packing: &Packing) {
        for (direction, layer) in layer.directions() {
            layer.reserve(&mut self.directions[direction], packing);
        }
        zeroed(&mut self.d_joined, if layer.backward.is_some() { packing.n_rows() * layer.d_output() } else { 0 });
    }
}

/// Runs all layers; `read` puts the tokens' part into the gates of some rows of the first layer, in one direction or the other.
pub(crate) fn forward<F: Real>(
    layers: &[EncoderLayer],
    traces: &mut [EncoderTrace<F>],
    packing: &Packing,
    context: Context<'_, F>,
    dropout: Option<(Dropout, usize)>,
    read: impl Fn(usize, &mut [F], Range<usize>),
) {
    for (number, layer) in layers.iter().enumerate() {
        let (below, here) = traces.split_at_mut(number);
        let trace = &mut here[0];
        if let Some(below) = below.last() {
            let d_input = layers[number - 1].d_output();
            let outputs = below.outputs(&layers[number - 1]);
            read_below(trace, outputs, number, packing, d_input, layer.backward.is_some(), dropout);
            for (direction, layer) in layer.directions() {
                let input = Matrix::new(&trace.inputs[direction], packing.n_rows(), d_input);
                layer.read_input(&mut trace.directions[direction], input, 0..packing.n_rows(), context);
            }
        }
        for (direction, layer) in layer.directions() {
            layer.forward(&mut trace.directions[direction], packing, context, |gates, rows| {
                if number == 0 {
                    read(direction, gates, rows);
                }
            });
        }
        join_directions(layer, trace, packing);
    }
}

fn read_below<F: Real>(
    trace: &mut EncoderTrace<F>,
    below: &[F],
    number: usize,
    packing: &Packing,
    d_input: usize,
    has_backward: bool,
    dropout: Option<(Dropout, usize)>,
) {
    let [forward, backward] = &mut trace.inputs;
    forward.clear();
    forward.extend_from_slice(below);
    if let Some((dropout, first_sentence)) = dropout {
        dropout.mask(&mut trace.mask, packing, d_input, Site::EncoderInput(number), first_sentence, Order::Step);
        dropout::apply(forward, &trace.mask);
    }
    if has_backward {
        backward.resize(forward.len(), F::ZERO);
        gather(backward, forward, &packing.reversed, d_input);
    }
}

/// `outputs[t] = [forward[t] ; backward[t]]`.
fn join_directions<F: Real>(layer: &EncoderLayer, trace: &mut EncoderTrace<F>, packing: &Packing) {
    let n = layer.forward.n;
    let EncoderTrace { directions, joined, .. } = trace;
    if layer.backward.is_none() {
        return;
    }
    joined.resize(packing.n_rows() * layer.d_output(), F::ZERO);
    for (row, output) in joined.chunks_exact_mut(2 * n).enumerate() {
        output[..n].copy_from_slice(&directions[0].hidden[row * n..][..n]);
        output[n..].copy_from_slice(&directions[1].hidden[packing.reversed[row] * n..][..n]);
    }
}

/// Runs all layers back from the gradients of the top outputs and of the states handed to the decoder.
///
/// `seen` is shown the gradients of the first layer's gates, by direction.
#[expect(clippy::too_many_arguments, reason = "one call site; every argument is another object")]
pub(crate) fn backward<F: Real>(
    layers: &[EncoderLayer],
    traces: &mut [EncoderTrace<F>],
    packing: &Packing,
    context: Context<'_, F>,
    dropped: bool,
    gradient: &mut [F],
    scratch: &mut Packed<F>,
    mut seen: impl FnMut(usize, &[F], Range<usize>),
) {
    for (number, layer) in layers.iter().enumerate().rev() {
        let (below, here) = traces.split_at_mut(number);
        let trace = &mut here[0];
        split_directions(layer, trace, packing);
        for (direction, layer) in layer.directions() {
            layer.backward(&mut trace.directions[direction], packing, context, gradient, scratch, |gates, rows| {
                if number == 0 {
                    seen(direction, gates, rows);
                }
            });
        }
        let Some(below) = below.last_mut() else { continue };
        let (d_input, n_rows) = (layers[number - 1].d_output(), packing.n_rows());
        for (direction, layer) in layer.directions() {
            let input = Matrix::new(&trace.inputs[direction], n_rows, d_input);
            layer.add_input_gradients(&trace.directions[direction], input, context.layout, gradient, scratch);
            trace.d_inputs.resize(n_rows * d_input, F::ZERO);
            let d_inputs = MatrixMut::new(&mut trace.d_inputs, n_rows, d_input);
            layer.input_gradient(&trace.directions[direction], 0..n_rows, d_inputs, context.prepared);
            if direction == 0 {
                if dropped {
                    dropout::apply(&mut trace.d_inputs, &trace.mask);
                }
                crosslens_kernels::add(below.d_outputs_mut(&layers[number - 1]), &trace.d_inputs);
            } else {
                let [ordered, _] = &mut trace.inputs;
                zeroed(ordered, n_rows * d_input);
                scatter_add(ordered, &trace.d_inputs, &packing.reversed, d_input);
                if dropped {
                    dropout::apply(ordered, &trace.mask);
                }
                crosslens_kernels::add(below.d_outputs_mut(&layers[number - 1]), ordered);
            }
        }
    }
}

/// Adds the gradient of the outputs to those of both directions' states.
fn split_directions<F: Real>(layer: &EncoderLayer, trace: &mut EncoderTrace<F>, packing: &Packing) {
    let n = layer.forward.n;
    let EncoderTrace { directions, d_joined, .. } = trace;
    if layer.backward.is_none() {
        return;
    }
    for (row, d_output) in d_joined.chunks_exact(2 * n).enumerate() {
        crosslens_kernels::add(&mut directions[0].d_hidden[row * n..][..n], &d_output[..n]);
        crosslens_kernels::add(&mut directions[1].d_hidden[packing.reversed[row] * n..][..n], &d_output[n..]);
    }
}
