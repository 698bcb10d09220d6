//! One matrix of attention, tokens on both axes.

use super::heat::{Bar, Cells, SMALL, TOKEN, column_room, draw_columns, draw_rows, labels, row_room, top_of_scale};
use super::saved::{SavedReport, SavedSample, SavedSamples};
use super::svg::{Svg, Text};
use super::{COLUMN_MM, Choice, Figure, FigureError, SampleName, Style, site_of, site_title};
use crate::Side;
use crate::explain::sides;
use crate::report::SiteReport;

const MARGIN: f64 = 6.0;
/// Largest cell, unless a width is asked for.
const LARGEST_CELL: f64 = 15.0;
/// Between the matrix and its tokens.
const GAP: f64 = 3.0;

/// Draws a sentence's attention: a row for each step that asks, a column for each token that is asked.
pub(super) fn attention(saved: &SavedReport, choice: &Choice, style: &Style) -> Result<Figure, FigureError> {
    let (number, site) = site_of(&saved.report, choice.site)?;
    let samples = saved.samples()?;
    let (sample, says) = chosen(&samples, number, site, choice.sample)?;
    if sample.attention.values.is_empty() {
        return Err(FigureError::Missing("attention of this sample: a side has no token"));
    }
    let width = style.width(COLUMN_MM)?;
    let mut svg = style.svg();
    let heading = format!("{}, {says}", site_title(site));
    let matrix = Layout::new(&sample, site, [MARGIN, MARGIN + 17.0], width - 2.0 * MARGIN - Bar::ROOM - 4.0, style.width_mm.is_none());
    let [right, bottom] = matrix.draw(&mut svg, &sample);
    let top = top_of_scale(&sample.attention.values);
    let height = bottom - matrix.cells.at[1];
    let bar = Bar { lowest: 0.0, highest: top, says: "weight" };
    let colours = svg.colours();
    let bar_height = height.clamp(40.0, 120.0);
    bar.draw(&mut svg, [right + 8.0, matrix.cells.at[1]], bar_height, |value| colours.weight(value / top));
    let used = (right + 8.0 + Bar::ROOM + MARGIN).max(MARGIN * 2.0 + super::text::width(&heading, TOKEN + 0.5) * 1.08);
    let width = if style.width_mm.is_some() { width } else { used.min(width.max(used)) };
    svg.text([MARGIN, MARGIN + 8.0], &heading, Text::new(TOKEN + 0.5).bold());
    Ok(Figure::new(svg, [width, (bottom).max(matrix.cells.at[1] + bar_height) + MARGIN], &heading))
}

/// The sentence that was chosen and what to call it. The average has steps for tokens.
pub(super) fn chosen(
    samples: &SavedSamples,
    number: usize,
    site: &SiteReport,
    name: SampleName,
) -> Result<(SavedSample, String), FigureError> {
    match name {
        SampleName::Number(_) if samples.n_samples() == 0 => Err(FigureError::Missing("single sentence: none was saved")),
        SampleName::Number(sample) => Ok((samples.sample(sample, number, site)?, format!("sample {sample}"))),
        SampleName::Average => {
            let attention = samples.average(number)?;
            let steps = |n: usize| (0..n).map(|step| step.to_string()).collect();
            let (rows, columns) = (steps(attention.n_rows), steps(attention.n_columns));
            Ok((SavedSample { rows, columns, attention, ..SavedSample::default() }, "average".into()))
        }
    }
}

/// Where the parts of the matrix lie.
pub(super) struct Layout {
    pub(super) cells: Cells,
    rows: Vec<String>,
    wrote: Vec<String>,
    columns: Vec<String>,
    /// Where the two lists of row tokens end.
    ends: [f64; 2],
    names: [&'static str; 3],
}

impl Layout {
    /// Fits a matrix into `width`; `is_capped` keeps cells from growing beyond what is pleasant.
    pub(super) fn new(sample: &SavedSample, site: &SiteReport, at: [f64; 2], width: f64, is_capped: bool) -> Self {
        let (rows, wrote, columns) = (labels(&sample.rows), labels(&sample.wrote), labels(&sample.columns));
        let names = names(site, !wrote.is_empty());
        let title = 8.0;
        // Letters shrink with cells, so the room for tokens is found by trying twice.
        let (mut cell, mut left, mut room) = (LARGEST_CELL, [0.0; 2], [0.0; 2]);
        for _ in 0..3 {
            let heading = |name: &str| super::text::width(name, SMALL);
            left = [
                row_room(&rows, cell).max(heading(names[0])),
                if wrote.is_empty() { 0.0 } else { row_room(&wrote, cell).max(heading(names[1])) + 6.0 },
            ];
            room = column_room(&columns, cell);
            let free = width - left[0] - left[1] - GAP - room[0];
            cell = (free / columns.len().max(1) as f64).max(0.5);
            if is_capped {
                cell = cell.min(LARGEST_CELL);
            }
        }
        let ends = [at[0] + left[0], at[0] + left[0] + left[1]];
        let cells = Cells { at: [ends[1] + GAP, at[1] + title + room[1]], cell: [cell, cell.min(LARGEST_CELL * 1.5)] };
        Self { cells, rows, wrote, columns, ends, names }
    }

    /// Draws matrix and tokens; gives the right and lower edge, slanted tokens included.
    pub(super) fn draw(&self, svg: &mut Svg, sample: &SavedSample) -> [f64; 2] {
        let colours = svg.colours();
        let top = top_of_scale(&sample.attention.values);
        self.cells.draw(svg, &sample.attention, |value| colours.weight(value / top));
        draw_columns(svg, &self.cells, &self.columns);
        let muted = svg.colours().muted();
        let has_wrote = !self.wrote.is_empty();
        draw_rows(svg, &self.cells, self.ends[0], &self.rows, has_wrote.then_some(muted));
        draw_rows(svg, &self.cells, self.ends[1], &self.wrote, None);
        let [column_width, column_height] = column_room(&self.columns, self.cells.cell[0]);
        let [width, height] = self.cells.size(self.rows.len(), self.columns.len());
        let above = self.cells.at[1] - column_height - 3.0;
        let look = Text::new(SMALL).colour(muted);
        svg.text([self.cells.at[0] + width / 2.0, above], self.names[2], look.middle());
        svg.text([self.ends[0], self.cells.at[1] - 3.0], self.names[0], look.end());
        if has_wrote {
            svg.text([self.ends[1], self.cells.at[1] - 3.0], self.names[1], look.end());
        }
        [self.cells.at[0] + width + column_width, self.cells.at[1] + height]
    }
}

/// What rows, written tokens and columns are.
fn names(site: &SiteReport, has_wrote: bool) -> [&'static str; 3] {
    let (query, key) = sides(site);
    let row = match query {
        Side::Source => "asks",
        Side::Target if has_wrote => "read",
        Side::Target => "step",
    };
    [row, "wrote", if key == Side::Source { "source" } else { "target" }]
}
