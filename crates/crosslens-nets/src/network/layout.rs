//! Where each parameter lies in the one long vector that holds them all.

use std::ops::Range;

use crosslens_kernels::Real;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// How a parameter is drawn at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Start {
    Zero,
    One,
    /// Normal with this standard deviation.
    Normal(f64),
}

/// One named parameter: a matrix `[in, out]` or a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name in `model.safetensors`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    range: Range<usize>,
    start: Start,
    /// Whether a shard writes this gradient over instead of adding to zeros.
    written_over: bool,
}

impl Tensor {
    /// Its place in the vector of all parameters.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

/// A parameter of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorId(usize);

/// All parameters of a network, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    tensors: Vec<Tensor>,
    len: usize,
    n_tabled: usize,
}

impl Layout {
    pub(crate) fn matrix(&mut self, name: impl Into<String>, rows: usize, columns: usize, start: Start) -> TensorId {
        self.add(name.into(), vec![rows, columns], start)
    }

    /// A matrix whose deviation is `√(2 / (in + out))`.
    pub(crate) fn glorot(&mut self, name: impl Into<String>, rows: usize, columns: usize) -> TensorId {
        self.matrix(name, rows, columns, Start::Normal((2.0 / (rows + columns) as f64).sqrt()))
    }

    pub(crate) fn vector(&mut self, name: impl Into<String>, len: usize, start: Start) -> TensorId {
        self.add(name.into(), vec![len], start)
    }

    fn add(&mut self, name: String, shape: Vec<usize>, start: Start) -> TensorId {
        let end = self.len + shape.iter().product::<usize>();
        self.tensors.push(Tensor { name, shape, range: self.len..end, start, written_over: false });
        self.len = end;
        TensorId(self.tensors.len() - 1)
    }

    /// Number of trained numbers.
    #[expect(clippy::len_without_is_empty, reason = "a network without parameters does not exist")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The parameters in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    pub(crate) fn range(&self, id: TensorId) -> Range<usize> {
        self.tensors[id.0].range.clone()
    }

    pub(crate) fn shape(&self, id: TensorId) -> (usize, usize) {
        match self.tensors[id.0].shape[..] {
            [rows, columns] => (rows, columns),
            [len] => (1, len),
            _ => unreachable!("parameters are vectors or matrices"),
        }
    }

    /// Says that every shard writes the gradient of this parameter over what it held before.
    pub(crate) fn write_over(&mut self, id: TensorId) {
        self.tensors[id.0].written_over = true;
    }

    /// The gradients that shards add to.
    pub(crate) fn added_to(&self) -> impl Iterator<Item = Range<usize>> {
        let sharded = self.sharded();
        self.tensors.iter().filter(move |tensor| sharded.contains(&tensor.range.start) && !tensor.written_over).map(Tensor::range)
    }

    /// Puts those parameters first whose gradients come from tables, not from shards.
    pub(crate) fn put_tabled_first(&mut self, tabled: &[TensorId]) {
        let is_tabled = |number: usize| tabled.contains(&TensorId(number));
        self.len = 0;
        for first in [true, false] {
            for number in (0..self.tensors.len()).filter(|&number| is_tabled(number) == first) {
                let range = &mut self.tensors[number].range;
                *range = self.len..self.len + range.len();
                self.len = range.end;
            }
            if first {
                self.n_tabled = self.len;
            }
        }
    }

    /// The parameters whose gradients come from shards.
    pub(crate) fn sharded(&self) -> Range<usize> {
        self.n_tabled..self.len
    }

    /// Draws every parameter.
    pub(crate) fn draw<F: Real>(&self, rng: &mut impl Rng) -> Vec<F> {
        let mut weights = vec![F::ZERO; self.len];
        for tensor in &self.tensors {
            let weights = &mut weights[tensor.range()];
            match tensor.start {
                Start::Zero => {}
                Start::One => weights.fill(F::ONE),
                Start::Normal(deviation) => {
                    for weight in weights {
                        let value: f64 = StandardNormal.sample(rng);
                        *weight = F::of(value * deviation);
                    }
                }
            }
        }
        weights
    }
}
