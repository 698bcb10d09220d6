//! Products of single precision on the matrix unit of Intel's server processors (AMX), which multiplies `bf16` alone.
//!
//! A number of single precision has 24 binary digits, one of `bf16` has 8. So each number is the sum of three, and a product of two numbers
//! the sum of nine products, each of them exact in single precision:
//!
//! ```text
//! a = a₁ + a₂ + a₃        a₁ = bf16(a), a₂ = bf16(a − a₁), a₃ = a − a₁ − a₂
//! a·b ≈ a₁b₁ + a₁b₂ + a₂b₁ + a₁b₃ + a₂b₂ + a₃b₁        left out: a₂b₃ + a₃b₂ + a₃b₃, at most 2⁻²³ of |a·b|
//! ```
//!
//! Six products on the unit take half the time of one in registers. What is left out is less than what adding up in single precision rounds
//! away. The unit adds 32 places among themselves, and only then to the sum so far, so that the whole is nearer to the exact product than the
//! chain of [`product`](crate::product).
//!
//! Numbers, parts and products of parts below the least normal number (1.2e-38) count as zero; where a number rounds to no `bf16` (infinite
//! ones, and those from 3.396e38 on) the result is not a number. A row's result depends on that row and the right side alone.
#![expect(unsafe_code, reason = "the unit is reached by assembly alone, which reads and writes tiles whose sizes are their types'")]

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid_count, __m256i, __m512, __m512bh, __m512i, _mm512_and_si512, _mm512_castsi512_ps, _mm512_cvtepu16_epi32, _mm512_cvtne2ps_pbh,
    _mm512_extracti64x4_epi64, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_permutexvar_epi16, _mm512_set1_epi32, _mm512_slli_epi32,
    _mm512_storeu_si512, _mm512_sub_ps,
};
use std::cell::RefCell;
use std::sync::OnceLock;

use crate::{Matrix, MatrixMut, Packed, Write};

/// Rows of a tile, and numbers of single precision in each of its rows.
const TILE: usize = 16;
/// Places along the shared dimension that one instruction takes.
const STEP: usize = 32;
/// Rows, and columns, of the result that are made at a time: two tiles by two.
const PAIR: usize = 2 * TILE;
/// Parts of a number.
const PARTS: usize = 3;
/// Rows that are multiplied before the next ones: at 512 numbers each their parts take 690 KB, which stay in the second cache while all panels
/// of the right side pass by.
pub(crate) const NEAR_ROWS: usize = 7 * PAIR;
/// Bytes of a line of the cache.
const LINE: usize = 64;

/// 16 rows of 32 numbers of `bf16`: of the left side as they are, of the right side two rows in one, `b[2i][j], b[2i+1][j], …`.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Tile([[u16; STEP]; TILE]);

const NOTHING: Tile = Tile([[0; STEP]; TILE]);

/// 16 rows of the left side along one step, part by part.
type Left = [Tile; PARTS];
/// 32 columns of the right side along one step, part by part: two tiles, side by side.
type Right = [[Tile; 2]; PARTS];

/// Four tiles of the result: two of the upper rows, two of the lower.
#[repr(C, align(64))]
struct Sums([[[f32; TILE]; TILE]; 4]);

/// Whether the unit is there. Linux gives its registers to a process that asks for them; asked once.
pub(crate) fn is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        const BF16: u32 = 1 << 22;
        const TILES: u32 = 1 << 24;
        const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
        /// Among the states of a processor, that of its tiles.
        const TILE_DATA: libc::c_ulong = 18;
        let has_registers =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512bf16");
        // Of a processor without leaf 7 all bits of it are another leaf's; none has AVX-512.
        let features = if has_registers { __cpuid_count(7, 0).edx } else { 0 };
        let has_unit = features & BF16 != 0 && features & TILES != 0;
        // SAFETY: asks for a permission and touches no memory; a kernel that does not know the question refuses it.
        has_unit && unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) } == 0
    })
}

/// What a thread uses again from product to product.
#[derive(Default)]
struct Buffers {
    left: Vec<Left>,
    /// One panel of the right side.
    right: Vec<Right>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// `result (+)= left · right + bias` on the unit, if it is there and the right side was packed for it; says whether it was.
///
/// The shapes were checked, and that the rows of the left side are contiguous.
pub(crate) fn product(result: &mut MatrixMut<'_, f32>, left: Matrix<'_, f32>, right: &Packed<f32>, write: Write) -> bool {
    if !is_there() || right.width() != PAIR {
        return false;
    }
    BUFFERS.with_borrow_mut(|buffers| {
        for from in (0..left.rows()).step_by(NEAR_ROWS) {
            let left = left.row_range(from, left.rows().min(from + NEAR_ROWS));
            // SAFETY: the unit is there, and so are the instructions, which were asked for with it.
            unsafe { near_product(result, from, left, right, write, buffers) };
        }
    });
    true
}

/// Some rows of the result from `first_row` on, few enough that all parts of the left side stay near while the right side passes by.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn near_product(
    result: &mut MatrixMut<'_, f32>,
    first_row: usize,
    left: Matrix<'_, f32>,
    right: &Packed<f32>,
    write: Write,
    buffers: &mut Buffers,
) {
    let Buffers { left: left_parts, right: right_parts } = buffers;
    let n_steps = left.columns().div_ceil(STEP);
    let n_pairs = left.rows().div_ceil(PAIR);
    split_left(left, n_steps, left_parts);
    let mut sums = Sums([[[0.0; TILE]; TILE]; 4]);
    let tiles = Tiles::configure();
    for (panel, column) in (0..right.columns()).step_by(PAIR).enumerate() {
        let numbers = right.panel(panel);
        split_right(numbers, n_steps, right_parts);
        // The next panel, which lies behind this one.
        let mut ahead = numbers.as_ptr_range().end.cast::<[u8; LINE]>();
        for pair in 0..n_pairs {
            let (upper, lower) = left_parts[2 * pair * n_steps..].split_at(n_steps);
            // Where there is none, the upper once more: what comes of it is not looked at.
            let lower = lower.get(..n_steps).unwrap_or(upper);
            tiles.multiply([upper, lower], right_parts, ahead, &mut sums);
            ahead = ahead.wrapping_add(n_steps * LINES_AHEAD);
            write_sums(result, &sums, first_row + pair * PAIR, column, right.bias(), write);
        }
    }
}

/// Lines of the next panel that each step asks for, so that [`NEAR_ROWS`] bring all of it: one by one between the products, for more at a
/// time would take the buffers that tiles come through.
const LINES_AHEAD: usize = 10;

/// `four tiles of sums += two of a part of the left side · two of a part of the right side`, one side of which is loaded on the way.
macro_rules! products {
    (left $part:literal) => {
        concat!(
            "tileloadd tmm4, [{upper} + {row} + ",
            $part,
            "]\n tdpbf16ps tmm0, tmm4, tmm6\n tdpbf16ps tmm1, tmm4, tmm7\n",
            "tileloadd tmm5, [{lower} + {row} + ",
            $part,
            "]\n tdpbf16ps tmm2, tmm5, tmm6\n tdpbf16ps tmm3, tmm5, tmm7\n"
        )
    };
    (right $part:literal) => {
        concat!(
            "tileloadd tmm6, [{right} + {row} + ",
            $part,
            "]\n tdpbf16ps tmm0, tmm4, tmm6\n",
            "tileloadd tmm7, [{right} + {row} + ",
            $part,
            " + 1024]\n tdpbf16ps tmm1, tmm4, tmm7\n",
            "tdpbf16ps tmm2, tmm5, tmm6\n tdpbf16ps tmm3, tmm5, tmm7\n"
        )
    };
}

/// The unit, told how large its tiles are; told in the end that it is no longer needed, so that nobody keeps its registers.
struct Tiles;

impl Tiles {
    /// Eight tiles of 16 rows of 64 bytes.
    #[inline]
    fn configure() -> Self {
        /// As the processor reads it.
        #[repr(C, align(64))]
        struct Configuration {
            palette: u8,
            start_row: u8,
            reserved: [u8; 14],
            row_bytes: [u16; 16],
            rows: [u8; 16],
        }
        assert!(is_there(), "the unit is there");
        let of_eight = |value| std::array::from_fn(|number| if number < 8 { value } else { 0 });
        let row_bytes = of_eight(LINE as u8).map(u16::from);
        let configuration = Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows: of_eight(TILE as u8) };
        // SAFETY: reads the 64 bytes of a configuration that every such unit has.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const configuration,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly, preserves_flags)
            );
        };
        Self
    }

    /// Four tiles of sums of 32 rows of the left side and 32 columns of the right side, along all steps. In each, the order of products
    /// decides the bits of a result, `a₃b₁ + a₂b₁ + a₂b₂ + a₁b₂ + a₁b₃ + a₁b₁`: from each to the next one side changes.
    fn multiply(&self, [upper, lower]: [&[Left]; 2], right: &[Right], ahead: *const [u8; LINE], sums: &mut Sums) {
        let n_steps = right.len();
        assert!(upper.len() == n_steps && lower.len() == n_steps, "steps of both sides");
        // SAFETY: the tiles are configured; at each step three are read twice, and six, and in the end four are written. What is asked for
        // may lie anywhere.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "test {n_steps}, {n_steps}",
                "jz 3f",
                "2:",
                "tileloadd tmm6, [{right} + {row}]",
                "tileloadd tmm7, [{right} + {row} + 1024]",
                products!(left 2048),
                "prefetcht1 [{ahead} + 0]", "prefetcht1 [{ahead} + 64]",
                products!(left 1024),
                "prefetcht1 [{ahead} + 128]", "prefetcht1 [{ahead} + 192]",
                products!(right 2048),
                "prefetcht1 [{ahead} + 256]", "prefetcht1 [{ahead} + 320]",
                products!(left 0),
                "prefetcht1 [{ahead} + 384]", "prefetcht1 [{ahead} + 448]",
                products!(right 4096),
                "prefetcht1 [{ahead} + 512]", "prefetcht1 [{ahead} + 576]",
                products!(right 0),
                "add {upper}, {left_bytes}",
                "add {lower}, {left_bytes}",
                "add {right}, {right_bytes}",
                "add {ahead}, {ahead_bytes}",
                "dec {n_steps}",
                "jnz 2b",
                "3:",
                "tilestored [{sums} + {row}], tmm0",
                "tilestored [{sums} + {row} + 1024], tmm1",
                "tilestored [{sums} + {row} + 2048], tmm2",
                "tilestored [{sums} + {row} + 3072], tmm3",
                upper = inout(reg) upper.as_ptr() => _,
                lower = inout(reg) lower.as_ptr() => _,
                right = inout(reg) right.as_ptr() => _,
                ahead = inout(reg) ahead => _,
                n_steps = inout(reg) n_steps => _,
                sums = in(reg) &raw mut *sums,
                row = in(reg) LINE,
                left_bytes = const size_of::<Left>(),
                right_bytes = const size_of::<Right>(),
                ahead_bytes = const LINES_AHEAD * LINE,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the unit is there, or there were no tiles.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, nomem, preserves_flags)
            );
        };
    }
}

/// Writes sums where they belong, as far as the result has rows and columns there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn write_sums(result: &mut MatrixMut<'_, f32>, sums: &Sums, row: usize, column: usize, bias: &[f32], write: Write) {
    for (offset, row) in (row..result.rows().min(row + PAIR)).enumerate() {
        for half in 0..2 {
            let from = column + half * TILE;
            let sums = &sums.0[offset / TILE * 2 + half][offset % TILE];
            let results = result.row_mut(row).get_mut(from..).unwrap_or_default();
            let bias = bias.get(from..).unwrap_or_default();
            if let Some(results) = results.first_chunk_mut() {
                write_row(results, sums, bias.first_chunk(), write);
            } else {
                let [mut whole, mut whole_bias] = [[0.0; TILE]; 2];
                whole[..results.len()].copy_from_slice(results);
                whole_bias[..bias.len()].copy_from_slice(bias);
                write_row(&mut whole, sums, (!bias.is_empty()).then_some(&whole_bias), write);
                results.copy_from_slice(&whole[..results.len()]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn write_row(result: &mut [f32; TILE], sums: &[f32; TILE], bias: Option<&[f32; TILE]>, write: Write) {
    let mut sums = *sums;
    if write == Write::Add {
        sums.iter_mut().zip(&*result).for_each(|(sum, result)| *sum += result);
    }
    if let Some(bias) = bias {
        sums.iter_mut().zip(bias).for_each(|(sum, bias)| *sum += bias);
    }
    *result = sums;
}

/// The parts of the left side, block after block of 16 rows, zeros beyond its rows and columns.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_left(left: Matrix<'_, f32>, n_steps: usize, parts: &mut Vec<Left>) {
    parts.resize(left.rows().div_ceil(TILE) * n_steps, [NOTHING; PARTS]);
    for (block, parts) in parts.chunks_exact_mut(n_steps.max(1)).enumerate() {
        for (step, parts) in parts.iter_mut().enumerate() {
            for row in 0..TILE {
                let number = block * TILE + row;
                let numbers = if number < left.rows() { &left.row(number)[step * STEP..] } else { &[] };
                match numbers.first_chunk() {
                    Some(numbers) => split_row(numbers, parts, row),
                    None => {
                        let mut whole = [0.0; STEP];
                        whole[..numbers.len()].copy_from_slice(numbers);
                        split_row(&whole, parts, row);
                    }
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_row(numbers: &[f32; STEP], parts: &mut Left, row: usize) {
    let [mut low, mut high] = [load(numbers, 0), load(numbers, TILE)];
    for part in parts {
        let rounded = bits(_mm512_cvtne2ps_pbh(high, low));
        store(&mut part.0[row], rounded);
        low = _mm512_sub_ps(low, widened(_mm512_extracti64x4_epi64::<0>(rounded)));
        high = _mm512_sub_ps(high, widened(_mm512_extracti64x4_epi64::<1>(rounded)));
    }
}

/// The parts of a panel of the right side, zeros beyond its rows.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_right(panel: &[f32], n_steps: usize, parts: &mut Vec<Right>) {
    parts.resize(n_steps, [[NOTHING; 2]; PARTS]);
    for (step, parts) in parts.iter_mut().enumerate() {
        for row in 0..TILE {
            let numbers = panel.get((step * STEP + 2 * row) * PAIR..).unwrap_or_default();
            match numbers.first_chunk() {
                Some(two_rows) => split_two_rows(two_rows, parts, row),
                None => {
                    let mut two_rows = [0.0; 2 * PAIR];
                    two_rows[..numbers.len()].copy_from_slice(numbers);
                    split_two_rows(&two_rows, parts, row);
                }
            }
        }
    }
}

/// Two rows of a panel become one row of tiles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_two_rows(two_rows: &[f32; 2 * PAIR], parts: &mut Right, row: usize) {
    // Numbers of two rows by turns: 0, 16, 1, 17, …
    let turns: [u16; STEP] = std::array::from_fn(|place| (place / 2 + place % 2 * TILE) as u16);
    // SAFETY: 64 bytes of an array.
    let turns = unsafe { _mm512_loadu_si512(turns.as_ptr().cast()) };
    let upper_half = _mm512_set1_epi32(0xFFFF_0000_u32.cast_signed());
    for half in 0..2 {
        let [mut even, mut odd] = [load(two_rows, half * TILE), load(two_rows, PAIR + half * TILE)];
        for part in &mut *parts {
            let rounded = _mm512_permutexvar_epi16(turns, bits(_mm512_cvtne2ps_pbh(odd, even)));
            store(&mut part[half].0[row], rounded);
            even = _mm512_sub_ps(even, _mm512_castsi512_ps(_mm512_slli_epi32::<16>(rounded)));
            odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(_mm512_and_si512(rounded, upper_half)));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<const N: usize>(numbers: &[f32; N], from: usize) -> __m512 {
    assert!(from + TILE <= N, "sixteen numbers");
    // SAFETY: they are there.
    unsafe { _mm512_loadu_ps(numbers.as_ptr().add(from)) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(row: &mut [u16; STEP], numbers: __m512i) {
    // SAFETY: 64 bytes of an array.
    unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), numbers) }
}

/// Sixteen numbers of `bf16` in single precision.
#[inline]
#[target_feature(enable = "avx512f")]
fn widened(numbers: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(numbers)))
}

#[inline]
fn bits(numbers: __m512bh) -> __m512i {
    // SAFETY: both are 64 bytes, and every pattern of bits is a value of either.
    unsafe { std::mem::transmute(numbers) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{product as in_registers, product_of_many};

    /// Numbers of very different sizes, the same every time.
    fn noise(n: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
        };
        (0..n).map(|_| next() * (8.0 * next()).exp2()).collect()
    }

    fn packed(numbers: &[f32], rows: usize, columns: usize) -> Packed<f32> {
        let mut packed = Packed::new();
        packed.pack(Matrix::new(numbers, rows, columns));
        packed
    }

    /// `Σ|a·b|` and `Σ a·b` of each row and column.
    fn exact(left: Matrix<'_, f32>, right: Matrix<'_, f32>) -> Vec<[f64; 2]> {
        let sums = |row: usize, column: usize| {
            (0..right.rows()).fold([0.0; 2], |[size, sum], inner| {
                let product = f64::from(left.get(row, inner)) * f64::from(right.get(inner, column));
                [size + product.abs(), sum + product]
            })
        };
        (0..left.rows()).flat_map(|row| (0..right.columns()).map(move |column| sums(row, column))).collect()
    }

    proptest! {
        /// Rows and columns that fill no tile, blocks without a partner, rows that stand apart, more than are taken at a time.
        #[test]
        fn products_of_any_shape_are_the_sums_of_products(
            (rows, depth, columns) in prop_oneof![(0usize..70, 0usize..100, 0usize..80), (200usize..260, 0usize..40, 1usize..40)],
            spare in 0usize..3,
            seed: u64,
        ) {
            let (left, right_numbers, bias) = (noise(rows * (depth + spare), seed), noise(depth * columns, !seed), noise(columns, seed ^ 9));
            let (left, right) = (Matrix::strided(&left, rows, depth, depth + spare), Matrix::new(&right_numbers, depth, columns));
            let mut packed = packed(&right_numbers, depth, columns);
            let sums = exact(left, right);
            let before = noise(rows * columns, seed ^ 3);
            let mut result = before.clone();
            product_of_many(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Over);
            for (found, [size, sum]) in result.iter().zip(&sums) {
                prop_assert!((f64::from(*found) - sum).abs() <= 1e-6 * size, "{found} for {sum}");
            }
            packed.add_bias(&bias);
            let mut result = before.clone();
            product_of_many(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Add);
            for (place, (found, [size, sum])) in result.iter().zip(&sums).enumerate() {
                let (before, bias) = (f64::from(before[place]), f64::from(bias[place % columns]));
                let bound = 1e-6 * (size + before.abs() + bias.abs());
                prop_assert!((f64::from(*found) - (sum + before + bias)).abs() <= bound, "{found} for {sum} + {before} + {bias}");
            }
        }

        #[test]
        fn a_row_of_many_does_not_depend_on_the_rows_beside_it(
            (rows, depth, columns) in prop_oneof![(1usize..70, 1usize..100, 1usize..80), (225usize..480, 1usize..40, 1usize..40)],
            seed: u64,
        ) {
            let (left, right) = (noise(rows * depth, seed), noise(depth * columns, !seed));
            let packed = packed(&right, depth, columns);
            let mut all = vec![0.0; rows * columns];
            product_of_many(MatrixMut::new(&mut all, rows, columns), Matrix::new(&left, rows, depth), &packed, Write::Over);
            for row in [0, rows / 2, rows - 1] {
                let mut alone = vec![0.0; columns];
                product_of_many(MatrixMut::new(&mut alone, 1, columns), Matrix::new(&left[row * depth..], 1, depth), &packed, Write::Over);
                prop_assert_eq!(&alone[..], &all[row * columns..][..columns]);
            }
        }
    }

    /// As far from the exact products as the chain of multiply-adds in registers, or nearer.
    #[test]
    fn the_unit_is_no_less_exact_than_registers() {
        let (rows, depth, columns) = (40, 512, 64);
        let (left, right) = (noise(rows * depth, 1), noise(depth * columns, 2));
        let (left, packed) = (Matrix::new(&left, rows, depth), packed(&right, depth, columns));
        let sums = exact(left, Matrix::new(&right, depth, columns));
        let error = |multiply: fn(MatrixMut<'_, f32>, Matrix<'_, f32>, &Packed<f32>, Write)| {
            let mut result = vec![0.0; rows * columns];
            multiply(MatrixMut::new(&mut result, rows, columns), left, &packed, Write::Over);
            let squares = result.iter().zip(&sums).map(|(found, [size, sum])| ((f64::from(*found) - sum) / size).powi(2));
            (squares.sum::<f64>() / sums.len() as f64).sqrt()
        };
        let [unit, registers] = [error(product_of_many), error(in_registers)];
        assert!(unit <= registers && registers < 1e-7, "{unit:e} on the unit, {registers:e} in registers");
    }

    /// 1 + 2⁻⁸ + 2⁻¹⁶ + 2⁻²³ has a digit in each part.
    #[test]
    fn no_digit_of_a_number_is_lost() {
        let number = 1.0 + 2f32.powi(-8) + 2f32.powi(-16) + 2f32.powi(-23);
        for (left, right) in [(number, 1.0), (1.0, number), (number, -2f32.powi(100)), (3.3e38, number / 4.0), (f32::MIN_POSITIVE, 1.0)] {
            let mut result = [0.0];
            product_of_many(MatrixMut::new(&mut result, 1, 1), Matrix::new(&[left], 1, 1), &packed(&[right], 1, 1), Write::Over);
            assert_eq!(result, [left * right], "{left:e} · {right:e}");
        }
    }

    #[test]
    fn what_is_not_finite_stays_so_and_spoils_no_other_row() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut left = noise(3 * 40, 5);
            left[40 + 7] = bad;
            let mut result = [0.0; 3 * 5];
            product_of_many(MatrixMut::new(&mut result, 3, 5), Matrix::new(&left, 3, 40), &packed(&noise(40 * 5, 6), 40, 5), Write::Over);
            let finite: Vec<bool> = result.chunks_exact(5).map(|row| row.iter().all(|x| x.is_finite())).collect();
            assert_eq!(finite, [true, false, true], "{bad}");
            assert!(result[5..10].iter().all(|x| !x.is_finite()));
        }
    }

    #[test]
    fn every_thread_has_the_unit() {
        let (left, right) = (noise(50 * 90, 7), noise(90 * 33, 8));
        let packed = packed(&right, 90, 33);
        let made = || {
            let mut result = vec![0.0; 50 * 33];
            product_of_many(MatrixMut::new(&mut result, 50, 33), Matrix::new(&left, 50, 90), &packed, Write::Over);
            result
        };
        let expected = made();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..3).map(|_| scope.spawn(made)).collect();
            assert!(others.into_iter().all(|other| other.join().expect("no panic") == expected));
        });
    }

    /// A processor that says it has the unit has it, so that a build that leaves it out is noticed.
    #[test]
    fn the_unit_is_found_where_linux_names_it() {
        let names = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let named = ["amx_tile", "amx_bf16", "avx512_bf16"].iter().all(|name| names.contains(name));
        // SAFETY: asks once more for a permission that was given or refused; a sandbox may refuse it.
        let granted = named && unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1023, 18) } == 0;
        assert_eq!(is_there(), granted);
        // Rows go through it then: its bits differ from those of registers.
        let (left, right) = (noise(32 * 512, 1), noise(512 * 32, 2));
        let packed = packed(&right, 512, 32);
        let mut results = [vec![0.0; 32 * 32], vec![0.0; 32 * 32]];
        let [unit, registers] = &mut results;
        product_of_many(MatrixMut::new(unit, 32, 32), Matrix::new(&left, 32, 512), &packed, Write::Over);
        in_registers(MatrixMut::new(registers, 32, 32), Matrix::new(&left, 32, 512), &packed, Write::Over);
        assert_eq!(unit != registers, granted);
    }
}
