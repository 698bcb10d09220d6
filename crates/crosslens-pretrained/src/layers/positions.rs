//! Where a token stands, added to what it is.

use super::Table;
use crate::PretrainedError;
use crate::weights::Weights;

/// Vectors of positions; models whose attention knows distances have none.
pub(crate) struct Positions {
    table: Table,
    /// Row of the first position.
    first: usize,
}

impl Positions {
    /// Learned ones, beginning in row `first` of the tensor.
    pub(crate) fn learned(weights: &mut Weights, name: &str, n: usize, first: usize, d: usize) -> Result<Self, PretrainedError> {
        Ok(Self { table: weights.table(name, n + first, d)?, first })
    }

    /// `sin(p/10000^(2i/d))` in the first half of a vector and the cosines in the second: not interleaved.
    pub(crate) fn sinusoids(n: usize, d: usize) -> Self {
        let half = d.div_ceil(2);
        let mut numbers = Vec::with_capacity(n * d);
        for position in 0..n {
            let angle = |pair: usize| position as f64 / 10_000f64.powf((2 * pair) as f64 / d as f64);
            numbers.extend((0..half).map(|pair| angle(pair).sin() as f32));
            numbers.extend((0..d - half).map(|pair| angle(pair).cos() as f32));
        }
        Self { table: Table::owned(numbers, n, d), first: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.rows() - self.first
    }

    /// Adds the vectors of positions `from…` to the rows of one sentence.
    pub(crate) fn add(&self, from: usize, rows: &mut [f32]) {
        let n = rows.len() / self.table.d();
        let mut vectors = Vec::with_capacity(rows.len());
        self.table.append(self.first + from, self.first + from + n, &mut vectors);
        crosslens_kernels::add(rows, &vectors);
    }
}
