//! The feed-forward sublayer, `f(x·inner + b)·outer + c`, each row for itself.

use crosslens_kernels::{Real, Write, vectorised};

use super::Backward;
use super::affine::Affine;
use super::config::Activation;
use crate::network::layout::Layout;
use crate::network::prepared::{Context, Maps};

/// `√(2/π)`, and the weight of the cube in GELU's approximation.
const GELU_SLOPE: f64 = 0.797_884_560_802_865_4;
const GELU_CUBE: f64 = 0.044_715;

/// Two maps and what stands between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedForward {
    inner: Affine,
    outer: Affine,
    activation: Activation,
}

/// What a feed-forward sublayer computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeedForwardTrace<F> {
    /// `[row, d_inner]`, before the activation.
    inner: Vec<F>,
    /// `[row, d_inner]`, after it.
    active: Vec<F>,
}

impl FeedForward {
    pub(crate) fn new(name: &str, d: usize, d_inner: usize, activation: Activation, layout: &mut Layout, maps: &mut Maps) -> Self {
        let inner = Affine::new(&format!("{name}.inner"), d, d_inner, layout, maps);
        Self { inner, outer: Affine::new(&format!("{name}.outer"), d_inner, d, layout, maps), activation }
    }

    pub(crate) fn forward<F: Real>(&self, trace: &mut FeedForwardTrace<F>, states: &[F], result: &mut Vec<F>, context: Context<'_, F>) {
        self.inner.forward(states, &mut trace.inner, context);
        trace.active.clear();
        trace.active.extend_from_slice(&trace.inner);
        self.activation.apply(&mut trace.active);
        self.outer.forward(&trace.active, result, context);
    }

    /// From the gradient of the result to that of the states, written over.
    pub(crate) fn backward<F: Real>(
        &self,
        trace: &FeedForwardTrace<F>,
        states: &[F],
        d_result: &[F],
        d_states: &mut [F],
        back: &mut Backward<'_, F>,
    ) {
        let Backward { context, gradient, scratch } = back;
        let d_inner = &mut scratch.d_inner;
        d_inner.resize(trace.inner.len(), F::ZERO);
        self.outer.add_gradients(&trace.active, d_result, context.layout, gradient, &mut scratch.packed);
        self.outer.pass_back(d_result, d_inner, Write::Over, *context);
        self.activation.backward(d_inner, &trace.inner);
        self.inner.add_gradients(states, d_inner, context.layout, gradient, &mut scratch.packed);
        self.inner.pass_back(d_inner, d_states, Write::Over, *context);
    }
}

impl Activation {
    /// Replaces every number.
    fn apply<F: Real>(self, numbers: &mut [F]) {
        let (slope, cube, half) = (F::of(GELU_SLOPE), F::of(GELU_CUBE), F::of(0.5));
        vectorised(
            #[inline(always)]
            || match self {
                Self::Relu => numbers.iter_mut().for_each(|x| *x = if *x > F::ZERO { *x } else { F::ZERO }),
                Self::Gelu => numbers.iter_mut().for_each(|number| {
                    let x = *number;
                    *number = half * x * (F::ONE + (slope * (x + cube * x * x * x)).tanh_fast());
                }),
            },
        );
    }

    /// Multiplies gradients by the derivatives at `inputs`.
    fn backward<F: Real>(self, d: &mut [F], inputs: &[F]) {
        let (slope, cube, half, thrice) = (F::of(GELU_SLOPE), F::of(GELU_CUBE), F::of(0.5), F::of(3.0));
        vectorised(
            #[inline(always)]
            || match self {
                Self::Relu => d.iter_mut().zip(inputs).for_each(|(d, &x)| *d = if x > F::ZERO { *d } else { F::ZERO }),
                Self::Gelu => d.iter_mut().zip(inputs).for_each(|(d, &x)| {
                    let tanh = (slope * (x + cube * x * x * x)).tanh_fast();
                    let d_inner = slope * (F::ONE + thrice * cube * x * x);
                    *d *= half * (F::ONE + tanh) + half * x * (F::ONE - tanh * tanh) * d_inner;
                }),
            },
        );
    }
}
