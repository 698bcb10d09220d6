//! Writes an explanation to disk.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorView};

use super::{Explained, Samples};
use crate::report::Report;
use crate::{Token, replace_file};

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
    /// `samples.{i}.{source,fed,predicted,target}` (tokens), `samples.{i}.sites.{j}.{attention,pieces,value_weighted}` and
    /// `sites.{j}.average`, with `samples` and `sites` counted in the metadata, and the names of tokens there as JSON, `{token: name}`.
    fn to_bytes(&self) -> Vec<u8> {
        let mut arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut floats = |name: String, shape: Vec<usize>, values: &[f32]| {
            arrays.push((name, Dtype::F32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect()));
        };
        for (number, sample) in self.sentences.iter().enumerate() {
            for (site, attention) in sample.attention.iter().enumerate() {
                let (n_queries, n_keys) = sample.shapes[site];
                let name = |what: &str| format!("samples.{number}.sites.{site}.{what}");
                floats(name("attention"), vec![n_queries, n_keys], attention);
                floats(name("value_weighted"), vec![n_queries, n_keys], &sample.value_weighted[site]);
                let n_pieces = sample.pieces[site].len() / (n_queries * n_keys).max(1);
                floats(name("pieces"), vec![n_pieces, n_queries, n_keys], &sample.pieces[site]);
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
        let views = arrays.iter().map(|(name, dtype, shape, bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("the bytes are those of the shape"))
        });
        let count = |name: &str, n: usize| (name.to_owned(), n.to_string());
        let names = |side: &str, names: &BTreeMap<Token, String>| {
            (format!("{side}_names"), serde_json::to_string(names).expect("tokens and text only"))
        };
        let counts = [count("samples", self.sentences.len()), count("sites", self.averages.len())];
        let metadata: HashMap<String, String> =
            counts.into_iter().chain([names("source", &self.source_names), names("target", &self.target_names)]).collect();
        safetensors::serialize(views.collect::<Vec<_>>(), Some(metadata)).expect("names are distinct and sizes fit")
    }
}
