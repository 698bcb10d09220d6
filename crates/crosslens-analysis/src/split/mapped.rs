//! One side of a score map, and the parts of states on its far side.

use std::borrow::Cow;

use crosslens_kernels::{Aligned, Matrix, MatrixMut, Packed, Real, Write, add, fetch_line, product, vectorised};

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

/// What is computed anew for every sentence: its mapped states and what neither step nor token explains of them, `[step, d]`.
#[derive(Clone, Debug, Default)]
pub(super) struct Residuals<F> {
    residual: Aligned<F>,
    /// Empty where there is no map.
    mapped: Vec<F>,
}

/// The three parts of a sentence's mapped states, by step.
pub(super) struct Parts<'p, F> {
    pub(super) temporal: Vec<&'p [F]>,
    pub(super) input: Vec<&'p [F]>,
    /// The places of the tokens among those that have an input part.
    pub(super) rows: Vec<Option<usize>>,
    pub(super) residual: Vec<&'p [F]>,
}

impl<'p, F> Parts<'p, F> {
    /// In the order of every table.
    pub(super) fn all(&self) -> [&[&'p [F]]; 3] {
        [&self.temporal, &self.input, &self.residual]
    }
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

    /// Splits the states of a sentence from a step on: the first two parts are looked up, the third is computed into `residuals`.
    pub(super) fn split<'p>(&'p self, first: usize, tokens: &[Token], states: &[f32], residuals: &'p mut Residuals<F>) -> Parts<'p, F> {
        let d = self.d();
        assert_eq!(states.len(), tokens.len() * self.d_state, "one state a token");
        let temporal: Vec<&[F]> = (0..tokens.len()).map(|step| self.components.temporal(first + step)).collect();
        let rows: Vec<Option<usize>> = tokens.iter().map(|&token| self.components.row(token)).collect();
        let input: Vec<&[F]> = rows.iter().map(|&row| self.components.input_at(row)).collect();
        let Residuals { residual, mapped } = residuals;
        residual.reshape(tokens.len() * d);
        self.map_states(states, mapped);
        for (step, residual) in residual.chunks_exact_mut(d.max(1)).enumerate() {
            let soon = input.get(step + INPUTS_AHEAD).copied().unwrap_or(&[]);
            match self.map {
                Some(_) => subtract(residual, &mapped[step * d..], temporal[step], input[step], soon),
                None => subtract(residual, &states[step * d..], temporal[step], input[step], soon),
            }
        }
        Parts { temporal, input, rows, residual: residual.chunks_exact(d.max(1)).collect() }
    }

    /// The states behind the map; left empty where there is none.
    fn map_states(&self, states: &[f32], mapped: &mut Vec<F>) {
        mapped.clear();
        if let Some(map) = &self.map {
            let states: Vec<F> = states.iter().map(|&x| F::of(f64::from(x))).collect();
            *mapped = map.apply(&states, self.d_state, true);
        }
    }

    /// The mapped states of the sentence that `residuals` were made from.
    pub(super) fn states(&self, states: &[f32], residuals: &Residuals<F>) -> Vec<F> {
        if self.map.is_some() { residuals.mapped.clone() } else { states.iter().map(|&x| F::of(f64::from(x))).collect() }
    }
}

/// How many states before an input part is needed it is asked for: rows of a large table, which lie anywhere.
const INPUTS_AHEAD: usize = 2;

/// `residual = state − temporal − input` of the first of some states. Of an input part that is needed soon and may be empty, and of the
/// states to come, a line is asked for at a time, as many as the processor can wait for.
fn subtract<F: Real, S: Real>(residual: &mut [F], states: &[S], temporal: &[F], input: &[F], soon: &[F]) {
    /// Numbers between two requests: a line of the cache of `f32`.
    const STRETCH: usize = 16;
    let d = residual.len();
    let (state, later) = (&states[..d], states.get(2 * d..).unwrap_or(&[]));
    vectorised(
        #[inline(always)]
        || {
            let (residuals, last) = residual.as_chunks_mut::<STRETCH>();
            let ((states, last_state), (temporals, last_temporal)) = (state.as_chunks::<STRETCH>(), temporal.as_chunks::<STRETCH>());
            let (inputs, last_input) = input.as_chunks::<STRETCH>();
            let stretches = residuals.iter_mut().zip(states).zip(temporals).zip(inputs);
            for (number, (((residual, state), temporal), input)) in stretches.enumerate() {
                fetch_line(soon, STRETCH * number);
                fetch_line(later, STRETCH * number);
                // Written whole: the compiler need not fear that it lies in one of the others, and fills registers.
                let mut rest = [F::ZERO; STRETCH];
                for i in 0..STRETCH {
                    rest[i] = F::of(state[i].to_f64()) - temporal[i] - input[i];
                }
                *residual = rest;
            }
            for (((residual, &state), &temporal), &input) in last.iter_mut().zip(last_state).zip(last_temporal).zip(last_input) {
                *residual = F::of(state.to_f64()) - temporal - input;
            }
        },
    );
}
