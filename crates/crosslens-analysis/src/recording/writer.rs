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
    /// Replace it, if it is a recording, whole or not; anything else stays and the writer fails. A whole one stays until the new one is
    /// finished.
    Replace,
}

/// A recording that is being written.
///
/// Shards are written as sentences come, the manifest last. What is dropped before [`RecordingWriter::finish`], or cannot be finished, takes
/// the folder away that was begun; a process that is killed leaves one that nobody takes for a recording. A recording that is replaced is
/// whole until then: the new one is written into a temporary folder inside of it.
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
    /// Where the recording will be.
    path: PathBuf,
    /// Where its files are until then: in `path` itself, or in a folder there, beside a recording that is replaced.
    folder: PathBuf,
    description: Description,
    shard_bytes: u64,
    pending: Pending,
    shards: Vec<ShardEntry>,
    n_sentences: u64,
    is_finished: bool,
}

impl RecordingWriter {
    /// Makes the folder, or one in that of a recording which is replaced, and writes the maps into it.
    pub fn create(path: impl AsRef<Path>, description: &Description, existing: Existing) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        check::description(path, description)?;
        let folder = make_folder(path, existing)?;
        let writer = Self {
            path: path.to_owned(),
            folder,
            description: description.clone(),
            shard_bytes: SHARD_BYTES,
            pending: Pending::new(description),
            shards: Vec::new(),
            n_sentences: 0,
            is_finished: false,
        };
        let sites = description.sites.iter().enumerate().flat_map(|(place, site)| maps::of_site(place, site));
        let tensors = sites.chain(description.readout.iter().flat_map(maps::of_readout)).collect();
        write_tensors(&writer.folder.join(name::MAPS), tensors)?;
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
        write_tensors(&self.folder.join(&file), self.pending.tensors(&self.description))?;
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
        Manifest::new(&self.description, sites, readout, shards).write(&self.folder.join(name::MANIFEST))?;
        if self.folder != self.path {
            self.replace_old()?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Puts the new files in the place of the old ones, the manifest last; nothing where a file of others came there meanwhile.
    fn replace_old(&self) -> Result<(), RecordingError> {
        let old = own_files(&self.path)?;
        old.iter().filter(|file| !file.starts_with(&self.folder)).try_for_each(|file| remove(file))?;
        for file in own_files(&self.folder)?.iter().rev() {
            let place = self.path.join(file.file_name().unwrap_or_default());
            std::fs::rename(file, &place).map_err(io("write", &place))?;
        }
        remove(&self.folder)
    }

    /// Takes away what was written so far and the folder with it; nothing where a file of others lies in it. A recording that was to be
    /// replaced stays. Dropping it does the same, and says nothing.
    pub fn discard(mut self) -> Result<(), RecordingError> {
        self.is_finished = true;
        self.take_away()
    }

    fn take_away(&self) -> Result<(), RecordingError> {
        empty_folder(&self.folder)?;
        remove(&self.folder)
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

/// Makes the folder, or empties the one that is there and may be replaced, or makes another in it if that holds a whole recording: returns
/// where to write.
fn make_folder(path: &Path, existing: Existing) -> Result<PathBuf, RecordingError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => match existing {
            Existing::Replace if path.join(name::MANIFEST).is_file() => {
                own_files(path)?;
                files::new_folder_in(path).map_err(io("create", path))
            }
            Existing::Replace if path.is_dir() => empty_folder(path).map(|()| path.to_owned()),
            _ => Err(RecordingError::Exists { path: path.to_owned() }),
        },
        result => result.map(|()| path.to_owned()).map_err(io("create", path)),
    }
}

/// Removes a recording's files, the manifest first, so that it is none from the first moment on. Touches nothing if anything else is there.
fn empty_folder(path: &Path) -> Result<(), RecordingError> {
    own_files(path)?.iter().try_for_each(|file| remove(file))
}

/// The files of a recording in a folder, the manifest first, and what killed writers left there, folders after what is in them. Fails if
/// anything else is there.
fn own_files(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let mut own = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io("read", path))? {
        let entry = entry.map_err(io("read", path))?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let is_temporary = files::is_temporary_file(&name);
        if !(text == name::MANIFEST || text == name::MAPS || name::is_shard(&text) || is_temporary) {
            return Err(RecordingError::Foreign { path: path.to_owned(), name: text.into_owned() });
        }
        if is_temporary && entry.file_type().map_err(io("read", path))?.is_dir() {
            own.extend(own_files(&entry.path())?);
        }
        own.push(entry.path());
    }
    own.sort_by_key(|file| !file.ends_with(name::MANIFEST));
    Ok(own)
}

fn remove(path: &Path) -> Result<(), RecordingError> {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
    removed.map_err(io("remove", path))
}
