//! A linear map with a bias, `y = x·W + b`.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, product, sum_rows};

use crate::network::layout::{Layout, Start, TensorId};
use crate::network::linear::Linear;
use crate::network::prepared::{Context, Maps};

/// `W` and `b`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine {
    pub(crate) linear: Linear,
    pub(crate) bias: TensorId,
    d_in: usize,
    d_out: usize,
}

impl Affine {
    pub(crate) fn new(name: &str, d_in: usize, d_out: usize, layout: &mut Layout, maps: &mut Maps) -> Self {
        let linear = Linear::new(name, d_in, d_out, layout, maps);
        Self { linear, bias: layout.vector(format!("{name}_bias"), d_out, Start::Zero), d_in, d_out }
    }

    /// `output = input·W + b`, `[row, d_in]` to `[row, d_out]`.
    pub(crate) fn forward<F: Real>(&self, input: &[F], output: &mut Vec<F>, context: Context<'_, F>) {
        let rows = input.len() / self.d_in;
        let bias = &context.weights[context.layout.range(self.bias)];
        output.resize(rows * self.d_out, F::ZERO);
        output.chunks_exact_mut(self.d_out).for_each(|row| row.copy_from_slice(bias));
        let map = &context.prepared.get(self.linear.map).forward;
        product(MatrixMut::new(output, rows, self.d_out), Matrix::new(input, rows, self.d_in), map, Write::Add);
    }

    /// Adds the gradients of `W` and `b`.
    pub(crate) fn add_gradients<F: Real>(&self, input: &[F], d_output: &[F], layout: &Layout, gradient: &mut [F], scratch: &mut Packed<F>) {
        self.linear.add_gradient(input, d_output, layout, gradient, scratch);
        let rows = d_output.len() / self.d_out;
        sum_rows(&mut gradient[layout.range(self.bias)], Matrix::new(d_output, rows, self.d_out));
    }

    /// `d_input (+)= d_output·Wᵀ`.
    pub(crate) fn pass_back<F: Real>(&self, d_output: &[F], d_input: &mut [F], write: Write, context: Context<'_, F>) {
        let rows = d_output.len() / self.d_out;
        let map = &context.prepared.get(self.linear.map).backward;
        product(MatrixMut::new(d_input, rows, self.d_in), Matrix::new(d_output, rows, self.d_out), map, write);
    }
}
