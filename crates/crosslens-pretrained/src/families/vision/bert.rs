//! BERT as a decoder, as BLIP has it too: norms after each part, and a layer more before the words are read out.

use std::sync::Arc;

use crosslens_analysis::{SiteKind, Visible};

use super::{Writer, activation, d_head, epsilon};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Attention, Linear, Norm, Positions, Table};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Reads `side.bert.*` and `side.cls.predictions.*`; the states it asks have `d_asked` dimensions.
pub(super) fn read(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words, d_feed) = (size("hidden_size", 768)?, size("vocab_size", 30522)?, size("intermediate_size", 3072)?);
    let (n_layers, n_heads) = (size("num_hidden_layers", 12)?, size("num_attention_heads", 12)?);
    let d_head = d_head(config, "num_attention_heads", n_heads, ("hidden_size", d))?;
    let kind = config.text("position_embedding_type", "absolute")?;
    if kind != "absolute" {
        return Err(config.wrong("position_embedding_type", format!("is `{kind}`; known is absolute")));
    }
    let act = activation(config, "hidden_act", "gelu")?;
    let epsilon = epsilon(config, "layer_norm_eps", 1e-12)?;
    let (name, head) = (format!("{side}.bert"), format!("{side}.cls.predictions"));

    let table = Arc::new(weights.table(&format!("{name}.embeddings.word_embeddings.weight"), n_words, d)?);
    let positions = positions(weights, &format!("{name}.embeddings"), config, d)?;
    let norm = |weights: &mut Weights, name: String| Norm::layer(weights, &format!("{name}.LayerNorm"), d, epsilon);
    let embedding_norm = Some(norm(weights, format!("{name}.embeddings"))?);
    let attention = |weights: &mut Weights, name: &str, d_keys: usize, visible: Visible| {
        let mut part = |part: &str, d_in| Linear::read(weights, &format!("{name}.{part}"), d_in, d, true);
        let (query, key, value) = (part("self.query", d)?, part("self.key", d_keys)?, part("self.value", d_keys)?);
        let output = part("output.dense", d)?;
        let scale = 1.0 / (d_head as f32).sqrt();
        let attention = Attention { query, key, value, output, n_heads, scale, visible, bias: None };
        Ok::<_, PretrainedError>((norm(weights, format!("{name}.output"))?, attention))
    };
    // Grows as tensors are found: a configuration may claim any number of layers.
    let mut layers = Vec::new();
    for number in 0..n_layers {
        let layer = format!("{name}.encoder.layer.{number}");
        let own = attention(weights, &format!("{layer}.attention"), d, Visible::Causal)?;
        let cross = attention(weights, &format!("{layer}.crossattention"), d_asked, Visible::All)?;
        let feed = FeedForward {
            first: Linear::read(weights, &format!("{layer}.intermediate.dense"), d, d_feed, true)?,
            gate: None,
            activation: act,
            second: Linear::read(weights, &format!("{layer}.output.dense"), d_feed, d, true)?,
        };
        layers.push(Layer { attention: own, cross: Some(cross), feed_forward: (norm(weights, format!("{layer}.output"))?, feed) });
    }
    let ending = vec![
        Ending::Linear(Linear::read(weights, &format!("{head}.transform.dense"), d, d, true)?),
        Ending::Activation(act),
        Ending::Norm(norm(weights, format!("{head}.transform"))?),
    ];
    let readout = format!("{head}.decoder.weight");
    let out = if weights.has(&readout) { Arc::new(weights.table(&readout, n_words, d)?) } else { table.clone() };
    let bias = Some(weights.read(&format!("{head}.bias"), &[n_words])?);
    weights.pass_over(&format!("{head}.decoder.bias"));
    weights.pass_over(&format!("{name}.embeddings.position_ids"));
    let stack = Stack {
        kind: SiteKind::DecoderSelf,
        reads: Reads::Words { table, scale: 1.0 },
        positions: Some(positions),
        embedding_norm,
        norm_place: NormPlace::After,
        layers,
        ending,
    };
    Ok(Writer { stack, table: out, bias })
}

/// Learned ones; where there are kinds of tokens, all are of the first.
fn positions(weights: &mut Weights, name: &str, config: &Fields, d: usize) -> Result<Positions, PretrainedError> {
    let n = config.size("max_position_embeddings", Some(512))?;
    let positions = format!("{name}.position_embeddings.weight");
    let kinds = format!("{name}.token_type_embeddings.weight");
    if !weights.has(&kinds) {
        return Positions::learned(weights, &positions, n, 0, d);
    }
    let kind = weights.read(&kinds, &[config.size("type_vocab_size", Some(2))?, d])?;
    let mut vectors = weights.read(&positions, &[n, d])?;
    vectors.chunks_exact_mut(d).for_each(|vector| crosslens_kernels::add(vector, &kind[..d]));
    Ok(Positions::of(Table::owned(vectors, n, d)))
}
