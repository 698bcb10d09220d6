//! How attention formed while a network trained: what an explanation found at each checkpoint.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::explain::Samples;
use crate::report::{Report, SiteReport};
use crate::storage::files;
use crate::{N_TERMS, RecordingError};

/// The schema this version writes.
pub const TIMELINE_SCHEMA: &str = "crosslens-timeline/1";

/// Largest file that is read.
const MAX_BYTES: u64 = 256 << 20;

/// Explanations at checkpoints, in the order of their steps. `docs/format.md` describes the JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// [`TIMELINE_SCHEMA`].
    pub schema: String,
    /// By checkpoint.
    pub points: Vec<TimelinePoint>,
}

impl Timeline {
    /// Of these checkpoints.
    pub fn new(points: Vec<TimelinePoint>) -> Self {
        Self { schema: TIMELINE_SCHEMA.into(), points }
    }

    /// Reads a `timeline.json`; no checkpoint where there is no file.
    pub fn load(path: &Path) -> Result<Self, RecordingError> {
        if !path.exists() {
            return Ok(Self::new(Vec::new()));
        }
        let text = files::read_bounded(path, MAX_BYTES)?;
        let timeline: Self =
            serde_json::from_slice(&text).map_err(|error| RecordingError::Damaged { path: path.to_owned(), what: error.to_string() })?;
        if timeline.schema != TIMELINE_SCHEMA {
            return Err(RecordingError::Schema { path: path.to_owned(), found: timeline.schema, known: TIMELINE_SCHEMA });
        }
        if let Some(pair) = timeline.points.windows(2).find(|pair| pair[0].step >= pair[1].step) {
            let what = format!("step {} does not come after step {}", pair[1].step, pair[0].step);
            return Err(RecordingError::Damaged { path: path.to_owned(), what });
        }
        Ok(timeline)
    }

    /// Writes it, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), RecordingError> {
        let text = serde_json::to_vec(self).expect("a timeline has string keys");
        files::write_atomically(path, |file| file.write_all(&text))
    }
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelinePoint {
    /// Updates made.
    pub step: u64,
    /// Sentences that it was explained on; null in files of versions that did not say.
    #[serde(default)]
    pub sentences: Option<u64>,
    /// Mean cross-entropy, nats, if known.
    pub loss: Option<f64>,
    /// Share of steps right, if known.
    pub word_accuracy: Option<f64>,
    /// Share of sentences right, if known.
    pub phrase_accuracy: Option<f64>,
    /// By attention head, in the order of the report's sites.
    pub sites: Vec<SitePoint>,
}

/// One attention head at one checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SitePoint {
    /// `cross`, `encoder-self` or `decoder-self`.
    pub kind: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// Centred shares: nine terms, `3 × part of the query + part of the key`, or six parts, the query's first; null where they are not exact.
    pub shares: Option<Vec<f64>>,
    /// Total variation between rebuilt attention (`temporal`, `temporal+input`, `uniform`, …) and the true one.
    pub tv: BTreeMap<String, f64>,
    /// Share of steps at which attention rebuilt from temporal parts alone looks at the same key.
    pub temporal_argmax: Option<f64>,
    /// The verdict's label.
    pub verdict: String,
    /// The average attention, `[query step, key step]`; null to keep files small.
    pub attention: Option<Vec<Vec<f32>>>,
}

impl TimelinePoint {
    /// What an explanation found after so many updates; with the average attention where samples are given.
    pub fn of(step: u64, report: &Report, samples: Option<&Samples>) -> Self {
        let average = |site: usize| {
            let rows = samples?.averages.get(site)?;
            // Four digits are all that a picture shows.
            Some(rows.iter().map(|row| row.iter().map(|&x| ((x * 1e4).round() / 1e4) as f32).collect()).collect())
        };
        Self {
            step,
            sentences: Some(report.corpus.pairs),
            loss: report.task.loss,
            word_accuracy: report.task.word_accuracy,
            phrase_accuracy: report.task.phrase_accuracy,
            sites: report.sites.iter().enumerate().map(|(number, site)| SitePoint::of(site, average(number))).collect(),
        }
    }
}

impl SitePoint {
    /// The share of temporal × temporal; of an additive map that of both temporal parts.
    pub fn temporal(&self) -> Option<f64> {
        self.totals().map(|[position, ..]| position)
    }

    /// The shares of what both sides owe to position and to the token alone, and the rest.
    pub fn totals(&self) -> Option<[f64; 3]> {
        let [position, token] = match self.shares.as_deref()? {
            shares if shares.len() == N_TERMS => [shares[0], shares[4]],
            [query_position, query_token, _, position, token, _] => [query_position + position, query_token + token],
            _ => return None,
        };
        Some([position, token, 1.0 - position - token])
    }

    fn of(site: &SiteReport, attention: Option<Vec<Vec<f32>>>) -> Self {
        let shares = site.shares.as_ref().and_then(|shares| match shares.parts.get("centred") {
            Some(parts) => Some([parts.query, parts.key].concat()),
            None => shares.tables.get("centred").map(|table| table.concat()),
        });
        Self {
            kind: site.kind.clone(),
            layer: site.layer,
            head: site.head,
            shares,
            tv: site.rebuilt.iter().map(|(name, rebuilt)| (name.clone(), rebuilt.tv)).collect(),
            temporal_argmax: site.rebuilt.get("temporal").map(|rebuilt| rebuilt.argmax),
            verdict: site.verdict.label.clone(),
            attention,
        }
    }
}

/// One evaluation during training, for the curves: a line of a run's `metrics.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingPoint {
    /// Updates made.
    pub step: u64,
    /// Mean cross-entropy of the training batches.
    pub train_loss: Option<f64>,
    /// Cross-entropy on fresh sentences.
    pub loss: Option<f64>,
    /// Share of steps right.
    pub word_accuracy: Option<f64>,
    /// Share of sentences right.
    pub phrase_accuracy: Option<f64>,
}
