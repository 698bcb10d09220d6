//! ViT, DeiT and BEiT: norms before each part, one or two vectors before the patches.

use std::sync::Arc;

use crosslens_analysis::{GridBias, PositionBias, SiteKind, Visible};

use super::{activation, d_head, epsilon};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Attention, Linear, Norm, Positions, Table};
use crate::senses::{Frame, Sight};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Most patches of a picture, as many as a sound may have steps: attention takes their square, and no tensor need show how many there are.
const MOST_PATCHES: usize = 1 << 14;

/// The encoders that share their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Vit,
    /// With a second vector before the patches, from its training with a teacher.
    Deit,
    /// Without a bias of keys; scaled results; positions as a bias of attention.
    Beit,
}

/// What all layers share.
struct Shape {
    n_heads: usize,
    epsilon: f32,
    frame: Frame,
    has_bias: bool,
    is_scaled: bool,
}

/// The sizes of pictures and patches that a configuration names.
pub(super) fn frame(config: &Fields, picture: usize) -> Result<Frame, PretrainedError> {
    let frame = Frame {
        n_channels: config.size("num_channels", Some(3))?,
        picture: config.sizes("image_size", picture)?,
        patch: config.sizes("patch_size", 16)?,
    };
    match frame.cut() {
        [0, _] | [_, 0] => Err(config.wrong("patch_size", format!("is larger than a picture: {:?} of {:?}", frame.patch, frame.picture))),
        [rows, columns] if rows * columns > MOST_PATCHES => {
            Err(config.wrong("image_size", format!("gives {rows} rows of {columns} patches; at most {MOST_PATCHES} together are allowed")))
        }
        _ => Ok(frame),
    }
}

/// Reads `encoder.*`.
pub(super) fn vit(weights: &mut Weights, config: &Fields, kind: Kind) -> Result<Stack, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let is_beit = kind == Kind::Beit;
    let (d, n_heads, n_layers) = (size("hidden_size", 768)?, size("num_attention_heads", 12)?, size("num_hidden_layers", 12)?);
    d_head(config, "num_attention_heads", n_heads, ("hidden_size", d))?;
    let shape = Shape {
        n_heads,
        epsilon: epsilon(config, "layer_norm_eps", 1e-12)?,
        frame: frame(config, 224)?,
        has_bias: is_beit || config.flag("qkv_bias", true)?,
        is_scaled: is_beit && config.number("layer_scale_init_value", 0.1)? > 0.0,
    };
    let act = activation(config, "hidden_act", "gelu")?;

    let mut special = weights.read("encoder.embeddings.cls_token", &[1, 1, d])?;
    if kind == Kind::Deit {
        special.extend(weights.read("encoder.embeddings.distillation_token", &[1, 1, d])?);
    }
    let [rows, columns] = shape.frame.cut();
    let n_steps = special.len() / d + rows * columns;
    let has_positions = !is_beit || config.flag("use_absolute_position_embeddings", false)?;
    let positions = if has_positions {
        let vectors = weights.read("encoder.embeddings.position_embeddings", &[1, n_steps, d])?;
        Some(Positions::of(Table::owned(vectors, n_steps, d)))
    } else {
        None
    };
    let sight = Sight::read(weights, "encoder.embeddings.patch_embeddings.projection", shape.frame, special, d)?;
    let shared = if is_beit && config.flag("use_shared_relative_position_bias", false)? {
        Some(read_bias(weights, config, "encoder.encoder.relative_position_bias", &shape)?)
    } else {
        None
    };
    let has_own = is_beit && config.flag("use_relative_position_bias", false)?;
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let name = format!("encoder.encoder.layer.{number}");
        let inner = format!("{name}.attention.attention");
        let own = if has_own { Some(read_bias(weights, config, &format!("{inner}.relative_position_bias"), &shape)?) } else { None };
        let bias = match (&shared, own) {
            (Some(shared), Some(own)) => Some(sum(shared, own)),
            (Some(shared), None) => Some(shared.clone()),
            (None, own) => own,
        };
        let mut part = |part: &str, has_bias| Linear::read(weights, &format!("{inner}.{part}"), d, d, has_bias);
        let (query, key, value) =
            (part("query", shape.has_bias)?, part("key", shape.has_bias && !is_beit)?, part("value", shape.has_bias)?);
        let output = scaled(weights, &format!("{name}.attention.output.dense"), (d, d), &shape, &format!("{name}.lambda_1"))?;
        let attention = Attention {
            query,
            key,
            value,
            output,
            n_heads,
            scale: ((d / n_heads) as f32).powf(-0.5),
            visible: Visible::All,
            bias: bias.map(|biases| Arc::new(biases.into_iter().map(PositionBias::from).collect())),
        };
        let d_feed = size("intermediate_size", 3072)?;
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{name}.intermediate.dense"), d, d_feed, true)?,
            gate: None,
            activation: act,
            second: scaled(weights, &format!("{name}.output.dense"), (d_feed, d), &shape, &format!("{name}.lambda_2"))?,
        };
        let mut norm = |place: &str| Norm::layer(weights, &format!("{name}.layernorm_{place}"), d, shape.epsilon);
        let (before, after) = (norm("before")?, norm("after")?);
        layers.push(Layer { attention: (before, attention), cross: None, feed_forward: (after, feed) });
        weights.pass_over(&format!("{inner}.relative_position_bias.relative_position_index"));
    }
    let is_normed = !(is_beit && config.flag("use_mean_pooling", true)?);
    let ending = if is_normed { vec![Ending::Norm(Norm::layer(weights, "encoder.layernorm", d, shape.epsilon)?)] } else { Vec::new() };
    // A summary of the picture that no decoder asks, and what masked pictures were trained with.
    for rest in ["pooler.dense.weight", "pooler.dense.bias", "pooler.layernorm.weight", "pooler.layernorm.bias", "embeddings.mask_token"] {
        weights.pass_over(&format!("encoder.{rest}"));
    }
    weights.pass_over("encoder.encoder.relative_position_bias.relative_position_index");
    Ok(Stack {
        kind: SiteKind::EncoderSelf,
        reads: Reads::Signal(Box::new(sight)),
        positions,
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers,
        ending,
    })
}

/// A part's last map; of BEiT its results are scaled dimension by dimension, `λ ∘ (W x + b)`, which is `(λ ∘ W) x + λ ∘ b`.
fn scaled(weights: &mut Weights, name: &str, (d_in, d_out): (usize, usize), shape: &Shape, scale: &str) -> Result<Linear, PretrainedError> {
    if !shape.is_scaled {
        return Linear::read(weights, name, d_in, d_out, true);
    }
    let scale = weights.read(scale, &[d_out])?;
    let mut matrix = weights.read(&format!("{name}.weight"), &[d_out, d_in])?;
    let mut bias = weights.read(&format!("{name}.bias"), &[d_out])?;
    for ((row, bias), scale) in matrix.chunks_exact_mut(d_in).zip(&mut bias).zip(scale) {
        row.iter_mut().for_each(|number| *number *= scale);
        *bias *= scale;
    }
    Ok(Linear::of(&matrix, Some(bias), d_in, d_out, &weights.place))
}

/// The bias of each head.
fn read_bias(weights: &mut Weights, config: &Fields, name: &str, shape: &Shape) -> Result<Vec<GridBias>, PretrainedError> {
    let [rows, columns] = shape.frame.cut();
    if rows != columns {
        let what = format!("gives {rows} rows of {columns} patches; a bias of positions is known for square pictures only");
        return Err(config.wrong("image_size", what));
    }
    let n_values = GridBias::n_values(rows, columns).ok_or_else(|| config.wrong("image_size", "has too many patches"))?;
    let table = weights.read(&format!("{name}.relative_position_bias_table"), &[n_values, shape.n_heads])?;
    let of_head = |head: usize| table.iter().skip(head).step_by(shape.n_heads).copied().collect();
    Ok((0..shape.n_heads).map(|head| GridBias { rows, columns, values: of_head(head) }).collect())
}

/// What all layers share and what one adds.
fn sum(shared: &[GridBias], mut own: Vec<GridBias>) -> Vec<GridBias> {
    for (own, shared) in own.iter_mut().zip(shared) {
        crosslens_kernels::add(&mut own.values, &shared.values);
    }
    own
}
