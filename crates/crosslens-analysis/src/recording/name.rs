//! What files and arrays of a recording are called.

/// The format and its version, as the manifest says it.
pub(super) const SCHEMA: &str = "crosslens-recording/1";
/// How the schema of every version begins.
pub(super) const SCHEMAS: &str = "crosslens-recording/";

/// The manifest: written last, so that a folder without it is no recording.
pub(super) const MANIFEST: &str = "recording.json";
/// The weights of maps and readout.
pub(super) const MAPS: &str = "maps.safetensors";

/// The file of one shard.
pub(super) fn shard(number: usize) -> String {
    format!("shard-{number:05}.safetensors")
}

/// Whether a file is called as a shard is.
pub(super) fn is_shard(name: &str) -> bool {
    let number = name.strip_prefix("shard-").and_then(|rest| rest.strip_suffix(".safetensors"));
    number.is_some_and(|number| number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Arrays of a shard, besides those of states and attention.
pub(super) const NUMBERS: &str = "numbers";
pub(super) const LOSSES: &str = "losses";
pub(super) const SOURCE: &str = "source";
pub(super) const SOURCE_LENGTHS: &str = "source_lengths";
pub(super) const TARGET_LENGTHS: &str = "target_lengths";
pub(super) const FED: &str = "fed";
pub(super) const PREDICTED: &str = "predicted";
pub(super) const PREDICTED_KNOWN: &str = "predicted_known";
pub(super) const TARGET: &str = "target";
pub(super) const TARGET_KNOWN: &str = "target_known";
pub(super) const ATTENTION_KEPT: &str = "attention_kept";

/// The states of one stream.
pub(super) fn states(stream: &str) -> String {
    format!("states.{stream}")
}

/// The attention of one site.
pub(super) fn attention(site: usize) -> String {
    format!("attention.{site}")
}

/// The arrays of a shard that have one number a sentence.
pub(super) const PER_SENTENCE: [&str; 7] = [NUMBERS, LOSSES, SOURCE_LENGTHS, TARGET_LENGTHS, PREDICTED_KNOWN, TARGET_KNOWN, ATTENTION_KEPT];
