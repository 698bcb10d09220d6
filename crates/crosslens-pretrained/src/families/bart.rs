//! BART and its relatives Marian, mBART, Pegasus and M2M100 (NLLB too): biases everywhere, positions added to the words.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crosslens_analysis::SiteKind;

use super::fairseq::{self, FIRST_POSITION, Side};
use super::{Family, activation, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Activation, Positions, Table};
use crate::model::{Model, Readout};
use crate::stack::{Ending, NormPlace, Reads, Stack};
use crate::weights::Weights;

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

    /// Refuses a configuration that asks for norms elsewhere than models of its type have them: transformers would not listen to it.
    fn check(self, config: &Fields) -> Result<(), PretrainedError> {
        let before = matches!(self.norm_place, NormPlace::Before);
        for (field, own) in [("normalize_before", before), ("add_final_layer_norm", self.norms_end)] {
            if config.flag(field, own)? != own {
                return Err(config.wrong(field, format!("is {}; models of this type are computed with {own}", !own)));
            }
        }
        Ok(())
    }
}

/// What both sides share.
struct Shape {
    traits: Traits,
    d: usize,
    activation: Activation,
    word_scale: f32,
    n_positions: usize,
}

pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let traits = Traits::of(family);
    traits.check(config)?;
    let size = |field, otherwise| config.size(field, Some(otherwise));
    let d = size("d_model", 1024)?;
    let shape = Shape {
        traits,
        d,
        activation: activation(config, "activation_function", traits.activation)?,
        word_scale: if config.flag("scale_embedding", traits.scales_words)? { (d as f32).sqrt() } else { 1.0 },
        n_positions: size("max_position_embeddings", 1024)?,
    };
    let n_source = size("vocab_size", traits.n_words)?;
    let is_shared = family != Family::Marian || config.flag("share_encoder_decoder_embeddings", true)?;
    let n_target = if is_shared { n_source } else { size("decoder_vocab_size", n_source)? };

    // With the readout a model stands under `model.`; without it, it stands alone.
    let prefix = if weights.has_below("model.") { "model." } else { "" };
    let name = |rest: &str| format!("{prefix}{rest}");
    let (shared, of_encoder, of_decoder) =
        (name("shared.weight"), name("encoder.embed_tokens.weight"), name("decoder.embed_tokens.weight"));
    // What the encoder reads, what the decoder does, and what a readout without a matrix of its own takes.
    let (source, target, tied) = if is_shared {
        let name = weights.first_of(&[&shared, &of_encoder, &of_decoder]).to_owned();
        let words = Arc::new(weights.table(&name, n_source, d)?);
        (weights.copy_of(&name, &words, &of_encoder)?, weights.copy_of(&name, &words, &of_decoder)?, words)
    } else {
        weights.pass_over(&shared);
        let target = Arc::new(weights.table(&of_decoder, n_target, d)?);
        (Arc::new(weights.table(&of_encoder, n_source, d)?), target.clone(), target)
    };

    let encoder = stack(&mut weights, (name("encoder"), SiteKind::EncoderSelf), config, &shape, source)?;
    let decoder = stack(&mut weights, (name("decoder"), SiteKind::DecoderSelf), config, &shape, target)?;
    let table = readout(&mut weights, "lm_head.weight", config, tied)?;
    // Marian's is trained, where it reads words out; the others' is zero, and published files lack it as often as not.
    let has_bias = (family == Family::Marian && !prefix.is_empty()) || weights.has("final_logits_bias");
    let bias = if has_bias { Some(weights.read("final_logits_bias", &[1, n_target])?) } else { None };
    // Of the program that trained it; published files keep them.
    ["encoder.version", "decoder.version"].into_iter().for_each(|version| weights.pass_over(&name(version)));
    weights.refuse_rest()?;

    let generation = Generation::read(folder, config, table.rows())?;
    let readout = Readout { table, bias, scale: 1.0, head: OnceLock::new() };
    Ok(Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights })
}

fn stack(
    weights: &mut Weights,
    (name, kind): (String, SiteKind),
    config: &Fields,
    shape: &Shape,
    words: Arc<Table>,
) -> Result<Stack, PretrainedError> {
    let Shape { d, activation, .. } = *shape;
    let side = Side { name, kind, d, d_asked: d, activation, keys_have_bias: true, otherwise: [12, 16, 4096] };
    // First: positions may be computed, as wide as the layers' weights show.
    let layers = side.layers(weights, config)?;
    Ok(Stack {
        kind,
        reads: Reads::Words { table: words, scale: shape.word_scale },
        positions: Some(positions(weights, &side.name, config, shape)?),
        embedding_norm: side.norm(weights, shape.traits.norms_embedding, "layernorm_embedding")?,
        norm_place: shape.traits.norm_place,
        layers,
        ending: side.norm(weights, shape.traits.norms_end, "layer_norm")?.map(Ending::Norm).into_iter().collect(),
    })
}

fn positions(weights: &mut Weights, name: &str, config: &Fields, shape: &Shape) -> Result<Positions, PretrainedError> {
    let Shape { d, n_positions: n, .. } = *shape;
    let tensor = format!("{name}.embed_positions.weight");
    match shape.traits.places {
        Places::Learned => Positions::learned(weights, &tensor, n, FIRST_POSITION, d),
        Places::Sinusoids if weights.has(&tensor) => Positions::learned(weights, &tensor, n, 0, d),
        Places::Sinusoids => {
            fairseq::few_enough(config, n, d)?;
            Ok(Positions::sinusoids(n, d))
        }
        Places::FairseqSinusoids => {
            // Old files keep what everybody computes.
            weights.pass_over(&format!("{tensor}s"));
            fairseq::sinusoids(config, n, d)
        }
    }
}
