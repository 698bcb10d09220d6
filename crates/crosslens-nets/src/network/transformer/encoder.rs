//! The encoder's stack of layers.

use crosslens_analysis::Visible;
use crosslens_kernels::Real;

use super::attention::{Asking, Attention, AttentionTrace, Shape};
use super::config::NormPlace;
use super::feed_forward::{FeedForward, FeedForwardTrace};
use super::norm::{LayerNorm, NormTrace};
use super::residual::{Dropping, Residual, ResidualTrace};
use super::{Backward, LayerShape};
use crate::network::dropout::{self, Site};
use crate::network::hook::ShardHook;
use crate::network::layout::Layout;
use crate::network::packing::Packing;
use crate::network::prepared::{Context, Maps};

/// One layer: attention to itself, then a feed-forward sublayer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncoderLayer {
    pub(crate) attention: Attention,
    around_attention: Residual,
    feed_forward: FeedForward,
    around_feed_forward: Residual,
}

/// All layers, and the norm at the end where norms stand before sublayers.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    pub(crate) layers: Vec<EncoderLayer>,
    norm: Option<LayerNorm>,
    d: usize,
}

/// What one layer did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncoderLayerTrace<F> {
    pub(crate) attention: AttentionTrace<F>,
    pub(crate) around_attention: ResidualTrace<F>,
    feed_forward: FeedForwardTrace<F>,
    around_feed_forward: ResidualTrace<F>,
}

/// What the encoder did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncoderTrace<F> {
    /// `[row, d]`: the token vectors, then what the encoder gives.
    pub(crate) rows: Vec<F>,
    /// Gradient of what the encoder gives, then of the token vectors.
    pub(crate) d_rows: Vec<F>,
    pub(crate) layers: Vec<EncoderLayerTrace<F>>,
    norm: NormTrace<F>,
    mask: Vec<F>,
}

impl Encoder {
    pub(super) fn new(shape: LayerShape, n_layers: usize, first_site: usize, layout: &mut Layout, maps: &mut Maps) -> Self {
        let LayerShape { d, heads, d_inner, norm, activation } = shape;
        let layer = |number: usize| {
            let name = |part: &str| format!("encoder.{number}.{part}");
            let site = |sublayer: usize| Site::EncoderInput(1 + 2 * number + sublayer);
            let attention_name = name("attention");
            let attention = Shape { name: &attention_name, d, heads, visible: Visible::All, first_site: first_site + number * heads };
            EncoderLayer {
                attention: Attention::new(&attention, layout, maps),
                around_attention: Residual::new(&name("attention_norm"), d, norm, site(0), layout),
                feed_forward: FeedForward::new(&name("feed_forward"), d, d_inner, activation, layout, maps),
                around_feed_forward: Residual::new(&name("feed_forward_norm"), d, norm, site(1), layout),
            }
        };
        let layers = (0..n_layers).map(layer).collect();
        let norm = (norm == NormPlace::Pre).then(|| LayerNorm::new("encoder.norm", d, layout));
        Self { layers, norm, d }
    }

    /// From token vectors in `trace.rows` to what the encoder gives, in the same place.
    pub(super) fn forward<F: Real>(
        &self,
        trace: &mut EncoderTrace<F>,
        packing: &Packing,
        dropping: Option<Dropping<'_>>,
        context: Context<'_, F>,
        hook: Option<ShardHook<'_, F>>,
    ) {
        let EncoderTrace { rows, layers, norm, mask, .. } = trace;
        layers.resize_with(self.layers.len(), EncoderLayerTrace::default);
        if let Some(dropping) = dropping {
            dropping.apply(mask, rows, self.d, Site::EncoderInput(0));
        }
        for (layer, trace) in self.layers.iter().zip(layers) {
            let around = &mut trace.around_attention;
            layer.around_attention.enter(rows, around, context);
            let asking = Asking { query_states: &around.states, queries: packing, key_states: &around.states, keys: packing };
            layer.attention.forward(&mut trace.attention, asking, &mut around.result, context, hook);
            layer.around_attention.leave(rows, around, dropping, context);

            let around = &mut trace.around_feed_forward;
            layer.around_feed_forward.enter(rows, around, context);
            layer.feed_forward.forward(&mut trace.feed_forward, &around.states, &mut around.result, context);
            layer.around_feed_forward.leave(rows, around, dropping, context);
        }
        if let Some(last) = &self.norm {
            last.apply(norm, rows, context);
        }
    }

    /// From the gradient of what the encoder gives, in `trace.d_rows`, to that of the token vectors, in the same place.
    pub(super) fn backward<F: Real>(&self, trace: &mut EncoderTrace<F>, packing: &Packing, is_dropped: bool, back: &mut Backward<'_, F>) {
        let EncoderTrace { d_rows, layers, norm, mask, .. } = trace;
        let context = back.context;
        if let Some(last) = &self.norm {
            last.backward(norm, d_rows, context, back.gradient);
        }
        let mut d_states = back.scratch.take_states(d_rows.len());
        for (layer, trace) in self.layers.iter().zip(layers).rev() {
            let around = &mut trace.around_feed_forward;
            layer.around_feed_forward.return_to(d_rows, around, is_dropped, context, back.gradient);
            layer.feed_forward.backward(&trace.feed_forward, &around.states, &around.result, &mut d_states, back);
            layer.around_feed_forward.return_from(d_rows, &mut d_states, around, context, back.gradient);

            let around = &mut trace.around_attention;
            layer.around_attention.return_to(d_rows, around, is_dropped, context, back.gradient);
            let asking = Asking { query_states: &around.states, queries: packing, key_states: &around.states, keys: packing };
            layer.attention.backward(&trace.attention, asking, &around.result, &mut d_states, None, back);
            layer.around_attention.return_from(d_rows, &mut d_states, around, context, back.gradient);
        }
        back.scratch.d_states = d_states;
        if is_dropped {
            dropout::apply(d_rows, mask);
        }
    }
}
