//! Writes a recording, sentence by sentence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, ShardEntry};
use super::pending::Pending;
use super::{RecordingError, check, maps, name};
use crate::storage::files::{self, io};
use crate::storage::safetensors;
use crate::{Description, Recorded};

/// Bytes after which a shard is written: large enough that a corpus makes a few files and not thousands, small enough that the sentences
/// waiting for the next one fit into any memory.
pub const SHARD_BYTES: u64 = 64 << 20;

/// What to do where the new recording should go and something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    #[default]
    Refuse,
    /// Replace it, if it is a recording, whole or not; anything else stays and the writer fails.
    Replace,
}

/// A recording that is being written.
///
/// Shards are written as sentences come, the manifest last. What is dropped before [`RecordingWriter::finish`], or cannot be finished, takes
/// the folder away that was begun; a process that is killed leaves one that nobody takes for a recording.
///
/// ```
/// use crosslens_analysis::{Consumed, Description, Existing, Recorded, Recording, RecordingWriter, Side, Stream, Words};
///
/// let words = Words { count: 9, ..Words::default() };
/// let description = Description {
///     model: "an example".into(),
///     model_hash: String::new(),
///     source: words.clone(),
///     target: words,
///     streams: vec![Stream { name: "encoder".into(), side: Side::Source, consumed: Consumed::Current, d: 2 }],
///     sites: Vec::new(),
///     readout: None,
/// };
/// let sentence = Recorded { source: vec![7], fed: vec![8], states: vec![vec![0.5, -0.5]], ..Recorded::default() };
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("recording");
/// let mut writer = RecordingWriter::create(&path, &description, Existing::Refuse)?;
/// writer.add(&[sentence.clone()])?;
/// writer.finish()?;
/// assert_eq!(Recording::open(&path)?.read(0..1)?, [sentence]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordingWriter {
    path: PathBuf,
    description: Description,
    shard_bytes: u64,
    pending: Pending,
    shards: Vec<ShardEntry>,
    n_sentences: u64,
    is_finished: bool,
}

impl RecordingWriter {
    /// Makes the folder and writes the maps into it.
    pub fn create(path: impl AsRef<Path>, description: &Description, existing: Existing) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        check::description(path, description)?;
        make_folder(path, existing)?;
        let writer = Self {
            path: path.to_owned(),
            description: description.clone(),
            shard_bytes: SHARD_BYTES,
            pending: Pending::new(description),
            shards: Vec::new(),
            n_sentences: 0,
            is_finished: false,
        };
        let sites = description.sites.iter().enumerate().flat_map(|(place, site)| maps::of_site(place, site));
        let tensors = sites.chain(description.readout.iter().flat_map(maps::of_readout)).collect();
        write_tensors(&path.join(name::MAPS), tensors)?;
        Ok(writer)
    }

    /// Writes a shard after about so many bytes, in place of [`SHARD_BYTES`].
    #[must_use]
    pub fn with_shard_bytes(mut self, shard_bytes: u64) -> Self {
        self.shard_bytes = shard_bytes;
        self
    }

    /// Adds sentences after those that are there; none of them if one does not fit the description.
    ///
    /// A loss that is not a number reads back as none. Attention counts as kept if any site has weights; then all must.
    pub fn add(&mut self, sentences: &[Recorded]) -> Result<(), RecordingError> {
        for (number, sentence) in (self.n_sentences..).zip(sentences) {
            check::sentence(&self.path, &self.description, number, sentence)?;
        }
        for sentence in sentences {
            self.pending.push(sentence);
            self.n_sentences += 1;
            if self.pending.n_bytes() >= self.shard_bytes {
                self.write_shard()?;
            }
        }
        Ok(())
    }

    fn write_shard(&mut self) -> Result<(), RecordingError> {
        let file = name::shard(self.shards.len());
        write_tensors(&self.path.join(&file), self.pending.tensors(&self.description))?;
        self.shards.push(ShardEntry { file, sentences: self.pending.n_sentences() });
        self.pending.clear();
        Ok(())
    }

    /// Writes what is left and the manifest. Only now the folder is a recording.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        if self.n_sentences == 0 {
            return Err(RecordingError::Empty { path: self.path.clone() });
        }
        if self.pending.n_sentences() > 0 {
            self.write_shard()?;
        }
        let (sites, readout) = maps::entries(&self.description);
        let shards = std::mem::take(&mut self.shards);
        Manifest::new(&self.description, sites, readout, shards).write(&self.path.join(name::MANIFEST))?;
        self.is_finished = true;
        Ok(())
    }

    /// Takes away what was written so far and the folder with it; nothing where a file of others lies in it. Dropping it does the same, and
    /// says nothing.
    pub fn discard(mut self) -> Result<(), RecordingError> {
        self.is_finished = true;
        self.take_away()
    }

    fn take_away(&self) -> Result<(), RecordingError> {
        empty_folder(&self.path)?;
        std::fs::remove_dir(&self.path).map_err(io("remove", &self.path))
    }
}

impl Drop for RecordingWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be taken away opens nowhere, and what led here says more.
            _ = self.take_away();
        }
    }
}

fn write_tensors(path: &Path, mut tensors: Vec<safetensors::Tensor<'_>>) -> Result<(), RecordingError> {
    // For people who look inside.
    let metadata = BTreeMap::from([("format", name::SCHEMA.to_owned())]);
    files::write_atomically(path, |file| safetensors::write(file, &metadata, &mut tensors))
}

/// Makes the folder, or empties the one that is there and may be replaced.
fn make_folder(path: &Path, existing: Existing) -> Result<(), RecordingError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => match existing {
            Existing::Replace if path.is_dir() => empty_folder(path),
            _ => Err(RecordingError::Exists { path: path.to_owned() }),
        },
        result => result.map_err(io("create", path)),
    }
}

/// Removes a recording's files, the manifest first, so that it is none from the first moment on. Touches nothing if anything else is there.
fn empty_folder(path: &Path) -> Result<(), RecordingError> {
    let mut old = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io("read", path))? {
        let name = entry.map_err(io("read", path))?.file_name();
        let text = name.to_string_lossy();
        if !(text == name::MANIFEST || text == name::MAPS || name::is_shard(&text) || files::is_temporary_file(&name)) {
            return Err(RecordingError::Foreign { path: path.to_owned(), name: text.into_owned() });
        }
        old.push(path.join(&name));
    }
    old.sort_by_key(|file| !file.ends_with(name::MANIFEST));
    old.iter().try_for_each(|file| std::fs::remove_file(file).map_err(io("remove", file)))
}
