//! A sublayer's way around itself: `x + f(norm(x))` or `norm(x + f(x))`, with some of what `f` gives dropped in training.

use crosslens_kernels::{Real, add};

use super::config::NormPlace;
use super::norm::{LayerNorm, NormTrace};
use crate::network::dropout::{self, Dropout, Order, Site};
use crate::network::layout::Layout;
use crate::network::packing::Packing;
use crate::network::prepared::Context;

/// The norm of a sublayer and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residual {
    norm: LayerNorm,
    place: NormPlace,
    d: usize,
    site: Site,
}

/// What went around a sublayer and through it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResidualTrace<F> {
    /// `[row, d]`: what `f` reads; normed where the norm stands before.
    pub(crate) states: Vec<F>,
    /// `[row, d]`: what `f` gives; on the way back its gradient.
    pub(crate) result: Vec<F>,
    norm: NormTrace<F>,
    mask: Vec<F>,
}

/// What is dropped in a shard.
#[derive(Clone, Copy)]
pub(crate) struct Dropping<'a> {
    pub(crate) dropout: Dropout,
    /// Number in the batch of the shard's first sentence.
    pub(crate) first_sentence: usize,
    pub(crate) packing: &'a Packing,
}

impl Dropping<'_> {
    /// Draws the mask of a place and sets some of the rows to zero.
    pub(crate) fn apply<F: Real>(self, mask: &mut Vec<F>, rows: &mut [F], d: usize, site: Site) {
        self.dropout.mask(mask, self.packing, d, site, self.first_sentence, Order::Sentence);
        dropout::apply(rows, mask);
    }
}

impl Residual {
    pub(crate) fn new(name: &str, d: usize, place: NormPlace, site: Site, layout: &mut Layout) -> Self {
        Self { norm: LayerNorm::new(name, d, layout), place, d, site }
    }

    /// Fills `trace.states` from the rows that enter.
    pub(crate) fn enter<F: Real>(&self, rows: &[F], trace: &mut ResidualTrace<F>, context: Context<'_, F>) {
        trace.states.clear();
        trace.states.extend_from_slice(rows);
        if self.place == NormPlace::Pre {
            self.norm.apply(&mut trace.norm, &mut trace.states, context);
        }
    }

    /// Adds `trace.result` to the rows.
    pub(crate) fn leave<F: Real>(
        &self,
        rows: &mut [F],
        trace: &mut ResidualTrace<F>,
        dropping: Option<Dropping<'_>>,
        context: Context<'_, F>,
    ) {
        if let Some(dropping) = dropping {
            dropping.apply(&mut trace.mask, &mut trace.result, self.d, self.site);
        }
        add(rows, &trace.result);
        if self.place == NormPlace::Post {
            self.norm.apply(&mut trace.norm, rows, context);
        }
    }

    /// Back through [`Residual::leave`]: `trace.result` becomes the gradient of what `f` gave.
    pub(crate) fn return_to<F: Real>(
        &self,
        d_rows: &mut [F],
        trace: &mut ResidualTrace<F>,
        is_dropped: bool,
        context: Context<'_, F>,
        gradient: &mut [F],
    ) {
        if self.place == NormPlace::Post {
            self.norm.backward(&trace.norm, d_rows, context, gradient);
        }
        trace.result.copy_from_slice(d_rows);
        if is_dropped {
            dropout::apply(&mut trace.result, &trace.mask);
        }
    }

    /// Back through [`Residual::enter`], from the gradient of what `f` read, which is used up.
    pub(crate) fn return_from<F: Real>(
        &self,
        d_rows: &mut [F],
        d_states: &mut [F],
        trace: &ResidualTrace<F>,
        context: Context<'_, F>,
        gradient: &mut [F],
    ) {
        if self.place == NormPlace::Pre {
            self.norm.backward(&trace.norm, d_states, context, gradient);
        }
        add(d_rows, d_states);
    }
}
