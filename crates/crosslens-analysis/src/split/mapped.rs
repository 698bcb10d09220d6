//! One side of a score map, and the parts of states on its far side.

use std::borrow::Cow;

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, add, product, vectorised};

use crate::{Components, Linear, Token};

/// A side whose components have been carried through its linear map, so that parts of mapped states are looked up.
pub(super) struct Mapped<'a, F: Real> {
    map: Option<Affine<F>>,
    components: Cow<'a, Components<F>>,
    d_state: usize,
}

struct Affine<F: Real> {
    weights: Packed<F>,
    bias: Vec<F>,
    d_out: usize,
}

impl<F: Real> Affine<F> {
    fn new(linear: &Linear) -> Self {
        let convert = |values: &[f32]| -> Vec<F> { values.iter().map(|&x| F::of(f64::from(x))).collect() };
        let mut weights = Packed::new();
        weights.pack(Matrix::new(&convert(&linear.weights), linear.d_in, linear.d_out));
        Self { weights, bias: convert(&linear.bias), d_out: linear.d_out }
    }

    /// `rows·W`, and `+ b` if asked for.
    fn apply(&self, rows: &[F], d_in: usize, with_bias: bool) -> Vec<F> {
        let n_rows = rows.len() / d_in.max(1);
        let mut mapped = vec![F::ZERO; n_rows * self.d_out];
        product(MatrixMut::new(&mut mapped, n_rows, self.d_out), Matrix::new(rows, n_rows, d_in), &self.weights, Write::Over);
        if with_bias && !self.bias.is_empty() {
            mapped.chunks_exact_mut(self.d_out).for_each(|row| add(row, &self.bias));
        }
        mapped
    }
}

/// The three parts of some mapped states, `[step, d]` each.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts<F> {
    temporal: Vec<F>,
    pub(super) input: Vec<F>,
    pub(super) residual: Vec<F>,
    states: Vec<F>,
}

impl<'a, F: Real> Mapped<'a, F> {
    /// Carries components through a map; the map's bias joins the temporal part.
    pub(super) fn new(components: &'a Components<F>, linear: Option<&Linear>) -> Self {
        let d_state = components.d();
        let Some(linear) = linear else {
            return Self { map: None, components: Cow::Borrowed(components), d_state };
        };
        let map = Affine::new(linear);
        let mapped = components.mapped(map.d_out, |rows, is_temporal| map.apply(rows, d_state, is_temporal));
        Self { map: Some(map), components: Cow::Owned(mapped), d_state }
    }

    /// Dimensions after the map.
    pub(super) fn d(&self) -> usize {
        self.components.d()
    }

    pub(super) fn components(&self) -> &Components<F> {
        &self.components
    }

    /// Splits the states of a sentence; `parts.states` then holds them mapped.
    pub(super) fn split(&self, tokens: &[Token], states: &[f32], parts: &mut Parts<F>) {
        let d = self.d();
        assert_eq!(states.len(), tokens.len() * self.d_state, "one state a token");
        parts.states.clear();
        vectorised(
            #[inline(always)]
            || parts.states.extend(states.iter().map(|&x| F::of(f64::from(x)))),
        );
        if let Some(map) = &self.map {
            parts.states = map.apply(&parts.states, self.d_state, true);
        }
        let n_rows = tokens.len();
        parts.input.resize(n_rows * d, F::ZERO);
        parts.residual.resize(n_rows * d, F::ZERO);
        let rows = parts.input.chunks_exact_mut(d.max(1)).zip(parts.residual.chunks_exact_mut(d.max(1)));
        for (step, (((input, residual), state), &token)) in rows.zip(parts.states.chunks_exact(d.max(1))).zip(tokens).enumerate() {
            input.copy_from_slice(self.components.input(token));
            subtract(residual, state, self.components.temporal(step), input);
        }
        parts.temporal.clear();
        if self.components.temporal_rows(n_rows).is_none() {
            (0..n_rows).for_each(|step| parts.temporal.extend_from_slice(self.components.temporal(step)));
        }
    }

    /// The temporal parts of the first steps: those of the components, or a copy where they do not reach so far.
    pub(super) fn temporal<'p>(&'p self, parts: &'p Parts<F>, n_rows: usize) -> &'p [F] {
        self.components.temporal_rows(n_rows).unwrap_or(&parts.temporal)
    }
}

impl<F> Parts<F> {
    /// The mapped states themselves.
    pub(super) fn states(&self) -> &[F] {
        &self.states
    }
}

/// `residual = state − temporal − input`.
fn subtract<F: Real>(residual: &mut [F], state: &[F], temporal: &[F], input: &[F]) {
    vectorised(
        #[inline(always)]
        || {
            for (((residual, &state), &temporal), &input) in residual.iter_mut().zip(state).zip(temporal).zip(input) {
                *residual = state - temporal - input;
            }
        },
    );
}
