//! Rows that are looked up by number.
#![expect(unsafe_code, reason = "a table of embeddings is mapped, since a sentence touches a few of its rows; the map is only read")]

use std::fs::File;

use memmap2::{Mmap, MmapOptions};
use safetensors::Dtype;

use crate::weights::convert;

/// A tensor `[rows, d]` of which single rows are wanted.
pub(crate) struct Table {
    numbers: Numbers,
    rows: usize,
    d: usize,
}

enum Numbers {
    Mapped { map: Mmap, dtype: Dtype },
    Owned(Vec<f32>),
}

impl Table {
    /// A table that stays in its file, from the byte `first` on. Only F32, F16 and BF16 can be mapped.
    pub(crate) fn map(file: &File, first: u64, dtype: Dtype, rows: usize, d: usize) -> std::io::Result<Self> {
        let len = rows * d * dtype.bitsize() / 8;
        // SAFETY: the map is private to this table and read as bytes, every value of which is a number. Weights are not meant to be changed
        // while they are in use; if the file shrinks all the same, the process ends, as it would for every program that maps weights.
        let map = unsafe { MmapOptions::new().offset(first).len(len).map(file)? };
        Ok(Self { numbers: Numbers::Mapped { map, dtype }, rows, d })
    }

    /// A table in memory.
    pub(crate) fn owned(numbers: Vec<f32>, rows: usize, d: usize) -> Self {
        assert_eq!(numbers.len(), rows * d, "shape of a table");
        Self { numbers: Numbers::Owned(numbers), rows, d }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn d(&self) -> usize {
        self.d
    }

    /// Adds rows `from..to` to `numbers`. Panics beyond the last row.
    pub(crate) fn append(&self, from: usize, to: usize, numbers: &mut Vec<f32>) {
        match &self.numbers {
            Numbers::Owned(all) => numbers.extend_from_slice(&all[from * self.d..to * self.d]),
            Numbers::Mapped { map, dtype } => {
                let n_bytes = self.d * dtype.bitsize() / 8;
                convert(*dtype, &map[from * n_bytes..to * n_bytes], numbers);
            }
        }
    }
}
