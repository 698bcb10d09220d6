//! First centres: rows that lie apart from each other.

use crosslens_kernels::{Threads, vectorised};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::distances::{BLOCK_ROWS, squared_distance};

/// Draws up to `k` different rows as centres `[code, d]` (greedy k-means++).
///
/// The first is any row. For each next one some rows are drawn, each with a probability in proportion to its squared distance from the
/// nearest centre so far, and the one that would leave the smallest sum of these is taken. Ends early where every row is a centre.
pub(super) fn first_centres(rows: &[f32], d: usize, k: usize, random: &mut Xoshiro256PlusPlus, threads: &Threads) -> Vec<f32> {
    let n_rows = rows.len() / d;
    let n_drawn = 2 + (k as f64).ln() as usize;
    let row = |number: usize| &rows[number * d..][..d];
    let mut centres = row(random.random_range(0..n_rows)).to_vec();
    let mut nearest = Tries::new(n_rows, 1).run(rows, d, &[&centres], &vec![f32::INFINITY; n_rows], threads).take_best();
    let mut tries = Tries::new(n_rows, n_drawn);
    while centres.len() < k * d {
        let total: f64 = nearest.iter().map(|&distance| f64::from(distance)).sum();
        if total <= 0.0 {
            break;
        }
        let drawn: Vec<usize> = (0..n_drawn).map(|_| at_share(&nearest, random.random::<f64>() * total)).collect();
        let candidates: Vec<&[f32]> = drawn.iter().map(|&number| row(number)).collect();
        tries.run(rows, d, &candidates, &nearest, threads);
        centres.extend(candidates[tries.best()]);
        nearest = tries.take_best();
    }
    centres
}

/// The row at which the running sum of distances passes `point`; one that is apart from all centres.
fn at_share(distances: &[f32], point: f64) -> usize {
    let mut sum = 0.0;
    let mut last = 0;
    for (number, &distance) in distances.iter().enumerate().filter(|(_, distance)| **distance > 0.0) {
        (last, sum) = (number, sum + f64::from(distance));
        if sum > point {
            break;
        }
    }
    last
}

/// Distances from the nearest centre, for each row that might become one: by block of rows, candidate and row.
struct Tries {
    n_candidates: usize,
    blocks: Vec<Vec<f32>>,
}

impl Tries {
    fn new(n_rows: usize, n_candidates: usize) -> Self {
        let block = |from: usize| vec![0.0; n_candidates * BLOCK_ROWS.min(n_rows - from)];
        Self { n_candidates, blocks: (0..n_rows).step_by(BLOCK_ROWS).map(block).collect() }
    }

    fn run(&mut self, rows: &[f32], d: usize, candidates: &[&[f32]], nearest: &[f32], threads: &Threads) -> &mut Self {
        threads.for_each(&mut self.blocks, |number, block| {
            let from = number * BLOCK_ROWS;
            let n_rows = block.len() / candidates.len();
            vectorised(
                #[inline(always)]
                || {
                    for place in 0..n_rows {
                        let row = &rows[(from + place) * d..][..d];
                        for (candidate, centre) in candidates.iter().enumerate() {
                            block[candidate * n_rows + place] = squared_distance(row, centre).min(nearest[from + place]);
                        }
                    }
                },
            );
        });
        self
    }

    /// The first candidate that leaves the smallest sum.
    fn best(&self) -> usize {
        let left = |candidate: usize| -> f64 { self.of(candidate).map(f64::from).sum() };
        let sums: Vec<f64> = (0..self.n_candidates).map(left).collect();
        (1..sums.len()).fold(0, |best, candidate| if sums[candidate] < sums[best] { candidate } else { best })
    }

    fn take_best(&self) -> Vec<f32> {
        self.of(self.best()).collect()
    }

    /// The distances under one candidate, row by row.
    fn of(&self, candidate: usize) -> impl Iterator<Item = f32> {
        self.blocks.iter().flat_map(move |block| {
            let n_rows = block.len() / self.n_candidates;
            block[candidate * n_rows..][..n_rows].iter().copied()
        })
    }
}
