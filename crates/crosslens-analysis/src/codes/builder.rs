//! The rows that codes are found in: a sample of all that are given.

use crosslens_kernels::Threads;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::error::check;
use super::lloyd::{self, Groups};
use super::{Codebook, CodesError};

/// Most rows that are looked at.
pub const SAMPLE_ROWS: usize = 20_000;
/// Most values that are held for it: a quarter of a gigabyte.
const SAMPLE_VALUES: usize = 1 << 26;

/// Takes rows, holds a sample of them, and finds codes.
///
/// The sample is drawn as rows come (reservoir sampling): up to [`SAMPLE_ROWS`] rows all are held, after that each of `n` rows is held
/// with the same probability. How rows are cut into calls of [`add`](Self::add) changes nothing; their order does: other first centres are
/// drawn, and beyond the sample's size another sample. Give rows in the same order for the same codes.
#[derive(Clone, Debug)]
pub struct CodebookBuilder<L> {
    d: usize,
    k: usize,
    n_sampled: usize,
    n_seen: u64,
    rows: Vec<f32>,
    labels: Vec<L>,
    random: Xoshiro256PlusPlus,
}

impl<L> CodebookBuilder<L> {
    pub(super) fn new(d: usize, k: usize, seed: u64) -> Result<Self, CodesError> {
        if d == 0 || d > SAMPLE_VALUES {
            return Err(CodesError::Width { d, most: SAMPLE_VALUES });
        }
        let n_sampled = SAMPLE_ROWS.min(SAMPLE_VALUES / d);
        if k == 0 || k > n_sampled {
            return Err(CodesError::Codes { k, most: n_sampled });
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ok(Self { d, k, n_sampled, n_seen: 0, rows: Vec::new(), labels: Vec::new(), random })
    }

    /// Holds at most so many rows, at least one a code.
    #[must_use]
    pub fn sample_at_most(mut self, n_rows: usize) -> Self {
        self.n_sampled = self.n_sampled.min(n_rows).max(self.k);
        self
    }

    /// Adds rows `[row, d]`; `label` names a row, by its place among them, where it is shown. Nothing is added of rows that are refused.
    pub fn add(&mut self, rows: &[f32], mut label: impl FnMut(usize) -> L) -> Result<(), CodesError> {
        check(rows, self.d)?;
        for (number, row) in rows.chunks_exact(self.d).enumerate() {
            if self.labels.len() < self.n_sampled {
                self.rows.extend(row);
                self.labels.push(label(number));
            } else {
                let place = self.random.random_range(0..=self.n_seen);
                if let Some(held) = usize::try_from(place).ok().filter(|&place| place < self.n_sampled) {
                    self.rows[held * self.d..][..self.d].copy_from_slice(row);
                    self.labels[held] = label(number);
                }
            }
            self.n_seen += 1;
        }
        Ok(())
    }

    /// Rows given so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    /// Finds the codes: first centres drawn apart from each other (greedy k-means++), then at most 50 rounds of Lloyd's algorithm, until no
    /// row changes its code. The number of threads changes nothing.
    ///
    /// Of fewer distinct rows than codes each has a code of its own, as far as f32 tells them apart.
    pub fn finish(self, threads: &Threads) -> Result<Codebook<L>, CodesError> {
        let Self { d, k, mut rows, labels, mut random, .. } = self;
        if labels.is_empty() {
            return Err(CodesError::NoRow);
        }
        let mean = take_mean_away(&mut rows, d);
        let Groups { centres, codes, distances } = lloyd::groups(&rows, d, k, &mut random, threads);
        Ok(Codebook::new(mean, centres, codes, distances, labels))
    }
}

/// Takes the rows' mean off them, so that squared distances keep their digits wherever the rows lie; gives it.
fn take_mean_away(rows: &mut [f32], d: usize) -> Vec<f32> {
    let n = (rows.len() / d) as f64;
    let mut sums = vec![0.0f64; d];
    for row in rows.chunks_exact(d) {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let mean: Vec<f32> = sums.iter().map(|sum| (sum / n) as f32).collect();
    for row in rows.chunks_exact_mut(d) {
        row.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
    }
    mean
}
