//! The npz format: a zip archive of npy files, stored or deflated.
//!
//! Arrays are decoded into memory. What an archive announces is checked against limits before anything is decoded, and no more is decoded
//! than was announced.

use std::collections::BTreeMap;
use std::io::{BufReader, Cursor, Read, Seek, Write};
use std::path::Path;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::arrays::{Array, Arrays};
use super::files::{self, io};
use super::npy::{self, Trouble};
use crate::RecordingError;

/// Largest sum of decoded arrays.
const MAX_BYTES: u64 = 4 << 30;
/// How many times its size a file may grow when decoded. Padding compresses well, but states do not: no dump comes near this.
const MAX_GROWTH: u64 = 100;
/// What any file may grow to.
const SMALL_BYTES: u64 = 16 << 20;

/// Opens a file and decodes its arrays, which must be among those that are known.
pub(crate) fn open(path: &Path, is_known: impl Fn(&str) -> bool) -> Result<Arrays, RecordingError> {
    let (file, length) = files::open(path)?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| trouble(path, error))?;
    let damaged = |what: &str| RecordingError::Damaged { path: path.to_owned(), what: what.to_owned() };
    if archive.has_duplicate_names() {
        return Err(damaged("two of its arrays have one name"));
    }
    if archive.has_overlapping_entries().map_err(|error| trouble(path, error))? {
        return Err(damaged("two of its arrays overlap"));
    }
    check_sizes(path, &mut archive, length, is_known)?;

    let mut arrays = BTreeMap::new();
    for place in 0..archive.len() {
        let (name, array) = decode(path, &mut archive, place)?;
        if arrays.insert(name.clone(), array).is_some() {
            return Err(RecordingError::Duplicate { path: path.to_owned(), name });
        }
    }
    Ok(Arrays::new(path, arrays))
}

/// Fails where an array is unknown or where all announce more than may be decoded.
fn check_sizes<R: Read + Seek>(
    path: &Path,
    archive: &mut ZipArchive<R>,
    length: u64,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), RecordingError> {
    let mut bytes = 0u64;
    for place in 0..archive.len() {
        let entry = archive.by_index_raw(place).map_err(|error| trouble(path, error))?;
        let name = array_name(&String::from_utf8_lossy(entry.name_raw()));
        if !is_known(&name) {
            return Err(RecordingError::UnknownArray { path: path.to_owned(), name });
        }
        bytes = bytes.saturating_add(entry.size());
    }
    let most = MAX_BYTES.min(SMALL_BYTES.max(length.saturating_mul(MAX_GROWTH)));
    if bytes > most { Err(RecordingError::TooLarge { path: path.to_owned(), what: "decoded content".into(), bytes, most }) } else { Ok(()) }
}

fn decode<R: Read + Seek>(path: &Path, archive: &mut ZipArchive<R>, place: usize) -> Result<(String, Array), RecordingError> {
    let entry = archive.by_index(place).map_err(|error| trouble(path, error))?;
    let name = array_name(&String::from_utf8_lossy(entry.name_raw()));
    let announced = entry.size();
    let damaged = |what: String| RecordingError::Damaged { path: path.to_owned(), what: format!("`{name}` is {what}") };

    // Memory grows as numbers come, not as they are announced.
    let mut bytes = Vec::new();
    entry.take(announced.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| trouble(path, ZipError::Io(error)))?;
    if bytes.len() as u64 != announced {
        return Err(damaged(format!("not as long as announced, {announced} bytes")));
    }
    let array = npy::read(bytes).map_err(|trouble| match trouble {
        Trouble::Damaged(what) => RecordingError::Damaged { path: path.to_owned(), what: format!("`{name}` has {what}") },
        Trouble::Dtype(found) => RecordingError::Dtype {
            path: path.to_owned(),
            name: name.clone(),
            found: format!("`{found}`"),
            expected: "a little-endian number such as `<f4` or `<i8`".into(),
        },
    })?;
    Ok((name, array))
}

/// The name of the array in a file `name.npy`.
fn array_name(file: &str) -> String {
    file.strip_suffix(".npy").unwrap_or(file).to_owned()
}

fn trouble(path: &Path, error: ZipError) -> RecordingError {
    match error {
        // Decoders complain in the same words as the system, but without its number.
        ZipError::Io(source) if source.raw_os_error().is_some() => io("read", path)(source),
        other => RecordingError::Damaged { path: path.to_owned(), what: other.to_string() },
    }
}

/// An archive that grows in memory, stored as `numpy.savez` does, so that other programs need no decoder.
pub(crate) struct Writer(ZipWriter<Cursor<Vec<u8>>>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self(ZipWriter::new(Cursor::new(Vec::new())))
    }

    /// Adds an array of numbers.
    pub(crate) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> std::io::Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add(name, &npy::write("<f4", shape, &bytes))
    }

    /// Adds a list of words as NumPy keeps text: every word as many characters of 32 bits as the longest has.
    pub(crate) fn words(&mut self, name: &str, words: &[String]) -> std::io::Result<()> {
        let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1);
        let characters = words.iter().flat_map(|word| word.chars().map(u32::from).chain(std::iter::repeat(0)).take(width));
        let bytes: Vec<u8> = characters.flat_map(u32::to_le_bytes).collect();
        self.add(name, &npy::write(&format!("<U{width}"), &[words.len()], &bytes))
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let is_large = u32::try_from(bytes.len()).is_err();
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(is_large);
        self.0.start_file(format!("{name}.npy"), options).map_err(std::io::Error::other)?;
        self.0.write_all(bytes)
    }

    /// The whole archive.
    pub(crate) fn finish(self) -> std::io::Result<Vec<u8>> {
        Ok(self.0.finish().map_err(std::io::Error::other)?.into_inner())
    }
}
