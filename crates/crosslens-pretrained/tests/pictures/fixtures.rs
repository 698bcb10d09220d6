//! The golden files, and folders with settings.

use std::path::PathBuf;

use crosslens_pretrained::PretrainedError;
use crosslens_pretrained::picture::Processor;
use serde_json::Value;

/// Where the golden files lie.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pictures")
}

/// The bytes of a golden file.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).expect("a golden file")
}

/// The golden pictures by name.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("a plain name")).collect();
    names.retain(|name| !name.ends_with(".safetensors"));
    names.sort();
    names
}

/// What a folder says whose only file is this.
pub(crate) fn processor_in(file: &str, content: &str) -> Result<Processor, PretrainedError> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(file), content).expect("a file");
    Processor::read(folder.path())
}

/// What such a preprocessor_config.json says.
pub(crate) fn processor(config: &Value) -> Result<Processor, PretrainedError> {
    processor_in("preprocessor_config.json", &config.to_string())
}

/// An error with all its reasons.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let reasons = std::iter::successors(Some(error), |error| error.source());
    reasons.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
