//! Codes of rows, and rows of codes.

use super::distances::{BLOCK_ROWS, Packing};
use super::error::check;
use super::{CodebookBuilder, CodesError};

/// Centres of groups of like rows, the number of the nearest of which is a row's code.
#[derive(Clone, Debug)]
pub struct Codebook<L> {
    mean: Vec<f32>,
    /// `[code, d]`, the mean taken off.
    centres: Vec<f32>,
    packing: Packing,
    /// Of the sample: each row's code, squared distance to its centre, and label.
    sample: Vec<(u32, f32, L)>,
}

/// A row of the sample that has a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest<'a, L> {
    /// As it was given with the row.
    pub label: &'a L,
    /// How far it lies from the centre of its code.
    pub distance: f32,
}

impl<L> Codebook<L> {
    /// Takes rows of `d` values and finds at most `k` codes in them; the same seed, the same codes.
    pub fn builder(d: usize, k: usize, seed: u64) -> Result<CodebookBuilder<L>, CodesError> {
        CodebookBuilder::new(d, k, seed)
    }

    pub(super) fn new(mean: Vec<f32>, centres: Vec<f32>, codes: Vec<u32>, distances: Vec<f32>, labels: Vec<L>) -> Self {
        let packing = Packing::new(&centres, mean.len());
        let sample = codes.into_iter().zip(distances).zip(labels).map(|((code, distance), label)| (code, distance, label)).collect();
        Self { mean, centres, packing, sample }
    }

    /// Values of a row.
    pub fn d(&self) -> usize {
        self.mean.len()
    }

    /// How many codes were found, at least one.
    pub fn n_codes(&self) -> usize {
        self.centres.len() / self.d()
    }

    /// Where a code lies; none if there is no such code.
    pub fn centre(&self, code: u32) -> Option<Vec<f32>> {
        let centre = self.centres.chunks_exact(self.d()).nth(code as usize)?;
        Some(centre.iter().zip(&self.mean).map(|(value, mean)| value + mean).collect())
    }

    /// The code of each of some rows `[row, d]`: its nearest centre, the first among equals, whatever rows stand beside it.
    pub fn codes(&self, rows: &[f32]) -> Result<Vec<u32>, CodesError> {
        check(rows, self.d())?;
        let mut codes = vec![0; rows.len() / self.d()];
        let (mut moved, mut products) = (Vec::new(), Vec::new());
        for (rows, codes) in rows.chunks(BLOCK_ROWS * self.d()).zip(codes.chunks_mut(BLOCK_ROWS)) {
            moved.clear();
            moved.extend(rows.iter().zip(self.mean.iter().cycle()).map(|(value, mean)| value - mean));
            self.packing.assign(&moved, &mut products, codes);
        }
        Ok(codes)
    }

    /// What each code stands for: of the sampled rows that have it, the `n` nearest to its centre, nearest first and in the order of the
    /// sample among equals. Every code has at least one.
    pub fn nearest(&self, n: usize) -> Vec<Vec<Nearest<'_, L>>> {
        let mut found: Vec<Vec<Nearest<'_, L>>> = (0..self.n_codes()).map(|_| Vec::new()).collect();
        for (code, distance, label) in &self.sample {
            found[*code as usize].push(Nearest { label, distance: distance.sqrt() });
        }
        for rows in &mut found {
            rows.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            rows.truncate(n);
        }
        found
    }
}
