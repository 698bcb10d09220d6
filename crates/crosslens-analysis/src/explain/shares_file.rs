//! Totals of an explanation on disk, so that parts of a corpus are explained anywhere and put together: `X.shares.jsonl`.
//!
//! Three lines of JSON (what they belong to, average attention, share totals) and, in `X.shares.sums.safetensors` beside them, the sums of
//! the sentences explained.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FirstTotals, Options, Streamed, Totals, TotalsError};
use crate::storage::files;
use crate::{Description, MAX_STATES, Outcome, RecordingError, Stats, StatsError, Sums};

const SCHEMA: &str = "crosslens-shares/2";
/// How the names of these files end: what is before tells those of two parts apart, and their sums too.
const ENDING: &str = ".shares.jsonl";
/// Largest file that is read: some hundred heads and a thousand steps.
const MAX_SHARES_BYTES: u64 = 512 << 20;

/// Why totals on disk cannot be written, read or added up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharesError {
    /// The file of totals.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// The sums beside it.
    #[error(transparent)]
    Sums(#[from] StatsError),
    /// Totals that are none, or of other things.
    #[error("`{path}`: {source}")]
    Totals {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: TotalsError,
    },
    /// Made for another model or in another way.
    #[error("`{path}` was made with {what} {found}, but here it is {expected}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// As in the file.
        found: String,
        /// As it is here.
        expected: String,
    },
    /// A name from which that of the sums beside it does not follow.
    #[error("`{path}` must be called X{ENDING}: the sums beside it become X.shares.sums.safetensors")]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// A part and its copy.
    #[error("`{path}` holds the sentences of `{other}`, which would count twice")]
    Twice {
        /// The file.
        path: PathBuf,
        /// The one before.
        other: PathBuf,
    },
    /// No file was named.
    #[error("there are no totals to add up")]
    None,
}

/// The first line: totals add up where all of it agrees, but for the sums.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    model_hash: String,
    /// How scores were split and shares counted.
    options: String,
    /// The sums that components were fitted from.
    components: String,
    /// Those beside this file.
    sums: String,
}

impl Header {
    fn new(description: &Description, given: &[Sums], options: &Options, own: &[Sums]) -> Self {
        let Options { estimator, shrinkage, k, bootstrap, step_intervals, seed, subsets, .. } = options;
        let subsets: Vec<String> = subsets.iter().map(ToString::to_string).collect();
        let by_step = if *step_intervals { ", by step too" } else { "" };
        let seed = if *bootstrap > 0 { format!("{by_step}, seed {seed}") } else { String::new() };
        Self {
            schema: SCHEMA.to_owned(),
            model_hash: description.model_hash.clone(),
            options: format!(
                "estimator {}, shrinkage {shrinkage:?}, k {k}, {bootstrap} resamples{seed}, subsets [{}]",
                estimator.name(),
                subsets.join(" ")
            ),
            components: told_apart(given),
            sums: told_apart(own),
        }
    }
}

/// Tells sums apart: by stream how many states they are of, and the bits of their squares.
fn told_apart(sums: &[Sums]) -> String {
    let one = |sums: &Sums| format!("{}:{:016x}", sums.n_states(), sums.squares().to_bits());
    sums.iter().map(one).collect::<Vec<_>>().join(" ")
}

impl Totals {
    /// Fails unless totals can be saved under this name.
    pub fn check_name(path: &Path) -> Result<(), SharesError> {
        let is_one = path.to_string_lossy().ends_with(ENDING);
        if is_one { Ok(()) } else { Err(SharesError::Name { path: path.to_owned() }) }
    }

    /// Writes them, made under the components of `given`. The lines are written last: without them the sums are nothing.
    pub fn save(&self, description: &Description, given: &[Sums], options: &Options, path: &Path) -> Result<(), SharesError> {
        Self::check_name(path)?;
        if self.first.held_out.is_some() {
            let source = TotalsError::Differ { what: "whether sentences are held out" };
            return Err(SharesError::Totals { path: path.to_owned(), source });
        }
        let stats = self.first.stats(description);
        let own: Vec<Sums> = stats.streams.iter().map(|stream| stream.sums.clone()).collect();
        let header = serde_json::to_string(&Header::new(description, given, options, &own)).expect("text only");
        let lines = [header, self.first.averages_json(), self.second.to_json()].join("\n") + "\n";
        refuse_larger(path, lines.len() as u64, MAX_SHARES_BYTES)?;
        stats.save(&sums_beside(path))?;
        Ok(files::write_atomically(path, |file| file.write_all(lines.as_bytes()))?)
    }

    /// Reads those of parts of a corpus and adds them up in the order of the files.
    pub fn load_merged(
        description: &Description,
        given: &[Sums],
        options: &Options,
        paths: &[impl AsRef<Path>],
    ) -> Result<Self, SharesError> {
        let mut merged: Option<Self> = None;
        let mut seen: Vec<(String, &Path)> = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let (totals, sums) = load(description, given, options, path)?;
            if let Some((_, other)) = seen.iter().find(|(known, _)| *known == sums) {
                return Err(SharesError::Twice { path: path.to_owned(), other: (*other).to_owned() });
            }
            seen.push((sums, path));
            let Some(all) = &mut merged else {
                merged = Some(totals);
                continue;
            };
            let differ = |source| SharesError::Totals { path: path.to_owned(), source };
            all.first.merge(&totals.first).map_err(differ)?;
            all.second.merge(&totals.second).map_err(differ)?;
        }
        merged.ok_or(SharesError::None)
    }
}

/// What could not be read again is not written.
fn refuse_larger(path: &Path, bytes: u64, most: u64) -> Result<(), RecordingError> {
    if bytes <= most { Ok(()) } else { Err(RecordingError::TooLarge { path: path.to_owned(), what: "text".into(), bytes, most }) }
}

/// The totals of one part, and what tells its sums from others.
fn load(description: &Description, given: &[Sums], options: &Options, path: &Path) -> Result<(Totals, String), SharesError> {
    Totals::check_name(path)?;
    let unreadable = |what: String| SharesError::Totals { path: path.to_owned(), source: TotalsError::Unreadable { what } };
    let text = String::from_utf8(files::read_bounded(path, MAX_SHARES_BYTES)?).map_err(|_| unreadable("they are no text".into()))?;
    let mut lines = text.lines();
    let (Some(header), Some(averages), Some(second), None) = (lines.next(), lines.next(), lines.next(), lines.next()) else {
        return Err(unreadable("they are not three lines".into()));
    };
    let header: Header = serde_json::from_str(header).map_err(|error| unreadable(error.to_string()))?;
    let stats = Stats::load(&sums_beside(path))?;
    let own: Vec<Sums> = stats.streams.iter().map(|stream| stream.sums.clone()).collect();
    let expected = Header::new(description, given, options, &own);
    let sums = expected.sums.clone();
    for (what, found, expected) in [
        ("the schema", header.schema, expected.schema),
        ("the model", header.model_hash, expected.model_hash),
        ("the options", header.options, expected.options),
        ("components of the sums", header.components, expected.components),
        ("the sums beside it", header.sums, expected.sums),
    ] {
        if found != expected {
            return Err(SharesError::Other { path: path.to_owned(), what, found, expected });
        }
    }
    let differ = |source| SharesError::Totals { path: path.to_owned(), source };
    let first = FirstTotals::from_parts(description, stats, None, averages).map_err(differ)?;
    let second = Streamed { description, options }.second_from_json(second).map_err(differ)?;
    let Outcome { words, right_words, phrases, right_phrases, .. } = second.outcome;
    let of_sites = second.sites.iter().map(|site| site.entropy.1).max().unwrap_or(0);
    let counts = [first.n_fitted, second.n_sentences, of_sites];
    if counts.into_iter().chain([words, right_words, phrases, right_phrases].map(|count| count as u64)).any(|count| count > MAX_STATES) {
        return Err(unreadable("they count more than 2^53 sentences or words".into()));
    }
    Ok((Totals { first, second }, sums))
}

/// Where the sums of the sentences explained are. Not `*.stats.safetensors`, lest they be merged with those of a fit.
fn sums_beside(path: &Path) -> PathBuf {
    path.with_extension("sums.safetensors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_too_large_to_be_read_are_not_written() {
        assert!(refuse_larger(Path::new("x.shares.jsonl"), 9, 9).is_ok());
        let message = refuse_larger(Path::new("x.shares.jsonl"), 10, 9).expect_err("one byte more").to_string();
        assert!(message.contains("`x.shares.jsonl`") && message.contains("at most 9 are read"), "{message}");
    }
}
