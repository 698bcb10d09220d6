//! Moving rows between orders, and linear maps on all rows or on those of one step.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, add, product};

use super::packing::Packing;

/// The target rows a stage works on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection {
    /// Every row of the shard.
    All,
    /// Those of one step.
    Step(usize),
}

impl Selection {
    /// Sentence-major rows of a selected step; `None` for all of them.
    pub(crate) fn rows<'a>(&self, packing: &'a Packing) -> Option<&'a [usize]> {
        match *self {
            Self::All => None,
            Self::Step(step) => Some(&packing.to_sentence[packing.rows(step)]),
        }
    }
}

/// Rows of one step, brought together for a product.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepBuffers<F> {
    input: Vec<F>,
    output: Vec<F>,
}

/// `to[i] (+)= from[i]·map` for the selected rows `i`.
pub(crate) fn map_rows<F: Real>(
    selected: Option<&[usize]>,
    from: &[F],
    map: &Packed<F>,
    to: &mut [F],
    write: Write,
    buffers: &mut StepBuffers<F>,
) {
    let (d_from, d_to) = (map.rows(), map.columns());
    let Some(rows) = selected else {
        let n_rows = from.len() / d_from;
        return product(MatrixMut::new(to, n_rows, d_to), Matrix::new(from, n_rows, d_from), map, write);
    };
    buffers.input.resize(rows.len() * d_from, F::ZERO);
    buffers.output.resize(rows.len() * d_to, F::ZERO);
    gather(&mut buffers.input, from, rows, d_from);
    product(MatrixMut::new(&mut buffers.output, rows.len(), d_to), Matrix::new(&buffers.input, rows.len(), d_from), map, Write::Over);
    for (output, &row) in buffers.output.chunks_exact(d_to).zip(rows) {
        let place = &mut to[row * d_to..][..d_to];
        match write {
            Write::Over => place.copy_from_slice(output),
            Write::Add => add(place, output),
        }
    }
}

/// `to[i] = from[rows[i]]`.
pub(crate) fn gather<F: Copy>(to: &mut [F], from: &[F], rows: &[usize], width: usize) {
    for (to, &row) in to.chunks_exact_mut(width).zip(rows) {
        to.copy_from_slice(&from[row * width..][..width]);
    }
}

/// `to[rows[i]] += from[i]`.
pub(crate) fn scatter_add<F: Real>(to: &mut [F], from: &[F], rows: &[usize], width: usize) {
    for (from, &row) in from.chunks_exact(width).zip(rows) {
        add(&mut to[row * width..][..width], from);
    }
}

/// Empties and zeroes a buffer, keeping its memory.
pub(crate) fn zeroed<F: Real>(buffer: &mut Vec<F>, len: usize) {
    buffer.clear();
    buffer.resize(len, F::ZERO);
}
