//! A report read back from its files, each taken as hostile until checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::FigureError;
use crate::explain::{TokenNames, beside};
use crate::report::{Report, SiteReport};
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::safetensors;
use crate::{RecordingError, Side, Token};

/// Most cells of a matrix that a figure shows.
const MAX_CELLS: u64 = 40_000;
/// Most tokens of a sentence that are read.
const MAX_TOKENS: u64 = 1 << 20;

/// A report and the file of single sentences beside it.
#[derive(Debug)]
pub struct SavedReport {
    /// The report.
    pub report: Report,
    path: PathBuf,
}

/// The sentences of a report, read one at a time.
#[derive(Debug)]
pub(crate) struct SavedSamples {
    arrays: Arrays,
    n_samples: usize,
    names: BTreeMap<&'static str, TokenNames>,
}

/// Numbers in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) n_rows: usize,
    pub(crate) n_columns: usize,
    /// `[row, column]`.
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        f64::from(self.values[row * self.n_columns + column])
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.n_columns.max(1))
    }
}

/// One sentence at one site.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedSample {
    /// What the decoder read; what the encoder read, if that asks itself.
    pub(crate) rows: Vec<String>,
    /// What the decoder wrote; empty where that is not known, and for the encoder.
    pub(crate) wrote: Vec<String>,
    pub(crate) columns: Vec<String>,
    pub(crate) attention: Matrix,
    /// Nine terms or six parts.
    pub(crate) pieces: Vec<Matrix>,
}

/// Whose tokens ask and whose are asked.
pub(crate) fn sides(site: &SiteReport) -> (Side, Side) {
    match site.kind.as_str() {
        "encoder-self" => (Side::Source, Side::Source),
        "decoder-self" => (Side::Target, Side::Target),
        _ => (Side::Target, Side::Source),
    }
}

impl SavedReport {
    /// Reads a report written by `crosslens explain --save`.
    pub fn open(path: &Path) -> Result<Self, FigureError> {
        Ok(Self { report: Report::load(path).map_err(FigureError::NoReport)?, path: path.to_owned() })
    }

    /// A report in hand, whose samples lie beside `path`.
    pub fn of(report: Report, path: &Path) -> Self {
        Self { report, path: path.to_owned() }
    }

    /// Opens the file of single sentences.
    pub(crate) fn samples(&self) -> Result<SavedSamples, FigureError> {
        let Some(path) = beside(&self.path, &self.report).map_err(FigureError::NoReport)? else {
            return Err(FigureError::NoSamples { report: self.path.clone() });
        };
        if !path.exists() {
            return Err(FigureError::LostSamples { report: self.path.clone(), path });
        }
        SavedSamples::open(&path, self.report.sites.len())
    }
}

impl SavedSamples {
    fn open(path: &Path, n_sites: usize) -> Result<Self, FigureError> {
        let arrays = safetensors::open(path)?;
        let damaged = |what: String| RecordingError::Damaged { path: path.to_owned(), what };
        let count = |name: &str| -> Result<usize, RecordingError> {
            let text = arrays.metadata(name).ok_or_else(|| damaged(format!("its header does not count `{name}`")))?;
            text.parse().map_err(|_| damaged(format!("its header counts `{name}` with what is no number")))
        };
        let (n_samples, sites) = (count("samples")?, count("sites")?);
        if sites != n_sites {
            return Err(damaged(format!("it is of {sites} sites, the report of {n_sites}")).into());
        }
        let mut names = BTreeMap::new();
        for side in ["source", "target"] {
            if let Some(text) = arrays.metadata(side) {
                let known = serde_json::from_str(text).map_err(|error| damaged(format!("`{side}` in its header: {error}")))?;
                names.insert(side, known);
            }
        }
        Ok(Self { arrays, n_samples, names })
    }

    pub(crate) fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The average attention of a site.
    pub(crate) fn average(&self, site: usize) -> Result<Matrix, FigureError> {
        let name = format!("sites.{site}.average");
        let shape = self.arrays.shape(&name, &[Dtype::F32])?;
        self.matrix(&name, shape)
    }

    /// One sentence at one site.
    pub(crate) fn sample(&self, sample: usize, number: usize, site: &SiteReport) -> Result<SavedSample, FigureError> {
        if sample >= self.n_samples {
            return Err(FigureError::UnknownSample { asked: sample, n_samples: self.n_samples });
        }
        let (query, key) = sides(site);
        let (rows, columns) = (self.tokens(sample, query)?, self.tokens(sample, key)?);
        let shape = [rows.len() as u64, columns.len() as u64];
        let name = |what: &str| format!("samples.{sample}.sites.{number}.{what}");
        self.arrays.expect(&name("attention"), &[Dtype::F32], shape)?;
        let attention = self.matrix(&name("attention"), shape)?;
        let pieces = name("pieces");
        let [n_pieces, ..]: [u64; 3] = self.arrays.shape(&pieces, &[Dtype::F32])?;
        let expected = if site.map == "additive" { crate::N_PARTS } else { crate::N_TERMS } as u64;
        self.arrays.expect(&pieces, &[Dtype::F32], [expected, shape[0], shape[1]])?;
        let mut numbers = self.arrays.numbers(&pieces, 0)?;
        let mut all = Vec::new();
        for _ in 0..n_pieces {
            let values = numbers.take(shape[0] * shape[1])?;
            all.push(self.checked(&pieces, Matrix { n_rows: rows.len(), n_columns: columns.len(), values })?);
        }
        let wrote = if query == Side::Target { self.wrote(sample, rows.len())? } else { Vec::new() };
        Ok(SavedSample { rows, wrote, columns, attention, pieces: all })
    }

    fn matrix(&self, name: &str, [n_rows, n_columns]: [u64; 2]) -> Result<Matrix, FigureError> {
        let cells = n_rows.checked_mul(n_columns).filter(|&cells| cells <= MAX_CELLS);
        if cells.is_none() {
            return Err(FigureError::TooLarge { n_rows, n_columns, most: MAX_CELLS });
        }
        let values = self.arrays.all(name)?;
        self.checked(name, Matrix { n_rows: n_rows as usize, n_columns: n_columns as usize, values })
    }

    /// Refuses a matrix that holds what is no number.
    fn checked(&self, name: &str, matrix: Matrix) -> Result<Matrix, FigureError> {
        if matrix.values.iter().all(|value| value.is_finite()) {
            return Ok(matrix);
        }
        let what = format!("`{name}` holds a number that is not finite");
        Err(RecordingError::Damaged { path: self.arrays.path().to_owned(), what }.into())
    }

    /// The tokens of a sentence by name.
    fn tokens(&self, sample: usize, side: Side) -> Result<Vec<String>, FigureError> {
        let (what, names) = match side {
            Side::Source => ("source", "source"),
            Side::Target => ("fed", "target"),
        };
        self.list(&format!("samples.{sample}.{what}"), names)
    }

    /// What the decoder wrote; nothing where that is not known.
    fn wrote(&self, sample: usize, n_steps: usize) -> Result<Vec<String>, FigureError> {
        let name = format!("samples.{sample}.predicted");
        let wrote = if self.arrays.has(&name) { self.list(&name, "target")? } else { Vec::new() };
        Ok(if wrote.len() == n_steps { wrote } else { Vec::new() })
    }

    fn list(&self, name: &str, names: &str) -> Result<Vec<String>, FigureError> {
        let [n_tokens] = self.arrays.shape(name, &[Dtype::U32])?;
        if n_tokens > MAX_TOKENS {
            return Err(FigureError::TooLarge { n_rows: n_tokens, n_columns: 1, most: MAX_TOKENS });
        }
        let tokens: Vec<Token> = self.arrays.all(name)?;
        let nameless = TokenNames::default();
        let names = self.names.get(names).unwrap_or(&nameless);
        Ok(tokens.iter().map(|&token| names.name(token).into_owned()).collect())
    }
}
