//! What the fuzz targets do with their input. `crates/crosslens-analysis/tests/recording/corpus.rs` does the same with the committed seeds,
//! so that a target that does not compile, and a seed that panics, fail the ordinary tests.

use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::{CorpusError, CorpusSpec, Filter};
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

/// Reads a corpus of lines with a tab, packed or not; returns how many pairs are kept.
pub fn corpus_tsv(input: &[u8]) -> Option<Result<usize, CorpusError>> {
    corpus(&[input], |paths| CorpusSpec::Tsv(paths[0].clone()))
}

/// Reads a corpus of lines of JSON, packed or not.
pub fn corpus_jsonl(input: &[u8]) -> Option<Result<usize, CorpusError>> {
    corpus(&[input], |paths| CorpusSpec::Jsonl(paths[0].clone()))
}

/// Reads a catalogue as translators write it.
pub fn corpus_po(input: &[u8]) -> Option<Result<usize, CorpusError>> {
    corpus(&[input], |paths| CorpusSpec::Po(paths[0].clone()))
}

/// Reads a compiled catalogue.
pub fn corpus_mo(input: &[u8]) -> Option<Result<usize, CorpusError>> {
    corpus(&[input], |paths| CorpusSpec::Mo(paths[0].clone()))
}

/// Reads two aligned files: the length of the first (u16, little-endian), the first, the second.
pub fn corpus_aligned(input: &[u8]) -> Option<Result<usize, CorpusError>> {
    let (length, files) = input.split_first_chunk::<2>()?;
    let (source, target) = files.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    corpus(&[source, target], |paths| CorpusSpec::Aligned { source: paths[0].clone(), target: paths[1].clone() })
}

/// Reads a corpus to its end. Whatever is in it, a pair that is kept is two lines with something in each.
fn corpus(files: &[&[u8]], spec: impl FnOnce(&[PathBuf]) -> CorpusSpec) -> Option<Result<usize, CorpusError>> {
    let folder = tempfile::tempdir().ok()?;
    let paths: Vec<PathBuf> = (0..files.len()).map(|number| folder.path().join(number.to_string())).collect();
    for (path, bytes) in paths.iter().zip(files) {
        std::fs::write(path, bytes).ok()?;
    }
    let read = spec(&paths).open(&Filter::default()).and_then(|reader| reader.read_all(&mut |_| ()));
    Some(read.map(|(pairs, report)| {
        let is_line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r', '\t']);
        assert!(pairs.iter().all(|pair| is_line(&pair.source) && is_line(&pair.target)), "no lines: {pairs:?}");
        assert_eq!(pairs.len() as u64, report.kept());
        pairs.len()
    }))
}

/// How many sentences there are, after all of them were read.
fn read_all(path: &Path) -> Result<usize, RecordingError> {
    let recording = Recording::open(path)?;
    Ok(recording.read(0..recording.len())?.len())
}
