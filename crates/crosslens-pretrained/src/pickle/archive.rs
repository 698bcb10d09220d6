//! The form since PyTorch 1.6: a zip archive.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use zip::{CompressionMethod, ZipArchive};

use super::{MAX_PICKLE_BYTES, PickleError, Place, read_at};

/// The archive: where the bytes of each entry lie.
pub(super) struct Archive<'f> {
    file: &'f File,
    /// Entries that are stored as they are, by their names in the folder that `data.pkl` is in.
    entries: HashMap<String, Place>,
}

impl<'f> Archive<'f> {
    pub(super) fn open(file: &'f File) -> Result<Self, PickleError> {
        let cannot = |error: &dyn std::fmt::Display| format!("it cannot be unpickled: {error}");
        let length = file.metadata().map_err(|error| cannot(&error))?.len();
        let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| cannot(&error))?;
        let mut entries = HashMap::new();
        for number in 0..zip.len() {
            let entry = zip.by_index_raw(number).map_err(|error| cannot(&error))?;
            let name = entry.name().map_err(|error| cannot(&error))?.into_owned();
            if entry.compression() != CompressionMethod::Stored || entry.encrypted() {
                return Err(format!("it cannot be unpickled: `{name}` is packed or locked, where PyTorch stores it as it is").into());
            }
            let (first, size) = (entry.data_start().unwrap_or(u64::MAX), entry.size());
            if first.checked_add(size).is_none_or(|end| end > length) {
                return Err(format!("it cannot be unpickled: `{name}` claims {size} bytes, more than the file has").into());
            }
            entries.insert(name, (first, size));
        }
        let root = entries.keys().filter_map(|name| name.strip_suffix("data.pkl")).min();
        let root = root.ok_or_else(|| "it cannot be unpickled: there is no data.pkl in it".to_owned())?.to_owned();
        // Once for all: tensors look for their storages under short names, however long the folder's is.
        let in_folder = |(name, place): (String, Place)| Some((name.strip_prefix(&root)?.to_owned(), place));
        Ok(Self { file, entries: entries.into_iter().filter_map(in_folder).collect() })
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, PickleError> {
        let Some((first, size)) = self.place(name) else { return Ok(None) };
        if size > most {
            return Err(format!("it cannot be unpickled: its {name} has {size} bytes, and at most {most} are read").into());
        }
        read_at(self.file, first, size).map(Some)
    }

    /// Where an entry lies.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.entries.get(name).copied()
    }

    pub(super) fn pickle(&self) -> Result<Vec<u8>, PickleError> {
        if self.read("byteorder", 16)?.is_some_and(|order| order != b"little") {
            return Err("its numbers are not little-endian".to_owned().into());
        }
        Ok(self.read("data.pkl", MAX_PICKLE_BYTES)?.unwrap_or_default())
    }
}
