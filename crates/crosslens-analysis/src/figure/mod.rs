//! Figures for papers: from a report to the text of an SVG file.
//!
//! Pure functions of the report, of the sentences saved beside it and of a [`Style`]: the same input gives the same bytes. With the
//! feature `pictures` the same SVG becomes PDF and PNG ([`pictures`]).

mod atlas;
mod attention;
mod axis;
pub mod colours;
mod components;
mod heat;
#[cfg(feature = "pictures")]
pub mod pictures;
mod saved;
mod shares;
mod svg;
mod terms;
mod text;
mod training;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use colours::{Colours, Theme};
pub use saved::SavedReport;
pub use training::training;

use crate::RecordingError;
use crate::report::{Report, SiteReport};
use svg::{MM_PER_POINT, Svg};

/// Narrowest and widest figures, in millimetres.
pub const WIDTHS_MM: std::ops::RangeInclusive<f64> = 30.0..=1000.0;
/// A column of a paper with two, in millimetres.
const COLUMN_MM: f64 = 85.0;
/// The whole text's width.
const PAGE_MM: f64 = 170.0;

/// What is drawn of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One sentence's attention, or the average.
    Attention,
    /// One sentence's attention and the terms of its scores.
    Terms,
    /// All heads: what drives them, and how much of their attention that keeps.
    Atlas,
    /// Temporal paths, input components and readouts along two principal axes.
    Components,
    /// What each term contributes.
    Shares,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Attention, Self::Terms, Self::Atlas, Self::Components, Self::Shares];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Terms => "terms",
            Self::Atlas => "atlas",
            Self::Components => "components",
            Self::Shares => "shares",
        }
    }
}

/// How a figure looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Style {
    /// Its width in millimetres, within [`WIDTHS_MM`]; as wide as suits it unless given.
    pub width_mm: Option<f64>,
    /// Light or dark paper.
    pub theme: Theme,
}

/// Which head and which sentence are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The head; the first unless given, all where a figure shows many.
    pub site: Option<SiteName>,
    /// The sentence.
    pub sample: SampleName,
}

/// A head by its place in the report, or by layer and head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteName {
    /// Its place among the report's sites, from 0.
    Number(usize),
    /// Layer and head; that of cross-attention, if there are several.
    Place(usize, usize),
}

impl FromStr for SiteName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number: a site is N, or LAYER.HEAD"));
        match text.split_once('.') {
            Some((layer, head)) => Ok(Self::Place(number(layer)?, number(head)?)),
            None => number(text).map(Self::Number),
        }
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Place(layer, head) => write!(f, "{layer}.{head}"),
        }
    }
}

/// A sentence of the report, or their average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleName {
    /// Its place among the sentences saved, from 0.
    Number(usize),
    /// The average attention over all sentences explained.
    Average,
}

impl Default for SampleName {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl FromStr for SampleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "average" {
            return Ok(Self::Average);
        }
        text.parse().map(Self::Number).map_err(|_| "a number from 0, or `average`".into())
    }
}

/// Why a figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// A file cannot be read or is damaged.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// The file is no report, or one of another version.
    #[error(transparent)]
    NoReport(RecordingError),
    /// No sentence was saved.
    #[error("`{report}` was written without single sentences")]
    NoSamples {
        /// The report.
        report: PathBuf,
    },
    /// The file of sentences is not there.
    #[error("`{path}`, which holds the sentences of `{report}`, is not there")]
    LostSamples {
        /// The report.
        report: PathBuf,
        /// Where they should be.
        path: PathBuf,
    },
    /// There is no such head.
    #[error("there is no site {asked}; there are {known}")]
    UnknownSite {
        /// What was asked for.
        asked: SiteName,
        /// What there is.
        known: String,
    },
    /// There is no such sentence.
    #[error("there is no sample {asked}: {n_samples} were saved, counted from 0")]
    UnknownSample {
        /// What was asked for.
        asked: usize,
        /// How many there are.
        n_samples: usize,
    },
    /// More than a figure can show.
    #[error("{n_rows} × {n_columns} cells are too many for a figure, which shows {most} at most")]
    TooLarge {
        /// Rows.
        n_rows: u64,
        /// Columns.
        n_columns: u64,
        /// The most.
        most: u64,
    },
    /// More heads than a figure of this kind shows.
    #[error("{n_sites} sites are too many for one figure of their shares, which shows {most} at most")]
    TooManySites {
        /// Heads there are.
        n_sites: usize,
        /// The most.
        most: usize,
    },
    /// The report has no such thing.
    #[error("the report has no {0}")]
    Missing(&'static str),
    /// The width is beyond what is drawn.
    #[error("{0} mm is no width of a figure: {from} to {to} mm are", from = WIDTHS_MM.start(), to = WIDTHS_MM.end())]
    Width(f64),
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The text of an SVG file.
    pub svg: String,
    /// Its width.
    pub width_mm: f64,
    /// Its height.
    pub height_mm: f64,
}

impl Figure {
    fn new(svg: Svg, [width, height]: [f64; 2], title: &str) -> Self {
        Self { svg: svg.finish([width, height], title), width_mm: width * MM_PER_POINT, height_mm: height * MM_PER_POINT }
    }
}

impl Style {
    fn svg(&self) -> Svg {
        Svg::new(Colours::of(self.theme))
    }

    /// The width in points: what was asked for, or `usual_mm`.
    fn width(&self, usual_mm: f64) -> Result<f64, FigureError> {
        match self.width_mm {
            Some(width) if !WIDTHS_MM.contains(&width) => Err(FigureError::Width(width)),
            width => Ok(width.unwrap_or(usual_mm) / MM_PER_POINT),
        }
    }
}

/// Draws a report.
pub fn draw(saved: &SavedReport, kind: Kind, choice: &Choice, style: &Style) -> Result<Figure, FigureError> {
    match kind {
        Kind::Attention => attention::attention(saved, choice, style),
        Kind::Terms => terms::terms(saved, choice, style),
        Kind::Atlas => atlas::atlas(&saved.report, style),
        Kind::Components => components::components(&saved.report, style),
        Kind::Shares => shares::shares(&saved.report, choice, style),
    }
}

/// The head that was chosen, with its place.
fn site_of(report: &Report, name: Option<SiteName>) -> Result<(usize, &SiteReport), FigureError> {
    let sites = &report.sites;
    if sites.is_empty() {
        return Err(FigureError::Missing("attention: its network has none"));
    }
    let name = name.unwrap_or(SiteName::Number(sites.iter().position(|site| site.kind == "cross").unwrap_or(0)));
    let number = match name {
        SiteName::Number(number) => Some(number).filter(|&number| number < sites.len()),
        SiteName::Place(layer, head) => {
            let is_there = |site: &SiteReport| site.layer == layer && site.head == head;
            let cross = sites.iter().position(|site| is_there(site) && site.kind == "cross");
            cross.or_else(|| sites.iter().position(is_there))
        }
    };
    match number {
        Some(number) => Ok((number, &sites[number])),
        None => Err(FigureError::UnknownSite { asked: name, known: known_sites(sites) }),
    }
}

/// The first few heads there are.
fn known_sites(sites: &[SiteReport]) -> String {
    const SHOWN: usize = 6;
    let all = sites.iter().take(SHOWN).enumerate();
    let names = all.map(|(number, site)| format!("{number} ({} {}.{})", text::shown(&site.kind), site.layer, site.head));
    let more = if sites.len() > SHOWN { format!(", … {}", sites.len() - 1) } else { String::new() };
    names.collect::<Vec<_>>().join(", ") + &more
}

/// A head in words.
fn site_title(site: &SiteReport) -> String {
    let kind = match site.kind.as_str() {
        "cross" => "Cross-attention".to_owned(),
        "encoder-self" => "Self-attention of the encoder".to_owned(),
        "decoder-self" => "Self-attention of the decoder".to_owned(),
        other => text::shown(other),
    };
    format!("{kind}, layer {}, head {}", site.layer, site.head)
}
