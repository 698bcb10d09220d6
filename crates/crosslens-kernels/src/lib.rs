//! The arithmetic under Crosslens: matrix products, elementary functions, softmax, and threads that take fixed shards.
//!
//! Everything is generic over [`Real`] (`f32` and `f64`), so that a gradient can be checked in `f64` on the very code that trains in `f32`.
//! The instruction set (AMX for products of many rows, AVX-512, AVX2 with FMA, NEON, portable) is chosen when the program runs.
//!
//! A result never depends on what stands beside it: row `i` of a product is the same, bit for bit, whatever the number of rows, and a
//! softmax row whatever the other rows. A sentence therefore gives the same states alone and inside a batch.

mod aligned;
mod elementary;
mod matrix;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod matrix_unit;
mod moments;
mod product;
mod real;
mod rows;
mod softmax;
mod threads;

pub use aligned::Aligned;
pub use matrix::{Matrix, MatrixMut};
pub use moments::moments;
pub use product::{Packed, Write, product, product_of_many, product_of_rows, transposed_product, unit_rows};
pub use real::Real;
pub use rows::{add, add_scaled, dots, dots_of, fetch_ahead, fetch_for_later, fetch_line, squared_norm, sum_rows};
pub use softmax::{log_sum_exp, place_of_highest, softmax};
pub use threads::Threads;

/// Runs a loop compiled for the instruction set of this machine.
///
/// Two things keep a loop from filling registers all the same, and only the instructions show it: a closure inside that is not inlined, which
/// knows nothing of the instruction set (a function marked `#[inline(always)]` does), and slices that may overlap for all the compiler knows,
/// as captured ones may (read an array whole, then write it whole).
///
/// The closure must be `#[inline(always)]`, else it keeps the baseline instruction set:
///
/// ```
/// use crosslens_kernels::{Real, vectorised};
/// let mut x = vec![0.5f32; 100];
/// vectorised(#[inline(always)] || x.iter_mut().for_each(|x| *x = x.tanh_fast()));
/// assert!((x[0] - 0.5f32.tanh()).abs() < 1e-6);
/// ```
#[inline(always)]
pub fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(body)
}
