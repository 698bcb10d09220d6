//! The nonlinear functions of feed-forward layers.

use crosslens_kernels::{Real, vectorised};

/// What stands between two linear maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Relu,
    /// `x·Φ(x)` with the normal distribution's Φ.
    Gelu,
    /// The same with Φ approximated by a hyperbolic tangent.
    GeluTanh,
    /// `x·σ(x)`.
    Silu,
}

impl Activation {
    /// Names of all that are known, for messages.
    pub(crate) const KNOWN: &str = "relu, gelu, gelu_new, gelu_pytorch_tanh, silu and swish";

    /// By the name that configurations give.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "relu" => Some(Self::Relu),
            "gelu" => Some(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Some(Self::GeluTanh),
            "silu" | "swish" => Some(Self::Silu),
            _ => None,
        }
    }

    /// Replaces every number.
    pub(crate) fn apply(self, numbers: &mut [f32]) {
        match self {
            Self::Relu => each(numbers, |x| if x > 0.0 { x } else { 0.0 }),
            Self::Gelu => each(numbers, |x| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))),
            Self::GeluTanh => each(numbers, |x| {
                let inner = 0.797_884_6 * (0.044_715 * x * x).mul_add(x, x);
                0.5 * x * (1.0 + inner.tanh_fast())
            }),
            Self::Silu => each(numbers, |x| x * x.sigmoid_fast()),
        }
    }
}

#[inline(always)]
fn each(numbers: &mut [f32], function: impl Fn(f32) -> f32) {
    vectorised(
        #[inline(always)]
        || numbers.iter_mut().for_each(|x| *x = function(*x)),
    );
}

/// The error function to 2e-7 of itself.
///
/// Below 1 an odd polynomial, above `1 − e^p(|x|)` with a polynomial `p` for the logarithm of `erfc`; both are least in the largest error
/// (1.3e-9 and 1.1e-9; the rest is the rounding of single precision). From 3.95 on it is 1.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let (size, square) = (x.abs(), x * x);
    let mut near = 7.853_901e-5f32;
    near = near.mul_add(square, -8.010_206_6e-4);
    near = near.mul_add(square, 5.188_329e-3);
    near = near.mul_add(square, -2.685_381_3e-2);
    near = near.mul_add(square, 1.128_358_5e-1);
    near = near.mul_add(square, -3.761_262_6e-1);
    near = near.mul_add(square, std::f32::consts::FRAC_2_SQRT_PI);
    let end = if size > 3.95 { 3.95 } else { size };
    let mut log = 1.855_740_7e-4f32;
    log = log.mul_add(end, -2.939_608e-3);
    log = log.mul_add(end, 2.180_532e-2);
    log = log.mul_add(end, -1.030_373_7e-1);
    log = log.mul_add(end, -6.382_257e-1);
    log = log.mul_add(end, -1.127_04);
    log = log.mul_add(end, -3.537_188e-4);
    if size < 1.0 { x * near } else { (1.0 - log.exp_fast()).copysign(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `torch.nn.functional.gelu` and `silu` to seven digits.
    #[test]
    fn functions_are_those_of_the_models() {
        let at = |function: Activation, x: f32| {
            let mut row = [x];
            function.apply(&mut row);
            row[0]
        };
        let close = |a: f32, b: f32| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(at(Activation::Gelu, 1.0), 0.841_344_7);
        close(at(Activation::Gelu, -0.5), -0.154_268_8);
        close(at(Activation::Gelu, 6.0), 6.0);
        close(at(Activation::GeluTanh, 1.0), 0.841_192);
        close(at(Activation::Silu, 2.0), 1.761_594_2);
        close(at(Activation::Relu, -3.0), 0.0);
    }

    /// Values of Python's `math.erf`, and a limit that no rounding passes.
    #[test]
    fn the_error_function_is_as_exact_as_stated() {
        let known = [
            (1e-3, 0.001_128_378_790_969_236_5),
            (0.3, 0.328_626_759_459_127_4),
            (0.7, 0.677_801_193_837_418_4),
            (0.999, 0.842_285_270_206_496_9),
            (1.0, 0.842_700_792_949_714_9),
            (1.5, 0.966_105_146_475_310_8),
            (2.5, 0.999_593_047_982_555),
            (3.9, 0.999_999_965_207_751_4),
        ];
        for (x, exact) in known {
            for sign in [1.0, -1.0] {
                let off = f64::from(erf((sign * x) as f32)) - sign * exact;
                assert!(off.abs() < 2e-7 * exact, "{x}: {off}");
            }
        }
        assert_eq!((erf(7.0), erf(f32::NEG_INFINITY), erf(0.0)), (1.0, -1.0, 0.0));
        assert!(erf(f32::NAN).is_nan());
    }
}
