//! `exp`, `tanh` and `ln` without branches, so that a loop over them vectorises.
//!
//! Multiplications and additions are fused; on an x86 processor without FMA instructions (before 2013) that is emulated: right, but slow.

/// The functions everything else is made of.
pub(crate) trait Elementary: Sized {
    fn exp(self) -> Self;
    fn tanh(self) -> Self;
    fn ln(self) -> Self;
}

/// `e^x = 2^k · e^r` with `k` the nearest integer to `x / ln 2` and `|r| ≤ ln 2 / 2`, `e^r` by its Taylor polynomial.
///
/// Adding `1.5 · 2^mantissa` rounds to an integer and leaves it in the low bits, where it becomes the exponent of `2^k`. `ln 2` is
/// subtracted in two pieces, the first short enough for `k · LN2_HIGH` to be exact. Comparisons are written so that NaN passes through.
macro_rules! exp {
    ($x:expr, $real:ty, $low:expr, $high:expr, $magic:expr, $ln2_high:expr, $ln2_low:expr, $bias:expr, $mantissa:expr, [$($coefficient:expr),+]) => {{
        let x: $real = $x;
        let x = if x < $low { $low } else { x };
        let x = if x > $high { $high } else { x };
        let shifted: $real = x.mul_add(std::f64::consts::LOG2_E as $real, $magic);
        let k: $real = shifted - $magic;
        let r = (-k).mul_add($ln2_low, (-k).mul_add($ln2_high, x));
        let mut polynomial: $real = 0.0;
        $(polynomial = polynomial.mul_add(r, $coefficient);)+
        let power = <$real>::from_bits((shifted.to_bits().wrapping_add($bias)) << $mantissa);
        polynomial * power
    }};
}

/// `ln x = k ln 2 + 2 artanh s` with `x = 2^k · m`, `√½ ≤ m < √2` and `s = (m − 1)/(m + 1)`, `artanh s = s + s³/3 + s⁵/5 + …`.
///
/// Counting from the bits of `√½` instead of those of a power of two leaves `k` and the bias in the exponent's place. They become a number as
/// the low bits of `2^mantissa`.
macro_rules! ln {
    ($x:expr, $real:ty, $mantissa:expr, $bias:expr, $ln2_high:expr, $ln2_low:expr, [$($coefficient:expr),+]) => {{
        let given: $real = $x;
        let x = if given < <$real>::MIN_POSITIVE { <$real>::MIN_POSITIVE } else { given };
        let one = (1.0 as $real).to_bits();
        let power = x.to_bits().wrapping_add(one - (std::f64::consts::FRAC_1_SQRT_2 as $real).to_bits()) >> $mantissa;
        let m = <$real>::from_bits(x.to_bits().wrapping_sub(power << $mantissa).wrapping_add(one));
        let whole = ((1u64 << $mantissa) as $real).to_bits();
        let k = <$real>::from_bits(power | whole) - ((1u64 << $mantissa) + $bias) as $real;
        let s = (m - 1.0) / (m + 1.0);
        let square = s * s;
        let mut polynomial: $real = 0.0;
        $(polynomial = polynomial.mul_add(square, $coefficient);)+
        let twice = s + s;
        let near = (polynomial * square).mul_add(twice, twice);
        let result = k.mul_add($ln2_high, k.mul_add($ln2_low, near));
        if given.is_nan() { given } else { result }
    }};
}

impl Elementary for f32 {
    #[inline(always)]
    fn ln(self) -> Self {
        ln!(self, f32, 23, 127, 0.693_359_4, -2.121_944_4e-4, [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0])
    }

    #[inline(always)]
    fn exp(self) -> Self {
        exp!(
            self,
            f32,
            -87.0,
            88.0,
            12_582_912.0,
            0.693_359_4,
            -2.121_944_4e-4,
            127,
            23,
            [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0]
        )
    }

    /// Below 0.625 the odd polynomial of the Cephes library, above `1 − 2/(e^2x + 1)`.
    #[inline(always)]
    fn tanh(self) -> Self {
        let size = self.abs();
        let square = self * self;
        let mut near = -5.704_988_7e-3f32;
        near = near.mul_add(square, 2.063_908_8e-2);
        near = near.mul_add(square, -5.373_971_5e-2);
        near = near.mul_add(square, 1.333_144_2e-1);
        near = near.mul_add(square, -3.333_328e-1);
        let near = (near * square).mul_add(self, self);
        let far = (1.0 - 2.0 / (Elementary::exp(2.0 * size) + 1.0)).copysign(self);
        if size < 0.625 { near } else { far }
    }
}

impl Elementary for f64 {
    #[inline(always)]
    fn ln(self) -> Self {
        ln!(
            self,
            f64,
            52,
            1023,
            6.931_471_803_691_238e-1,
            1.908_214_929_270_587_7e-10,
            [
                1.0 / 23.0,
                1.0 / 21.0,
                1.0 / 19.0,
                1.0 / 17.0,
                1.0 / 15.0,
                1.0 / 13.0,
                1.0 / 11.0,
                1.0 / 9.0,
                1.0 / 7.0,
                1.0 / 5.0,
                1.0 / 3.0
            ]
        )
    }

    #[inline(always)]
    fn exp(self) -> Self {
        exp!(
            self,
            f64,
            -708.0,
            709.0,
            6_755_399_441_055_744.0,
            6.931_471_803_691_238e-1,
            1.908_214_929_270_587_7e-10,
            1023,
            52,
            [
                1.0 / 6_227_020_800.0,
                1.0 / 479_001_600.0,
                1.0 / 39_916_800.0,
                1.0 / 3_628_800.0,
                1.0 / 362_880.0,
                1.0 / 40_320.0,
                1.0 / 5040.0,
                1.0 / 720.0,
                1.0 / 120.0,
                1.0 / 24.0,
                1.0 / 6.0,
                0.5,
                1.0,
                1.0
            ]
        )
    }

    /// As for `f32`, with the rational function of the Cephes library below 0.625.
    #[inline(always)]
    fn tanh(self) -> Self {
        let size = self.abs();
        let square = self * self;
        let above = (-9.643_991_794_250_523e-1f64).mul_add(square, -9.928_772_310_019_185e1).mul_add(square, -1.614_687_684_417_084_5e3);
        let below =
            (square + 1.128_116_784_916_329_3e2).mul_add(square, 2.235_488_390_601_004_5e3).mul_add(square, 4.844_063_053_251_255e3);
        let near = self + self * square * (above / below);
        let far = (1.0 - 2.0 / (Elementary::exp(2.0 * size) + 1.0)).copysign(self);
        if size < 0.625 { near } else { far }
    }
}

#[cfg(test)]
mod tests {
    use crate::Real;

    /// Sweeps a range and returns the largest relative error against the standard library in `f64`.
    fn worst(from: f64, to: f64, approximation: impl Fn(f64) -> f64, exact: impl Fn(f64) -> f64) -> f64 {
        const N: usize = 200_001;
        (0..N)
            .map(|i| from + (to - from) * i as f64 / (N - 1) as f64)
            .map(|x| (approximation(x) - exact(x)).abs() / exact(x).abs().max(1e-300))
            .fold(0.0, f64::max)
    }

    #[test]
    fn errors_are_as_stated() {
        let single = |f: fn(f32) -> f32| move |x: f64| f64::from(f(x as f32));
        let exact = |f: fn(f64) -> f64| move |x: f64| f(f64::from(x as f32));
        assert!(worst(-87.0, 88.0, single(f32::exp_fast), exact(f64::exp)) < 2e-7);
        assert!(worst(-12.0, 12.0, single(f32::tanh_fast), exact(f64::tanh)) < 4e-7);
        assert!(worst(-30.0, 30.0, single(f32::sigmoid_fast), exact(|x| 1.0 / (1.0 + (-x).exp()))) < 4e-7);
        assert!(worst(-700.0, 700.0, f64::exp_fast, f64::exp) < 5e-16);
        assert!(worst(-25.0, 25.0, f64::tanh_fast, f64::tanh) < 1e-15);
        for (from, to) in [(0.5, 2.0), (0.999, 1.001), (0.7, 0.71), (1.41, 1.42)] {
            assert!(worst(from, to, single(f32::ln_fast), exact(f64::ln)) < 3e-7, "{from} to {to}");
            assert!(worst(from, to, f64::ln_fast, f64::ln) < 5e-16, "{from} to {to}");
        }
        let of_power = |f: fn(f64) -> f64| move |x: f64| f(x.exp());
        assert!(worst(-87.0, 88.0, of_power(|x| f64::from((x as f32).ln_fast())), of_power(|x| f64::from(x as f32).ln())) < 3e-7);
        assert!(worst(-708.0, 709.0, of_power(f64::ln_fast), of_power(f64::ln)) < 5e-16);
    }

    #[test]
    fn nan_stays_nan_and_infinities_saturate() {
        assert!(f32::NAN.exp_fast().is_nan() && f32::NAN.tanh_fast().is_nan() && f32::NAN.sigmoid_fast().is_nan());
        assert!(f64::NAN.exp_fast().is_nan() && f64::NAN.tanh_fast().is_nan());
        assert_eq!(f32::INFINITY.tanh_fast(), 1.0);
        assert_eq!(f32::NEG_INFINITY.tanh_fast(), -1.0);
        assert!(f32::NEG_INFINITY.exp_fast() < 2e-38);
        assert!(f32::NAN.ln_fast().is_nan() && f64::NAN.ln_fast().is_nan());
        for nothing in [0.0, -1.0, f64::NEG_INFINITY] {
            assert_eq!(nothing.ln_fast(), f64::MIN_POSITIVE.ln());
            assert_eq!((nothing as f32).ln_fast(), f32::MIN_POSITIVE.ln());
        }
        assert_eq!(f64::INFINITY.ln_fast(), 1024.0 * std::f64::consts::LN_2);
        assert_eq!(f32::INFINITY.ln_fast(), 128.0 * std::f32::consts::LN_2);
        assert_eq!((1f32.ln_fast(), 1f64.ln_fast()), (0.0, 0.0));
    }
}
