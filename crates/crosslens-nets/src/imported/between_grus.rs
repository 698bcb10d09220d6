//! The network: what its maps are, and what an explanation is told of them.

use crosslens_analysis::{Consumed, Description, Readout, ScoreMap, Side, Site, SiteKind, Stream, Visible};

use super::gru::Gru;
use super::linear::{Linear, described};
use super::tables::SideTable;
use super::weights::{Sizes, Weights};

/// A bidirectional GRU encoder and a decoder of two GRUs with attention between them.
///
/// ```text
/// f, b = GRU over the source's vectors, forwards and backwards      h[k] = tanh(J [f[k]; b[k]] + j)
/// z[q] = GRU over the vectors of the tokens read                    the states that ask
/// a[q,k] = (W_Q z[q] + b_Q)·(W_K h[k] + b_K)/√d, per head            c[q] = O [Σ_k softmax(a[q])[k] (W_V h[k] + b_V)]_heads + o
/// s[q] = GRU over [z[q]; c[q]]                                      logits[q] = R s[q] + r
/// ```
/// All states begin at zero.
#[derive(Debug)]
pub(super) struct BetweenGrus {
    pub(super) sizes: Sizes,
    /// Both directions: the GRU, and what each source word gives to its gates.
    pub(super) encoder: [(Gru, Vec<f32>); 2],
    pub(super) join: Linear,
    pub(super) first: Gru,
    /// What each target word gives to the first decoder's gates.
    pub(super) first_table: Vec<f32>,
    pub(super) query: Linear,
    pub(super) key: Linear,
    /// By head.
    pub(super) values: Vec<Linear>,
    pub(super) output: Linear,
    pub(super) second: Gru,
    pub(super) readout: Linear,
}

impl BetweenGrus {
    pub(super) fn new(weights: &Weights) -> Self {
        let linear = |name: &str| Linear::new(weights.get(name), weights.get(&format!("{name}_bias")));
        let direction = |name: &str| {
            let gru = Gru::new(weights, name);
            let table = gru.gates(weights.get("source.embedding"));
            (gru, table)
        };
        let first = Gru::new(weights, "decoder.first");
        Self {
            sizes: weights.sizes,
            encoder: [direction("encoder.forward"), direction("encoder.backward")],
            join: linear("encoder.join"),
            first_table: first.gates(weights.get("target.embedding")),
            first,
            query: linear("attention.query"),
            key: linear("attention.key"),
            values: heads(weights, "attention.value").map(|(rows, bias)| Linear::new(rows, bias)).collect(),
            output: linear("attention.output"),
            second: Gru::new(weights, "decoder.second"),
            readout: linear("readout"),
        }
    }

    /// What divides a score: `1/√d`, `d` the dimensions of one head.
    pub(super) fn scale(&self) -> f32 {
        scale(&self.sizes)
    }
}

fn scale(sizes: &Sizes) -> f32 {
    1.0 / ((sizes.d_score / sizes.heads) as f32).sqrt()
}

/// The rows of a map and the entries of its bias, by head.
fn heads<'a>(weights: &'a Weights, name: &str) -> impl Iterator<Item = (&'a [f32], &'a [f32])> {
    let (rows, bias) = (weights.get(name), weights.get(&format!("{name}_bias")));
    let heads = weights.sizes.heads;
    rows.chunks_exact(rows.len() / heads).zip(bias.chunks_exact(bias.len() / heads))
}

/// The network in the words of an explanation.
pub(super) fn describe(weights: &Weights, name: &str, source: &SideTable, target: &SideTable) -> Description {
    let sizes = &weights.sizes;
    let stream = |name: &str, side, d| Stream { name: name.into(), side, consumed: Consumed::Current, d };
    let maps = heads(weights, "attention.query").zip(heads(weights, "attention.key")).zip(heads(weights, "attention.value"));
    let sites = maps.enumerate().map(|(head, ((query, key), value))| Site {
        kind: SiteKind::Cross,
        layer: 0,
        head,
        query: 1,
        key: 0,
        map: ScoreMap::Projected {
            query: described(query.0, query.1),
            key: described(key.0, key.1),
            scale: scale(sizes),
            position_bias: None,
        },
        visible: Visible::All,
        value: Some(described(value.0, value.1)),
    });
    let Sizes { heads, d_encoder, d_first, d_second, .. } = sizes;
    Description {
        model: format!("{name}, attention between GRUs, {d_encoder}, {d_first} and {d_second} units, bidirectional, qkv, {heads} heads"),
        model_hash: weights.hash(),
        source: source.described(),
        target: target.described(),
        streams: vec![stream("encoder", Side::Source, sizes.d_key), stream("decoder", Side::Target, sizes.d_first)],
        sites: sites.collect(),
        readout: Some(Readout {
            map: described(weights.get("readout"), weights.get("readout_bias")),
            d_state: sizes.d_second,
            d_context: 0,
        }),
    }
}
