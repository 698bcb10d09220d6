//! Sums of rows and of their products with another row.

use pulp::{Simd, WithSimd};

use crate::Real;

/// `Σ_k x[k]` and `Σ_k x[k]·(y[k] − mean)` of several rows `x` beside one row `y`. Panics unless all are of one length.
///
/// ```
/// let (rows, beside) = ([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0]);
/// let mut moments = [(0.0, 0.0); 2];
/// crosslens_kernels::moments(|row| &rows[row][..], &beside, 15.0, &mut moments);
/// assert_eq!(moments, [(3.0, 5.0), (7.0, 5.0)]);
/// ```
pub fn moments<'a, F: Real>(rows: impl Fn(usize) -> &'a [F], beside: &[F], mean: F, moments: &mut [(F, F)]) {
    pulp::Arch::new().dispatch(Moments { rows, beside, mean, moments });
}

struct Moments<'m, F: Real, R> {
    rows: R,
    beside: &'m [F],
    mean: F,
    moments: &'m mut [(F, F)],
}

impl<'a, F: Real, R: Fn(usize) -> &'a [F]> WithSimd for Moments<'_, F, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, beside, mean, moments } = self;
        let mean = F::splat(simd, mean);
        let (others, last_others) = F::as_lanes::<S>(beside);
        let last_others = F::partial_lanes(simd, last_others);
        for (row, (sum, product)) in moments.iter_mut().enumerate() {
            let row = rows(row);
            assert_eq!(row.len(), beside.len(), "rows of one length");
            let (values, last) = F::as_lanes::<S>(row);
            let mut sums = F::partial_lanes(simd, last);
            let mut products = F::multiply_add(simd, sums, F::subtract_lanes(simd, last_others, mean), F::splat(simd, F::ZERO));
            for (&value, &other) in values.iter().zip(others) {
                sums = F::add_lanes(simd, sums, value);
                products = F::multiply_add(simd, value, F::subtract_lanes(simd, other, mean), products);
            }
            (*sum, *product) = (F::sum_lanes(simd, sums), F::sum_lanes(simd, products));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulp::WithSimd;

    use super::Moments;

    proptest! {
        #[test]
        fn registers_of_any_size_give_the_same_moments(values in prop::collection::vec(-2.0f32..2.0, 0..120), mean in -1.0f32..1.0) {
            let n = values.len() / 2;
            let (row, beside) = values.split_at(n);
            let beside = &beside[..n];
            let sum: f32 = row.iter().sum();
            let product: f32 = row.iter().zip(beside).map(|(x, y)| x * (y - mean)).sum();
            let mut all = [[(0.0, 0.0)]; 3];
            super::moments(|_| row, beside, mean, &mut all[0]);
            Moments { rows: |_| row, beside, mean, moments: &mut all[1] }.with_simd(pulp::Scalar128b);
            Moments { rows: |_| row, beside, mean, moments: &mut all[2] }.with_simd(pulp::Scalar512b);
            for [found] in all {
                prop_assert!((found.0 - sum).abs() < 1e-4 && (found.1 - product).abs() < 1e-3);
            }
        }

        #[test]
        fn moments_are_sums(values in prop::collection::vec(-2.0f64..2.0, 0..120), n_rows in 1usize..4, mean in -1.0f64..1.0) {
            let n = values.len() / (n_rows + 1);
            let row = |number: usize| &values[number * n..][..n];
            let mut moments = vec![(0.0, 0.0); n_rows];
            super::moments(row, row(n_rows), mean, &mut moments);
            for (number, &(sum, product)) in moments.iter().enumerate() {
                prop_assert!((sum - row(number).iter().sum::<f64>()).abs() < 1e-12);
                let expected: f64 = row(number).iter().zip(row(n_rows)).map(|(x, y)| x * (y - mean)).sum();
                prop_assert!((product - expected).abs() < 1e-12);
            }
        }
    }
}
