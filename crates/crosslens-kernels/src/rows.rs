//! Operations on rows: scores as dot products, sums, norms.
#![expect(unsafe_code, reason = "dot products read registers through pointers; every bound is asserted before")]

use pulp::{Simd, WithSimd};

use crate::{Matrix, MatrixMut, Real};

/// `result[i, j] = scale · (left row i · right row j)`: all scores between queries and keys, neither side packed.
pub fn dots<F: Real>(result: MatrixMut<'_, F>, left: Matrix<'_, F>, right: Matrix<'_, F>, scale: F) {
    F::dots(result, Rows::Matrix(left), Rows::Matrix(right), scale);
}

/// The same for rows that lie anywhere. Panics unless all are of one width.
///
/// ```
/// use crosslens_kernels::{MatrixMut, dots_of};
/// let mut scores = [0.0; 2];
/// dots_of(MatrixMut::new(&mut scores, 1, 2), &[&[1.0, 2.0]], &[&[3.0, 4.0], &[5.0, 6.0]], 0.5);
/// assert_eq!(scores, [5.5, 8.5]);
/// ```
pub fn dots_of<F: Real>(result: MatrixMut<'_, F>, left: &[&[F]], right: &[&[F]], scale: F) {
    F::dots(result, Rows::Listed(left), Rows::Listed(right), scale);
}

/// Both of the above, for either kind of numbers compiled once, here: the many sizes of blocks take a compiler ten seconds.
pub(crate) fn dots_between<F: Real>(mut result: MatrixMut<'_, F>, left: Rows<'_, F>, right: Rows<'_, F>, scale: F) {
    pulp::Arch::new().dispatch(Dots::new(&mut result, left, right, scale));
}

/// Rows to be multiplied.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a, F> {
    /// All of a matrix.
    Matrix(Matrix<'a, F>),
    /// One by one.
    Listed(&'a [&'a [F]]),
}

impl<'a, F: Real> Rows<'a, F> {
    fn len(&self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.rows(),
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Whether all are so long, each of them in one piece.
    fn are_wide(&self, width: usize) -> bool {
        match self {
            Self::Matrix(matrix) => matrix.rows() == 0 || matrix.has_contiguous_rows() && matrix.columns() == width,
            Self::Listed(rows) => rows.iter().all(|row| row.len() == width),
        }
    }

    /// How long the first is.
    fn width(&self) -> Option<usize> {
        match self {
            Self::Matrix(matrix) => (matrix.rows() > 0).then(|| matrix.columns()),
            Self::Listed(rows) => rows.first().map(|row| row.len()),
        }
    }

    /// Where some rows begin.
    ///
    /// # Safety
    /// There must be `row + N` of them.
    #[inline(always)]
    unsafe fn begin<const N: usize>(&self, row: usize) -> [*const F; N] {
        let mut begin = [std::ptr::null(); N];
        match self {
            Self::Matrix(matrix) => {
                let (first, stride, _) = matrix.parts();
                // SAFETY: the row is there, and a matrix lies in its slice.
                begin.iter_mut().enumerate().for_each(|(number, begin)| *begin = unsafe { first.add((row + number) * stride) });
            }
            Self::Listed(rows) => {
                // SAFETY: the caller's promise.
                let rows = unsafe { rows.get_unchecked(row..row + N) };
                begin.iter_mut().zip(rows).for_each(|(begin, row)| *begin = row.as_ptr());
            }
        }
        begin
    }
}

/// Every bound is looked at when this is made, and none for each of the many small blocks.
struct Dots<'m, 'd, F: Real> {
    /// `[left, right]`.
    result: &'m mut MatrixMut<'d, F>,
    left: Rows<'m, F>,
    right: Rows<'m, F>,
    /// Of all rows.
    width: usize,
    scale: F,
}

impl<'m, 'd, F: Real> Dots<'m, 'd, F> {
    /// Panics unless the shapes fit.
    fn new(result: &'m mut MatrixMut<'d, F>, left: Rows<'m, F>, right: Rows<'m, F>, scale: F) -> Self {
        let width = left.width().or(right.width()).unwrap_or(0);
        assert!(left.are_wide(width) && right.are_wide(width), "contiguous rows of one width");
        assert_eq!((left.len(), right.len()), (result.rows(), result.columns()), "shape of dot products");
        Self { result, left, right, width, scale }
    }
}

impl<F: Real> WithSimd for Dots<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (n_queries, n_keys) = (self.left.len(), self.right.len());
        let (most_queries, most_keys) = together::<F, S>();
        let (mut near, mut query) = (evenly(n_queries, most_queries), 0);
        while query < n_queries {
            // Queries that stay in the nearest cache while the keys pass by: two groups of at most five rows of 512 `f32` are 20 KiB.
            let groups = [near.next().unwrap_or(0), near.next().unwrap_or(0)];
            let mut key = 0;
            for n_together in evenly(n_keys, most_keys) {
                let mut from = query;
                for n_queries in groups {
                    let at = (from, key);
                    match n_together {
                        1 => self.queries::<S, 1>(simd, at, n_queries),
                        2 => self.queries::<S, 2>(simd, at, n_queries),
                        3 => self.queries::<S, 3>(simd, at, n_queries),
                        4 if most_keys > 3 => self.queries::<S, 4>(simd, at, n_queries),
                        _ if most_keys > 3 => self.queries::<S, 5>(simd, at, n_queries),
                        _ => unreachable!("groups have at most three keys"),
                    }
                    from += n_queries;
                }
                key += n_together;
            }
            query += groups[0] + groups[1];
        }
    }
}

/// Most queries and keys that are multiplied at once. Four by three sums, three keys and a query fill sixteen registers; where registers have
/// 64 bytes there are 32 of them, for five by five sums, five keys and a query.
#[inline(always)]
const fn together<F: Real, S: Simd>() -> (usize, usize) {
    if size_of::<F::Lanes<S>>() == 64 { (5, 5) } else { (4, 3) }
}

/// Cuts `n` rows into as few groups of at most `most` as there can be, of about the same size: a group of one would wait for its sums.
#[inline(always)]
fn evenly(n: usize, most: usize) -> impl Iterator<Item = usize> {
    let n_groups = n.div_ceil(most);
    let (size, n_larger) = (n / n_groups.max(1), n % n_groups.max(1));
    (0..n_groups).map(move |group| size + usize::from(group < n_larger))
}

impl<F: Real> Dots<'_, '_, F> {
    /// Scores of a group of queries with `K` keys, written from `at` on.
    #[inline(always)]
    fn queries<S: Simd, const K: usize>(&mut self, simd: S, at: (usize, usize), n_queries: usize) {
        match n_queries {
            0 => {}
            1 => self.block::<S, 1, K>(simd, at),
            2 => self.block::<S, 2, K>(simd, at),
            3 => self.block::<S, 3, K>(simd, at),
            4 => self.block::<S, 4, K>(simd, at),
            _ if together::<F, S>().0 > 4 => self.block::<S, 5, K>(simd, at),
            _ => unreachable!("groups have at most four queries"),
        }
    }

    /// Scores of `Q` queries with `K` keys, written from `(query, key)` on.
    #[inline(always)]
    fn block<S: Simd, const Q: usize, const K: usize>(&mut self, simd: S, (query, key): (usize, usize)) {
        // SAFETY: blocks lie within the rows there are, and `new` found all of them to be of this width.
        let sums = unsafe { dot_rows::<F, S, Q, K>(simd, &self.left.begin(query), &self.right.begin(key), self.width) };
        let (result, result_row) = self.result.parts_mut();
        for (row, sums) in sums.into_iter().enumerate() {
            for (column, sum) in sums.into_iter().enumerate() {
                // SAFETY: the result has as many rows and columns as there are queries and keys, which `new` asserts.
                unsafe { *result.add((query + row) * result_row + key + column) = sum * self.scale };
            }
        }
    }
}

/// Dot products of `Q` rows with `K` others; each is summed in the same order whatever `Q` and `K` are.
///
/// The others wait in registers while the rows pass by one after the other: the other way round the sums do not fit beside them.
///
/// # Safety
/// At all pointers `width` numbers must be readable.
#[inline(always)]
unsafe fn dot_rows<F: Real, S: Simd, const Q: usize, const K: usize>(
    simd: S,
    left: &[*const F; Q],
    right: &[*const F; K],
    width: usize,
) -> [[F; K]; Q] {
    let lanes = size_of::<F::Lanes<S>>() / size_of::<F>();
    let whole = width - width % lanes;
    let mut sums = [[F::splat(simd, F::ZERO); K]; Q];
    for from in (0..whole).step_by(lanes) {
        // SAFETY: `from + lanes ≤ whole ≤ width`, the length of every row.
        unsafe {
            let mut factors = [F::splat(simd, F::ZERO); K];
            for (factor, row) in factors.iter_mut().zip(right) {
                *factor = row.add(from).cast::<F::Lanes<S>>().read_unaligned();
            }
            for (sums, row) in sums.iter_mut().zip(left) {
                let other = row.add(from).cast::<F::Lanes<S>>().read_unaligned();
                for (sum, &factor) in sums.iter_mut().zip(&factors) {
                    *sum = F::multiply_add(simd, other, factor, *sum);
                }
            }
        }
    }
    let mut totals = [[F::ZERO; K]; Q];
    for (totals, sums) in totals.iter_mut().zip(&sums) {
        for (total, &sum) in totals.iter_mut().zip(sums) {
            *total = F::sum_lanes(simd, sum);
        }
    }
    // Apart, so that the sums above stay in their registers.
    if whole < width {
        for (totals, left) in totals.iter_mut().zip(left) {
            for (total, right) in totals.iter_mut().zip(right) {
                for place in whole..width {
                    // SAFETY: `place < width`.
                    *total += unsafe { *left.add(place) * *right.add(place) };
                }
            }
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

/// Asks for memory that is read soon, where the processor would not guess it: rows picked out of a large table. Changes nothing else.
#[inline]
pub fn fetch_ahead<T>(values: &[T]) {
    for place in (0..values.len()).step_by((64 / size_of::<T>().max(1)).max(1)) {
        fetch_line(values, place);
    }
}

/// The same for memory that is read only after other work, which must not lose its own from the nearest cache: brought into the next.
pub fn fetch_for_later<T>(values: &[T]) {
    for place in (0..values.len()).step_by((64 / size_of::<T>().max(1)).max(1)) {
        fetch_address(values.as_ptr().wrapping_add(place));
    }
}

/// As [`fetch_for_later`], for the line of the cache at an address, whatever that is.
#[inline(always)]
pub(crate) fn fetch_address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `fetch_line`.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// As [`fetch_ahead`], for the line of the cache at a place among some values. Beyond their end nothing comes of it: loops need not look.
#[inline(always)]
pub fn fetch_line<T>(values: &[T], place: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint to the cache about an address, whatever that is; nothing is read or written, and SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(values.as_ptr().wrapping_add(place).cast());
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, place);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Dot products on given registers, whatever this machine would choose.
    fn dots_on<F: Real, S: Simd>(simd: S, left: Matrix<'_, F>, right: Matrix<'_, F>) -> Vec<F> {
        let mut result = vec![F::ZERO; left.rows() * right.rows()];
        let matrix = &mut MatrixMut::new(&mut result, left.rows(), right.rows());
        Dots::new(matrix, Rows::Matrix(left), Rows::Matrix(right), F::of(0.5)).with_simd(simd);
        result
    }

    /// Dot products of `f32` on all kinds of registers that can be run here: of four bytes, of 16, of 64, and this machine's own.
    fn on_all(left: Matrix<'_, f32>, right: Matrix<'_, f32>) -> Vec<Vec<f32>> {
        let mut own = vec![0.0; left.rows() * right.rows()];
        dots(MatrixMut::new(&mut own, left.rows(), right.rows()), left, right, 0.5);
        let portable = [dots_on(pulp::Scalar, left, right), dots_on(pulp::Scalar128b, left, right), dots_on(pulp::Scalar512b, left, right)];
        portable.into_iter().chain([own]).collect()
    }

    proptest! {
        #[test]
        fn registers_of_any_size_give_the_same_dots(n_left in 0usize..13, n_right in 0usize..13, width in 1usize..50, values in prop::collection::vec(-1.0f32..1.0, 1300)) {
            let (left, right) = (Matrix::new(&values, n_left, width), Matrix::new(&values[650..], n_right, width));
            for result in on_all(left, right) {
                for (number, found) in result.iter().enumerate() {
                    let (i, j) = (number / n_right, number % n_right);
                    let expected: f64 = left.row(i).iter().zip(right.row(j)).map(|(&a, &b)| f64::from(a) * f64::from(b) * 0.5).sum();
                    prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
                }
            }
            // A pair's product does not depend on the rows beside it.
            if n_left > 0 && n_right > 0 {
                let (last_left, last_right) = (left.row_range(n_left - 1, n_left), right.row_range(n_right - 1, n_right));
                for (all, alone) in on_all(left, right).iter().zip(on_all(last_left, last_right)) {
                    prop_assert_eq!(all[all.len() - 1], alone[0]);
                }
            }
        }

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

    #[test]
    #[should_panic(expected = "contiguous rows of one width")]
    fn rows_of_another_width_are_refused() {
        dots_of(MatrixMut::new(&mut [0.0; 2], 1, 2), &[&[1.0, 2.0]], &[&[3.0, 4.0], &[5.0]], 1.0);
    }

    #[test]
    #[should_panic(expected = "contiguous rows of one width")]
    fn rows_that_are_no_rows_are_refused() {
        let values = [1.0; 6];
        dots(MatrixMut::new(&mut [0.0; 9], 3, 3), Matrix::new(&values, 2, 3).transposed(), Matrix::new(&values, 3, 2), 1.0);
    }

    #[test]
    #[should_panic(expected = "shape of dot products")]
    fn a_result_of_another_shape_is_refused() {
        dots(MatrixMut::new(&mut [0.0; 9], 3, 3), Matrix::new(&[1.0; 6], 2, 3), Matrix::new(&[1.0; 9], 3, 3), 1.0);
    }

    /// Column sums of [[1, 2], [3, 4]] on top of [10, 20]: 10+1+3, 20+2+4.
    #[test]
    fn rows_are_summed_onto_what_is_there() {
        let mut sums = [10.0, 20.0];
        sum_rows(&mut sums, Matrix::new(&[1.0, 2.0, 3.0, 4.0], 2, 2));
        assert_eq!(sums, [14.0, 26.0]);
    }
}
