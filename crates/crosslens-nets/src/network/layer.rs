//! One recurrent layer in one direction, through time and back.

use std::ops::Range;

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, product, sum_rows, transposed_product};

use super::cells;
use super::config::Cell;
use super::layout::{Layout, Start, TensorId};
use super::packing::Packing;
use super::prepared::{Context, MapId, Maps, Prepared};

/// Rows that run back before their share of the weights' gradient is added, while they are still in the cache.
const GRADIENT_ROWS: usize = 128;

/// The parameters of a layer and what it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) cell: Cell,
    pub(crate) n: usize,
    pub(crate) gates_from_input: TensorId,
    pub(crate) gates_bias: TensorId,
    pub(crate) gates_from_hidden: Option<TensorId>,
    pub(crate) candidate_bias: Option<TensorId>,
    pub(crate) initial: Option<TensorId>,
    pub(crate) initial_cell: Option<TensorId>,
    gates_from_feed: Option<TensorId>,
    /// Packed maps: from the input, …
    pub(crate) input: MapId,
    /// … from the hidden state to the gates that read it as it is, …
    hidden: Option<MapId>,
    /// … to a GRU's candidate, …
    candidate: Option<MapId>,
    /// … and from what attention feeds.
    feed: Option<MapId>,
}

/// What a layer needs to know to be built.
pub(crate) struct LayerShape<'a> {
    pub(crate) name: &'a str,
    pub(crate) cell: Cell,
    pub(crate) n: usize,
    pub(crate) d_input: usize,
    pub(crate) d_feed: usize,
    pub(crate) recurrent: bool,
    pub(crate) has_initial: bool,
}

/// What a layer did: everything the backward pass needs, all in step-major order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace<F> {
    /// `[row, gate · n]`: pre-activations, activations, then gradients of pre-activations.
    pub(crate) gates: Vec<F>,
    /// `[row, n]`.
    pub(crate) hidden: Vec<F>,
    /// `[row, n]`: LSTM cell states; GRU `r·h_prev` or `q`, later `dq`.
    extra: Vec<F>,
    /// `[rank, n]`: the state before the first step, and an LSTM's cell.
    pub(crate) start: Vec<F>,
    pub(crate) start_cell: Vec<F>,
    /// `[row, n]`: gradient of the hidden states.
    pub(crate) d_hidden: Vec<F>,
    /// `[rank, n]`: gradients of the start.
    pub(crate) d_start: Vec<F>,
    pub(crate) d_start_cell: Vec<F>,
    scratch: Vec<F>,
}

impl Layer {
    pub(crate) fn new(shape: &LayerShape<'_>, layout: &mut Layout, maps: &mut Maps) -> Self {
        let LayerShape { name, cell, n, d_input, d_feed, recurrent, has_initial } = *shape;
        let width = cell.n_gates() * n;
        let start = Start::Normal(1.0 / (n as f64).sqrt());
        let is_gru = matches!(cell, Cell::Gru | Cell::GruResetAfter);
        let gates_from_input = layout.matrix(format!("{name}.gates_from_input"), d_input, width, start);
        let gates_from_hidden = recurrent.then(|| layout.matrix(format!("{name}.gates_from_hidden"), n, width, start));
        gates_from_hidden.into_iter().for_each(|id| layout.write_over(id));
        let gates_from_feed = (d_feed > 0).then(|| layout.matrix(format!("{name}.gates_from_feed"), d_feed, width, start));
        let gates_bias = layout.vector(format!("{name}.gates_bias"), width, Start::Zero);
        let has_candidate_bias = cell == Cell::GruResetAfter;
        let candidate_bias = has_candidate_bias.then(|| layout.vector(format!("{name}.candidate_bias"), n, Start::Zero));
        let has_initial = has_initial && recurrent;
        let initial = has_initial.then(|| layout.vector(format!("{name}.initial"), n, Start::Zero));
        let has_cell = has_initial && cell == Cell::Lstm;
        let initial_cell = has_cell.then(|| layout.vector(format!("{name}.initial_cell"), n, Start::Zero));
        let direct = if is_gru { 2 * n } else { width };
        Self {
            cell,
            n,
            gates_from_input,
            gates_bias,
            gates_from_hidden,
            candidate_bias,
            initial,
            initial_cell,
            gates_from_feed,
            input: maps.whole(layout, gates_from_input),
            hidden: gates_from_hidden.map(|id| maps.columns(id, 0..direct)),
            candidate: gates_from_hidden.filter(|_| is_gru).map(|id| maps.columns(id, direct..width)),
            feed: gates_from_feed.map(|id| maps.whole(layout, id)),
        }
    }

    /// Columns of the gates.
    pub(crate) fn width(&self) -> usize {
        self.cell.n_gates() * self.n
    }

    /// An LSTM's cell states, `[row, n]`.
    pub(crate) fn cells<'a, F>(&self, trace: &'a Trace<F>) -> Option<&'a [F]> {
        (self.cell == Cell::Lstm).then_some(&trace.extra[..])
    }

    /// The states of all rows and, of an LSTM, their cells; the trace must be given room again before it is used.
    pub(crate) fn take_states<F>(&self, trace: &mut Trace<F>) -> (Vec<F>, Vec<F>) {
        let cells = if self.cell == Cell::Lstm { std::mem::take(&mut trace.extra) } else { Vec::new() };
        (std::mem::take(&mut trace.hidden), cells)
    }

    fn is_recurrent(&self) -> bool {
        self.hidden.is_some()
    }

    /// Makes room for a shard; contents are undefined but for the gradients, which are zero.
    pub(crate) fn reserve<F: Real>(&self, trace: &mut Trace<F>, packing: &Packing) {
        let (n_rows, n_sentences) = (packing.n_rows(), packing.n_sentences());
        trace.gates.resize(n_rows * self.width(), F::ZERO);
        trace.hidden.resize(n_rows * self.n, F::ZERO);
        trace.d_hidden.clear();
        trace.d_hidden.resize(n_rows * self.n, F::ZERO);
        let has_extra = !matches!(self.cell, Cell::Vanilla | Cell::Ugrnn);
        trace.extra.resize(if has_extra { n_rows * self.n } else { 0 }, F::ZERO);
        for states in [&mut trace.start, &mut trace.start_cell, &mut trace.d_start, &mut trace.d_start_cell] {
            states.clear();
            states.resize(n_sentences * self.n, F::ZERO);
        }
        trace.scratch.resize(n_sentences.max(if self.is_recurrent() { 0 } else { n_rows }) * self.n, F::ZERO);
    }

    /// Starts every sentence from the trained initial state, where there is one.
    pub(crate) fn start_from_initial<F: Real>(&self, trace: &mut Trace<F>, layout: &Layout, weights: &[F]) {
        for (id, states) in [(self.initial, &mut trace.start), (self.initial_cell, &mut trace.start_cell)] {
            if let Some(id) = id {
                states.chunks_exact_mut(self.n).for_each(|state| state.copy_from_slice(&weights[layout.range(id)]));
            }
        }
    }

    /// `gates = input·W + b` for all rows at once.
    pub(crate) fn read_input<F: Real>(&self, trace: &mut Trace<F>, input: Matrix<'_, F>, rows: Range<usize>, context: Context<'_, F>) {
        let width = self.width();
        let bias = &context.weights[context.layout.range(self.gates_bias)];
        let gates = &mut trace.gates[rows.start * width..rows.end * width];
        gates.chunks_exact_mut(width).for_each(|row| row.copy_from_slice(bias));
        product(MatrixMut::new(gates, rows.len(), width), input, &context.prepared.get(self.input).forward, Write::Add);
    }

    /// `gates += feed·W` for the rows of one step.
    pub(crate) fn read_feed<F: Real>(&self, trace: &mut Trace<F>, feed: Matrix<'_, F>, rows: Range<usize>, context: Context<'_, F>) {
        let id = self.feed.expect("only a layer that is fed reads a feed");
        let width = self.width();
        let gates = &mut trace.gates[rows.start * width..rows.end * width];
        product(MatrixMut::new(gates, rows.len(), width), feed, &context.prepared.get(id).forward, Write::Add);
    }

    /// Runs over all steps. `read` puts the input's part into the gates of some rows just before they are used, while they stay in
    /// the cache; where the gates hold it already, it does nothing.
    pub(crate) fn forward<F: Real>(
        &self,
        trace: &mut Trace<F>,
        packing: &Packing,
        context: Context<'_, F>,
        read: impl Fn(&mut [F], Range<usize>),
    ) {
        let width = self.width();
        if !self.is_recurrent() {
            read(&mut trace.gates, 0..packing.n_rows());
            return self.forward_rows(trace, 0..packing.n_rows(), None, context);
        }
        for step in 0..packing.n_steps() {
            let rows = packing.rows(step);
            read(&mut trace.gates[rows.start * width..rows.end * width], rows);
            self.forward_step(trace, packing, step, context);
        }
    }

    /// Runs one step.
    pub(crate) fn forward_step<F: Real>(&self, trace: &mut Trace<F>, packing: &Packing, step: usize, context: Context<'_, F>) {
        self.forward_rows(trace, packing.rows(step), self.previous(packing, step), context);
    }

    /// Where the states before a step lie; `None` where they are zero.
    fn previous(&self, packing: &Packing, step: usize) -> Option<Previous> {
        let previous = if step == 0 { Previous::Start } else { Previous::Row(packing.rows(step - 1).start) };
        self.is_recurrent().then_some(previous)
    }

    fn forward_rows<F: Real>(&self, trace: &mut Trace<F>, rows: Range<usize>, previous: Option<Previous>, context: Context<'_, F>) {
        let (n, width, m) = (self.n, self.width(), rows.len());
        let Trace { gates, hidden, extra, start, start_cell, .. } = trace;
        let gates = &mut gates[rows.start * width..rows.end * width];
        let (hidden_before, hidden) = hidden.split_at_mut(rows.start * n);
        let hidden = &mut hidden[..m * n];
        let split = extra.len().min(rows.start * n);
        let (extra_before, extra) = extra.split_at_mut(split);
        let extra = if extra.is_empty() { extra } else { &mut extra[..m * n] };
        let before = previous.map(|previous| match previous {
            Previous::Start => &start[..m * n],
            Previous::Row(row) => &hidden_before[row * n..][..m * n],
        });
        if let (Some(id), Some(before)) = (self.hidden, before) {
            let map = &context.prepared.get(id).forward;
            product(MatrixMut::strided(gates, m, map.columns(), width), Matrix::new(before, m, n), map, Write::Add);
        }
        match self.cell {
            Cell::Vanilla => cells::vanilla_forward(gates, hidden),
            Cell::Ugrnn => cells::ugrnn_forward(n, gates, before, hidden),
            Cell::Gru => {
                cells::gru_gates_forward(n, gates, before, extra);
                if let (Some(id), Some(_)) = (self.candidate, before) {
                    let candidates = MatrixMut::strided(&mut gates[2 * n..], m, n, width);
                    product(candidates, Matrix::new(extra, m, n), &context.prepared.get(id).forward, Write::Add);
                }
                cells::gru_candidate_forward(n, gates, before, hidden);
            }
            Cell::GruResetAfter => {
                let bias = self.candidate_bias.expect("a GRU with its reset after the product has a candidate bias");
                let bias = &context.weights[context.layout.range(bias)];
                extra.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(bias));
                if let (Some(id), Some(before)) = (self.candidate, before) {
                    let inner = MatrixMut::new(extra, m, n);
                    product(inner, Matrix::new(before, m, n), &context.prepared.get(id).forward, Write::Add);
                }
                cells::gru_reset_after_forward(n, gates, extra, before, hidden);
            }
            Cell::Lstm => {
                let cell_before = previous.map(|previous| match previous {
                    Previous::Start => &start_cell[..m * n],
                    Previous::Row(row) => &extra_before[row * n..][..m * n],
                });
                cells::lstm_forward(n, gates, cell_before, extra, hidden);
            }
        }
    }

    /// Runs back over all steps: `gates` become gradients, `d_start` receives what reaches the start, and the gradients of everything but
    /// the input's weights are added. `seen` is shown the gates' gradients of some rows while they are in the cache.
    pub(crate) fn backward<F: Real>(
        &self,
        trace: &mut Trace<F>,
        packing: &Packing,
        context: Context<'_, F>,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
        mut seen: impl FnMut(&[F], Range<usize>),
    ) {
        let width = self.width();
        if self.is_recurrent() {
            let mut end = packing.n_steps();
            for step in (0..packing.n_steps()).rev() {
                self.backward_step(trace, packing, step, context);
                let rows = packing.rows(step);
                seen(&trace.gates[rows.start * width..rows.end * width], rows.clone());
                if step == 0 || packing.rows(end - 1).end - rows.start >= GRADIENT_ROWS {
                    self.add_hidden_gradients(trace, packing, step..end, context.layout, gradient, scratch);
                    end = step;
                }
            }
        } else {
            self.backward_rows(trace, 0..packing.n_rows(), None, context);
            seen(&trace.gates, 0..packing.n_rows());
        }
        self.add_vector_gradients(trace, packing, context.layout, gradient);
    }

    /// Runs one step back. Steps must come in descending order.
    pub(crate) fn backward_step<F: Real>(&self, trace: &mut Trace<F>, packing: &Packing, step: usize, context: Context<'_, F>) {
        self.backward_rows(trace, packing.rows(step), self.previous(packing, step), context);
    }

    fn backward_rows<F: Real>(&self, trace: &mut Trace<F>, rows: Range<usize>, previous: Option<Previous>, context: Context<'_, F>) {
        let (n, width, m) = (self.n, self.width(), rows.len());
        let Trace { gates, hidden, extra, start, start_cell, d_hidden, d_start, d_start_cell, scratch } = trace;
        let gates = &mut gates[rows.start * width..rows.end * width];
        let (d_hidden_before, d_hidden) = d_hidden.split_at_mut(rows.start * n);
        let d_hidden = &d_hidden[..m * n];
        let split = extra.len().min(rows.start * n);
        let (extra_before, extra) = extra.split_at_mut(split);
        let extra = if extra.is_empty() { extra } else { &mut extra[..m * n] };
        let (before, mut d_before) = match previous {
            None => (None, None),
            Some(Previous::Start) => (Some(&start[..m * n]), Some(&mut d_start[..m * n])),
            Some(Previous::Row(row)) => (Some(&hidden[row * n..][..m * n]), Some(&mut d_hidden_before[row * n..][..m * n])),
        };
        match self.cell {
            Cell::Vanilla => cells::vanilla_backward(gates, d_hidden),
            Cell::Ugrnn => cells::ugrnn_backward(n, gates, before, d_hidden, d_before.as_deref_mut()),
            Cell::Gru => {
                cells::gru_candidate_backward(n, gates, before, d_hidden, d_before.as_deref_mut());
                match (self.candidate, before, d_before.as_deref_mut()) {
                    (Some(id), Some(before), Some(d_before)) => {
                        let d_reset = &mut scratch[..m * n];
                        let d_candidate = Matrix::strided(&gates[2 * n..], m, n, width);
                        product(MatrixMut::new(d_reset, m, n), d_candidate, &context.prepared.get(id).backward, Write::Over);
                        cells::gru_reset_before_backward(n, gates, before, d_reset, d_before);
                    }
                    _ => gates.chunks_exact_mut(width).for_each(|row| row[n..2 * n].fill(F::ZERO)),
                }
            }
            Cell::GruResetAfter => {
                cells::gru_reset_after_backward(n, gates, extra, before, d_hidden, d_before.as_deref_mut());
                if let (Some(id), Some(d_before)) = (self.candidate, d_before.as_deref_mut()) {
                    let d_inner = Matrix::new(extra, m, n);
                    product(MatrixMut::new(d_before, m, n), d_inner, &context.prepared.get(id).backward, Write::Add);
                }
            }
            Cell::Lstm => {
                let cell_before = previous.map(|previous| match previous {
                    Previous::Start => &start_cell[..m * n],
                    Previous::Row(row) => &extra_before[row * n..][..m * n],
                });
                let d_cell = if previous.is_some() { &mut d_start_cell[..m * n] } else { &mut scratch[..m * n] };
                if previous.is_none() {
                    d_cell.fill(F::ZERO);
                }
                cells::lstm_backward(n, gates, cell_before, extra, d_hidden, d_cell);
            }
        }
        if let (Some(id), Some(d_before)) = (self.hidden, d_before) {
            let map = &context.prepared.get(id).backward;
            product(MatrixMut::new(d_before, m, n), Matrix::strided(gates, m, map.rows(), width), map, Write::Add);
        }
    }

    /// Adds the gradient of `gates_from_hidden` from some steps that have run back; those up to the last step come first and write it over.
    pub(crate) fn add_hidden_gradients<F: Real>(
        &self,
        trace: &Trace<F>,
        packing: &Packing,
        steps: Range<usize>,
        layout: &Layout,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
    ) {
        let Some(id) = self.gates_from_hidden else { return };
        let (n, width) = (self.n, self.width());
        let gradient = &mut gradient[layout.range(id)];
        let direct = if self.candidate.is_some() { 2 * n } else { width };
        // Runs of steps with the same number of sentences are one product: their previous rows are one block too.
        let mut write = if steps.end == packing.n_steps() { Write::Over } else { Write::Add };
        let mut step = steps.start;
        while step < steps.end {
            let running = packing.rows(step).len();
            let mut end = step + 1;
            while step > 0 && end < steps.end && packing.rows(end).len() == running && packing.rows(step - 1).len() == running {
                end += 1;
            }
            let rows = packing.rows(step).start..packing.rows(end - 1).end;
            let m = rows.len();
            let before = if step == 0 { &trace.start[..m * n] } else { &trace.hidden[packing.rows(step - 1).start * n..][..m * n] };
            let before = Matrix::new(before, m, n);
            let gates = Matrix::new(&trace.gates[rows.start * width..], m, width);
            let target = MatrixMut::strided(gradient, n, direct, width);
            transposed_product(target, before, gates.column_range(0, direct), write, scratch);
            if self.candidate.is_some() {
                let extra = Matrix::new(&trace.extra[rows.start * n..], m, n);
                let (left, right) = match self.cell {
                    Cell::Gru => (extra, gates.column_range(direct, width)),
                    _ => (before, extra),
                };
                transposed_product(MatrixMut::strided(&mut gradient[direct..], n, n, width), left, right, write, scratch);
            }
            write = Write::Add;
            step = end;
        }
    }

    /// Adds the gradients of the candidate's bias and of the trained start, once all steps have run back.
    pub(crate) fn add_vector_gradients<F: Real>(&self, trace: &Trace<F>, packing: &Packing, layout: &Layout, gradient: &mut [F]) {
        let n = self.n;
        if let Some(id) = self.candidate_bias {
            sum_rows(&mut gradient[layout.range(id)], Matrix::new(&trace.extra, packing.n_rows(), n));
        }
        for (id, states) in [(self.initial, &trace.d_start), (self.initial_cell, &trace.d_start_cell)] {
            if let Some(id) = id {
                sum_rows(&mut gradient[layout.range(id)], Matrix::new(states, packing.n_sentences(), n));
            }
        }
    }

    /// Adds the gradients of the input's weights and of the bias.
    pub(crate) fn add_input_gradients<F: Real>(
        &self,
        trace: &Trace<F>,
        input: Matrix<'_, F>,
        layout: &Layout,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
    ) {
        let (rows, width) = (input.rows(), self.width());
        let gates = Matrix::new(&trace.gates, rows, width);
        let target = MatrixMut::new(&mut gradient[layout.range(self.gates_from_input)], input.columns(), width);
        transposed_product(target, input, gates, Write::Add, scratch);
        sum_rows(&mut gradient[layout.range(self.gates_bias)], gates);
    }

    /// Adds the gradient of the feed's weights.
    pub(crate) fn add_feed_gradients<F: Real>(
        &self,
        trace: &Trace<F>,
        feed: Matrix<'_, F>,
        layout: &Layout,
        gradient: &mut [F],
        scratch: &mut Packed<F>,
    ) {
        let id = self.gates_from_feed.expect("only a layer that is fed has a feed's weights");
        let target = MatrixMut::new(&mut gradient[layout.range(id)], feed.columns(), self.width());
        transposed_product(target, feed, Matrix::new(&trace.gates, feed.rows(), self.width()), Write::Add, scratch);
    }

    /// `d_input = dgates·Wᵀ` for some rows.
    pub(crate) fn input_gradient<F: Real>(&self, trace: &Trace<F>, rows: Range<usize>, d_input: MatrixMut<'_, F>, prepared: &Prepared<F>) {
        let width = self.width();
        let gates = Matrix::new(&trace.gates[rows.start * width..rows.end * width], rows.len(), width);
        product(d_input, gates, &prepared.get(self.input).backward, Write::Over);
    }

    /// `d_feed = dgates·Wᵀ` for some rows.
    pub(crate) fn feed_gradient<F: Real>(&self, trace: &Trace<F>, rows: Range<usize>, d_feed: MatrixMut<'_, F>, prepared: &Prepared<F>) {
        let id = self.feed.expect("only a layer that is fed passes gradients to a feed");
        let width = self.width();
        let gates = Matrix::new(&trace.gates[rows.start * width..rows.end * width], rows.len(), width);
        product(d_feed, gates, &prepared.get(id).backward, Write::Over);
    }
}

/// Where the state before a step lies.
#[derive(Clone, Copy)]
enum Previous {
    Start,
    /// In the rows from this one on.
    Row(usize),
}
