//! How attention forms while a network trains: one line of `timeline.jsonl` for every record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::report::{Report, Sides};
use crate::{RecordingError, replace_file};

/// Longest `timeline.jsonl` that is read.
const MAX_BYTES: u64 = 64 << 20;

/// The course of training, on the same sentences all along.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// In the order of steps.
    pub points: Vec<TimelinePoint>,
}

/// What was found after some updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelinePoint {
    /// Updates made.
    pub step: u64,
    /// Free-running cross-entropy, nats.
    pub loss: Option<f64>,
    /// Share of steps right.
    pub word_accuracy: Option<f64>,
    /// Share of sentences right.
    pub phrase_accuracy: Option<f64>,
    /// By attention head.
    pub sites: Vec<TimelineSite>,
}

/// One head after some updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineSite {
    /// `cross`, `encoder-self` or `decoder-self`.
    pub kind: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// Centred shares, rows by the query's part, columns by the key's; null for additive maps and where the error is too large.
    pub centred: Option<[[f64; 3]; 3]>,
    /// Centred shares by part of the query and part of the key, for additive maps.
    pub parts: Option<Sides<[f64; 3]>>,
    /// Total variation of rebuilt attention (`temporal`, `temporal+input`, `uniform`, …) from the true one.
    pub tv: BTreeMap<String, f64>,
}

/// Why a timeline cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// The file cannot be opened.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// The file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line is no record.
    #[error("`{path}`, line {line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl TimelinePoint {
    /// What an explanation after `step` updates says.
    pub fn of(step: u64, report: &Report) -> Self {
        let sites = report.sites.iter().map(|site| {
            let shares = site.shares.as_ref();
            TimelineSite {
                kind: site.kind.clone(),
                layer: site.layer,
                head: site.head,
                centred: shares.and_then(|shares| shares.tables.get("centred").copied()),
                parts: shares.and_then(|shares| shares.parts.get("centred").copied()),
                tv: site.rebuilt.iter().map(|(name, rebuilt)| (name.clone(), rebuilt.tv)).collect(),
            }
        });
        let task = &report.task;
        Self { step, loss: task.loss, word_accuracy: task.word_accuracy, phrase_accuracy: task.phrase_accuracy, sites: sites.collect() }
    }
}

impl Timeline {
    /// Reads a file; nothing where there is none.
    pub fn load(path: &Path) -> Result<Self, TimelineError> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = crate::storage::files::read_bounded(path, MAX_BYTES)?;
        let bad = |line, what: String| TimelineError::Line { path: path.to_owned(), line, what };
        let text = String::from_utf8(bytes).map_err(|_| bad(1, "it is not UTF-8 text".into()))?;
        let mut points: Vec<TimelinePoint> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let point: TimelinePoint = serde_json::from_str(line).map_err(|error| bad(number + 1, error.to_string()))?;
            if points.last().is_some_and(|last| last.step >= point.step) {
                return Err(bad(number + 1, format!("step {} is not after the one before", point.step)));
            }
            points.push(point);
        }
        Ok(Self { points })
    }

    /// Writes all of it; the file is whole or as it was.
    pub fn save(&self, path: &Path) -> Result<(), TimelineError> {
        let mut text = Vec::new();
        for point in &self.points {
            serde_json::to_writer(&mut text, point).expect("a record has string keys and plain numbers");
            text.push(b'\n');
        }
        replace_file(path, |file| file.write_all(&text)).map_err(|source| TimelineError::Write { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: u64) -> TimelinePoint {
        let tv = BTreeMap::from([("temporal".to_owned(), 0.1 + step as f64)]);
        let site = TimelineSite { kind: "cross".into(), layer: 0, head: 0, centred: Some([[1.0 / 3.0; 3]; 3]), parts: None, tv };
        TimelinePoint { step, loss: Some(0.7), word_accuracy: Some(0.5), phrase_accuracy: None, sites: vec![site] }
    }

    #[test]
    fn a_timeline_survives_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("timeline.jsonl");
        assert_eq!(Timeline::load(&path).expect("no file is no record"), Timeline::default());
        let timeline = Timeline { points: vec![point(0), point(20)] };
        timeline.save(&path).expect("it can be written");
        assert_eq!(Timeline::load(&path).expect("and read"), timeline);
    }

    #[test]
    fn a_broken_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("timeline.jsonl");
        Timeline { points: vec![point(20), point(10)] }.save(&path).expect("it can be written");
        let message = Timeline::load(&path).expect_err("steps must ascend").to_string();
        assert!(message.contains("line 2: step 10"), "{message}");
        std::fs::write(&path, "{\"step\": 3").expect("it can be written");
        assert!(Timeline::load(&path).expect_err("half a line").to_string().contains("line 1"));
    }
}
