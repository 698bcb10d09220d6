//! From the readout's input to logits, loss, predictions, and back.

use crosslens_analysis::Token;
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, log_sum_exp, place_of_highest, product, sum_rows};

use super::layout::TensorId;
use super::linear::Linear;
use super::prepared::Context;

/// Rows whose logits are held at a time, so that memory does not grow with rows × vocabulary.
const CHUNK_ROWS: usize = 256;

/// The last linear map.
#[derive(Clone, Debug)]
pub(crate) struct Readout {
    pub(crate) linear: Linear,
    pub(crate) bias: Option<TensorId>,
    pub(crate) d_input: usize,
    pub(crate) n_words: usize,
}

/// Logits of a few rows, and a gradient's room.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadoutTrace<F> {
    logits: Vec<F>,
    /// Cross-entropy of every row.
    pub(crate) losses: Vec<f64>,
}

/// Where the gradients of a readout go.
pub(crate) struct ReadoutGradients<'a, F> {
    /// `[row, d_input]`, replaced.
    pub(crate) d_input: &'a mut [F],
    pub(crate) gradient: &'a mut [F],
    pub(crate) scratch: &'a mut Packed<F>,
    /// Weight of one row: one over the number of rows of the whole batch.
    pub(crate) row_weight: F,
    /// Share `ε` of the target's probability that is spread over all words: the loss is `lse(z) − (1 − ε)·z_y − ε·mean(z)`.
    pub(crate) smoothing: F,
}

impl Readout {
    /// Logits of `rows` rows.
    pub(crate) fn logits<F: Real>(&self, input: &[F], logits: &mut Vec<F>, context: Context<'_, F>) {
        let rows = input.len() / self.d_input;
        logits.resize(rows * self.n_words, F::ZERO);
        match self.bias {
            Some(bias) => {
                let bias = &context.weights[context.layout.range(bias)];
                logits.chunks_exact_mut(self.n_words).for_each(|row| row.copy_from_slice(bias));
            }
            None => logits.fill(F::ZERO),
        }
        let map = &context.prepared.get(self.linear.map).forward;
        product(MatrixMut::new(logits, rows, self.n_words), Matrix::new(input, rows, self.d_input), map, Write::Add);
    }

    /// Sum of the cross-entropies of all rows; `predicted` receives the likeliest tokens, `gradients` the mean's gradient.
    pub(crate) fn loss<F: Real>(
        &self,
        trace: &mut ReadoutTrace<F>,
        input: &[F],
        targets: &[Token],
        predicted: &mut Vec<Token>,
        context: Context<'_, F>,
        mut gradients: Option<ReadoutGradients<'_, F>>,
    ) -> f64 {
        trace.losses.clear();
        predicted.clear();
        for (chunk, targets) in targets.chunks(CHUNK_ROWS).enumerate() {
            let from = chunk * CHUNK_ROWS * self.d_input;
            let input = &input[from..from + targets.len() * self.d_input];
            self.logits(input, &mut trace.logits, context);
            let smoothing = gradients.as_ref().map_or(F::ZERO, |gradients| gradients.smoothing);
            for (logits, &target) in trace.logits.chunks_exact_mut(self.n_words).zip(targets) {
                predicted.push(likeliest(logits));
                trace.losses.push(to_gradient(logits, target as usize, smoothing));
            }
            if let Some(ReadoutGradients { d_input, gradient, scratch, row_weight, .. }) = &mut gradients {
                trace.logits.iter_mut().for_each(|d_logit| *d_logit *= *row_weight);
                let d_logits = Matrix::new(&trace.logits, targets.len(), self.n_words);
                let d_input = MatrixMut::new(&mut d_input[from..], targets.len(), self.d_input);
                product(d_input, d_logits, &context.prepared.get(self.linear.map).backward, Write::Over);
                let write = if chunk == 0 && self.linear.is_alone() { Write::Over } else { Write::Add };
                self.linear.write_gradient(input, &trace.logits, context.layout, gradient, write, scratch);
                if let Some(bias) = self.bias {
                    sum_rows(&mut gradient[context.layout.range(bias)], d_logits);
                }
            }
        }
        trace.losses.iter().sum()
    }
}

/// The cross-entropy of a row; its logits become the loss's gradient.
fn to_gradient<F: Real>(logits: &mut [F], target: usize, smoothing: F) -> f64 {
    let of_target = logits[target];
    if smoothing == F::ZERO {
        let loss = log_sum_exp(logits) - of_target;
        logits[target] -= F::ONE;
        return loss.to_f64();
    }
    let share = smoothing / F::of(logits.len() as f64);
    let sum: F = logits.iter().copied().sum();
    let loss = log_sum_exp(logits) - (F::ONE - smoothing) * of_target - share * sum;
    logits.iter_mut().for_each(|d_logit| *d_logit -= share);
    logits[target] -= F::ONE - smoothing;
    loss.to_f64()
}

/// The index of the highest logit, the lowest among equals; NaN never wins, and where there is nothing else, it is the first.
pub(crate) fn likeliest<F: Real>(logits: &[F]) -> Token {
    place_of_highest(logits).unwrap_or(0) as Token
}
