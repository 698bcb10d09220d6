//! Writes an explanation to disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorView};

use super::scene_file;
use super::{Explained, Samples};
use crate::replace_file;
use crate::report::Report;

/// Why an explanation cannot be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// A file cannot be written.
    #[error("cannot write `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Report {
    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has string keys and finite sizes only")
    }
}

impl Explained {
    /// Writes the report, and its samples beside it: `report.json` and `report.samples.safetensors`. Either is whole or not there.
    pub fn save(&mut self, path: &Path) -> Result<(), SaveError> {
        let samples = path.with_extension("samples.safetensors");
        write_whole(&samples, &self.samples.to_bytes())?;
        self.report.samples = samples.file_name().map(|name| name.to_string_lossy().into_owned());
        let pretty = serde_json::to_string_pretty(&self.report).expect("a report has string keys and finite sizes only");
        write_whole(path, pretty.as_bytes())
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    replace_file(path, |file| file.write_all(bytes)).map_err(|source| SaveError::Io { path: path.to_owned(), source })
}

impl Samples {
    /// The bytes of `report.samples.safetensors`, as `docs/format.md` describes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut floats = |name: String, shape: Vec<usize>, values: &[f32]| {
            arrays.push((name, Dtype::F32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect()));
        };
        for (number, sample) in self.sentences.iter().enumerate() {
            for (site, attention) in sample.attention.iter().enumerate() {
                let (n_queries, n_keys) = sample.shapes[site];
                let name = |what: &str| format!("samples.{number}.sites.{site}.{what}");
                floats(name("attention"), vec![n_queries, n_keys], attention);
                if let Some(weighted) = sample.value_weighted.get(site).filter(|weighted| !weighted.is_empty()) {
                    floats(name("value_weighted"), vec![n_queries, n_keys], weighted);
                }
                let n_pieces = sample.pieces[site].len() / (n_queries * n_keys).max(1);
                floats(name("pieces"), vec![n_pieces, n_queries, n_keys], &sample.pieces[site]);
                if let Some(bias) = sample.bias.get(site).filter(|bias| !bias.is_empty()) {
                    floats(name("bias"), vec![n_queries, n_keys], bias);
                }
            }
        }
        for (site, average) in self.averages.iter().enumerate() {
            let values: Vec<f32> = average.iter().flatten().map(|&x| x as f32).collect();
            floats(format!("sites.{site}.average"), vec![average.len(), average.first().map_or(0, Vec::len)], &values);
        }
        for (number, sample) in self.sentences.iter().enumerate() {
            let sentence = &sample.sentence;
            let lists = [("source", Some(&sentence.source)), ("fed", Some(&sentence.fed)), ("predicted", Some(&sentence.predicted))];
            for (name, tokens) in lists.into_iter().chain([("target", sentence.target.as_ref())]) {
                if let Some(tokens) = tokens {
                    let bytes = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
                    arrays.push((format!("samples.{number}.{name}"), Dtype::U32, vec![tokens.len()], bytes));
                }
            }
        }
        scene_file::append(&self.sentences, &mut arrays);
        let views = arrays.iter().map(|(name, dtype, shape, bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("the bytes are those of the shape"))
        });
        let count = |name: &str, n: usize| (name.to_owned(), n.to_string());
        let json = |name: &str, value: serde_json::Result<String>| (name.to_owned(), value.expect("numbers and text only"));
        let mut metadata = HashMap::from([
            count("samples", self.sentences.len()),
            count("sites", self.averages.len()),
            json("source", serde_json::to_string(&self.source)),
            json("target", serde_json::to_string(&self.target)),
            json("visible", serde_json::to_string(&self.visible.iter().map(|visible| visible.name()).collect::<Vec<_>>())),
            json("numbers", serde_json::to_string(&self.sentences.iter().map(|sample| sample.sentence.number).collect::<Vec<_>>())),
            json("losses", serde_json::to_string(&self.sentences.iter().map(|sample| sample.sentence.loss).collect::<Vec<_>>())),
        ]);
        if !self.distances.is_empty() {
            metadata.extend([json("distances", serde_json::to_string(&self.distances))]);
        }
        metadata.extend(scene_file::metadata(self));
        safetensors::serialize(views.collect::<Vec<_>>(), Some(metadata)).expect("names are distinct and sizes fit")
    }
}
