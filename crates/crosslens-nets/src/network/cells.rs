//! The elementwise part of each cell, forward and backward.
//!
//! Rows are sentences. `gates` holds pre-activations before and activations after the forward pass; the backward pass replaces them by
//! the gradients of the pre-activations, from which one product gives the weights' gradients. `None` as the previous state means zero.

use crosslens_kernels::{Real, vectorised};

/// `h = tanh(c)`.
pub(super) fn vanilla_forward<F: Real>(gates: &mut [F], hidden: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            for (gate, hidden) in gates.iter_mut().zip(hidden) {
                *gate = gate.tanh_fast();
                *hidden = *gate;
            }
        },
    );
}

/// `dc = dh·(1 − c²)`.
pub(super) fn vanilla_backward<F: Real>(gates: &mut [F], d_hidden: &[F]) {
    vectorised(
        #[inline(always)]
        || {
            for (gate, &d_hidden) in gates.iter_mut().zip(d_hidden) {
                *gate = d_hidden * (F::ONE - *gate * *gate);
            }
        },
    );
}

/// `u = σ(u), c = tanh(c), h = u·h_prev + (1 − u)·c`, blocks `u, c`.
pub(super) fn ugrnn_forward<F: Real>(n: usize, gates: &mut [F], previous: Option<&[F]>, hidden: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            for (row, (gates, hidden)) in gates.chunks_exact_mut(2 * n).zip(hidden.chunks_exact_mut(n)).enumerate() {
                let (update, candidate) = gates.split_at_mut(n);
                sigmoid_row(update);
                tanh_row(candidate);
                blend_row(update, candidate, row_of(previous, row, n), hidden);
            }
        },
    );
}

/// Gradients of `u, c`; `d_previous += dh·u`.
pub(super) fn ugrnn_backward<F: Real>(n: usize, gates: &mut [F], previous: Option<&[F]>, d_hidden: &[F], d_previous: Option<&mut [F]>) {
    vectorised(
        #[inline(always)]
        || {
            let mut d_previous = d_previous;
            for (row, (gates, d_hidden)) in gates.chunks_exact_mut(2 * n).zip(d_hidden.chunks_exact(n)).enumerate() {
                let (update, candidate) = gates.split_at_mut(n);
                let d_previous = d_previous.as_deref_mut().map(|all| &mut all[row * n..][..n]);
                unblend_row(update, candidate, row_of(previous, row, n), d_hidden, d_previous);
            }
        },
    );
}

/// First half of a GRU with the reset before the product: activates `u, r` and leaves `r·h_prev` in `reset`.
pub(super) fn gru_gates_forward<F: Real>(n: usize, gates: &mut [F], previous: Option<&[F]>, reset: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            for (row, (gates, reset)) in gates.chunks_exact_mut(3 * n).zip(reset.chunks_exact_mut(n)).enumerate() {
                sigmoid_row(&mut gates[..2 * n]);
                match row_of(previous, row, n) {
                    Some(previous) => {
                        for ((reset, &gate), &previous) in reset.iter_mut().zip(&gates[n..2 * n]).zip(previous) {
                            *reset = gate * previous;
                        }
                    }
                    None => reset.fill(F::ZERO),
                }
            }
        },
    );
}

/// Second half: `c = tanh(c), h = u·h_prev + (1 − u)·c`.
pub(super) fn gru_candidate_forward<F: Real>(n: usize, gates: &mut [F], previous: Option<&[F]>, hidden: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            for (row, (gates, hidden)) in gates.chunks_exact_mut(3 * n).zip(hidden.chunks_exact_mut(n)).enumerate() {
                let (update_reset, candidate) = gates.split_at_mut(2 * n);
                tanh_row(candidate);
                blend_row(&update_reset[..n], candidate, row_of(previous, row, n), hidden);
            }
        },
    );
}

/// Gradients of `u` and `c`; `d_previous += dh·u`. The block of `r` keeps its activation.
pub(super) fn gru_candidate_backward<F: Real>(
    n: usize,
    gates: &mut [F],
    previous: Option<&[F]>,
    d_hidden: &[F],
    d_previous: Option<&mut [F]>,
) {
    vectorised(
        #[inline(always)]
        || {
            let mut d_previous = d_previous;
            for (row, (gates, d_hidden)) in gates.chunks_exact_mut(3 * n).zip(d_hidden.chunks_exact(n)).enumerate() {
                let (update_reset, candidate) = gates.split_at_mut(2 * n);
                let d_previous = d_previous.as_deref_mut().map(|all| &mut all[row * n..][..n]);
                unblend_row(&mut update_reset[..n], candidate, row_of(previous, row, n), d_hidden, d_previous);
            }
        },
    );
}

/// Gradient of `r` where it acts before the product: `dr = d(r·h)·h_prev·r(1 − r)`, `d_previous += d(r·h)·r`.
pub(super) fn gru_reset_before_backward<F: Real>(n: usize, gates: &mut [F], previous: &[F], d_reset: &[F], d_previous: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            let rows = gates.chunks_exact_mut(3 * n).zip(previous.chunks_exact(n));
            for ((gates, previous), (d_reset, d_previous)) in rows.zip(d_reset.chunks_exact(n).zip(d_previous.chunks_exact_mut(n))) {
                let reset = &mut gates[n..2 * n];
                for i in 0..n {
                    let r = reset[i];
                    d_previous[i] += d_reset[i] * r;
                    reset[i] = d_reset[i] * previous[i] * r * (F::ONE - r);
                }
            }
        },
    );
}

/// A GRU with the reset after the product: `c = tanh(c + r·q)` where `inner` holds `q = h_prev·W + b`.
pub(crate) fn gru_reset_after_forward<F: Real>(n: usize, gates: &mut [F], inner: &[F], previous: Option<&[F]>, hidden: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            let rows = gates.chunks_exact_mut(3 * n).zip(inner.chunks_exact(n)).zip(hidden.chunks_exact_mut(n));
            for (row, ((gates, inner), hidden)) in rows.enumerate() {
                let (update_reset, candidate) = gates.split_at_mut(2 * n);
                sigmoid_row(update_reset);
                for ((candidate, &reset), &inner) in candidate.iter_mut().zip(&update_reset[n..]).zip(inner) {
                    *candidate += reset * inner;
                }
                tanh_row(candidate);
                blend_row(&update_reset[..n], candidate, row_of(previous, row, n), hidden);
            }
        },
    );
}

/// Gradients of `u, r, c`; `inner` becomes `dq = dc·r`; `d_previous += dh·u`.
pub(super) fn gru_reset_after_backward<F: Real>(
    n: usize,
    gates: &mut [F],
    inner: &mut [F],
    previous: Option<&[F]>,
    d_hidden: &[F],
    d_previous: Option<&mut [F]>,
) {
    vectorised(
        #[inline(always)]
        || {
            let mut d_previous = d_previous;
            let rows = gates.chunks_exact_mut(3 * n).zip(inner.chunks_exact_mut(n)).zip(d_hidden.chunks_exact(n));
            for (row, ((gates, inner), d_hidden)) in rows.enumerate() {
                let (update_reset, candidate) = gates.split_at_mut(2 * n);
                let (update, reset) = update_reset.split_at_mut(n);
                let d_previous = d_previous.as_deref_mut().map(|all| &mut all[row * n..][..n]);
                unblend_row(update, candidate, row_of(previous, row, n), d_hidden, d_previous);
                reset_after_row(reset, inner, candidate);
            }
        },
    );
}

/// From a reset gate `r` and `q` to `dr` and `dq = dc·r`.
#[inline(always)]
fn reset_after_row<F: Real>(reset: &mut [F], inner: &mut [F], d_candidate: &[F]) {
    // Two results in one loop over zipped slices are computed one number at a time; over indices they fill registers.
    let n = reset.len();
    let (inner, d_candidate) = (&mut inner[..n], &d_candidate[..n]);
    for i in 0..n {
        let (r, q, d) = (reset[i], inner[i], d_candidate[i]);
        inner[i] = d * r;
        reset[i] = d * q * r * (F::ONE - r);
    }
}

/// `cell = σ(f + 1)·cell_prev + σ(i)·tanh(c)`, `h = σ(o)·tanh(cell)`, blocks `f, i, o, c`.
pub(super) fn lstm_forward<F: Real>(n: usize, gates: &mut [F], previous_cell: Option<&[F]>, cell: &mut [F], hidden: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            let rows = gates.chunks_exact_mut(4 * n).zip(cell.chunks_exact_mut(n)).zip(hidden.chunks_exact_mut(n));
            for (row, ((gates, cell), hidden)) in rows.enumerate() {
                gates[..n].iter_mut().for_each(|forget| *forget += F::ONE);
                let (forget_input_output, candidate) = gates.split_at_mut(3 * n);
                sigmoid_row(forget_input_output);
                tanh_row(candidate);
                let (forget, input_output) = forget_input_output.split_at(n);
                let (input, output) = input_output.split_at(n);
                for i in 0..n {
                    cell[i] = input[i] * candidate[i];
                }
                if let Some(previous) = row_of(previous_cell, row, n) {
                    for i in 0..n {
                        cell[i] += forget[i] * previous[i];
                    }
                }
                for i in 0..n {
                    hidden[i] = output[i] * cell[i].tanh_fast();
                }
            }
        },
    );
}

/// Gradients of `f, i, o, c`; `d_cell` holds the gradient of this step's cell state and becomes that of the previous one.
pub(super) fn lstm_backward<F: Real>(n: usize, gates: &mut [F], previous_cell: Option<&[F]>, cell: &[F], d_hidden: &[F], d_cell: &mut [F]) {
    vectorised(
        #[inline(always)]
        || {
            let rows =
                gates.chunks_exact_mut(4 * n).zip(cell.chunks_exact(n)).zip(d_hidden.chunks_exact(n).zip(d_cell.chunks_exact_mut(n)));
            for (row, ((gates, cell), (d_hidden, d_cell))) in rows.enumerate() {
                let previous = row_of(previous_cell, row, n);
                let (forget, rest) = gates.split_at_mut(n);
                let (input, rest) = rest.split_at_mut(n);
                let (output, candidate) = rest.split_at_mut(n);
                for i in 0..n {
                    let (f, g, o, c) = (forget[i], input[i], output[i], candidate[i]);
                    let squashed = cell[i].tanh_fast();
                    let d = d_cell[i] + d_hidden[i] * o * (F::ONE - squashed * squashed);
                    let before = previous.map_or(F::ZERO, |previous| previous[i]);
                    output[i] = d_hidden[i] * squashed * o * (F::ONE - o);
                    forget[i] = d * before * f * (F::ONE - f);
                    input[i] = d * c * g * (F::ONE - g);
                    candidate[i] = d * g * (F::ONE - c * c);
                    d_cell[i] = d * f;
                }
            }
        },
    );
}

#[inline(always)]
fn row_of<F>(rows: Option<&[F]>, row: usize, n: usize) -> Option<&[F]> {
    rows.map(|rows| &rows[row * n..][..n])
}

#[inline(always)]
fn sigmoid_row<F: Real>(row: &mut [F]) {
    row.iter_mut().for_each(|x| *x = x.sigmoid_fast());
}

#[inline(always)]
fn tanh_row<F: Real>(row: &mut [F]) {
    row.iter_mut().for_each(|x| *x = x.tanh_fast());
}

/// `h = u·h_prev + (1 − u)·c`.
#[inline(always)]
fn blend_row<F: Real>(update: &[F], candidate: &[F], previous: Option<&[F]>, hidden: &mut [F]) {
    match previous {
        Some(previous) => {
            for (((hidden, &u), &c), &previous) in hidden.iter_mut().zip(update).zip(candidate).zip(previous) {
                *hidden = u * previous + (F::ONE - u) * c;
            }
        }
        None => {
            for ((hidden, &u), &c) in hidden.iter_mut().zip(update).zip(candidate) {
                *hidden = (F::ONE - u) * c;
            }
        }
    }
}

/// The gradient of [`blend_row`] through both activations.
#[inline(always)]
fn unblend_row<F: Real>(update: &mut [F], candidate: &mut [F], previous: Option<&[F]>, d_hidden: &[F], d_previous: Option<&mut [F]>) {
    match (previous, d_previous) {
        (Some(previous), Some(d_previous)) => {
            let states = previous.iter().zip(d_previous);
            for (((u, c), &d), (&previous, d_previous)) in update.iter_mut().zip(candidate).zip(d_hidden).zip(states) {
                let keep = F::ONE - *u;
                *d_previous += d * *u;
                *u = d * (previous - *c) * *u * keep;
                *c = d * keep * (F::ONE - *c * *c);
            }
        }
        _ => {
            for ((u, c), &d) in update.iter_mut().zip(candidate).zip(d_hidden) {
                let keep = F::ONE - *u;
                *u = -d * *c * *u * keep;
                *c = d * keep * (F::ONE - *c * *c);
            }
        }
    }
}
