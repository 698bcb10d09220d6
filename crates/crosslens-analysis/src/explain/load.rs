//! Reads an explanation from disk.

use std::path::{Path, PathBuf};

use super::scene_file::Outline;
use super::{Explained, Sample, Samples, TokenNames};
use crate::report::{REPORT_SCHEMA, Report, SiteReport};
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::{files, safetensors};
use crate::{N_PARTS, N_TERMS, Recorded, RecordingError, Side, Token, Visible};

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
        Ok(Self { report, samples, totals: None })
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
        let file = SampleFile::open(path, report)?;
        let numbers: Vec<u64> = file.json("numbers")?;
        let losses: Vec<Option<f64>> = file.json("losses")?;
        let visible: Vec<String> = file.json("visible")?;
        let mut distances: Vec<Vec<f64>> = file.json("distances")?;
        distances.truncate(file.n_samples.min(n_samples));
        let mut scenes = file.json::<Vec<Option<Outline>>>("scenes")?.into_iter();
        let mut sentences = Vec::new();
        for number in 0..file.n_samples.min(n_samples) {
            let mut sample = file.sample(number, &report.sites)?;
            sample.sentence.number = numbers.get(number).copied().unwrap_or(number as u64);
            sample.sentence.loss = losses.get(number).copied().flatten();
            if let Some(Some(outline)) = scenes.next() {
                sample.scene = Some(file.scene(number, outline, &sample.sentence)?);
            }
            sentences.push(sample);
        }
        let codes = file.codes(&sentences)?;
        let average = |site: usize| -> Result<Vec<Vec<f64>>, RecordingError> {
            let (name, shape) = file.average(site)?;
            let values = file.floats(&name, shape)?;
            Ok(values.chunks(shape[1].max(1) as usize).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect())
        };
        Ok(Self {
            sentences,
            averages: (0..report.sites.len()).map(average).collect::<Result<_, _>>()?,
            visible: visible.iter().map(|name| if name == "causal" { Visible::Causal } else { Visible::All }).collect(),
            codes,
            distances,
            source: file.source,
            target: file.target,
        })
    }
}

/// The file of sentences beside a report, read a piece at a time.
#[derive(Debug)]
pub(crate) struct SampleFile {
    pub(super) arrays: Arrays,
    pub(crate) n_samples: usize,
    pub(crate) source: TokenNames,
    pub(crate) target: TokenNames,
}

impl SampleFile {
    pub(crate) fn open(path: &Path, report: &Report) -> Result<Self, RecordingError> {
        let arrays = safetensors::open(path)?;
        let mut file = Self { arrays, n_samples: 0, source: TokenNames::default(), target: TokenNames::default() };
        let n_sites: usize = file.json("sites")?;
        if n_sites != report.sites.len() {
            return Err(file.damaged(format!("it has {n_sites} sites, its report {}", report.sites.len())));
        }
        (file.n_samples, file.source, file.target) = (file.json("samples")?, file.json("source")?, file.json("target")?);
        Ok(file)
    }

    pub(crate) fn damaged(&self, what: String) -> RecordingError {
        RecordingError::Damaged { path: self.arrays.path().to_owned(), what }
    }

    /// What the header says under a name.
    pub(super) fn json<T: serde::de::DeserializeOwned + Default>(&self, name: &str) -> Result<T, RecordingError> {
        let Some(text) = self.arrays.metadata(name) else { return Ok(T::default()) };
        serde_json::from_str(text).map_err(|error| self.damaged(format!("`{name}` in its header: {error}")))
    }

    fn tokens(&self, name: &str) -> Result<Vec<Token>, RecordingError> {
        let [_] = self.arrays.shape(name, &[Dtype::U32])?;
        self.arrays.all(name)
    }

    pub(crate) fn floats<const AXES: usize>(&self, name: &str, shape: [u64; AXES]) -> Result<Vec<f32>, RecordingError> {
        self.arrays.expect(name, &[Dtype::F32], shape)?;
        self.arrays.all(name)
    }

    /// The name and the shape of a site's average attention.
    pub(crate) fn average(&self, site: usize) -> Result<(String, [u64; 2]), RecordingError> {
        let name = format!("sites.{site}.average");
        let shape = self.arrays.shape(&name, &[Dtype::F32])?;
        Ok((name, shape))
    }

    /// A sentence without its states.
    pub(crate) fn sentence(&self, number: usize) -> Result<Recorded, RecordingError> {
        let name = |what: &str| format!("samples.{number}.{what}");
        let optional = |what: &str| -> Result<Option<Vec<Token>>, RecordingError> {
            if self.arrays.has(&name(what)) { self.tokens(&name(what)).map(Some) } else { Ok(None) }
        };
        Ok(Recorded {
            source: self.tokens(&name("source"))?,
            fed: self.tokens(&name("fed"))?,
            predicted: optional("predicted")?.unwrap_or_default(),
            target: optional("target")?,
            ..Recorded::default()
        })
    }

    fn sample(&self, number: usize, sites: &[SiteReport]) -> Result<Sample, RecordingError> {
        let mut sample = Sample {
            sentence: self.sentence(number)?,
            shapes: Vec::new(),
            attention: Vec::new(),
            pieces: Vec::new(),
            bias: Vec::new(),
            value_weighted: Vec::new(),
            scene: None,
        };
        for (site, report) in sites.iter().enumerate() {
            let [queries, keys] = shape(report, &sample.sentence);
            let of = |what: &str| format!("samples.{number}.sites.{site}.{what}");
            sample.shapes.push((queries as usize, keys as usize));
            sample.attention.push(self.floats(&of("attention"), [queries, keys])?);
            sample.pieces.push(self.floats(&of("pieces"), [n_pieces(report), queries, keys])?);
            let optional = |what: &str| {
                if self.arrays.has(&of(what)) { self.floats(&of(what), [queries, keys]) } else { Ok(Vec::new()) }
            };
            sample.value_weighted.push(optional("value_weighted")?);
            sample.bias.push(optional("bias")?);
        }
        Ok(sample)
    }
}

/// Whose tokens ask at a site, and whose are asked.
pub(crate) fn sides(site: &SiteReport) -> (Side, Side) {
    match site.kind.as_str() {
        "encoder-self" => (Side::Source, Side::Source),
        "decoder-self" => (Side::Target, Side::Target),
        _ => (Side::Target, Side::Source),
    }
}

/// Query steps and key steps of a sentence at a site.
pub(crate) fn shape(site: &SiteReport, sentence: &Recorded) -> [u64; 2] {
    let (query, key) = sides(site);
    [query, key].map(|side| if side == Side::Source { sentence.source.len() } else { sentence.fed.len() } as u64)
}

/// Terms or parts of a score.
pub(crate) fn n_pieces(site: &SiteReport) -> u64 {
    (if site.map == "additive" { N_PARTS } else { N_TERMS }) as u64
}
