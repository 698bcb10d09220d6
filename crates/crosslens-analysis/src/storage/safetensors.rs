//! The safetensors format: eight bytes of header length, a JSON header, then the numbers.
//!
//! The header is read alone, so that pieces of a file can be read without the rest, and is checked to the byte: every array has as many
//! bytes as its shape asks for, none overlap, none are left over.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::path::Path;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arrays::{Array, Arrays, Place};
use super::dtype::Dtype;
use super::files::{self, io};
use crate::RecordingError;

/// Largest header that is read. An array takes about 100 bytes of it: room for some 80,000 arrays.
const MAX_HEADER_BYTES: u64 = 8 << 20;
/// Bytes that say how long the header is.
const LENGTH_BYTES: u64 = 8;
/// The one key of a header that is no array.
const METADATA: &str = "__metadata__";

/// One array's line in the header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    /// First byte and the one after the last, counted from the header's end.
    data_offsets: (u64, u64),
}

/// Opens a file by its header.
pub(crate) fn open(path: &Path) -> Result<Arrays, RecordingError> {
    let (mut file, length) = files::open(path)?;
    let truncated = |expected| RecordingError::Truncated { path: path.to_owned(), expected, found: length };
    if length < LENGTH_BYTES {
        return Err(truncated(LENGTH_BYTES));
    }
    let mut prefix = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut prefix).map_err(io("read", path))?;
    let header_bytes = u64::from_le_bytes(prefix);
    if header_bytes > MAX_HEADER_BYTES {
        return Err(RecordingError::TooLarge {
            path: path.to_owned(),
            what: "header (if it is a safetensors file at all)".into(),
            bytes: header_bytes,
            most: MAX_HEADER_BYTES,
        });
    }
    let data = LENGTH_BYTES + header_bytes;
    if length < data {
        return Err(truncated(data));
    }
    let mut header = vec![0; header_bytes as usize];
    file.read_exact(&mut header).map_err(io("read", path))?;
    let header: Header = serde_json::from_slice(&header)
        .map_err(|error| RecordingError::Damaged { path: path.to_owned(), what: format!("header: {error}") })?;
    Ok(place(path, header.entries, data, length)?.with_metadata(header.metadata))
}

/// Checks where the arrays lie and gives them their places.
fn place(path: &Path, mut entries: Vec<(String, Entry)>, data: u64, length: u64) -> Result<Arrays, RecordingError> {
    let damaged = |name: &str, what: &str| RecordingError::Damaged { path: path.to_owned(), what: format!("`{name}` {what}") };
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    let (mut arrays, mut end) = (BTreeMap::new(), 0);
    for (name, entry) in entries {
        let (first, last) = entry.data_offsets;
        if first < end {
            return Err(damaged(&name, "overlaps another array"));
        }
        if first > end || last < first {
            return Err(damaged(&name, "does not begin where the array before it ends"));
        }
        let dtype = Dtype::from_safetensors(&entry.dtype).ok_or_else(|| RecordingError::Dtype {
            path: path.to_owned(),
            name: name.clone(),
            found: entry.dtype.clone(),
            expected: "one of BOOL, U8 to I64 and F16 to F64".into(),
        })?;
        if Array::n_bytes(dtype, &entry.shape) != Some(last - first) {
            return Err(damaged(&name, &format!("has {} bytes, which is not what its shape {:?} asks for", last - first, entry.shape)));
        }
        end = last;
        let place = Place::File(data.saturating_add(first));
        if arrays.insert(name.clone(), Array { dtype, shape: entry.shape, place }).is_some() {
            return Err(RecordingError::Duplicate { path: path.to_owned(), name });
        }
    }
    match data.saturating_add(end) {
        expected if expected > length => Err(RecordingError::Truncated { path: path.to_owned(), expected, found: length }),
        expected if expected < length => {
            Err(RecordingError::Damaged { path: path.to_owned(), what: format!("{} bytes follow the last array", length - expected) })
        }
        _ => Ok(Arrays::new(path, arrays)),
    }
}

/// The arrays a header lists, each as often as it is there, and what it says besides, as far as that is text.
#[derive(Default)]
struct Header {
    entries: Vec<(String, Entry)>,
    metadata: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("arrays by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        if let Value::Object(metadata) = map.next_value()? {
                            let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
                            header.metadata = metadata.into_iter().filter_map(text).collect();
                        }
                    } else {
                        let entry = map.next_value().map_err(|error| A::Error::custom(format!("array `{name}`: {error}")))?;
                        header.entries.push((name, entry));
                    }
                }
                Ok(header)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// An array to be written.
#[derive(Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) values: Values<'a>,
}

/// Its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    U8(&'a [u8]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

impl Values<'_> {
    fn dtype(self) -> Dtype {
        match self {
            Self::U8(_) => Dtype::U8,
            Self::U32(_) => Dtype::U32,
            Self::U64(_) => Dtype::U64,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    fn len(self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    fn write(self, file: &mut dyn Write) -> std::io::Result<()> {
        match self {
            Self::U8(values) => file.write_all(values),
            Self::U32(values) => write_numbers(file, values, u32::to_le_bytes),
            Self::U64(values) => write_numbers(file, values, u64::to_le_bytes),
            Self::F32(values) => write_numbers(file, values, f32::to_le_bytes),
            Self::F64(values) => write_numbers(file, values, f64::to_le_bytes),
        }
    }
}

/// Writes numbers, many at a time.
fn write_numbers<N: Copy, const BYTES: usize>(file: &mut dyn Write, numbers: &[N], bytes: fn(N) -> [u8; BYTES]) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    for numbers in numbers.chunks(1024) {
        buffer.clear();
        buffer.extend(numbers.iter().flat_map(|number| bytes(*number)));
        file.write_all(&buffer)?;
    }
    Ok(())
}

/// Writes arrays, those of wide numbers first, so that all lie at multiples of their size, with `metadata` by name.
pub(crate) fn write(file: &mut dyn Write, metadata: &BTreeMap<&str, String>, tensors: &mut [Tensor<'_>]) -> std::io::Result<()> {
    tensors.sort_by(|a, b| b.values.dtype().n_bytes().cmp(&a.values.dtype().n_bytes()).then_with(|| a.name.cmp(&b.name)));

    let mut header = format!("{{\"{METADATA}\":{}", serde_json::to_string(metadata)?);
    let mut first = 0;
    for tensor in tensors.iter() {
        let dtype = tensor.values.dtype();
        let last = first + (tensor.values.len() * dtype.n_bytes()) as u64;
        let entry = Entry { dtype: dtype.name().to_owned(), shape: tensor.shape.clone(), data_offsets: (first, last) };
        header += &format!(",{}:{}", serde_json::to_string(&tensor.name)?, serde_json::to_string(&entry)?);
        first = last;
    }
    header.push('}');
    header.push_str(&" ".repeat(header.len().wrapping_neg() % 8));

    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    tensors.iter().try_for_each(|tensor| tensor.values.write(file))
}
