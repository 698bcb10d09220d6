//! What the fuzz targets do with their input. `crates/crosslens-analysis/tests/recording/corpus.rs` does the same with the committed seeds,
//! so that a target that does not compile, and a seed that panics, fail the ordinary tests.

use std::path::Path;

use crosslens_analysis::{Recording, RecordingError, Stats, StatsError};

/// Opens a recording of one shard and reads it.
///
/// The input is the length of the manifest and that of the maps (u16, little-endian), the manifest, the maps, the shard.
pub fn recording_manifest_and_shard(input: &[u8]) -> Option<Result<usize, RecordingError>> {
    let (lengths, files) = input.split_at_checked(4)?;
    let length = |place: usize| usize::from(u16::from_le_bytes([lengths[place], lengths[place + 1]]));
    let (manifest, files) = files.split_at_checked(length(0))?;
    let (maps, shard) = files.split_at_checked(length(2))?;
    let folder = tempfile::tempdir().ok()?;
    for (name, bytes) in [("recording.json", manifest), ("maps.safetensors", maps), ("shard-00000.safetensors", shard)] {
        std::fs::write(folder.path().join(name), bytes).ok()?;
    }
    Some(read_all(folder.path()))
}

/// Opens a dump and reads it.
pub fn npz(input: &[u8]) -> Option<Result<usize, RecordingError>> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("dump.npz");
    std::fs::write(&path, input).ok()?;
    Some(read_all(&path))
}

/// Opens sums and merges them with themselves; returns how many streams there are.
pub fn stats(input: &[u8]) -> Option<Result<usize, StatsError>> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("x.stats.safetensors");
    std::fs::write(&path, input).ok()?;
    Some(Stats::load_merged(&[&path, &path]).map(|stats| stats.streams.len()))
}

/// How many sentences there are, after all of them were read.
fn read_all(path: &Path) -> Result<usize, RecordingError> {
    let recording = Recording::open(path)?;
    Ok(recording.read(0..recording.len())?.len())
}
