use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use pulp::Simd;

use crate::product::{Pack, PackedProduct, RowsProduct, TransposedProduct};
use crate::rows::{Rows, dots_between};
use crate::{Matrix, MatrixMut, Packed, Write};

/// The two kinds of numbers the kernels work on: `f32` to train, `f64` to check.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + Debug
    + Display
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
    + sealed::Sealed
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// As many numbers as one register of `S` holds.
    #[doc(hidden)]
    type Lanes<S: Simd>: Copy;

    /// The nearest number of this kind.
    fn of(value: f64) -> Self;
    /// The same value as `f64`.
    fn to_f64(self) -> f64;
    /// The square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// Whether the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// `e^x`, relative error below `2e-7` (`f32`) and `5e-16` (`f64`); arguments beyond the representable range are clamped, NaN stays NaN.
    #[must_use]
    fn exp_fast(self) -> Self;
    /// `tanh x`, relative error below `4e-7` (`f32`) and `1e-15` (`f64`).
    #[must_use]
    fn tanh_fast(self) -> Self;
    /// `ln x`, relative error below `3e-7` (`f32`) and `5e-16` (`f64`); what is smaller than the least normal number, 0 and below, is taken
    /// for that number, infinity for the power of two that would follow the largest, NaN stays NaN.
    #[must_use]
    fn ln_fast(self) -> Self;
    /// `1 / (1 + e^−x)`.
    #[inline(always)]
    #[must_use]
    fn sigmoid_fast(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp_fast())
    }

    #[doc(hidden)]
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Lanes<S>;
    #[doc(hidden)]
    fn multiply_add<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>, c: Self::Lanes<S>) -> Self::Lanes<S>;
    #[doc(hidden)]
    fn add_lanes<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    #[doc(hidden)]
    fn subtract_lanes<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S>;
    #[doc(hidden)]
    fn sum_lanes<S: Simd>(simd: S, a: Self::Lanes<S>) -> Self;
    // The large kernels: compiled once for either kind of numbers, here, instead of in every crate that calls them.
    #[doc(hidden)]
    fn pack(packed: &mut Packed<Self>, matrix: Matrix<'_, Self>);
    #[doc(hidden)]
    fn product(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: &Packed<Self>, write: Write);
    #[doc(hidden)]
    fn product_of_rows(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: Matrix<'_, Self>, write: Write);
    #[doc(hidden)]
    fn transposed_product(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: &Packed<Self>, write: Write);
    #[doc(hidden)]
    fn dots(result: MatrixMut<'_, Self>, left: Rows<'_, Self>, right: Rows<'_, Self>, scale: Self);
    /// Whole registers, and what is left.
    #[doc(hidden)]
    fn as_lanes<S: Simd>(values: &[Self]) -> (&[Self::Lanes<S>], &[Self]);
    /// Fewer numbers than a register holds, zeros behind them.
    #[doc(hidden)]
    fn partial_lanes<S: Simd>(simd: S, values: &[Self]) -> Self::Lanes<S>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! real {
    ($real:ty, $lanes:ident, $splat:ident, $multiply_add:ident, $add:ident, $subtract:ident, $sum:ident, $as:ident, $partial:ident) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            type Lanes<S: Simd> = S::$lanes;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $real
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }

            #[inline(always)]
            fn exp_fast(self) -> Self {
                crate::elementary::Elementary::exp(self)
            }

            #[inline(always)]
            fn tanh_fast(self) -> Self {
                crate::elementary::Elementary::tanh(self)
            }

            #[inline(always)]
            fn ln_fast(self) -> Self {
                crate::elementary::Elementary::ln(self)
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> Self::Lanes<S> {
                simd.$splat(value)
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>, c: Self::Lanes<S>) -> Self::Lanes<S> {
                simd.$multiply_add(a, b, c)
            }

            #[inline(always)]
            fn add_lanes<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S> {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn subtract_lanes<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>) -> Self::Lanes<S> {
                simd.$subtract(a, b)
            }

            #[inline(always)]
            fn sum_lanes<S: Simd>(simd: S, a: Self::Lanes<S>) -> Self {
                simd.$sum(a)
            }

            fn pack(packed: &mut Packed<Self>, matrix: Matrix<'_, Self>) {
                pulp::Arch::new().dispatch(Pack { packed, matrix });
            }

            fn product(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: &Packed<Self>, write: Write) {
                pulp::Arch::new().dispatch(PackedProduct { result, left, right, write });
            }

            fn product_of_rows(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: Matrix<'_, Self>, write: Write) {
                pulp::Arch::new().dispatch(RowsProduct { result, left, right, write });
            }

            fn transposed_product(result: &mut MatrixMut<'_, Self>, left: Matrix<'_, Self>, right: &Packed<Self>, write: Write) {
                pulp::Arch::new().dispatch(TransposedProduct { result, left, right, write });
            }

            fn dots(result: MatrixMut<'_, Self>, left: Rows<'_, Self>, right: Rows<'_, Self>, scale: Self) {
                dots_between(result, left, right, scale);
            }

            #[inline(always)]
            fn as_lanes<S: Simd>(values: &[Self]) -> (&[Self::Lanes<S>], &[Self]) {
                S::$as(values)
            }

            #[inline(always)]
            fn partial_lanes<S: Simd>(simd: S, values: &[Self]) -> Self::Lanes<S> {
                simd.$partial(values)
            }
        }
    };
}

real!(f32, f32s, splat_f32s, mul_add_e_f32s, add_f32s, sub_f32s, reduce_sum_f32s, as_simd_f32s, partial_load_f32s);
real!(f64, f64s, splat_f64s, mul_add_e_f64s, add_f64s, sub_f64s, reduce_sum_f64s, as_simd_f64s, partial_load_f64s);
