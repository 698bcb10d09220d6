//! Data in a page: safetensors or JSON, gzipped, as base64.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use super::scene::scene_json;
use crate::Token;
use crate::explain::{Sample, Samples, TokenNames};

/// The type of a block that is no JSON.
pub(super) const KIND: &str = "application/octet-stream";

/// Up to so many numbers in all sentences, pieces are kept as they are; beyond, in sixteen bits each.
const EXACT_NUMBERS: usize = 4_000_000;

/// Gzip, then base64. No name and no time: the same data give the same text.
pub(super) fn packed(bytes: &[u8]) -> String {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::default());
    gzip.write_all(bytes).expect("memory takes everything");
    STANDARD.encode(gzip.finish().expect("memory takes everything"))
}

/// What lists and searches need of a sentence: its tokens by name; and what its source looks or sounds like, where it is no text.
pub fn sample_header(samples: &Samples, sample: &Sample) -> Value {
    let sentence = &sample.sentence;
    let names = |names: &TokenNames, tokens: &[Token]| tokens.iter().map(|&token| names.name(token).into_owned()).collect::<Vec<_>>();
    let special = |names: &TokenNames, tokens: &[Token]| {
        let is_special = |token: &Token| names.start == Some(*token) || names.end == Some(*token);
        tokens.iter().enumerate().filter(|(_, token)| is_special(token)).map(|(place, _)| place).collect::<Vec<_>>()
    };
    json!({
        "number": sentence.number,
        "loss": sentence.loss,
        "source": names(&samples.source, &sentence.source),
        "fed": names(&samples.target, &sentence.fed),
        "predicted": names(&samples.target, &sentence.predicted),
        "target": sentence.target.as_ref().map(|target| names(&samples.target, target)),
        "special": {
            "source": special(&samples.source, &sentence.source),
            "fed": special(&samples.target, &sentence.fed),
            "predicted": special(&samples.target, &sentence.predicted),
        },
        "scene": scene_json(sample.scene.as_ref(), sentence.source.len(), sentence.fed.len()),
        "visible": samples.visible.iter().map(|visible| visible.name()).collect::<Vec<_>>(),
    })
}

/// One sentence as safetensors: by site `pieces` and, where they are known or there is one, `value_norms` and `bias`. Attention is the softmax
/// of the sum of pieces and bias.
pub fn sample_bytes(samples: &Samples, sample: &Sample) -> Vec<u8> {
    let n_numbers: usize = samples.sentences.iter().flat_map(|sample| &sample.pieces).map(Vec::len).sum();
    let mut arrays = ArrayList::default();
    for (site, &(n_queries, n_keys)) in sample.shapes.iter().enumerate() {
        let (pieces, size) = (&sample.pieces[site], n_queries * n_keys);
        let n_pieces = pieces.len() / size.max(1);
        let name = format!("sites.{site}.pieces");
        if n_numbers <= EXACT_NUMBERS {
            arrays.floats(name, vec![n_pieces, n_queries, n_keys], pieces);
        } else {
            arrays.rounded(name, vec![n_pieces, n_queries, n_keys], pieces, size);
        }
        if let Some(bias) = sample.bias.get(site).filter(|bias| !bias.is_empty()) {
            arrays.floats(format!("sites.{site}.bias"), vec![n_queries, n_keys], bias);
        }
        if let Some(weighted) = sample.value_weighted.get(site).filter(|weighted| !weighted.is_empty()) {
            let norms = value_norms(&sample.attention[site], weighted, n_keys);
            arrays.floats(format!("sites.{site}.value_norms"), vec![n_keys], &norms);
        }
    }
    arrays.to_bytes()
}

/// `‖V h‖` of every key, where it is looked at most.
pub fn value_norms(attention: &[f32], weighted: &[f32], n_keys: usize) -> Vec<f32> {
    let mut most = vec![(0.0, 0.0); n_keys];
    for (place, (&weight, &value)) in attention.iter().zip(weighted).enumerate() {
        let most = &mut most[place % n_keys];
        if weight > most.0 {
            *most = (weight, value / weight);
        }
    }
    most.into_iter().map(|(_, norm)| norm).collect()
}

/// The average attention of every site as safetensors.
pub fn average_bytes(samples: &Samples) -> Vec<u8> {
    let mut arrays = ArrayList::default();
    for (site, average) in samples.averages.iter().enumerate() {
        let values: Vec<f32> = average.iter().flatten().map(|&x| x as f32).collect();
        arrays.floats(format!("sites.{site}.average"), vec![average.len(), average.first().map_or(0, Vec::len)], &values);
    }
    arrays.to_bytes()
}

#[derive(Default)]
struct ArrayList(Vec<(String, Dtype, Vec<usize>, Vec<u8>)>);

impl ArrayList {
    fn floats(&mut self, name: String, shape: Vec<usize>, values: &[f32]) {
        self.0.push((name, Dtype::F32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect()));
    }

    /// In sixteen bits, each run of `size` numbers in units of its own `scale`: off by half a unit, 1/65534 of the largest, at most.
    fn rounded(&mut self, name: String, shape: Vec<usize>, values: &[f32], size: usize) {
        let (mut scales, mut bytes) = (Vec::new(), Vec::with_capacity(2 * values.len()));
        for values in values.chunks(size.max(1)) {
            let largest = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            let scale = if largest > 0.0 { largest / 32767.0 } else { 1.0 };
            scales.push(scale);
            bytes.extend(values.iter().flat_map(|value| ((value / scale).round() as i16).to_le_bytes()));
        }
        self.floats(format!("{name}.scale"), vec![scales.len()], &scales);
        self.0.push((name, Dtype::I16, shape, bytes));
    }

    fn to_bytes(&self) -> Vec<u8> {
        let views = self.0.iter().map(|(name, dtype, shape, bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("the bytes are those of the shape"))
        });
        safetensors::serialize(views.collect::<Vec<_>>(), None).expect("names are distinct and sizes fit")
    }
}
