//! Which model is which: from a configuration and named tensors to layers.

mod bart;
mod fairseq;
mod t5;
mod vision;
mod whisper;

use std::path::Path;
use std::sync::Arc;

use crate::PretrainedError;
use crate::fields::Fields;
use crate::layers::{Activation, Table};
use crate::model::Model;
use crate::weights::Weights;

/// The kinds of models that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    T5,
    Mt5,
    Umt5,
    Bart,
    Marian,
    Mbart,
    Pegasus,
    /// NLLB's models without experts are of this kind too.
    M2m100,
    Whisper,
    /// An encoder of pictures and a decoder, each of a kind of its own.
    VisionEncoderDecoder,
    Blip,
}

/// Models whose configurations say something else, but have no encoder.
const DECODERS: &[&str] = &[
    "bloom",
    "codegen",
    "ctrl",
    "deepseek_v3",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3",
    "gpt2",
    "gpt_bigcode",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "llama",
    "mamba",
    "mistral",
    "mixtral",
    "mpt",
    "olmo",
    "opt",
    "phi",
    "phi3",
    "qwen2",
    "qwen3",
    "stablelm",
    "starcoder2",
    "xglm",
];

impl Family {
    const ALL: [Self; 11] = [
        Self::T5,
        Self::Mt5,
        Self::Umt5,
        Self::Bart,
        Self::Marian,
        Self::Mbart,
        Self::Pegasus,
        Self::M2m100,
        Self::Whisper,
        Self::VisionEncoderDecoder,
        Self::Blip,
    ];

    /// As `model_type` names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::T5 => "t5",
            Self::Mt5 => "mt5",
            Self::Umt5 => "umt5",
            Self::Bart => "bart",
            Self::Marian => "marian",
            Self::Mbart => "mbart",
            Self::Pegasus => "pegasus",
            Self::M2m100 => "m2m_100",
            Self::Whisper => "whisper",
            Self::VisionEncoderDecoder => "vision-encoder-decoder",
            Self::Blip => "blip",
        }
    }

    pub(crate) fn of(config: &Fields) -> Result<Self, PretrainedError> {
        let found = config.text("model_type", "")?;
        if let Some(family) = Self::ALL.into_iter().find(|family| family.name() == found) {
            // BLIP's configurations say nothing of it, or what is wrong.
            if family != Self::Blip && !config.flag("is_encoder_decoder", true)? {
                let what = "is false: the encoder or the decoder alone, without the attention between them that is explained here";
                return Err(config.wrong("is_encoder_decoder", what));
            }
            return Ok(family);
        }
        let architectures = config.get("architectures").and_then(|names| names.as_array());
        let is_decoder = |name: &serde_json::Value| name.as_str().is_some_and(|name| name.ends_with("ForCausalLM"));
        let only_decoders = architectures.is_some_and(|names| !names.is_empty() && names.iter().all(is_decoder));
        let (path, found) = (config.path().to_owned(), found.to_owned());
        if DECODERS.contains(&found.as_str()) || only_decoders {
            return Err(PretrainedError::DecoderOnly { path, found });
        }
        if found.is_empty() {
            return Err(config.wrong("model_type", "is missing"));
        }
        let known = Self::ALL.map(Self::name).join(", ");
        Err(PretrainedError::UnknownType { path, found, known })
    }
}

pub(crate) fn build(folder: &Path, family: Family, config: &Fields, weights: Weights) -> Result<Model, PretrainedError> {
    match family {
        Family::T5 | Family::Mt5 | Family::Umt5 => t5::build(folder, family, config, weights),
        Family::Bart | Family::Marian | Family::Mbart | Family::Pegasus | Family::M2m100 => bart::build(folder, family, config, weights),
        Family::Whisper => whisper::build(folder, family, config, weights),
        Family::VisionEncoderDecoder => vision::build(folder, family, config, weights),
        Family::Blip => vision::build_blip(folder, family, config, weights),
    }
}

/// The matrix that words are read out with: one of its own, or that of the words that are read, where the configuration ties them.
fn readout(weights: &mut Weights, name: &str, config: &Fields, words: Arc<Table>) -> Result<Arc<Table>, PretrainedError> {
    if !weights.has(name) && config.flag("tie_word_embeddings", true)? {
        return Ok(words);
    }
    Ok(Arc::new(weights.table(name, words.rows(), words.d())?))
}

/// The function that a field names.
fn activation(config: &Fields, field: &str, otherwise: &str) -> Result<Activation, PretrainedError> {
    let name = config.text(field, otherwise)?;
    Activation::named(name).ok_or_else(|| config.wrong(field, format!("is `{name}`; known are {}", Activation::KNOWN)))
}

/// Dimensions of a head, of so many in a width that has a name of its own.
fn d_head(config: &Fields, field: &str, n_heads: usize, (width, d): (&str, usize)) -> Result<usize, PretrainedError> {
    if d.is_multiple_of(n_heads) {
        return Ok(d / n_heads);
    }
    Err(config.wrong(field, format!("is {n_heads}, which does not divide {width} = {d}")))
}
