//! A learned linear map.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, transposed_product};

use super::layout::{Layout, TensorId};
use super::prepared::{MapId, Maps};

/// A learned linear map and its packed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    pub(crate) tensor: TensorId,
    pub(crate) map: MapId,
    /// Where the map is the transpose of the tensor's first rows: how many.
    turned: Option<usize>,
}

impl Linear {
    pub(crate) fn new(name: &str, rows: usize, columns: usize, layout: &mut Layout, maps: &mut Maps) -> Self {
        let tensor = layout.glorot(name, rows, columns);
        Self { tensor, map: maps.whole(layout, tensor), turned: None }
    }

    /// The transpose of the first `rows` rows of a parameter that serves elsewhere too.
    pub(crate) fn turned(tensor: TensorId, rows: usize, maps: &mut Maps) -> Self {
        Self { tensor, map: maps.turned(tensor, rows), turned: Some(rows) }
    }

    /// Whether the parameter is this map's alone, so that the first rows of a pass may write its gradient over.
    pub(crate) fn is_alone(&self) -> bool {
        self.turned.is_none()
    }

    /// `gradient += inputᵀ·d_output` over all rows.
    pub(crate) fn add_gradient<F: Real>(&self, input: &[F], d_output: &[F], layout: &Layout, gradient: &mut [F], scratch: &mut Packed<F>) {
        self.write_gradient(input, d_output, layout, gradient, Write::Add, scratch);
    }

    /// `gradient (+)= inputᵀ·d_output` over all rows.
    pub(crate) fn write_gradient<F: Real>(
        &self,
        input: &[F],
        d_output: &[F],
        layout: &Layout,
        gradient: &mut [F],
        write: Write,
        scratch: &mut Packed<F>,
    ) {
        if let Some(d_out) = self.turned {
            let (_, d_in) = layout.shape(self.tensor);
            let rows = input.len() / d_in;
            let target = MatrixMut::new(&mut gradient[layout.range(self.tensor)], d_out, d_in);
            return transposed_product(target, Matrix::new(d_output, rows, d_out), Matrix::new(input, rows, d_in), write, scratch);
        }
        let (d_in, d_out) = layout.shape(self.tensor);
        let rows = input.len() / d_in;
        let target = MatrixMut::new(&mut gradient[layout.range(self.tensor)], d_in, d_out);
        transposed_product(target, Matrix::new(input, rows, d_in), Matrix::new(d_output, rows, d_out), write, scratch);
    }
}
