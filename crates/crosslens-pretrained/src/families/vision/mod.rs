//! Models that look at pictures: an encoder of patches and a decoder of words, often published as two models in one folder.

mod bert;
mod blip;
mod encoder;
mod gpt2;
mod trocr;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{Family, activation, d_head, readout};
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Linear, Table};
use crate::model::{Model, Readout};
use crate::stack::{Ending, Stack};
use crate::weights::Weights;

pub(super) use blip::build as build_blip;

/// Encoders and decoders that are known in a folder of two.
const ENCODERS: &str = "vit, deit and beit";
const DECODERS: &str = "trocr, gpt2, bert and roberta";

/// A decoder, and what maps the states it ends in to words.
struct Writer {
    stack: Stack,
    table: Arc<Table>,
    bias: Option<Vec<f32>>,
}

/// Reads the decoder of a name, which asks states of so many dimensions.
type Read = fn(&mut Weights, &str, &Fields, usize) -> Result<Writer, PretrainedError>;

/// `vision-encoder-decoder`: the configurations of both halves stand in that of the whole.
pub(super) fn build(folder: &Path, family: Family, config: &Fields, mut weights: Weights) -> Result<Model, PretrainedError> {
    let half = |field: &str| config.nested(field)?.ok_or_else(|| config.wrong(field, "is missing"));
    let (of_encoder, of_decoder) = (half("encoder")?, half("decoder")?);
    let unknown = |field: &str, found: &str, known: &str| {
        config.wrong(field, format!("is a model of type `{found}`, which is not known here; known are {known}"))
    };
    let mut encoder = match of_encoder.text("model_type", "")? {
        "vit" => encoder::vit(&mut weights, &of_encoder, encoder::Kind::Vit)?,
        "deit" => encoder::vit(&mut weights, &of_encoder, encoder::Kind::Deit)?,
        "beit" => encoder::vit(&mut weights, &of_encoder, encoder::Kind::Beit)?,
        found => return Err(unknown("encoder", found, ENCODERS)),
    };
    let (read, width, otherwise): (Read, _, _) = match of_decoder.text("model_type", "")? {
        "trocr" => (trocr::read, "d_model", 1024),
        "gpt2" => (gpt2::read, "n_embd", 768),
        "bert" => (bert::read, "hidden_size", 768),
        "roberta" => (bert::read_roberta, "hidden_size", 768),
        found => return Err(unknown("decoder", found, DECODERS)),
    };

    // A decoder says how wide the states are that it asks, or they are brought to its own width.
    let d = of_decoder.size(width, Some(otherwise))?;
    match of_decoder.get("cross_attention_hidden_size") {
        Some(_) => {
            let asked = of_decoder.size("cross_attention_hidden_size", None)?;
            if asked != encoder.d() {
                let what = format!("is {asked}; the encoder's states have {} dimensions", encoder.d());
                return Err(of_decoder.wrong("cross_attention_hidden_size", what));
            }
        }
        None if d != encoder.d() => {
            encoder.ending.push(Ending::Linear(Linear::read(&mut weights, "enc_to_dec_proj", encoder.d(), d, true)?));
        }
        None => {}
    }
    let writer = read(&mut weights, "decoder", &of_decoder, encoder.d_end())?;
    weights.refuse_rest()?;
    let generation = Generation::read(folder, &config.or(&of_decoder), writer.table.rows())?;
    // RoBERTa gives its padding token no place of its own, so that a text that began with it would stand elsewhere.
    if of_decoder.text("model_type", "")? == "roberta" && bert::padding(&of_decoder)? == generation.start {
        let what = format!("is {}, the token that this decoder fills up with; name the one that begins a text", generation.start);
        return Err(config.wrong("decoder_start_token_id", what));
    }
    Ok(model(folder, family, (encoder, writer), generation, weights))
}

fn model(folder: &Path, family: Family, (encoder, writer): (Stack, Writer), generation: Generation, weights: Weights) -> Model {
    let Writer { stack: decoder, table, bias } = writer;
    let readout = Readout { table, bias, scale: 1.0, head: OnceLock::new() };
    Model { folder: folder.to_owned(), family, encoder, decoder, readout, generation, weights }
}

fn epsilon(config: &Fields, field: &str, otherwise: f64) -> Result<f32, PretrainedError> {
    Ok(config.number(field, otherwise)? as f32)
}
