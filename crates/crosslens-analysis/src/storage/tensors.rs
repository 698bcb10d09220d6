//! The tensors of a file that another program wrote.

use std::ops::Range;
use std::path::Path;

use super::arrays::Arrays;
use super::dtype::Dtype;
use super::safetensors;
use crate::RecordingError;

/// A `.safetensors` file of weights, opened by its header; numbers are read when they are asked for, and only those.
#[derive(Debug)]
pub struct TensorFile(Arrays);

impl TensorFile {
    /// Opens a file. Its header is checked to the byte: every tensor lies inside the file, none overlap, none are left over.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        Ok(Self(safetensors::open(path)?))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The names of its tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }

    /// The sizes of a tensor's axes; `None` where there is no such tensor.
    pub fn shape(&self, name: &str) -> Option<&[u64]> {
        self.0.axes(name)
    }

    /// What the header says under a name, besides its tensors.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.0.metadata(name)
    }

    /// Some rows of a tensor of half or single precision, counted along its first axis.
    pub fn rows(&self, name: &str, rows: Range<u64>) -> Result<Vec<f32>, RecordingError> {
        self.0.expect_dtype(name, &[Dtype::F16, Dtype::F32])?;
        let d: u64 = self.shape(name).and_then(|shape| shape.get(1..)).map_or(1, |rest| rest.iter().product());
        let mut numbers = self.0.numbers(name, rows.start.saturating_mul(d))?;
        numbers.take(rows.end.saturating_sub(rows.start).saturating_mul(d))
    }
}
