//! Whisper: convolutions over a log-mel spectrum, norms before each part, no bias in the maps of keys.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::SiteKind;

use super::fairseq::Side;
use super::{Family, activation, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Positions};
use crate::model::{Model, Readout};
use crate::senses::Hearing;
use crate::stack::{Ending, NormPlace, Reads, Stack};
use crate::weights::Weights;

/// A minute of sound a step would be absurd: no file may ask for more.
const MOST_STEPS: usize = 1 << 14;

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words, n_mels) = (size("d_model", 384)?, size("vocab_size", 51865)?, size("num_mel_bins", 80)?);
    let n_steps = size("max_source_positions", 1500)?;
    if n_steps > MOST_STEPS {
        return Err(config.wrong("max_source_positions", format!("is {n_steps}; at most {MOST_STEPS} is allowed")));
    }
    let n_target = size("max_target_positions", 448)?;
    let activation = activation(config, "activation_function", "gelu")?;
    let prefix = if weights.has("model.encoder.conv1.weight") { "model." } else { "" };
    let side = |kind, name: &str| Side {
        name: format!("{prefix}{name}"),
        kind,
        d,
        d_asked: d,
        activation,
        keys_have_bias: false,
        otherwise: [4, 6, 1536],
    };
    let (encoder, decoder) = (side(SiteKind::EncoderSelf, "encoder"), side(SiteKind::DecoderSelf, "decoder"));

    // The encoder's convolutions end in this function whatever the layers use.
    let hearing = Hearing::read(&mut weights, &encoder.name, (n_mels, d, n_steps), Activation::Gelu)?;
    let table = Arc::new(weights.table(&format!("{}.embed_tokens.weight", decoder.name), n_words, d)?);
    let positions =
        |weights: &mut Weights, side: &Side, n| Positions::learned(weights, &format!("{}.embed_positions.weight", side.name), n, 0, d);
    let of_encoder = positions(&mut weights, &encoder, n_steps)?;
    let of_decoder = positions(&mut weights, &decoder, n_target)?;
    let encoder = stack(&mut weights, &encoder, config, Reads::Signal(Box::new(hearing)), of_encoder)?;
    // `scale_embedding` stands in every configuration, and no version of the model uses it.
    let words = Reads::Words { table: table.clone(), scale: 1.0 };
    let decoder = stack(&mut weights, &decoder, config, words, of_decoder)?;
    let table = readout(&mut weights, "proj_out.weight", config, table)?;
    weights.refuse_rest()?;

    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias: None, scale: 1.0, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

fn stack(weights: &mut Weights, side: &Side, config: &Fields, reads: Reads, positions: Positions) -> Result<Stack, PretrainedError> {
    Ok(Stack {
        kind: side.kind,
        reads,
        positions: Some(positions),
        embedding_norm: None,
        norm_place: NormPlace::Before,
        layers: side.layers(weights, config)?,
        ending: side.norm(weights, true, "layer_norm")?.map(Ending::Norm).into_iter().collect(),
    })
}
