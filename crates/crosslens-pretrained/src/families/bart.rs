//! BART and its relatives Marian, mBART, Pegasus and M2M100 (NLLB too): biases everywhere, positions added to the words.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::{SiteKind, Token, Visible};

use super::Family;
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Attention, Linear, Norm, Positions, Table};
use crate::model::{Model, Readout};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// What PyTorch adds to a variance unless told otherwise; these configurations do not tell.
const EPSILON: f32 = 1e-5;
/// Learned positions of BART and mBART begin in this row: an old way to keep rows for padding.
const FIRST_POSITION: usize = 2;

/// Most positions that are computed: unlike learned ones, no tensor bounds them.
const MOST_POSITIONS: usize = 1 << 14;

/// The padding token of M2M100 where its configuration does not name one.
const PADDING: Token = 1;

/// What tells a family from its relatives.
#[derive(Clone, Copy)]
struct Traits {
    norm_place: NormPlace,
    /// Whether words and positions together pass a norm before the first layer.
    norms_embedding: bool,
    /// Whether a norm stands after the last layer; one does where norms stand before the parts.
    norms_end: bool,
    places: Places,
    /// What a configuration means that does not say.
    n_words: usize,
    activation: &'static str,
    scales_words: bool,
}

/// Where positions come from.
#[derive(Clone, Copy)]
enum Places {
    /// A tensor, from row [`FIRST_POSITION`] on.
    Learned,
    /// Computed, from `sin 0` on, unless a tensor holds them.
    Sinusoids,
    /// Computed as fairseq does, counted from the padding token's number.
    FairseqSinusoids,
}

impl Traits {
    fn of(family: Family) -> Self {
        let after = Self {
            norm_place: NormPlace::After,
            norms_embedding: false,
            norms_end: false,
            places: Places::Sinusoids,
            n_words: 58101,
            activation: "gelu",
            scales_words: false,
        };
        let before = Self { norm_place: NormPlace::Before, norms_end: true, n_words: 50265, ..after };
        match family {
            Family::Bart => Self { norms_embedding: true, places: Places::Learned, n_words: 50265, ..after },
            Family::Mbart => Self { norms_embedding: true, places: Places::Learned, ..before },
            Family::Pegasus => before,
            Family::M2m100 => Self { places: Places::FairseqSinusoids, n_words: 128_112, activation: "relu", scales_words: true, ..before },
            _ => after,
        }
    }
}

/// What both sides share.
struct Shape {
    traits: Traits,
    d: usize,
    activation: Activation,
    word_scale: f32,
    n_positions: usize,
    padding: Token,
}

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let traits = Traits::of(family);
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let name = config.text("activation_function", traits.activation)?;
    let activation = Activation::named(name);
    let d = size("d_model", 1024)?;
    let shape = Shape {
        traits,
        d,
        activation: activation
            .ok_or_else(|| config.wrong("activation_function", format!("is `{name}`; known are {}", Activation::KNOWN)))?,
        word_scale: if config.flag("scale_embedding", traits.scales_words)? { (d as f32).sqrt() } else { 1.0 },
        n_positions: size("max_position_embeddings", 1024)?,
        padding: config.tokens("pad_token_id")?.first().copied().unwrap_or(PADDING),
    };
    let n_source = size("vocab_size", traits.n_words)?;
    let is_shared = family != Family::Marian || config.flag("share_encoder_decoder_embeddings", true)?;
    let n_target = if is_shared { n_source } else { size("decoder_vocab_size", n_source)? };

    // With the readout a model stands under `model.`; without it, it stands alone.
    let prefix = if weights.has("model.encoder.layers.0.self_attn.q_proj.weight") { "model." } else { "" };
    let name = |rest: &str| format!("{prefix}{rest}");
    let (shared, of_encoder, of_decoder) =
        (name("shared.weight"), name("encoder.embed_tokens.weight"), name("decoder.embed_tokens.weight"));
    let (source, target) = if is_shared {
        let words = weights.first_of(&[&shared, &of_encoder, &of_decoder]).to_owned();
        let words = Arc::new(weights.table(&words, n_source, d)?);
        (words.clone(), words)
    } else {
        (Arc::new(weights.table(&of_encoder, n_source, d)?), Arc::new(weights.table(&of_decoder, n_target, d)?))
    };
    [&shared, &of_encoder, &of_decoder].into_iter().for_each(|name| weights.pass_over(name));

    let encoder = stack(&mut weights, &name("encoder"), config, &shape, source)?;
    let decoder = stack(&mut weights, &name("decoder"), config, &shape, target.clone())?;
    let table = if weights.has("lm_head.weight") { Arc::new(weights.table("lm_head.weight", n_target, d)?) } else { target };
    let bias = if weights.has("final_logits_bias") { Some(weights.read("final_logits_bias", &[1, n_target])?) } else { None };
    weights.refuse_rest()?;

    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias, scale: 1.0, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

fn stack(weights: &mut Weights, name: &str, config: &Fields, shape: &Shape, words: Arc<Table>) -> Result<Stack, PretrainedError> {
    let is_decoder = name.ends_with("decoder");
    let side = if is_decoder { "decoder" } else { "encoder" };
    let of_side = |field: &str, otherwise| config.size(&format!("{side}_{field}"), Some(otherwise));
    let (n_layers, n_heads, d_feed) = (of_side("layers", 12)?, of_side("attention_heads", 16)?, of_side("ffn_dim", 4096)?);
    if !shape.d.is_multiple_of(n_heads) {
        return Err(config.wrong(&format!("{side}_attention_heads"), format!("is {n_heads}, which does not divide d_model = {}", shape.d)));
    }
    let positions = positions(weights, name, config, shape)?;
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &name, shape.d, EPSILON);
    let norm_if = |weights: &mut Weights, is_there: bool, part: &str| {
        if is_there { norm(weights, format!("{name}.{part}")).map(Some) } else { Ok(None) }
    };
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.layers.{number}");
        let visible = if is_decoder { Visible::Causal } else { Visible::All };
        let own = attention(weights, &format!("{layer}.self_attn"), shape.d, n_heads, visible)?;
        let own = (norm(weights, format!("{layer}.self_attn_layer_norm"))?, own);
        let cross = if is_decoder {
            let cross = attention(weights, &format!("{layer}.encoder_attn"), shape.d, n_heads, Visible::All)?;
            Some((norm(weights, format!("{layer}.encoder_attn_layer_norm"))?, cross))
        } else {
            None
        };
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.fc1"), shape.d, d_feed, true)?,
            gate: None,
            activation: shape.activation,
            second: Linear::read(weights, &format!("{layer}.fc2"), d_feed, shape.d, true)?,
        };
        layers.push(Layer { attention: own, cross, feed_forward: (norm(weights, format!("{layer}.final_layer_norm"))?, feed) });
    }
    Ok(Stack {
        kind: if is_decoder { SiteKind::DecoderSelf } else { SiteKind::EncoderSelf },
        reads: Reads::Words { table: words, scale: shape.word_scale },
        positions: Some(positions),
        embedding_norm: norm_if(weights, shape.traits.norms_embedding, "layernorm_embedding")?,
        norm_place: shape.traits.norm_place,
        layers,
        ending: norm_if(weights, shape.traits.norms_end, "layer_norm")?.map(Ending::Norm).into_iter().collect(),
    })
}

fn positions(weights: &mut Weights, name: &str, config: &Fields, shape: &Shape) -> Result<Positions, PretrainedError> {
    let tensor = format!("{name}.embed_positions.weight");
    match shape.traits.places {
        Places::Learned => return Positions::learned(weights, &tensor, shape.n_positions, FIRST_POSITION, shape.d),
        Places::Sinusoids if weights.has(&tensor) => return Positions::learned(weights, &tensor, shape.n_positions, 0, shape.d),
        // Old files keep what everybody computes.
        Places::FairseqSinusoids => weights.pass_over(&format!("{tensor}s")),
        Places::Sinusoids => {}
    }
    if shape.n_positions > MOST_POSITIONS {
        let what = format!("is {}; at most {MOST_POSITIONS} is allowed", shape.n_positions);
        return Err(config.wrong("max_position_embeddings", what));
    }
    match shape.traits.places {
        Places::FairseqSinusoids if shape.d < 4 => Err(config.wrong("d_model", format!("is {}; at least 4 is meant", shape.d))),
        Places::FairseqSinusoids => Ok(Positions::fairseq_sinusoids(shape.n_positions, shape.d, shape.padding)),
        _ => Ok(Positions::sinusoids(shape.n_positions, shape.d)),
    }
}

fn attention(weights: &mut Weights, name: &str, d: usize, n_heads: usize, visible: Visible) -> Result<Attention, PretrainedError> {
    let mut part = |part: &str| Linear::read(weights, &format!("{name}.{part}"), d, d, true);
    let (query, key, value, output) = (part("q_proj")?, part("k_proj")?, part("v_proj")?, part("out_proj")?);
    let scale = ((d / n_heads) as f32).powf(-0.5);
    Ok(Attention { query, key, value, output, n_heads, scale, visible, bias: None })
}
