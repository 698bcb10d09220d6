//! The decoder's stack of layers, with all it reads known.

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

/// One layer: attention to itself, to the encoder, then a feed-forward sublayer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecoderLayer {
    pub(crate) attention: Attention,
    pub(super) around_attention: Residual,
    pub(crate) cross: Attention,
    pub(super) around_cross: Residual,
    pub(super) feed_forward: FeedForward,
    pub(super) around_feed_forward: Residual,
}

/// All layers, and the norm at the end where norms stand before sublayers.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    pub(crate) layers: Vec<DecoderLayer>,
    pub(super) norm: Option<LayerNorm>,
    d: usize,
}

/// What one layer did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderLayerTrace<F> {
    pub(crate) attention: AttentionTrace<F>,
    pub(crate) around_attention: ResidualTrace<F>,
    pub(crate) cross: AttentionTrace<F>,
    pub(crate) around_cross: ResidualTrace<F>,
    feed_forward: FeedForwardTrace<F>,
    around_feed_forward: ResidualTrace<F>,
}

/// What the decoder did in a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderTrace<F> {
    /// `[row, d]`: the token vectors, then what the readout reads.
    pub(crate) rows: Vec<F>,
    /// Gradient of what the readout reads, then of the token vectors.
    pub(crate) d_rows: Vec<F>,
    pub(crate) layers: Vec<DecoderLayerTrace<F>>,
    norm: NormTrace<F>,
    mask: Vec<F>,
}

/// What the encoder gave, `[source row, d]`, and how its rows lie.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a, F> {
    pub(crate) rows: &'a [F],
    pub(crate) packing: &'a Packing,
}

impl Decoder {
    pub(super) fn new(shape: LayerShape, n_layers: usize, first_self: usize, layout: &mut Layout, maps: &mut Maps) -> Self {
        let LayerShape { d, heads, d_inner, norm, activation } = shape;
        let layer = |number: usize| {
            let name = |part: &str| format!("decoder.{number}.{part}");
            let site = |sublayer: usize| Site::DecoderInput(1 + 3 * number + sublayer);
            let (attention_name, cross_name) = (name("attention"), name("cross"));
            let attention = Shape { name: &attention_name, d, heads, visible: Visible::Causal, first_site: first_self + number * heads };
            let cross = Shape { name: &cross_name, d, heads, visible: Visible::All, first_site: number * heads };
            DecoderLayer {
                attention: Attention::new(&attention, layout, maps),
                around_attention: Residual::new(&name("attention_norm"), d, norm, site(0), layout),
                cross: Attention::new(&cross, layout, maps),
                around_cross: Residual::new(&name("cross_norm"), d, norm, site(1), layout),
                feed_forward: FeedForward::new(&name("feed_forward"), d, d_inner, activation, layout, maps),
                around_feed_forward: Residual::new(&name("feed_forward_norm"), d, norm, site(2), layout),
            }
        };
        let layers = (0..n_layers).map(layer).collect();
        let norm = (norm == NormPlace::Pre).then(|| LayerNorm::new("decoder.norm", d, layout));
        Self { layers, norm, d }
    }

    /// From token vectors in `trace.rows` to what the readout reads, in the same place.
    pub(super) fn forward<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        packing: &Packing,
        memory: Memory<'_, F>,
        dropping: Option<Dropping<'_>>,
        context: Context<'_, F>,
        hook: Option<ShardHook<'_, F>>,
    ) {
        let DecoderTrace { rows, layers, norm, mask, .. } = trace;
        layers.resize_with(self.layers.len(), DecoderLayerTrace::default);
        if let Some(dropping) = dropping {
            dropping.apply(mask, rows, self.d, Site::DecoderInput(0));
        }
        for (layer, trace) in self.layers.iter().zip(layers) {
            let around = &mut trace.around_attention;
            layer.around_attention.enter(rows, around, context);
            let asking = Asking { query_states: &around.states, queries: packing, key_states: &around.states, keys: packing };
            layer.attention.forward(&mut trace.attention, asking, &mut around.result, context, hook);
            layer.around_attention.leave(rows, around, dropping, context);

            let around = &mut trace.around_cross;
            layer.around_cross.enter(rows, around, context);
            let asking = Asking { query_states: &around.states, queries: packing, key_states: memory.rows, keys: memory.packing };
            layer.cross.forward(&mut trace.cross, asking, &mut around.result, context, hook);
            layer.around_cross.leave(rows, around, dropping, context);

            let around = &mut trace.around_feed_forward;
            layer.around_feed_forward.enter(rows, around, context);
            layer.feed_forward.forward(&mut trace.feed_forward, &around.states, &mut around.result, context);
            layer.around_feed_forward.leave(rows, around, dropping, context);
        }
        if let Some(last) = &self.norm {
            last.apply(norm, rows, context);
        }
    }

    /// From the gradient of what the readout reads, in `trace.d_rows`, to that of the token vectors, in the same place, and of what the
    /// encoder gave, added to `d_memory`.
    pub(super) fn backward<F: Real>(
        &self,
        trace: &mut DecoderTrace<F>,
        packing: &Packing,
        memory: Memory<'_, F>,
        d_memory: &mut [F],
        is_dropped: bool,
        back: &mut Backward<'_, F>,
    ) {
        let DecoderTrace { d_rows, layers, norm, mask, .. } = trace;
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

            let around = &mut trace.around_cross;
            layer.around_cross.return_to(d_rows, around, is_dropped, context, back.gradient);
            let asking = Asking { query_states: &around.states, queries: packing, key_states: memory.rows, keys: memory.packing };
            layer.cross.backward(&trace.cross, asking, &around.result, &mut d_states, Some(d_memory), back);
            layer.around_cross.return_from(d_rows, &mut d_states, around, context, back.gradient);

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
