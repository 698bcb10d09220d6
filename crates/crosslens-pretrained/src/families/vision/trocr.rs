//! TrOCR's decoder: BART's, over states of another width.

use std::sync::Arc;

use crosslens_analysis::SiteKind;

use super::{Writer, activation, readout};
use crate::PretrainedError;
use crate::families::fairseq::{self, FIRST_POSITION, Side};
use crate::fields::Fields;
use crate::layers::Positions;
use crate::stack::{NormPlace, Reads, Stack};
use crate::weights::Weights;

/// Reads `side.model.decoder.*`; the states it asks have `d_asked` dimensions.
pub(super) fn read(weights: &mut Weights, side: &str, config: &Fields, d_asked: usize) -> Result<Writer, PretrainedError> {
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let (d, n_words) = (size("d_model", 1024)?, size("vocab_size", 50265)?);
    let scale = if config.flag("scale_embedding", false)? { (d as f32).sqrt() } else { 1.0 };
    let decoder = Side {
        name: format!("{side}.model.decoder"),
        kind: SiteKind::DecoderSelf,
        d,
        d_asked,
        activation: activation(config, "activation_function", "gelu")?,
        keys_have_bias: true,
        otherwise: [12, 16, 4096],
    };

    let table = Arc::new(weights.table(&format!("{}.embed_tokens.weight", decoder.name), n_words, d)?);
    // Before positions, which may be computed, as wide as the layers' weights show.
    let layers = decoder.layers(weights, config)?;
    let positions = positions(weights, &decoder.name, config, d)?;
    let has_norm = config.flag("layernorm_embedding", true)?;
    let embedding_norm = decoder.norm(weights, has_norm, "layernorm_embedding")?;
    let out = readout(weights, &format!("{side}.output_projection.weight"), config, table.clone())?;
    let stack = Stack {
        kind: SiteKind::DecoderSelf,
        reads: Reads::Words { table, scale },
        positions: Some(positions),
        embedding_norm,
        norm_place: NormPlace::After,
        layers,
        ending: Vec::new(),
    };
    Ok(Writer { stack, table: out, bias: None })
}

fn positions(weights: &mut Weights, name: &str, config: &Fields, d: usize) -> Result<Positions, PretrainedError> {
    let n = config.size("max_position_embeddings", Some(512))?;
    let name = format!("{name}.embed_positions");
    if config.flag("use_learned_position_embeddings", true)? {
        return Positions::learned(weights, &format!("{name}.weight"), n, FIRST_POSITION, d);
    }
    // Kept in old folders, and of no meaning.
    weights.pass_over(&format!("{name}._float_tensor"));
    fairseq::sinusoids(config, n, d)
}
