//! `recording.json`: everything about a recording but its numbers.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{RecordingError, name};
use crate::storage::files;
use crate::{Consumed, Description, Side, SiteKind, Token, Visible, Words};

/// Largest manifest that is read: room for the names of a few million words.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) schema: String,
    pub(super) model: String,
    pub(super) model_hash: String,
    #[serde(with = "WordsEntry")]
    pub(super) source: Words,
    #[serde(with = "WordsEntry")]
    pub(super) target: Words,
    pub(super) streams: Vec<StreamEntry>,
    pub(super) sites: Vec<SiteEntry>,
    pub(super) readout: Option<ReadoutEntry>,
    pub(super) sentences: u64,
    pub(super) shards: Vec<ShardEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Words", deny_unknown_fields)]
struct WordsEntry {
    count: u32,
    names: Vec<String>,
    #[serde(default)]
    start: Option<Token>,
    end: Option<Token>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamEntry {
    pub(super) name: String,
    #[serde(with = "SideName")]
    pub(super) side: Side,
    #[serde(with = "crate::recorded::ConsumedName")]
    pub(super) consumed: Consumed,
    pub(super) d: usize,
}

/// One attention head. Its map is put together from `map`, `scale`, `lowest`, `grid` and the arrays of `maps.safetensors` that it lists.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SiteEntry {
    #[serde(with = "SiteKindName")]
    pub(super) kind: SiteKind,
    pub(super) layer: usize,
    pub(super) head: usize,
    pub(super) query: usize,
    pub(super) key: usize,
    #[serde(with = "VisibleName")]
    pub(super) visible: Visible,
    /// [`ScoreMap::name`](crate::ScoreMap::name).
    pub(super) map: String,
    pub(super) scale: Option<f32>,
    /// The distance of the position bias's first value.
    pub(super) lowest: Option<i64>,
    /// Rows and columns of a position bias over a picture; written only where there is one, so that older readers know the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grid: Option<[usize; 2]>,
    pub(super) tensors: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadoutEntry {
    pub(super) d_state: usize,
    pub(super) d_context: usize,
    pub(super) tensors: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardEntry {
    pub(super) file: String,
    pub(super) sentences: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Side", rename_all = "kebab-case")]
enum SideName {
    Source,
    Target,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SiteKind", rename_all = "kebab-case")]
pub(super) enum SiteKindName {
    Cross,
    EncoderSelf,
    DecoderSelf,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Visible", rename_all = "kebab-case")]
enum VisibleName {
    All,
    Causal,
}

impl Manifest {
    /// What the manifest says of a model; `tensors` tells the arrays that each site and the readout have.
    pub(super) fn new(description: &Description, sites: Vec<SiteEntry>, readout: Option<ReadoutEntry>, shards: Vec<ShardEntry>) -> Self {
        let streams = description.streams.iter().map(|stream| StreamEntry {
            name: stream.name.clone(),
            side: stream.side,
            consumed: stream.consumed,
            d: stream.d,
        });
        Self {
            schema: name::SCHEMA.to_owned(),
            model: description.model.clone(),
            model_hash: description.model_hash.clone(),
            source: description.source.clone(),
            target: description.target.clone(),
            streams: streams.collect(),
            sites,
            readout,
            sentences: shards.iter().map(|shard| shard.sentences).sum(),
            shards,
        }
    }

    /// Reads and checks what can be checked without another file.
    pub(super) fn read(path: &Path) -> Result<Self, RecordingError> {
        let text = files::read_bounded(path, MAX_MANIFEST_BYTES)?;
        let damaged = |error: serde_json::Error| RecordingError::Damaged { path: path.to_owned(), what: error.to_string() };
        let found = serde_json::from_slice::<Schema>(&text).map_err(damaged)?.schema;
        if found != name::SCHEMA {
            return Err(match found.starts_with(name::SCHEMAS) {
                true => RecordingError::Schema { path: path.to_owned(), found, known: name::SCHEMA },
                false => RecordingError::NotARecording { path: path.to_owned(), what: "its schema is that of something else" },
            });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(damaged)?;
        manifest.check_shards(path)?;
        Ok(manifest)
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), RecordingError> {
        files::write_atomically(path, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    fn check_shards(&self, path: &Path) -> Result<(), RecordingError> {
        let mut names = BTreeSet::new();
        let mut sentences = 0u64;
        for ShardEntry { file, sentences: count } in &self.shards {
            // Nothing but the names a writer gives: no separator, no `..`, no drive letter can be among them.
            if !name::is_shard(file) {
                return Err(RecordingError::ShardName { path: path.to_owned(), name: file.clone() });
            }
            if !names.insert(file) {
                return Err(RecordingError::Duplicate { path: path.to_owned(), name: file.clone() });
            }
            sentences = sentences.saturating_add(*count);
        }
        if sentences != self.sentences {
            let what = format!("it announces {} sentences, its shards {sentences}", self.sentences);
            return Err(RecordingError::Damaged { path: path.to_owned(), what });
        }
        if sentences == 0 { Err(RecordingError::Empty { path: path.to_owned() }) } else { Ok(()) }
    }
}

/// The one field that every version has.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}
