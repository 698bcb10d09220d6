//! Lloyd's algorithm: rows to their nearest centre, centres to the mean of their rows, again and again.

use crosslens_kernels::Threads;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::distances::{BLOCK_ROWS, Packing, distances_to_own};
use super::seeding::first_centres;

/// Most rounds.
const MAX_ROUNDS: usize = 50;

/// Rows put into groups.
pub(super) struct Groups {
    /// `[code, d]`.
    pub(super) centres: Vec<f32>,
    /// The code of each row; every code has a row.
    pub(super) codes: Vec<u32>,
    /// The squared distance of each row to its centre.
    pub(super) distances: Vec<f32>,
}

/// Finds up to `k` groups of rows `[row, d]`.
pub(super) fn groups(rows: &[f32], d: usize, k: usize, random: &mut Xoshiro256PlusPlus, threads: &Threads) -> Groups {
    let n_rows = rows.len() / d;
    let centres = first_centres(rows, d, k, random, threads);
    let mut groups = Groups { centres, codes: vec![u32::MAX; n_rows], distances: vec![0.0; n_rows] };
    for _ in 0..MAX_ROUNDS {
        let before = groups.codes.clone();
        groups.assign(rows, d, threads);
        groups.fill_empty_codes(d);
        if groups.codes == before {
            break;
        }
        groups.move_centres(rows, d);
    }
    groups.assign(rows, d, threads);
    groups.drop_empty_codes(d);
    groups
}

impl Groups {
    /// Gives each row its nearest centre and the distance to it.
    fn assign(&mut self, rows: &[f32], d: usize, threads: &Threads) {
        let packing = Packing::new(&self.centres, d);
        let centres = &self.centres;
        let blocks = self.codes.chunks_mut(BLOCK_ROWS).zip(self.distances.chunks_mut(BLOCK_ROWS));
        let mut blocks: Vec<_> = rows.chunks(BLOCK_ROWS * d).zip(blocks).collect();
        threads.for_each(&mut blocks, |_, (rows, (codes, distances))| {
            packing.assign(rows, &mut Vec::new(), codes);
            distances_to_own(rows, d, centres, codes, distances);
        });
    }

    fn counts(&self, d: usize) -> Vec<u32> {
        let mut counts = vec![0; self.centres.len() / d];
        self.codes.iter().for_each(|&code| counts[code as usize] += 1);
        counts
    }

    /// Gives a code without rows the row that lies farthest from its centre, the first among equals, unless it is alone there; where all
    /// rows lie on their centres the code stays empty.
    fn fill_empty_codes(&mut self, d: usize) {
        let mut counts = self.counts(d);
        for empty in 0..counts.len() {
            if counts[empty] > 0 {
                continue;
            }
            let mut farthest: Option<usize> = None;
            for (row, &distance) in self.distances.iter().enumerate() {
                if distance > farthest.map_or(0.0, |row| self.distances[row]) && counts[self.codes[row] as usize] > 1 {
                    farthest = Some(row);
                }
            }
            let Some(row) = farthest else { return };
            counts[self.codes[row] as usize] -= 1;
            counts[empty] = 1;
            (self.codes[row], self.distances[row]) = (empty as u32, 0.0);
        }
    }

    /// Puts every centre in the mean of its rows.
    fn move_centres(&mut self, rows: &[f32], d: usize) {
        let counts = self.counts(d);
        let mut sums = vec![0.0f64; self.centres.len()];
        for (row, &code) in rows.chunks_exact(d).zip(&self.codes) {
            sums[code as usize * d..][..d].iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        for ((centre, sums), &count) in self.centres.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(&counts) {
            if count > 0 {
                centre.iter_mut().zip(sums).for_each(|(value, sum)| *value = (sum / f64::from(count)) as f32);
            }
        }
    }

    /// Leaves codes out that no row has, and numbers the others anew in their order.
    fn drop_empty_codes(&mut self, d: usize) {
        let mut kept = Vec::new();
        let mut numbers = Vec::new();
        for (centre, count) in self.centres.chunks_exact(d).zip(self.counts(d)) {
            numbers.push((kept.len() / d) as u32);
            if count > 0 {
                kept.extend(centre);
            }
        }
        self.codes.iter_mut().for_each(|code| *code = numbers[*code as usize]);
        self.centres = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 0, 1, 9 and 12 with centres 0 and 10, and a third that has no row: 12 lies farthest (2 from 10; 1 and 9 lie 1 off).
    #[test]
    fn an_empty_code_takes_the_farthest_row() {
        let rows = [0.0, 1.0, 9.0, 12.0];
        let mut groups = Groups { centres: vec![0.0, 10.0, 99.0], codes: vec![0; 4], distances: vec![0.0; 4] };
        let threads = Threads::new(1).expect("no thread is started");
        groups.assign(&rows, 1, &threads);
        assert_eq!((&groups.codes[..], &groups.distances[..]), (&[0, 0, 1, 1][..], &[0.0, 1.0, 1.0, 4.0][..]));
        groups.fill_empty_codes(1);
        assert_eq!(groups.codes, [0, 0, 1, 2]);
        groups.move_centres(&rows, 1);
        assert_eq!(groups.centres, [0.5, 9.0, 12.0]);
    }

    #[test]
    fn an_empty_code_that_finds_no_row_is_dropped() {
        let mut groups = Groups { centres: vec![5.0, 0.0, 9.0, 1.0], codes: vec![1, 3], distances: vec![0.0, 0.0] };
        groups.fill_empty_codes(1);
        assert_eq!(groups.codes, [1, 3], "both rows lie on their centres");
        groups.drop_empty_codes(1);
        assert_eq!((&groups.centres[..], &groups.codes[..]), (&[0.0, 1.0][..], &[0, 1][..]));
    }
}
