//! Squared distances, one by one and to all centres at once.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, product, vectorised};

/// Rows that are taken together; fixed, so that nothing depends on the number of threads.
pub(super) const BLOCK_ROWS: usize = 256;
/// Sums that run side by side.
const LANES: usize = 16;

/// `Σ (a − b)²`: exactly 0 for equal rows.
#[inline(always)]
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..LANES {
            let apart = a[lane] - b[lane];
            sums[lane] += apart * apart;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum::<f32>()
}

/// The squared distance of each row to its centre.
pub(super) fn distances_to_own(rows: &[f32], d: usize, centres: &[f32], codes: &[u32], distances: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for ((row, &code), distance) in rows.chunks_exact(d).zip(codes).zip(distances) {
                *distance = squared_distance(row, &centres[code as usize * d..][..d]);
            }
        },
    );
}

/// Centres, ready to be compared with many rows.
///
/// ```text
/// argmin_c |x − c|² = argmin_c (|c|²/2 − x·c)
/// ```
#[derive(Clone, Debug)]
pub(super) struct Packing {
    d: usize,
    halves: Vec<f32>,
    columns: Packed<f32>,
}

impl Packing {
    /// Of centres `[code, d]`.
    pub(super) fn new(centres: &[f32], d: usize) -> Self {
        let half = |centre: &[f32]| (0.5 * centre.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()) as f32;
        let halves: Vec<f32> = centres.chunks_exact(d).map(half).collect();
        let mut columns = Packed::new();
        columns.pack(Matrix::new(centres, halves.len(), d).transposed());
        Self { d, halves, columns }
    }

    /// The nearest centre of each row, the first among equals. A row's code does not depend on the rows beside it. `products` is scratch.
    pub(super) fn assign(&self, rows: &[f32], products: &mut Vec<f32>, codes: &mut [u32]) {
        let n_codes = self.halves.len();
        for (rows, codes) in rows.chunks(BLOCK_ROWS * self.d).zip(codes.chunks_mut(BLOCK_ROWS)) {
            products.resize(codes.len() * n_codes, 0.0);
            let result = MatrixMut::new(products, codes.len(), n_codes);
            product(result, Matrix::new(rows, codes.len(), self.d), &self.columns, Write::Over);
            for (products, code) in products.chunks_exact(n_codes).zip(codes) {
                let mut best = (f32::INFINITY, 0);
                for (number, (half, product)) in self.halves.iter().zip(products).enumerate() {
                    if half - product < best.0 {
                        best = (half - product, number as u32);
                    }
                }
                *code = best.1;
            }
        }
    }
}
