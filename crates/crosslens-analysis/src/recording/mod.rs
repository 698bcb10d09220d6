//! Recordings on disk: written by [`RecordingWriter`], opened by [`Recording`].
//!
//! Both formats, the folder and the file that other frameworks dump, are described in `docs/format.md`. Every file is taken for hostile:
//! sizes are checked against what is there before memory is taken, and the error names the file and what is wrong with it.

mod about;
mod check;
mod error;
mod import;
mod manifest;
mod maps;
mod name;
mod pending;
mod shard;
mod writer;

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::storage::{files, safetensors};
use crate::{Description, Recorded};
use import::Import;
use manifest::Manifest;
use shard::Shard;

pub use error::RecordingError;
pub use writer::{Existing, RecordingWriter, SHARD_BYTES};

/// What was seen while a model worked, on disk.
///
/// Only what describes it is kept in memory; sentences are read when they are asked for, by positioned reads. (The arrays of a `.npz` file
/// are the exception: they are decoded when it is opened.)
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    description: Description,
    sentences: Sentences,
}

#[derive(Debug)]
enum Sentences {
    Shards(Vec<Shard>),
    Import(Import),
}

impl Recording {
    /// Opens a folder that a [`RecordingWriter`] finished, or a `.npz` or `.safetensors` file of padded arrays.
    ///
    /// The manifest, all headers and all lengths are checked now; states, tokens and weights when they are read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        let metadata = std::fs::metadata(path).map_err(files::io("read", path))?;
        let (sentences, description) = if metadata.is_dir() {
            open_folder(path)?
        } else {
            let (import, description) = match path.extension().and_then(|extension| extension.to_str()) {
                Some("npz") => Import::open_npz(path)?,
                Some("safetensors") => Import::open_safetensors(path)?,
                _ => {
                    let what = "it is neither a folder nor a `.npz` or `.safetensors` file";
                    return Err(RecordingError::NotARecording { path: path.to_owned(), what });
                }
            };
            (Sentences::Import(import), description)
        };
        Ok(Self { path: path.to_owned(), description, sentences })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the model is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// How many sentences it has: at least one.
    #[expect(clippy::len_without_is_empty, reason = "a recording without a sentence cannot be opened")]
    pub fn len(&self) -> u64 {
        match &self.sentences {
            Sentences::Shards(shards) => shards.iter().map(Shard::n_sentences).sum(),
            Sentences::Import(import) => import.n_sentences(),
        }
    }

    /// Steps that a source and a target have at most.
    pub(crate) fn longest(&self) -> (u64, u64) {
        match &self.sentences {
            Sentences::Shards(shards) => {
                shards.iter().map(Shard::longest).fold((0, 0), |longest, own| (longest.0.max(own.0), longest.1.max(own.1)))
            }
            Sentences::Import(import) => import.longest(),
        }
    }

    /// Reads sentences by their places, from 0. Memory is taken for these alone.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<Recorded>, RecordingError> {
        let len = self.len();
        if range.start > range.end || range.end > len {
            return Err(RecordingError::Range { path: self.path.clone(), start: range.start, end: range.end, len });
        }
        match &self.sentences {
            Sentences::Import(import) => import.read(&self.description, range),
            Sentences::Shards(shards) => {
                let mut sentences = Vec::new();
                let mut first = 0;
                for shard in shards {
                    let n = shard.n_sentences();
                    // The part of the range that lies in this shard, counted from its first sentence.
                    let part = range.start.saturating_sub(first)..range.end.saturating_sub(first).min(n);
                    if part.start < part.end {
                        sentences.append(&mut shard.read(&self.description, part)?);
                    }
                    first += n;
                }
                Ok(sentences)
            }
        }
    }
}

/// Whether a folder is a recording, whole or not.
pub fn is_recording(path: &Path) -> bool {
    path.join(name::MANIFEST).exists() || path.join(name::MAPS).exists()
}

fn open_folder(path: &Path) -> Result<(Sentences, Description), RecordingError> {
    let manifest_path = path.join(name::MANIFEST);
    if !manifest_path.exists() {
        let what = "there is no `recording.json` in it, or it was never finished";
        return Err(RecordingError::NotARecording { path: path.to_owned(), what });
    }
    let manifest = Manifest::read(&manifest_path)?;
    let description = maps::describe(&manifest_path, &manifest, &safetensors::open(&path.join(name::MAPS))?)?;
    check::description(&manifest_path, &description)?;

    let mut first = 0;
    let open = |entry: &manifest::ShardEntry| {
        let shard = Shard::open(&path.join(&entry.file), &description, first, entry.sentences)?;
        first += entry.sentences;
        Ok(shard)
    };
    let shards = manifest.shards.iter().map(open).collect::<Result<_, _>>()?;
    Ok((Sentences::Shards(shards), description))
}
