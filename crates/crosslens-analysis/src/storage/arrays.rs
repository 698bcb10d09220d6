//! Named arrays of one file, on disk or in memory, read piece by piece.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::dtype::{Dtype, Number};
use super::files::{self, io};
use crate::RecordingError;

/// One array: its numbers lie in rows, the last axis fastest.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) place: Place,
}

/// Where an array's bytes are.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the file, from this byte on.
    File(u64),
    /// Here.
    Memory(Vec<u8>),
}

impl Array {
    /// How many bytes the shape asks for; none where that is no number a machine can count.
    pub(crate) fn n_bytes(dtype: Dtype, shape: &[u64]) -> Option<u64> {
        let count = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size))?;
        count.checked_mul(dtype.n_bytes() as u64)
    }

    /// How many numbers it has. Every array was checked to have as many bytes as its shape asks for, so this cannot overflow.
    fn count(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// The arrays of one file.
#[derive(Debug)]
pub(crate) struct Arrays {
    path: PathBuf,
    arrays: BTreeMap<String, Array>,
    /// What the header says besides.
    metadata: BTreeMap<String, String>,
}

impl Arrays {
    pub(crate) fn new(path: &Path, arrays: BTreeMap<String, Array>) -> Self {
        Self { path: path.to_owned(), arrays, metadata: BTreeMap::new() }
    }

    pub(crate) fn with_metadata(self, metadata: BTreeMap<String, String>) -> Self {
        Self { metadata, ..self }
    }

    /// What the header says under a name, besides its arrays.
    pub(crate) fn metadata(&self, name: &str) -> Option<&str> {
        self.metadata.get(name).map(String::as_str)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is an array of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// Fails for the first array whose name is not known.
    pub(crate) fn refuse_unknown(&self, is_known: impl Fn(&str) -> bool) -> Result<(), RecordingError> {
        match self.arrays.keys().find(|name| !is_known(name)) {
            Some(name) => Err(RecordingError::UnknownArray { path: self.path.clone(), name: name.clone() }),
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Result<&Array, RecordingError> {
        self.arrays.get(name).ok_or_else(|| RecordingError::MissingArray { path: self.path.clone(), name: name.to_owned() })
    }

    /// The names of all arrays, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// The sizes of an array's axes, however many.
    pub(crate) fn axes(&self, name: &str) -> Option<&[u64]> {
        self.arrays.get(name).map(|array| array.shape.as_slice())
    }

    /// Fails unless an array has one of these types.
    pub(crate) fn expect_dtype(&self, name: &str, dtypes: &[Dtype]) -> Result<(), RecordingError> {
        let found = self.get(name)?.dtype;
        if dtypes.contains(&found) {
            return Ok(());
        }
        let expected = dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" or ");
        Err(RecordingError::Dtype { path: self.path.clone(), name: name.to_owned(), found: found.name().to_owned(), expected })
    }

    /// The shape of an array of one of these types and so many axes.
    pub(crate) fn shape<const AXES: usize>(&self, name: &str, dtypes: &[Dtype]) -> Result<[u64; AXES], RecordingError> {
        self.expect_dtype(name, dtypes)?;
        let array = self.get(name)?;
        array
            .shape
            .as_slice()
            .try_into()
            .map_err(|_| self.misshapen(name, &array.shape, &format!("one with {AXES} {}", if AXES == 1 { "axis" } else { "axes" })))
    }

    /// Fails unless an array has one of these types and this shape.
    pub(crate) fn expect<const AXES: usize>(&self, name: &str, dtypes: &[Dtype], shape: [u64; AXES]) -> Result<(), RecordingError> {
        let found = self.shape(name, dtypes)?;
        if found == shape { Ok(()) } else { Err(self.misshapen(name, &found, &format!("{shape:?}"))) }
    }

    pub(crate) fn misshapen(&self, name: &str, found: &[u64], expected: &str) -> RecordingError {
        RecordingError::Shape { path: self.path.clone(), name: name.to_owned(), found: found.to_vec(), expected: expected.to_owned() }
    }

    /// An array's numbers, beginning with the one at `start`.
    pub(crate) fn numbers<'a>(&'a self, name: &'a str, start: u64) -> Result<Numbers<'a>, RecordingError> {
        let array = self.get(name)?;
        let mut numbers = Numbers { path: &self.path, name, dtype: array.dtype, left: array.count(), source: Source::Memory(&[]) };
        numbers.source = match &array.place {
            Place::Memory(bytes) => Source::Memory(bytes),
            Place::File(first) => {
                let (mut file, _) = files::open(&self.path)?;
                file.seek(SeekFrom::Start(*first)).map_err(io("read", &self.path))?;
                Source::File(BufReader::new(file))
            }
        };
        numbers.skip(start)?;
        Ok(numbers)
    }

    /// All numbers of an array.
    pub(crate) fn all<N: Number>(&self, name: &str) -> Result<Vec<N>, RecordingError> {
        let mut numbers = self.numbers(name, 0)?;
        numbers.take(numbers.left)
    }
}

/// Reads an array from front to back.
#[derive(Debug)]
pub(crate) struct Numbers<'a> {
    path: &'a Path,
    name: &'a str,
    dtype: Dtype,
    left: u64,
    source: Source<'a>,
}

#[derive(Debug)]
enum Source<'a> {
    File(BufReader<File>),
    Memory(&'a [u8]),
}

impl Numbers<'_> {
    /// The next `count` numbers. Memory is taken only for numbers that are there.
    pub(crate) fn take<N: Number>(&mut self, count: u64) -> Result<Vec<N>, RecordingError> {
        if count > self.left {
            return Err(self.damaged("fewer numbers than its lengths ask for"));
        }
        let no_memory = || RecordingError::NoMemory { path: self.path.to_owned(), name: self.name.to_owned(), numbers: count };
        let wanted = usize::try_from(count).map_err(|_| no_memory())?;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(wanted).map_err(|_| no_memory())?;

        let n_bytes = self.dtype.n_bytes();
        let mut buffer = [0; 8192];
        while numbers.len() < wanted {
            let bytes = (buffer.len() / n_bytes).min(wanted - numbers.len()) * n_bytes;
            self.read(&mut buffer[..bytes])?;
            N::decode_into(self.dtype, &buffer[..bytes], &mut numbers)
                .ok_or_else(|| self.damaged("a number that is negative or too large"))?;
        }
        self.left -= count;
        Ok(numbers)
    }

    /// Passes over `count` numbers.
    pub(crate) fn skip(&mut self, count: u64) -> Result<(), RecordingError> {
        if count > self.left {
            return Err(self.damaged("fewer numbers than its lengths ask for"));
        }
        let bytes = count * self.dtype.n_bytes() as u64;
        match &mut self.source {
            Source::File(file) => match i64::try_from(bytes) {
                Ok(bytes) => file.seek_relative(bytes).map_err(io("read", self.path))?,
                Err(_) => return Err(self.damaged("more numbers than a file can hold")),
            },
            Source::Memory(all) => *all = all.get(bytes as usize..).unwrap_or_default(),
        }
        self.left -= count;
        Ok(())
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), RecordingError> {
        match &mut self.source {
            Source::File(file) => file.read_exact(bytes),
            Source::Memory(left) => left.read_exact(bytes),
        }
        .map_err(io("read", self.path))
    }

    /// An error that says what the array holds.
    pub(crate) fn damaged(&self, what: &str) -> RecordingError {
        RecordingError::Damaged { path: self.path.to_owned(), what: format!("`{}` holds {what}", self.name) }
    }
}
