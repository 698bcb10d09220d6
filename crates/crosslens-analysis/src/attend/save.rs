//! Writes the arrays of a sentence as safetensors, npz or JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Attended, NamedArray};
use crate::RecordingError;
use crate::storage::safetensors::{Tensor, Values};
use crate::storage::{files, npz, safetensors};

/// How the arrays of a sentence are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttendFormat {
    /// `.safetensors`: words as JSON in the metadata.
    Safetensors,
    /// `.npz`: words as arrays of text.
    Npz,
    /// `.json`: everything in plain lists; a number that is not finite is `null`.
    Json,
}

/// Why the arrays of a sentence were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttendSaveError {
    /// An extension nobody knows.
    #[error("`{path}` ends in none of .safetensors, .npz and .json")]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] RecordingError),
}

impl AttendFormat {
    /// The format that a file's extension asks for.
    pub fn of(path: &Path) -> Result<Self, AttendSaveError> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors") => Ok(Self::Safetensors),
            Some("npz") => Ok(Self::Npz),
            Some("json") => Ok(Self::Json),
            _ => Err(AttendSaveError::Format { path: path.to_owned() }),
        }
    }
}

impl Attended {
    /// Writes a file, whole or not at all, in the format its extension asks for.
    pub fn save(&self, path: &Path) -> Result<(), AttendSaveError> {
        let format = AttendFormat::of(path)?;
        files::write_atomically(path, |file| match format {
            AttendFormat::Safetensors => self.write_safetensors(file),
            AttendFormat::Npz => self.write_npz(file),
            AttendFormat::Json => writeln!(file, "{}", self.to_json()),
        })?;
        Ok(())
    }

    fn words(&self) -> [(&'static str, &[String]); 3] {
        [("source", &self.source), ("fed", &self.fed), ("predicted", &self.predicted)]
    }

    fn write_safetensors(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let mut metadata = BTreeMap::from([("format", "crosslens-attend/1".to_owned())]);
        metadata.extend(self.words().map(|(name, words)| (name, json!(words).to_string())));
        let tensors = self.arrays.iter().map(|NamedArray { name, shape, values }| Tensor {
            name: name.clone(),
            shape: shape.iter().map(|&size| size as u64).collect(),
            values: Values::F32(values),
        });
        safetensors::write(file, &metadata, &mut tensors.collect::<Vec<_>>())
    }

    fn write_npz(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let mut archive = npz::Writer::new();
        for NamedArray { name, shape, values } in &self.arrays {
            archive.floats(name, shape, values)?;
        }
        for (name, words) in self.words() {
            archive.words(name, words)?;
        }
        file.write_all(&archive.finish()?)
    }

    /// All of it in one value: lists of words, and arrays by name as lists of lists.
    pub fn to_json(&self) -> Value {
        let words = self.words().map(|(name, words)| (name.to_owned(), json!(words)));
        let arrays = self.arrays.iter().map(|array| (array.name.clone(), nested(&array.shape, &array.values)));
        Value::Object(words.into_iter().chain(arrays).collect::<Map<String, Value>>())
    }
}

/// Numbers as lists of lists.
fn nested(shape: &[usize], values: &[f32]) -> Value {
    match shape {
        [] => values.first().map_or(Value::Null, |value| json!(value)),
        [_] => json!(values),
        [_, rest @ ..] => values.chunks(rest.iter().product::<usize>().max(1)).map(|part| nested(rest, part)).collect(),
    }
}
