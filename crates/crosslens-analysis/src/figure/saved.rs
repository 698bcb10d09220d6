//! A report read back from its files, each taken as hostile until checked.

use std::path::{Path, PathBuf};

use super::FigureError;
use crate::explain::{SampleFile, TokenNames, beside, n_pieces, shape, sides};
use crate::report::{Report, SiteReport};
use crate::{Side, Token};

/// Most cells of a matrix that a figure shows.
const MAX_CELLS: u64 = 40_000;

/// A report and the file of single sentences beside it.
#[derive(Debug)]
pub struct SavedReport {
    /// The report.
    pub report: Report,
    path: PathBuf,
}

/// The sentences of a report, read one at a time.
#[derive(Debug)]
pub(crate) struct SavedSamples(SampleFile);

/// Numbers in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) n_rows: usize,
    pub(crate) n_columns: usize,
    /// `[row, column]`.
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    fn of([n_rows, n_columns]: [u64; 2], values: Vec<f32>) -> Self {
        Self { n_rows: n_rows as usize, n_columns: n_columns as usize, values }
    }

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
        Ok(SavedSamples(SampleFile::open(&path, &self.report)?))
    }
}

impl SavedSamples {
    pub(crate) fn n_samples(&self) -> usize {
        self.0.n_samples
    }

    /// The average attention of a site.
    pub(crate) fn average(&self, site: usize) -> Result<Matrix, FigureError> {
        let (name, shape) = self.0.average(site)?;
        check_size(shape)?;
        Ok(Matrix::of(shape, self.finite(&name, shape)?))
    }

    /// One sentence at one site.
    pub(crate) fn sample(&self, sample: usize, number: usize, site: &SiteReport) -> Result<SavedSample, FigureError> {
        if sample >= self.n_samples() {
            return Err(FigureError::UnknownSample { asked: sample, n_samples: self.n_samples() });
        }
        let sentence = self.0.sentence(sample)?;
        let shape = shape(site, &sentence);
        check_size(shape)?;
        let name = |what: &str| format!("samples.{sample}.sites.{number}.{what}");
        let attention = self.finite(&name("attention"), shape)?;
        let pieces = self.finite(&name("pieces"), [n_pieces(site), shape[0], shape[1]])?;
        let pieces = pieces.chunks_exact(attention.len().max(1)).map(|piece| Matrix::of(shape, piece.to_vec())).collect();

        let named =
            |tokens: &[Token], names: &TokenNames| -> Vec<String> { tokens.iter().map(|&token| names.name(token).into_owned()).collect() };
        let tokens = |side: Side| match side {
            Side::Source => named(&sentence.source, &self.0.source),
            Side::Target => named(&sentence.fed, &self.0.target),
        };
        let (query, key) = sides(site);
        let is_written = query == Side::Target && sentence.predicted.len() == sentence.fed.len();
        let wrote = if is_written { named(&sentence.predicted, &self.0.target) } else { Vec::new() };
        Ok(SavedSample { rows: tokens(query), wrote, columns: tokens(key), attention: Matrix::of(shape, attention), pieces })
    }

    /// Numbers of an array of this shape, all of them finite.
    fn finite<const AXES: usize>(&self, name: &str, shape: [u64; AXES]) -> Result<Vec<f32>, FigureError> {
        let values = self.0.floats(name, shape)?;
        let is_finite = values.iter().all(|value| value.is_finite());
        if is_finite { Ok(values) } else { Err(self.0.damaged(format!("`{name}` holds a number that is not finite")).into()) }
    }
}

fn check_size([n_rows, n_columns]: [u64; 2]) -> Result<(), FigureError> {
    let fits = n_rows.checked_mul(n_columns).is_some_and(|cells| cells <= MAX_CELLS);
    if fits { Ok(()) } else { Err(FigureError::TooLarge { n_rows, n_columns, most: MAX_CELLS }) }
}
