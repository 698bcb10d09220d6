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

/// The error function to 2e-7: Abramowitz and Stegun, 7.1.26.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / 0.327_591_1f32.mul_add(size, 1.0);
    let mut polynomial = 1.061_405_4f32;
    polynomial = polynomial.mul_add(t, -1.453_152);
    polynomial = polynomial.mul_add(t, 1.421_413_7);
    polynomial = polynomial.mul_add(t, -0.284_496_74);
    polynomial = polynomial.mul_add(t, 0.254_829_6);
    (1.0 - polynomial * t * (-size * size).exp_fast()).copysign(x)
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
}
