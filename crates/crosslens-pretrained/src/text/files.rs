//! Reads the files of a tokenizer, none larger than such files are.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::TokenizerError;

/// Vocabularies of a million tokens stay far below.
const MAX_JSON_BYTES: u64 = 256 << 20;
/// The largest known, of 256,000 pieces, has less than 5 MiB.
const MAX_MODEL_BYTES: u64 = 64 << 20;

pub(super) fn json_bytes(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    read(path, MAX_JSON_BYTES)
}

pub(super) fn model_bytes(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    read(path, MAX_MODEL_BYTES)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, TokenizerError> {
    let failed = |source| TokenizerError::Read { path: path.to_owned(), source };
    // Before it is opened: a pipe would wait for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("it is not a file")));
    }
    let file = File::open(path).map_err(failed)?;
    let n_bytes = file.metadata().map_err(failed)?.len();
    if n_bytes > limit {
        return Err(TokenizerError::TooLarge { path: path.to_owned(), n_bytes, limit });
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The content of a JSON file, if there is one.
pub(super) fn json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, TokenizerError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = json_bytes(path)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|source| TokenizerError::Json { path: path.to_owned(), source })
}
