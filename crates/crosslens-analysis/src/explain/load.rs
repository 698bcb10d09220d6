//! Reads an explanation from disk.

use std::path::{Path, PathBuf};

use super::{Explained, Sample, Samples};
use crate::report::{REPORT_SCHEMA, Report};
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::{files, safetensors};
use crate::{N_PARTS, N_TERMS, Recorded, RecordingError, Token, Visible};

/// Largest report that is read.
const MAX_REPORT_BYTES: u64 = 256 << 20;

impl Report {
    /// Reads a report that [`Explained::save`] wrote.
    pub fn load(path: &Path) -> Result<Self, RecordingError> {
        let text = files::read_bounded(path, MAX_REPORT_BYTES)?;
        let damaged =
            |error: serde_json::Error| RecordingError::Damaged { path: path.to_owned(), what: format!("it is no report: {error}") };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        match value.get("schema").and_then(|schema| schema.as_str()) {
            Some(REPORT_SCHEMA) => serde_json::from_value(value).map_err(damaged),
            Some(other) => Err(RecordingError::Schema { path: path.to_owned(), found: other.to_owned(), known: REPORT_SCHEMA }),
            None => Err(RecordingError::Damaged { path: path.to_owned(), what: "it is no report: `schema` is missing".into() }),
        }
    }
}

impl Explained {
    /// Reads a report, and at most `n_samples` of the sentences beside it; none where it names no file for them.
    pub fn load(path: &Path, n_samples: usize) -> Result<Self, RecordingError> {
        let report = Report::load(path)?;
        let samples = match beside(path, &report)? {
            Some(file) => Samples::load(&file, &report, n_samples)?,
            None => Samples::default(),
        };
        Ok(Self { report, samples })
    }
}

/// The file of samples beside a report. A report says its name and nothing more: a path that leads elsewhere is refused.
pub(crate) fn beside(path: &Path, report: &Report) -> Result<Option<PathBuf>, RecordingError> {
    let Some(name) = &report.samples else { return Ok(None) };
    if Path::new(name).file_name().is_none_or(|only| only != name.as_str()) {
        let what = format!("`samples` must be the name of a file beside it, not `{name}`");
        return Err(RecordingError::Damaged { path: path.to_owned(), what });
    }
    Ok(Some(path.with_file_name(name)))
}

impl Samples {
    /// Reads at most `n_samples` sentences of a file beside a report; every shape is checked against the report and the tokens.
    pub fn load(path: &Path, report: &Report, n_samples: usize) -> Result<Self, RecordingError> {
        let arrays = safetensors::open(path)?;
        let reader = Reader { arrays: &arrays, report };
        let (n_found, n_sites) = (reader.json::<usize>("samples")?, reader.json::<usize>("sites")?);
        let (n_found, n_sites) = (n_found.unwrap_or(0), n_sites.unwrap_or(0));
        if n_sites != report.sites.len() {
            return Err(reader.damaged(format!("it has {n_sites} sites, its report {}", report.sites.len())));
        }
        let numbers: Vec<u64> = reader.json("numbers")?.unwrap_or_default();
        let losses: Vec<Option<f64>> = reader.json("losses")?.unwrap_or_default();
        let visible: Vec<String> = reader.json("visible")?.unwrap_or_default();
        let mut samples = Self {
            source: reader.json("source")?.unwrap_or_default(),
            target: reader.json("target")?.unwrap_or_default(),
            visible: visible.iter().map(|name| if name == "causal" { Visible::Causal } else { Visible::All }).collect(),
            ..Self::default()
        };
        for number in 0..n_found.min(n_samples) {
            let mut sample = reader.sample(number)?;
            sample.sentence.number = numbers.get(number).copied().unwrap_or(number as u64);
            sample.sentence.loss = losses.get(number).copied().flatten();
            samples.sentences.push(sample);
        }
        samples.averages = (0..n_sites).map(|site| reader.average(site)).collect::<Result<_, _>>()?;
        Ok(samples)
    }
}

struct Reader<'a> {
    arrays: &'a Arrays,
    report: &'a Report,
}

impl Reader<'_> {
    fn damaged(&self, what: String) -> RecordingError {
        RecordingError::Damaged { path: self.arrays.path().to_owned(), what }
    }

    /// What the header says under a name.
    fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RecordingError> {
        let read = |text| serde_json::from_str(text).map_err(|error| self.damaged(format!("`{name}` in its header: {error}")));
        self.arrays.metadata(name).map(read).transpose()
    }

    fn tokens(&self, name: &str) -> Result<Vec<Token>, RecordingError> {
        let [_] = self.arrays.shape(name, &[Dtype::U32])?;
        self.arrays.all(name)
    }

    fn floats<const AXES: usize>(&self, name: &str, shape: [u64; AXES]) -> Result<Vec<f32>, RecordingError> {
        self.arrays.expect(name, &[Dtype::F32], shape)?;
        self.arrays.all(name)
    }

    fn sample(&self, number: usize) -> Result<Sample, RecordingError> {
        let name = |what: &str| format!("samples.{number}.{what}");
        let optional = |what: &str| -> Result<Option<Vec<Token>>, RecordingError> {
            if self.arrays.has(&name(what)) { self.tokens(&name(what)).map(Some) } else { Ok(None) }
        };
        let sentence = Recorded {
            source: self.tokens(&name("source"))?,
            fed: self.tokens(&name("fed"))?,
            predicted: optional("predicted")?.unwrap_or_default(),
            target: optional("target")?,
            ..Recorded::default()
        };
        let mut sample = Sample {
            sentence,
            shapes: Vec::new(),
            attention: Vec::new(),
            pieces: Vec::new(),
            bias: Vec::new(),
            value_weighted: Vec::new(),
        };
        for (site, report) in self.report.sites.iter().enumerate() {
            let (source, target) = (sample.sentence.source.len(), sample.sentence.fed.len());
            let (n_queries, n_keys) = match report.kind.as_str() {
                "encoder-self" => (source, source),
                "decoder-self" => (target, target),
                _ => (target, source),
            };
            let (queries, keys) = (n_queries as u64, n_keys as u64);
            let n_pieces = if report.map == "additive" { N_PARTS } else { N_TERMS } as u64;
            let of = |what: &str| name(&format!("sites.{site}.{what}"));
            sample.shapes.push((n_queries, n_keys));
            sample.attention.push(self.floats(&of("attention"), [queries, keys])?);
            sample.value_weighted.push(self.floats(&of("value_weighted"), [queries, keys])?);
            sample.pieces.push(self.floats(&of("pieces"), [n_pieces, queries, keys])?);
            let has_bias = self.arrays.has(&of("bias"));
            sample.bias.push(if has_bias { self.floats(&of("bias"), [queries, keys])? } else { Vec::new() });
        }
        Ok(sample)
    }

    fn average(&self, site: usize) -> Result<Vec<Vec<f64>>, RecordingError> {
        let name = format!("sites.{site}.average");
        let [_, n_keys] = self.arrays.shape(&name, &[Dtype::F32])?;
        let values: Vec<f32> = self.arrays.all(&name)?;
        Ok(values.chunks(n_keys.max(1) as usize).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect())
    }
}
