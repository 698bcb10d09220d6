//! Operations on rows: scores as dot products, sums, norms.
#![expect(unsafe_code, reason = "dot products read registers through pointers; every bound is asserted before")]

use pulp::{Simd, WithSimd};

use crate::{Matrix, MatrixMut, Real};

/// `result[i, j] = scale · (left row i · right row j)`: all scores between queries and keys, neither side packed.
pub fn dots<F: Real>(mut result: MatrixMut<'_, F>, left: Matrix<'_, F>, right: Matrix<'_, F>, scale: F) {
    assert_eq!((left.rows(), right.rows()), (result.rows(), result.columns()), "shape of dot products");
    assert_eq!(left.columns(), right.columns(), "width of dot products");
    assert!(left.has_contiguous_rows() && right.has_contiguous_rows(), "dot products need contiguous rows");
    pulp::Arch::new().dispatch(Dots { result: &mut result, left, right, scale });
}

struct Dots<'m, 'd, F: Real> {
    result: &'m mut MatrixMut<'d, F>,
    left: Matrix<'m, F>,
    right: Matrix<'m, F>,
    scale: F,
}

impl<F: Real> WithSimd for Dots<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { result, left, right, scale } = self;
        let n_keys = right.rows();
        for query in 0..left.rows() {
            let results = result.row_mut(query);
            let query = left.row(query);
            let mut key = 0;
            while key + 4 <= n_keys {
                dot_keys::<F, S, 4>(simd, results, query, right, key, scale);
                key += 4;
            }
            match n_keys - key {
                1 => dot_keys::<F, S, 1>(simd, results, query, right, key, scale),
                2 => dot_keys::<F, S, 2>(simd, results, query, right, key, scale),
                3 => dot_keys::<F, S, 3>(simd, results, query, right, key, scale),
                _ => {}
            }
        }
    }
}

/// Scores of one query with the keys `key..key + N`.
#[inline(always)]
fn dot_keys<F: Real, S: Simd, const N: usize>(simd: S, results: &mut [F], query: &[F], keys: Matrix<'_, F>, key: usize, scale: F) {
    let sums = dot_rows::<F, S, N>(simd, query, std::array::from_fn(|number| keys.row(key + number)));
    for (result, sum) in results[key..key + N].iter_mut().zip(sums) {
        *result = sum * scale;
    }
}

/// Dot products of one row with `N` others; each is summed in the same order whatever `N` is.
#[inline(always)]
fn dot_rows<F: Real, S: Simd, const N: usize>(simd: S, left: &[F], right: [&[F]; N]) -> [F; N] {
    let width = size_of::<F::Lanes<S>>() / size_of::<F>();
    let whole = left.len() - left.len() % width;
    assert!(right.iter().all(|row| row.len() == left.len()), "rows of one width");
    let mut sums = [F::splat(simd, F::ZERO); N];
    for from in (0..whole).step_by(width) {
        // SAFETY: `from + width ≤ whole ≤ len` of every row.
        unsafe {
            let factor = left.as_ptr().add(from).cast::<F::Lanes<S>>().read_unaligned();
            for (sum, row) in sums.iter_mut().zip(&right) {
                let other = row.as_ptr().add(from).cast::<F::Lanes<S>>().read_unaligned();
                *sum = F::multiply_add(simd, factor, other, *sum);
            }
        }
    }
    let mut totals = [F::ZERO; N];
    for ((total, sum), row) in totals.iter_mut().zip(sums).zip(&right) {
        *total = F::sum_lanes(simd, sum);
        for (a, b) in left[whole..].iter().zip(&row[whole..]) {
            *total += *a * *b;
        }
    }
    totals
}

/// `target += source`, element by element.
pub fn add<F: Real>(target: &mut [F], source: &[F]) {
    assert_eq!(target.len(), source.len(), "addition of slices of one length");
    crate::vectorised(
        #[inline(always)]
        || target.iter_mut().zip(source).for_each(|(target, source)| *target += *source),
    );
}

/// `target += factor · source`, element by element.
pub fn add_scaled<F: Real>(target: &mut [F], factor: F, source: &[F]) {
    assert_eq!(target.len(), source.len(), "addition of slices of one length");
    crate::vectorised(
        #[inline(always)]
        || target.iter_mut().zip(source).for_each(|(target, source)| *target += factor * *source),
    );
}

/// `sums[j] += Σ_i matrix[i, j]`: the gradient of a bias.
pub fn sum_rows<F: Real>(sums: &mut [F], matrix: Matrix<'_, F>) {
    for row in 0..matrix.rows() {
        add(sums, matrix.row(row));
    }
}

/// `Σ x²`, in `f64` and in a fixed order.
pub fn squared_norm<F: Real>(values: &[F]) -> f64 {
    crate::vectorised(
        #[inline(always)]
        || {
            let mut sums = [0.0f64; 8];
            let (blocks, rest) = values.as_chunks::<8>();
            for block in blocks {
                for (sum, value) in sums.iter_mut().zip(block) {
                    let value = value.to_f64();
                    *sum += value * value;
                }
            }
            sums.iter().sum::<f64>() + rest.iter().map(|value| value.to_f64() * value.to_f64()).sum::<f64>()
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dots_are_the_products_of_rows(left in prop::collection::vec(-1.0f64..1.0, 60), right in prop::collection::vec(-1.0f64..1.0, 140), width in 1usize..20) {
            let (n_left, n_right) = (60 / width, 140 / width);
            let (left, right) = (Matrix::new(&left, n_left, width), Matrix::new(&right, n_right, width));
            let mut result = vec![0.0; n_left * n_right];
            dots(MatrixMut::new(&mut result, n_left, n_right), left, right, 0.5);
            for i in 0..n_left {
                for j in 0..n_right {
                    let expected: f64 = left.row(i).iter().zip(right.row(j)).map(|(a, b)| a * b * 0.5).sum();
                    prop_assert!((result[i * n_right + j] - expected).abs() < 1e-14 * width as f64);
                }
            }
        }

        #[test]
        fn norms_are_sums_of_squares(values in prop::collection::vec(-3.0f32..3.0, 0..50)) {
            let expected: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
            prop_assert!((squared_norm(&values) - expected).abs() < 1e-12 * (1.0 + expected));
        }
    }

    /// Column sums of [[1, 2], [3, 4]] on top of [10, 20]: 10+1+3, 20+2+4.
    #[test]
    fn rows_are_summed_onto_what_is_there() {
        let mut sums = [10.0, 20.0];
        sum_rows(&mut sums, Matrix::new(&[1.0, 2.0, 3.0, 4.0], 2, 2));
        assert_eq!(sums, [14.0, 26.0]);
    }
}
