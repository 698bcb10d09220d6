//! Tensors in safetensors files: written whole, and checked before they are believed.

use std::path::PathBuf;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::FolderError;

/// A whole file of tensors and facts about them.
pub(super) fn tensor_bytes<'a>(tensors: impl Iterator<Item = (&'a str, TensorView<'a>)>, facts: &[(&str, String)]) -> Vec<u8> {
    let facts = facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    safetensors::serialize(tensors, Some(facts)).expect("views were made of whole tensors")
}

/// Numbers as they lie in files.
pub(super) fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A tensor of a shape over its bytes.
pub(super) fn view<'a>(dtype: Dtype, shape: &[usize], bytes: &'a [u8]) -> TensorView<'a> {
    TensorView::new(dtype, shape.to_vec(), bytes).expect("as many bytes as the shape says")
}

/// A parsed safetensors file and its path, for messages.
pub(super) struct TensorFile<'a> {
    path: PathBuf,
    tensors: SafeTensors<'a>,
    facts: std::collections::HashMap<String, String>,
}

impl<'a> TensorFile<'a> {
    pub(super) fn parse(path: PathBuf, bytes: &'a [u8], format: &str) -> Result<Self, FolderError> {
        let bad = |error: safetensors::SafeTensorError| FolderError::Bad { path: path.clone(), what: error.to_string() };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(bad)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(bad)?;
        let file = Self { facts: header.metadata().clone().unwrap_or_default(), tensors, path };
        match file.fact("format")? {
            found if found == format => Ok(file),
            found => Err(file.bad(&format!("its format is `{found}`, `{format}` was expected"))),
        }
    }

    pub(super) fn bad(&self, what: &str) -> FolderError {
        FolderError::Bad { path: self.path.clone(), what: what.to_owned() }
    }

    pub(super) fn fact(&self, name: &str) -> Result<&str, FolderError> {
        self.facts.get(name).map(String::as_str).ok_or_else(|| self.bad(&format!("it has no `{name}` in its metadata")))
    }

    pub(super) fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, FolderError> {
        self.fact(name)?.parse().map_err(|_| self.bad(&format!("its `{name}` is not readable")))
    }

    fn data(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&'a [u8], FolderError> {
        let tensor = self.tensors.tensor(name).map_err(|_| self.bad(&format!("it has no tensor `{name}`")))?;
        if tensor.dtype() != dtype || tensor.shape() != shape {
            return Err(self.bad(&format!(
                "`{name}` is {:?} of shape {:?}, {dtype:?} of shape {shape:?} was expected",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        Ok(tensor.data())
    }

    pub(super) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, FolderError> {
        let (chunks, _) = self.data(name, Dtype::F32, shape)?.as_chunks::<4>();
        let numbers: Vec<f32> = chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if numbers.iter().all(|number| number.is_finite()) { Ok(numbers) } else { Err(self.bad(&format!("`{name}` is not finite"))) }
    }

    pub(super) fn numbers_f64(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, FolderError> {
        let (chunks, _) = self.data(name, Dtype::F64, shape)?.as_chunks::<8>();
        let numbers: Vec<f64> = chunks.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if numbers.iter().all(|number| number.is_finite()) { Ok(numbers) } else { Err(self.bad(&format!("`{name}` is not finite"))) }
    }
}
