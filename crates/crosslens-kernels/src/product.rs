//! Matrix products on one thread.
//!
//! The inner tile keeps `R × 2` registers of the result while it walks along the shared dimension; the right side is read in panels of two
//! registers' width, packed once and reused (the recurrent weights serve every step and every shard). Each element of the result is one
//! chain of multiply-adds along the shared dimension, in order, so it depends on its row and column alone. While the tiles of a panel run,
//! the next panel is brought into the second cache: weights of a large model come from further away than the processor guesses ahead. Every
//! tile asks for its share, because a processor keeps few requests under way and stands still beyond them.
//!
//! Why not a matrix-product crate: those pack both sides on every call, which for the few rows of one recurrent step costs a third of the
//! time, and choose their kernel by size, so that a row's bits depend on the rows beside it.
#![expect(unsafe_code, reason = "the tile reads and writes registers through pointers; every bound is asserted before it runs")]

use pulp::{Simd, WithSimd};

use crate::rows::fetch_address;
use crate::{Aligned, Matrix, MatrixMut, Real};

/// Most rows of the result that one tile holds, in the 16 registers that every processor has.
const TILE_ROWS: usize = 6;
/// Bytes of a register where there are 32 of them.
const WIDE_REGISTER: usize = 64;
/// Rows that a tile holds in 32 registers: the right side is read half as often.
const TALL_ROWS: usize = 12;
/// Rows of the shared dimension that a transposed product packs at a time: a panel stays in the first-level cache.
const CHUNK_ROWS: usize = 256;
/// Rows of a panel that are filled together from a matrix lying the other way: they stay in the first-level cache while its rows pass by,
/// each of which gives a number to every line of them.
const TURNED_ROWS: usize = 256;

/// What a product does with what already stands in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Replaces it.
    Over,
    /// Adds to it.
    Add,
}

/// The right side of a product, laid out in panels for the tile.
///
/// Reused from call to call; allocates only when it grows.
#[derive(Clone, Debug, Default)]
pub struct Packed<F> {
    /// One panel after the other.
    panels: Aligned<F>,
    /// What is added to every row of a result; empty where nothing is.
    bias: Aligned<F>,
    rows: usize,
    columns: usize,
    width: usize,
}

impl<F: Real> Packed<F> {
    /// Nothing packed yet.
    pub fn new() -> Self {
        Self { panels: Aligned::zeros(0), bias: Aligned::zeros(0), rows: 0, columns: 0, width: 0 }
    }

    /// Takes a copy of `matrix`, in place of what was packed before, without a bias.
    pub fn pack(&mut self, matrix: Matrix<'_, F>) {
        F::pack(self, matrix);
    }

    /// Has [`product`] and [`product_of_many`] add `bias` to every row of their results, where it
    /// costs next to nothing. Panics unless it has as many numbers as the matrix has columns.
    pub fn add_bias(&mut self, bias: &[F]) {
        assert_eq!(bias.len(), self.columns, "numbers of a bias");
        self.bias = Aligned::from(bias);
    }

    /// Rows of the packed matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the packed matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Columns of a panel.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// One panel: all rows of the matrix, [`Packed::width`] numbers of each.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn panel(&self, number: usize) -> &[F] {
        &self.panels[number * self.rows * self.width..][..self.rows * self.width]
    }

    /// What is added to every row of a result; empty where nothing is.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn bias(&self) -> &[F] {
        &self.bias
    }

    /// The first element of all panels.
    #[inline(always)]
    fn first(&self) -> *const F {
        self.panels.as_ptr()
    }
}

/// `result = left · right + bias`, or `+=` with [`Write::Add`]. Panics unless the shapes fit.
///
/// ```
/// use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, product};
/// let mut right = Packed::new();
/// right.pack(Matrix::new(&[1.0, 2.0, 3.0, 4.0], 2, 2));
/// let mut result = [0.0; 2];
/// product(MatrixMut::new(&mut result, 1, 2), Matrix::new(&[10.0, 1.0], 1, 2), &right, Write::Over);
/// assert_eq!(result, [13.0, 24.0]);
/// ```
pub fn product<F: Real>(mut result: MatrixMut<'_, F>, left: Matrix<'_, F>, right: &Packed<F>, write: Write) {
    assert_eq!((left.rows(), left.columns()), (result.rows(), right.rows), "left side of a product");
    assert_eq!(result.columns(), right.columns, "columns of a product");
    F::product(&mut result, left, right, write);
}

/// The same for many rows at a time, such as all states of some sentences: on the processor's matrix unit where there is one (Intel's AMX, on
/// Linux), which takes less time than [`product`] from some 30 rows on and is no less exact, else as [`product`]. Panics unless the rows of
/// the left side are contiguous.
///
/// Which of the two it is does not depend on the sides: here too a row's result is the same, bit for bit, whatever the number of rows.
pub fn product_of_many(mut result: MatrixMut<'_, f32>, left: Matrix<'_, f32>, right: &Packed<f32>, write: Write) {
    assert_eq!((left.rows(), left.columns()), (result.rows(), right.rows), "left side of a product");
    assert_eq!(result.columns(), right.columns, "columns of a product");
    assert!(left.has_contiguous_rows(), "the left side needs contiguous rows");
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if crate::matrix_unit::product(&mut result, left, right, write) {
        return;
    }
    product(result, left, right, write);
}

/// How many rows the matrix unit takes at a time in [`product_of_many`]; nothing where there is none.
pub fn unit_rows() -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if crate::matrix_unit::is_there() {
        return Some(crate::matrix_unit::NEAR_ROWS);
    }
    None
}

/// `result (+)= left · right` with an unpacked right side of contiguous rows: for right sides that are used once, such as one
/// sentence's values under its attention weights.
pub fn product_of_rows<F: Real>(mut result: MatrixMut<'_, F>, left: Matrix<'_, F>, right: Matrix<'_, F>, write: Write) {
    assert_eq!((left.rows(), left.columns()), (result.rows(), right.rows()), "left side of a product");
    assert_eq!(result.columns(), right.columns(), "columns of a product");
    assert!(right.has_contiguous_rows(), "the right side needs contiguous rows");
    F::product_of_rows(&mut result, left, right, write);
}

/// `result (+)= leftᵀ · right`: the gradient of a weight from all rows it acted on. `scratch` is packed over.
pub fn transposed_product<F: Real>(
    mut result: MatrixMut<'_, F>,
    left: Matrix<'_, F>,
    right: Matrix<'_, F>,
    mut write: Write,
    scratch: &mut Packed<F>,
) {
    assert_eq!(left.rows(), right.rows(), "rows of a transposed product");
    if left.rows() == 0 {
        return nothing_to_add(&mut result, write);
    }
    let mut from = 0;
    while from < left.rows() {
        let to = (from + CHUNK_ROWS).min(left.rows());
        scratch.pack(right.row_range(from, to));
        let chunk = left.row_range(from, to);
        assert_eq!((chunk.columns(), right.columns()), (result.rows(), result.columns()), "shape of a transposed product");
        F::transposed_product(&mut result, chunk, scratch, write);
        write = Write::Add;
        from = to;
    }
}

pub(crate) struct Pack<'m, F: Real> {
    pub(crate) packed: &'m mut Packed<F>,
    pub(crate) matrix: Matrix<'m, F>,
}

impl<F: Real> WithSimd for Pack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { packed, matrix } = self;
        let width = 2 * lanes::<F, S>();
        let (rows, columns) = (matrix.rows(), matrix.columns());
        (packed.rows, packed.columns, packed.width) = (rows, columns, width);
        let len = columns.div_ceil(width) * rows * width;
        packed.panels.reshape(len);
        packed.bias.reshape(0);
        if rows == 0 {
            return;
        }
        for (number, panel) in packed.panels.chunks_exact_mut(rows * width).enumerate() {
            let from = number * width;
            let to = (from + width).min(columns);
            if matrix.has_contiguous_rows() && to - from == width {
                for (row, lanes) in panel.chunks_exact_mut(width).enumerate() {
                    lanes.copy_from_slice(&matrix.row(row)[from..from + width]);
                }
                continue;
            }
            if to - from < width {
                panel.fill(F::ZERO);
            }
            if matrix.has_contiguous_rows() {
                for (row, lanes) in panel.chunks_exact_mut(width).enumerate() {
                    lanes[..to - from].copy_from_slice(&matrix.row(row)[from..to]);
                }
            } else {
                let turned = matrix.transposed();
                for (block, rows) in panel.chunks_mut(TURNED_ROWS * width).enumerate() {
                    for column in from..to {
                        let elements = &turned.row(column)[block * TURNED_ROWS..];
                        for (lanes, &element) in rows.chunks_exact_mut(width).zip(elements) {
                            lanes[column - from] = element;
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
const fn lanes<F: Real, S: Simd>() -> usize {
    size_of::<F::Lanes<S>>() / size_of::<F>()
}

pub(crate) struct PackedProduct<'m, 'd, F: Real> {
    pub(crate) result: &'m mut MatrixMut<'d, F>,
    pub(crate) left: Matrix<'m, F>,
    pub(crate) right: &'m Packed<F>,
    pub(crate) write: Write,
}

impl<F: Real> WithSimd for PackedProduct<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { result, left, right, write } = self;
        let (n_rows, depth, n_columns) = (left.rows(), left.columns(), right.columns);
        let width = 2 * lanes::<F, S>();
        if depth == 0 {
            nothing_to_add(result, write);
            if !right.bias.is_empty() {
                (0..n_rows).for_each(|row| result.row_mut(row).iter_mut().zip(&right.bias[..]).for_each(|(x, bias)| *x += *bias));
            }
            return;
        }
        assert_eq!(right.width, width, "packed for these registers");
        let (left, left_row, left_column) = left.parts();
        let (result, result_row) = result.parts_mut();
        let tiles = tiles(n_rows, tile_rows::<F, S>());
        let panels = right.first();
        // Of the next panel, as much at every step as brings all of it by the last tile; of a single tile, whose rows are few, every second
        // line where a panel is two lines wide.
        let share = width.div_ceil(tiles.clone().count().max(1));
        for column in (0..n_columns).step_by(width) {
            for (number, (row, height)) in tiles.clone().enumerate() {
                let asks = number * share < width && column + width < n_columns;
                let tile = Tile {
                    ahead: panels.wrapping_add((column + width + number * share) * depth),
                    ahead_step: if asks { share } else { 0 },
                    bias: if right.bias.is_empty() { std::ptr::null() } else { right.bias[column..].as_ptr() },
                    depth,
                    // SAFETY: `row < n_rows`, and every element of `left` was checked to lie in its slice when the matrix was made.
                    left: unsafe { left.add(row * left_row) },
                    left_row,
                    left_column,
                    // SAFETY: panel `column / width` starts at `column · depth` and is `depth · width` long.
                    right: unsafe { panels.add(column * depth) },
                    right_row: width,
                    // SAFETY: `(row, column)` is an element of the result.
                    result: unsafe { result.add(row * result_row + column) },
                    result_row,
                    width: width.min(n_columns - column),
                    write,
                };
                // SAFETY: `height` rows and `tile.width` columns from here lie inside the result.
                unsafe {
                    if tile_rows::<F, S>() == TALL_ROWS && height == TALL_ROWS {
                        tile.rows::<S, TALL_ROWS>(simd);
                    } else {
                        tile.run(simd, height);
                    }
                }
            }
        }
    }
}

/// `result (+)= leftᵀ · right` for at most [`CHUNK_ROWS`] rows of `left`.
pub(crate) struct TransposedProduct<'m, 'd, F: Real> {
    pub(crate) result: &'m mut MatrixMut<'d, F>,
    pub(crate) left: Matrix<'m, F>,
    pub(crate) right: &'m Packed<F>,
    pub(crate) write: Write,
}

impl<F: Real> WithSimd for TransposedProduct<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { result, left, right, write } = self;
        let (depth, n_rows, n_columns) = (left.rows(), left.columns(), right.columns);
        let width = 2 * lanes::<F, S>();
        assert!(depth > 0 && right.width == width, "packed for these registers");
        // Columns of the left side lie a power of two apart, where the first-level cache holds only a few: copied once, read often.
        let mut strip = [F::ZERO; CHUNK_ROWS * TILE_ROWS];
        let (result, result_row) = result.parts_mut();
        let panels = right.first();
        for (row, height) in tiles(n_rows, TILE_ROWS) {
            let (places, _) = strip.as_chunks_mut::<TILE_ROWS>();
            for (place, inner) in places.iter_mut().zip(0..depth) {
                match left.row(inner)[row..].first_chunk::<TILE_ROWS>() {
                    Some(elements) => *place = *elements,
                    None => place[..height].copy_from_slice(&left.row(inner)[row..row + height]),
                }
            }
            for column in (0..n_columns).step_by(width) {
                let tile = Tile {
                    ahead: panels,
                    ahead_step: 0,
                    bias: std::ptr::null(),
                    depth,
                    left: strip.as_ptr(),
                    left_row: 1,
                    left_column: TILE_ROWS,
                    // SAFETY: as in `PackedProduct`; the strip holds `depth ≤ CHUNK_ROWS` groups of `TILE_ROWS`.
                    right: unsafe { panels.add(column * depth) },
                    right_row: width,
                    // SAFETY: `(row, column)` is an element of the result.
                    result: unsafe { result.add(row * result_row + column) },
                    result_row,
                    width: width.min(n_columns - column),
                    write,
                };
                // SAFETY: `height` rows and `tile.width` columns from here lie inside the result.
                unsafe { tile.run(simd, height) };
            }
        }
    }
}

pub(crate) struct RowsProduct<'m, 'd, F: Real> {
    pub(crate) result: &'m mut MatrixMut<'d, F>,
    pub(crate) left: Matrix<'m, F>,
    pub(crate) right: Matrix<'m, F>,
    pub(crate) write: Write,
}

impl<F: Real> WithSimd for RowsProduct<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { result, left, right, write } = self;
        let (n_rows, depth, n_columns) = (left.rows(), left.columns(), right.columns());
        let width = 2 * lanes::<F, S>();
        if depth == 0 {
            return nothing_to_add(result, write);
        }
        let whole = n_columns - n_columns % width;
        let (left_data, left_row, left_column) = left.parts();
        let (right_data, right_row, _) = right.parts();
        {
            let (result, result_row) = result.parts_mut();
            for (row, height) in tiles(n_rows, TILE_ROWS) {
                for column in (0..whole).step_by(width) {
                    let tile = Tile {
                        ahead: right_data,
                        ahead_step: 0,
                        bias: std::ptr::null(),
                        depth,
                        // SAFETY: as in `PackedProduct`.
                        left: unsafe { left_data.add(row * left_row) },
                        left_row,
                        left_column,
                        // SAFETY: `right` has at least one row, of at least `column + width` elements.
                        right: unsafe { right_data.add(column) },
                        right_row,
                        // SAFETY: `(row, column)` is an element of the result.
                        result: unsafe { result.add(row * result_row + column) },
                        result_row,
                        width,
                        write,
                    };
                    // SAFETY: `height` rows and `width` columns from here lie inside the result.
                    unsafe { tile.run(simd, height) };
                }
            }
        }
        for row in 0..n_rows {
            let results = &mut result.row_mut(row)[whole..];
            for (column, result) in (whole..n_columns).zip(results) {
                let mut sum = F::ZERO;
                for inner in 0..depth {
                    sum += left.get(row, inner) * right.get(inner, column);
                }
                *result = if write == Write::Add { *result + sum } else { sum };
            }
        }
    }
}

/// Most rows of a tile of these registers.
#[inline(always)]
const fn tile_rows<F: Real, S: Simd>() -> usize {
    if size_of::<F::Lanes<S>>() == WIDE_REGISTER { TALL_ROWS } else { TILE_ROWS }
}

/// First rows and heights of the tiles that cover `n_rows` rows: those of `most` rows first, where that is more than [`TILE_ROWS`], then
/// others of at most so many, of about the same height: a last one of two rows would take as long as four.
#[inline(always)]
fn tiles(n_rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let n_tall = if most > TILE_ROWS { n_rows / most } else { 0 };
    let n_rest = n_rows - n_tall * most;
    let n_tiles = n_rest.div_ceil(TILE_ROWS);
    // Divided once: a division per tile is felt.
    let (height, n_taller) = (n_rest / n_tiles.max(1), n_rest % n_tiles.max(1));
    (0..n_tall + n_tiles).scan(0, move |next, number| {
        let height = if number < n_tall { most } else { height + usize::from(number - n_tall < n_taller) };
        let row = *next;
        *next += height;
        Some((row, height))
    })
}

/// A product along no dimension is zero.
fn nothing_to_add<F: Real>(result: &mut MatrixMut<'_, F>, write: Write) {
    if write == Write::Over {
        (0..result.rows()).for_each(|row| result.row_mut(row).fill(F::ZERO));
    }
}

/// One block of the result: up to [`TILE_ROWS`] rows or [`TALL_ROWS`], two registers wide.
#[derive(Clone, Copy)]
struct Tile<F> {
    /// What is read after this tile, asked for on the way: a line at every step, or the same again and again where nothing is.
    ahead: *const F,
    ahead_step: usize,
    /// What is added to every row; null for nothing.
    bias: *const F,
    depth: usize,
    left: *const F,
    left_row: usize,
    left_column: usize,
    right: *const F,
    right_row: usize,
    result: *mut F,
    result_row: usize,
    width: usize,
    write: Write,
}

impl<F: Real> Tile<F> {
    /// Computes the tile's first `min(rows, TILE_ROWS)` rows.
    ///
    /// # Safety
    /// `bias` must be null or readable at `j < self.width`, `left` readable at `i · left_row + p · left_column`, `right` at
    /// `p · right_row + j`, and `result` writable at `i · result_row + j`, for those rows `i`, all `p < depth`, and `j` below two registers'
    /// width (`result`: below `self.width`).
    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S, rows: usize) {
        // SAFETY: the caller's promise, for the number of rows at hand.
        unsafe {
            match rows {
                1 => self.rows::<S, 1>(simd),
                2 => self.rows::<S, 2>(simd),
                3 => self.rows::<S, 3>(simd),
                4 => self.rows::<S, 4>(simd),
                5 => self.rows::<S, 5>(simd),
                _ => self.rows::<S, TILE_ROWS>(simd),
            }
        }
    }

    #[inline(always)]
    unsafe fn rows<S: Simd, const R: usize>(self, simd: S) {
        let half = lanes::<F, S>();
        let mut sums = [[F::splat(simd, F::ZERO); 2]; R];
        let (mut left, mut right, mut ahead) = (self.left, self.right, self.ahead);
        for _ in 0..self.depth {
            fetch_address(ahead);
            ahead = ahead.wrapping_add(self.ahead_step);
            // SAFETY: step `p` reads row `p` of the right side and column `p` of the left, both promised by the caller.
            unsafe {
                let first = right.cast::<F::Lanes<S>>().read_unaligned();
                let second = right.add(half).cast::<F::Lanes<S>>().read_unaligned();
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = F::splat(simd, *left.add(row * self.left_row));
                    sums[0] = F::multiply_add(simd, factor, first, sums[0]);
                    sums[1] = F::multiply_add(simd, factor, second, sums[1]);
                }
                left = left.wrapping_add(self.left_column);
                right = right.wrapping_add(self.right_row);
            }
        }
        // Sums are copied out of their array: were it pointed to, they would be written to memory at every step.
        for (row, sums) in sums.into_iter().enumerate() {
            // SAFETY: the caller promised `self.width` writable elements in each of these rows, and as many of a bias; only a full tile is
            // written by registers.
            unsafe {
                let result = self.result.add(row * self.result_row);
                if self.width == 2 * half {
                    for (part, mut sum) in sums.into_iter().enumerate() {
                        let place = result.add(part * half).cast::<F::Lanes<S>>();
                        if self.write == Write::Add {
                            sum = F::add_lanes(simd, place.read_unaligned(), sum);
                        }
                        if !self.bias.is_null() {
                            sum = F::add_lanes(simd, sum, self.bias.add(part * half).cast::<F::Lanes<S>>().read_unaligned());
                        }
                        place.write_unaligned(sum);
                    }
                } else {
                    let elements = std::slice::from_raw_parts(sums.as_ptr().cast::<F>(), self.width);
                    for (column, &element) in elements.iter().enumerate() {
                        let place = result.add(column);
                        let sum = if self.write == Write::Add { *place + element } else { element };
                        *place = if self.bias.is_null() { sum } else { sum + *self.bias.add(column) };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers that are no pattern, the same every time.
    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            })
            .collect()
    }

    fn naive(left: Matrix<'_, f64>, right: Matrix<'_, f64>) -> Vec<f64> {
        let mut result = Vec::new();
        for row in 0..left.rows() {
            for column in 0..right.columns() {
                result.push((0..left.columns()).map(|inner| left.get(row, inner) * right.get(inner, column)).sum());
            }
        }
        result
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs()) * 100.0)
    }

    /// All three products on given registers, whatever this machine would choose.
    struct AllProducts<'a> {
        left: Matrix<'a, f64>,
        right: Matrix<'a, f64>,
        turned: Matrix<'a, f64>,
    }

    impl WithSimd for AllProducts<'_> {
        type Output = [Vec<f64>; 3];

        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let Self { left, right, turned } = self;
            let shape = (left.rows(), right.columns());
            let mut results = [vec![7.0; shape.0 * shape.1], vec![7.0; shape.0 * shape.1], vec![0.0; shape.0 * shape.1]];
            let [packed_result, rows_result, turned_result] = results.each_mut().map(|result| MatrixMut::new(result, shape.0, shape.1));
            let (mut packed_result, mut rows_result, mut turned_result) = (packed_result, rows_result, turned_result);
            let mut packed = Packed::new();
            Pack { packed: &mut packed, matrix: right }.with_simd(simd);
            PackedProduct { result: &mut packed_result, left, right: &packed, write: Write::Over }.with_simd(simd);
            RowsProduct { result: &mut rows_result, left, right, write: Write::Over }.with_simd(simd);
            TransposedProduct { result: &mut turned_result, left: turned, right: &packed, write: Write::Add }.with_simd(simd);
            results
        }
    }

    proptest! {
        #[test]
        fn portable_registers_give_the_same_products(rows in 1usize..20, depth in 1usize..30, columns in 1usize..40, seed: u64) {
            let (left, right, turned) = (noise(rows * depth, seed), noise(depth * columns, !seed), noise(depth * rows, seed ^ 5));
            let (left, right) = (Matrix::new(&left, rows, depth), Matrix::new(&right, depth, columns));
            let turned = Matrix::new(&turned, depth, rows);
            let expected = [naive(left, right), naive(left, right), naive(turned.transposed(), right)];
            for results in [
                AllProducts { left, right, turned }.with_simd(pulp::Scalar),
                AllProducts { left, right, turned }.with_simd(pulp::Scalar128b),
                AllProducts { left, right, turned }.with_simd(pulp::Scalar512b),
                pulp::Arch::new().dispatch(AllProducts { left, right, turned }),
            ] {
                for (result, expected) in results.iter().zip(&expected) {
                    prop_assert!(close(result, expected));
                }
            }
        }

        #[test]
        fn every_product_equals_the_sum_of_products(rows in 0usize..20, depth in 0usize..30, columns in 0usize..40, seed: u64) {
            let (left, right) = (noise(rows * depth, seed), noise(depth * columns, !seed));
            let (left, right) = (Matrix::new(&left, rows, depth), Matrix::new(&right, depth, columns));
            let expected = naive(left, right);
            let mut packed = Packed::new();

            packed.pack(right);
            let mut result = vec![7.0; rows * columns];
            product(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Over);
            prop_assert!(close(&result, &expected));
            product(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Add);
            let twice: Vec<f64> = expected.iter().map(|x| 2.0 * x).collect();
            prop_assert!(close(&result, &twice));

            let bias = noise(columns, seed ^ 9);
            packed.add_bias(&bias);
            product(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Over);
            let mut biased = expected.clone();
            biased.chunks_exact_mut(columns.max(1)).for_each(|row| crate::add(row, &bias));
            prop_assert!(close(&result, &biased));
            product(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Add);
            let twice: Vec<f64> = biased.iter().map(|x| 2.0 * x).collect();
            prop_assert!(close(&result, &twice));
            packed.pack(right);
            product(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Over);
            prop_assert!(close(&result, &expected), "packing forgets the bias");

            let mut result = vec![7.0; rows * columns];
            product_of_rows(MatrixMut::new(&mut result, rows, columns), left, right, Write::Over);
            prop_assert!(close(&result, &expected));

            let turned = noise(depth * rows, seed);
            let turned = Matrix::new(&turned, depth, rows);
            let expected = naive(turned.transposed(), right);
            let mut result = vec![7.0; rows * columns];
            transposed_product(MatrixMut::new(&mut result, rows, columns), turned, right, Write::Over, &mut packed);
            prop_assert!(close(&result, &expected));
            transposed_product(MatrixMut::new(&mut result, rows, columns), turned, right, Write::Add, &mut packed);
            let twice: Vec<f64> = expected.iter().map(|x| 2.0 * x).collect();
            prop_assert!(close(&result, &twice));
        }

        #[test]
        fn a_transposed_right_side_packs_the_same(rows in 1usize..10, depth in 1usize..20, columns in 1usize..40, seed: u64) {
            let (left, right) = (noise(rows * depth, seed), noise(depth * columns, !seed));
            let turned: Vec<f64> = (0..columns * depth).map(|i| right[(i % depth) * columns + i / depth]).collect();
            let left = Matrix::new(&left, rows, depth);
            let mut results = [vec![0.0; rows * columns], vec![0.0; rows * columns]];
            for (result, right) in results.iter_mut().zip([Matrix::new(&right, depth, columns), Matrix::new(&turned, columns, depth).transposed()]) {
                let mut packed = Packed::new();
                packed.pack(right);
                product(MatrixMut::new(result, rows, columns), left, &packed, Write::Over);
            }
            prop_assert_eq!(&results[0], &results[1]);
        }

        #[test]
        fn a_row_does_not_depend_on_the_rows_beside_it(rows in 1usize..40, depth in 1usize..40, columns in 1usize..40, seed: u64) {
            let left: Vec<f32> = noise(rows * depth, seed).iter().map(|&x| x as f32).collect();
            let right: Vec<f32> = noise(depth * columns, !seed).iter().map(|&x| x as f32).collect();
            let mut packed = Packed::new();
            packed.pack(Matrix::new(&right, depth, columns));
            let mut all = vec![0.0; rows * columns];
            product(MatrixMut::new(&mut all, rows, columns), Matrix::new(&left, rows, depth), &packed, Write::Over);
            for row in 0..rows {
                let mut alone = vec![0.0; columns];
                product(MatrixMut::new(&mut alone, 1, columns), Matrix::new(&left[row * depth..], 1, depth), &packed, Write::Over);
                prop_assert_eq!(&alone[..], &all[row * columns..][..columns]);
            }
        }
    }

    #[test]
    fn a_long_right_side_that_lies_the_other_way_packs_the_same() {
        let (depth, columns) = (2 * TURNED_ROWS + 3, 21);
        let right = noise(depth * columns, 3);
        let turned: Vec<f64> = (0..columns * depth).map(|i| right[(i % depth) * columns + i / depth]).collect();
        let [mut straight, mut other] = [Packed::new(), Packed::new()];
        straight.pack(Matrix::new(&right, depth, columns));
        other.pack(Matrix::new(&turned, columns, depth).transposed());
        assert_eq!(straight.panels[..depth * columns], other.panels[..depth * columns]);
        let left = noise(2 * depth, 4);
        let [mut one, mut two] = [vec![0.0; 2 * columns], vec![0.0; 2 * columns]];
        product(MatrixMut::new(&mut one, 2, columns), Matrix::new(&left, 2, depth), &straight, Write::Over);
        product(MatrixMut::new(&mut two, 2, columns), Matrix::new(&left, 2, depth), &other, Write::Over);
        assert_eq!(one, two);
    }

    #[test]
    fn a_long_shared_dimension_is_cut_into_chunks() {
        let depth = 2 * CHUNK_ROWS + 3;
        let (left, right) = (noise(depth * 7, 1), noise(depth * 9, 2));
        let (left, right) = (Matrix::new(&left, depth, 7), Matrix::new(&right, depth, 9));
        let mut result = vec![7.0; 63];
        transposed_product(MatrixMut::new(&mut result, 7, 9), left, right, Write::Over, &mut Packed::new());
        assert!(close(&result, &naive(left.transposed(), right)));
    }
}
