//! T5 and its relatives: norms without a mean before each part, no scale of scores, a bias of distances in self-attention.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::{PositionBias, SiteKind, Visible};

use super::{Family, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Attention, Buckets, Linear, Norm, Table, biases};
use crate::model::{Model, Readout};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Largest distance that has a bias of its own: each head keeps one for every distance up to it.
const MOST_DISTANCE: usize = 1 << 14;
/// Most biases of a model, of every distance, head and layer that has its own: 64 MB, where the largest of Google's have a twentieth.
const MOST_BIASES: usize = 1 << 24;

/// The numbers of a configuration, with the defaults of those who write it.
struct Shape {
    d: usize,
    d_head: usize,
    n_heads: usize,
    d_feed: usize,
    epsilon: f32,
    activation: Activation,
    is_gated: bool,
    buckets: usize,
    max_distance: usize,
    /// Whether each layer has its own bias of distances; else all have that of the first.
    own_biases: bool,
}

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let feed = config.text("feed_forward_proj", if family == Family::T5 { "relu" } else { "gated-gelu" })?;
    let (is_gated, name) = feed.strip_prefix("gated-").map_or((false, feed), |name| (true, name));
    let name = if feed == "gated-gelu" { "gelu_new" } else { name };
    let activation = Activation::named(name);
    let shape = Shape {
        d: size("d_model", 512)?,
        d_head: size("d_kv", 64)?,
        n_heads: size("num_heads", if family == Family::T5 { 8 } else { 6 })?,
        d_feed: size("d_ff", if family == Family::T5 { 2048 } else { 1024 })?,
        epsilon: config.number("layer_norm_epsilon", 1e-6)? as f32,
        activation: activation.ok_or_else(|| config.wrong("feed_forward_proj", format!("is `{feed}`; known are {}", Activation::KNOWN)))?,
        is_gated,
        buckets: size("relative_attention_num_buckets", 32)?,
        max_distance: size("relative_attention_max_distance", 128)?,
        own_biases: family == Family::Umt5,
    };
    if shape.epsilon < 0.0 {
        return Err(config.wrong("layer_norm_epsilon", format!("is {}; 0 or more is meant", shape.epsilon)));
    }
    if shape.max_distance > MOST_DISTANCE {
        let what = format!("is {}; at most {MOST_DISTANCE} is allowed", shape.max_distance);
        return Err(config.wrong("relative_attention_max_distance", what));
    }
    if shape.buckets < 4 || shape.max_distance <= shape.buckets / 2 {
        let what = format!("is {}, too few or too many for a largest distance of {}", shape.buckets, shape.max_distance);
        return Err(config.wrong("relative_attention_num_buckets", what));
    }
    let n_words = size("vocab_size", if family == Family::T5 { 32128 } else { 250_112 })?;
    let n_encoder = size("num_layers", if family == Family::T5 { 6 } else { 8 })?;
    let n_decoder = size("num_decoder_layers", n_encoder)?;
    few_enough(config, &shape, if shape.own_biases { n_encoder + n_decoder } else { 2 })?;

    let [of_encoder, of_decoder] = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"];
    let shared = weights.first_of(&["shared.weight", of_encoder, of_decoder]);
    let words = Arc::new(weights.table(shared, n_words, shape.d)?);
    let (source, target) = (weights.copy_of(shared, &words, of_encoder)?, weights.copy_of(shared, &words, of_decoder)?);
    // Some checkpoints keep a bias of distances for cross-attention that no version of the model uses.
    weights.pass_over("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
    let encoder = stack(&mut weights, "encoder", n_encoder, &shape, source)?;
    let decoder = stack(&mut weights, "decoder", n_decoder, &shape, target)?;
    let table = readout(&mut weights, "lm_head.weight", config, words)?;
    weights.refuse_rest()?;

    // The first T5 scaled what the readout reads, and files say so by tied words, or in later versions outright.
    let is_scaled = match family {
        Family::Mt5 => false,
        _ => config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true)?)?,
    };
    let scale = if is_scaled { (shape.d as f32).powf(-0.5) } else { 1.0 };
    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias: None, scale, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

/// Refuses more biases of distances than anybody computes: tensors show how many heads there are, but no distance.
fn few_enough(config: &Fields, shape: &Shape, n_layers: usize) -> Result<(), PretrainedError> {
    let Shape { n_heads, max_distance, .. } = *shape;
    if n_heads.saturating_mul(n_layers).saturating_mul(2 * max_distance) <= MOST_BIASES {
        return Ok(());
    }
    let what = format!("is {max_distance}; times 2, {n_heads} heads and {n_layers} layers with biases at most {MOST_BIASES} is allowed");
    Err(config.wrong("relative_attention_max_distance", what))
}

fn stack(weights: &mut Weights, side: &str, n_layers: usize, shape: &Shape, words: Arc<Table>) -> Result<Stack, PretrainedError> {
    let is_decoder = side == "decoder";
    let mut first_bias: Option<Arc<Vec<PositionBias>>> = None;
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{side}.block.{number}.layer");
        let name = format!("{layer}.0.SelfAttention.relative_attention_bias.weight");
        let visible = if is_decoder { Visible::Causal } else { Visible::All };
        let part = |weights: &mut Weights, part: usize| {
            Norm::root_mean_square(weights, &format!("{layer}.{part}.layer_norm"), shape.d, shape.epsilon)
        };
        let own = attention(weights, &format!("{layer}.0.SelfAttention"), shape, visible)?;
        // After the weights, which show that there are so many heads.
        let bias = match &first_bias {
            Some(bias) if !shape.own_biases => bias.clone(),
            _ => {
                let buckets = Buckets { count: shape.buckets, max_distance: shape.max_distance, both_ways: !is_decoder };
                Arc::new(biases(buckets, &weights.read(&name, &[shape.buckets, shape.n_heads])?, shape.n_heads))
            }
        };
        first_bias.get_or_insert_with(|| bias.clone());
        let own = (part(weights, 0)?, Attention { bias: Some(bias), ..own });
        let cross = if is_decoder {
            let cross = attention(weights, &format!("{layer}.1.EncDecAttention"), shape, Visible::All)?;
            Some((part(weights, 1)?, cross))
        } else {
            None
        };
        let place = if is_decoder { 2 } else { 1 };
        let feed = feed_forward(weights, &format!("{layer}.{place}.DenseReluDense"), shape)?;
        layers.push(Layer { attention: own, cross, feed_forward: (part(weights, place)?, feed) });
    }
    Ok(Stack {
        kind: if is_decoder { SiteKind::DecoderSelf } else { SiteKind::EncoderSelf },
        reads: Reads::Words { table: words, scale: 1.0 },
        positions: None,
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers,
        ending: vec![Ending::Norm(Norm::root_mean_square(weights, &format!("{side}.final_layer_norm"), shape.d, shape.epsilon)?)],
    })
}

fn attention(weights: &mut Weights, name: &str, shape: &Shape, visible: Visible) -> Result<Attention, PretrainedError> {
    let width = shape.n_heads * shape.d_head;
    let mut inward = |part: &str| Linear::read(weights, &format!("{name}.{part}"), shape.d, width, false);
    let (query, key, value) = (inward("q")?, inward("k")?, inward("v")?);
    let output = Linear::read(weights, &format!("{name}.o"), width, shape.d, false)?;
    Ok(Attention { query, key, value, output, n_heads: shape.n_heads, scale: 1.0, visible, bias: None })
}

fn feed_forward(weights: &mut Weights, name: &str, shape: &Shape) -> Result<FeedForward, PretrainedError> {
    let mut inward = |part: &str| Linear::read(weights, &format!("{name}.{part}"), shape.d, shape.d_feed, false);
    let (first, gate) = if shape.is_gated { (inward("wi_0")?, Some(inward("wi_1")?)) } else { (inward("wi")?, None) };
    let second = Linear::read(weights, &format!("{name}.wo"), shape.d_feed, shape.d, false)?;
    Ok(FeedForward { first, gate, activation: shape.activation, second })
}
