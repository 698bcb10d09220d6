//! BERT as a decoder, as BLIP has it too: norms after each part, and a layer more before the words are read out. RoBERTa is the same under
//! other names, with positions that are counted from behind the padding token's number.

use std::sync::Arc;

use crosslens_analysis::{SiteKind, Token, Visible};

use super::{Writer, activation, d_head, epsilon, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Activation, Attention, Linear, Norm, Positions, Table};
use crate::stack::{Ending, FeedForward, Layer, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bert,
    Roberta,
}

/// Reads `side.bert.*` and `side.cls.predictions.*`; the states it asks have `d_asked` dimensions.
pub(super) fn read(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    read_kind(weights, side, config, d_asked, Kind::Bert)
}

/// Reads `side.roberta.*` and `side.lm_head.*`.
pub(super) fn read_roberta(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    read_kind(weights, side, config, d_asked, Kind::Roberta)
}

fn read_kind(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize, kind: Kind) -> Result<Writer, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let usual_words = if kind == Kind::Bert { 30522 } else { 50265 };
    let (d, n_words, d_feed) = (size("hidden_size", 768)?, size("vocab_size", usual_words)?, size("intermediate_size", 3072)?);
    let (n_layers, n_heads) = (size("num_hidden_layers", 12)?, size("num_attention_heads", 12)?);
    let d_head = d_head(config, "num_attention_heads", n_heads, ("hidden_size", d))?;
    let places = config.text("position_embedding_type", "absolute")?;
    if places != "absolute" {
        return Err(config.wrong("position_embedding_type", format!("is `{places}`; known is absolute")));
    }
    let act = activation(config, "hidden_act", "gelu")?;
    let epsilon = epsilon(config, "layer_norm_eps", 1e-12)?;
    let (name, head) = match kind {
        Kind::Bert => (format!("{side}.bert"), format!("{side}.cls.predictions")),
        Kind::Roberta => (format!("{side}.roberta"), format!("{side}.lm_head")),
    };
    let first = if kind == Kind::Bert { 0 } else { padding(config)? as usize + 1 };

    let table = Arc::new(weights.table(&format!("{name}.embeddings.word_embeddings.weight"), n_words, d)?);
    let positions = positions(weights, &format!("{name}.embeddings"), config, first, d)?;
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
    let ending = match kind {
        Kind::Bert => vec![
            Ending::Linear(Linear::read(weights, &format!("{head}.transform.dense"), d, d, true)?),
            Ending::Activation(act),
            Ending::Norm(norm(weights, format!("{head}.transform"))?),
        ],
        Kind::Roberta => vec![
            Ending::Linear(Linear::read(weights, &format!("{head}.dense"), d, d, true)?),
            Ending::Activation(Activation::Gelu),
            Ending::Norm(Norm::layer(weights, &format!("{head}.layer_norm"), d, epsilon)?),
        ],
    };
    let out = readout(weights, &format!("{head}.decoder.weight"), config, table.clone())?;
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

/// The token that RoBERTa fills batches with.
pub(super) fn padding(config: &Fields) -> Result<Token, PretrainedError> {
    Ok(config.tokens("pad_token_id")?.first().copied().unwrap_or(1))
}

/// Learned ones from row `first` of the tensor on; where there are kinds of tokens, all are of the first.
fn positions(weights: &mut Weights, name: &str, config: &Fields, first: usize, d: usize) -> Result<Positions, PretrainedError> {
    let all = config.size("max_position_embeddings", Some(512))?;
    let field = "max_position_embeddings";
    let n = all.checked_sub(first).filter(|n| *n > 0).ok_or_else(|| config.wrong(field, format!("is {all}; {first} are for padding")))?;
    let positions = format!("{name}.position_embeddings.weight");
    let kinds = format!("{name}.token_type_embeddings.weight");
    if !weights.has(&kinds) {
        return Positions::learned(weights, &positions, n, first, d);
    }
    let kind = weights.read(&kinds, &[config.size("type_vocab_size", Some(2))?, d])?;
    let mut vectors = weights.read(&positions, &[all, d])?.split_off(first * d);
    vectors.chunks_exact_mut(d).for_each(|vector| crosslens_kernels::add(vector, &kind[..d]));
    Ok(Positions::of(Table::owned(vectors, n, d)))
}
