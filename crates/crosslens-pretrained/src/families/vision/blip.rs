//! BLIP's models that write captions: patches with a class vector, then a decoder like BERT.

use std::path::Path;

use crosslens_analysis::{SiteKind, Visible};

use super::{activation, bert, d_head, encoder, epsilon, model};
use crate::PretrainedError;
use crate::families::Family;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Attention, Linear, Norm, Origin, Positions, Table};
use crate::model::Model;
use crate::senses::Sight;
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// What the decoder is like where a configuration does not say, as far as it differs from BERT: `BlipTextConfig` of transformers.
const DECODER: [(&str, u32); 5] =
    [("vocab_size", 30524), ("num_attention_heads", 8), ("bos_token_id", 30522), ("sep_token_id", 102), ("pad_token_id", 0)];

pub(in crate::families) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let half = |field: &str| Ok::<_, PretrainedError>(config.nested(field)?.unwrap_or_else(|| Fields::none(config.path())));
    let otherwise = DECODER.iter().map(|(field, value)| ((*field).to_owned(), (*value).into())).collect();
    let (of_encoder, of_decoder) = (half("vision_config")?, half("text_config")?.or(&Fields::of(config.path(), otherwise)));
    if !weights.has("text_decoder.bert.embeddings.word_embeddings.weight") {
        let what = "is `blip`, but its weights are not those of BlipForConditionalGeneration, which writes captions";
        return Err(config.wrong("model_type", what));
    }
    let encoder = vision(&mut weights, &of_encoder)?;
    let writer = bert::read(&mut weights, "text_decoder", &of_decoder, encoder.d())?;
    weights.refuse_rest()?;

    let mut generation = Generation::read(folder, &of_decoder, writer.table.rows())?;
    // Whatever the files say of starts and ends, captions begin and end with the tokens the decoder was trained with.
    let token = |field: &str| {
        let (token, n_words) = (of_decoder.tokens(field)?.first().copied(), writer.table.rows());
        match token.filter(|token| (*token as usize) < n_words) {
            Some(known) => Ok(known),
            None => {
                let named = token.map_or_else(|| "no token".to_owned(), |token| format!("the token {token}"));
                Err(of_decoder.wrong(field, format!("names {named}; the model writes {n_words}")))
            }
        }
    };
    let (start, end) = (token("bos_token_id")?, token("sep_token_id")?);
    (generation.start, generation.ends) = (start, vec![end]);
    Ok(model(folder, family, (encoder, writer), generation, weights))
}

/// Reads `vision_model.*`.
fn vision(weights: &mut Weights, config: &Fields) -> Result<Stack, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, d_feed) = (size("hidden_size", 768)?, size("intermediate_size", 3072)?);
    let (n_layers, n_heads) = (size("num_hidden_layers", 12)?, size("num_attention_heads", 12)?);
    let d_head = d_head(config, "num_attention_heads", n_heads, ("hidden_size", d))?;
    let act = activation(config, "hidden_act", "gelu")?;
    let epsilon = epsilon(config, "layer_norm_eps", 1e-5)?;
    let frame = encoder::frame(config, 384)?;

    let name = "vision_model";
    let special = weights.read(&format!("{name}.embeddings.class_embedding"), &[1, 1, d])?;
    let [rows, columns] = frame.cut();
    let n_steps = 1 + rows * columns;
    let vectors = weights.read(&format!("{name}.embeddings.position_embedding"), &[1, n_steps, d])?;
    let sight = Sight::read(weights, &format!("{name}.embeddings.patch_embedding"), frame, special, d)?;
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.encoder.layers.{number}");
        let all = Origin { name: format!("{layer}.self_attn.qkv"), d_in: d, d_out: 3 * d, turned: false, has_bias: true };
        let attention = Attention {
            query: all.map(weights, 0..d)?,
            key: all.map(weights, d..2 * d)?,
            value: all.map(weights, 2 * d..3 * d)?,
            output: Linear::read(weights, &format!("{layer}.self_attn.projection"), d, d, true)?,
            n_heads,
            scale: (d_head as f32).powf(-0.5),
            visible: Visible::All,
            bias: None,
        };
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.mlp.fc1"), d, d_feed, true)?,
            gate: None,
            activation: act,
            second: Linear::read(weights, &format!("{layer}.mlp.fc2"), d_feed, d, true)?,
        };
        let mut norm = |part: &str| Norm::layer(weights, &format!("{layer}.{part}"), d, epsilon);
        let (first, second) = (norm("layer_norm1")?, norm("layer_norm2")?);
        layers.push(Layer { attention: (first, attention), cross: None, feed_forward: (second, feed) });
    }
    Ok(Stack {
        kind: SiteKind::EncoderSelf,
        reads: Reads::Signal(Box::new(sight)),
        positions: Some(Positions::of(Table::owned(vectors, n_steps, d))),
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers,
        ending: vec![Ending::Norm(Norm::layer(weights, &format!("{name}.post_layernorm"), d, epsilon)?)],
    })
}
