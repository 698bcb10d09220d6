//! One sentence's attention, and beside it the terms its scores are the sum of.

use super::attention::{Layout, chosen};
use super::heat::{Bar, Cells, SMALL, TOKEN, round_up_finely, top_of_scale};
use super::saved::{Matrix, SavedReport};
use super::svg::{Svg, Text};
use super::text::percent;
use super::{Choice, Figure, FigureError, PAGE_MM, SampleName, Style, site_of, site_title};
use crate::Part;
use crate::report::SiteReport;

const MARGIN: f64 = 6.0;
/// Between panels.
const GAP: f64 = 8.0;
/// Letters of the parts' names.
const NAME: f64 = 7.0;

/// Draws attention and its nine terms, or the six parts of an additive score.
///
/// A softmax does not see what is added to a whole row, so terms are shown less their mean along the keys.
pub(super) fn terms(saved: &SavedReport, choice: &Choice, style: &Style) -> Result<Figure, FigureError> {
    let (number, site) = site_of(&saved.report, choice.site)?;
    if choice.sample == SampleName::Average {
        return Err(FigureError::Missing("terms of the average: choose a sentence"));
    }
    let (sample, says) = chosen(&saved.samples()?, number, site, choice.sample)?;
    if sample.attention.values.is_empty() {
        return Err(FigureError::Missing("terms of this sample: a side has no token"));
    }
    let width = style.width(PAGE_MM)?;
    let mut svg = style.svg();
    let heading = format!("{}, {says}", site_title(site));
    svg.text([MARGIN, MARGIN + 8.0], &heading, Text::new(TOKEN + 0.5).bold());

    let layout = Layout::new(&sample, site, [MARGIN, MARGIN + 17.0], (width - 2.0 * MARGIN) * 0.4, style.width_mm.is_none());
    let [right, bottom] = layout.draw(&mut svg, &sample);
    let colours = svg.colours();
    let weights_top = top_of_scale(&sample.attention.values);
    let n_columns = sample.columns.len().max(1) as f64;
    let under = bottom + 7.0;
    flat_bar(&mut svg, [layout.cells.at[0], under], layout.cells.cell[0] * n_columns, weights_top);

    let terms: Vec<Matrix> = sample.pieces.iter().map(|piece| centred(piece, site)).collect();
    let n_grid_rows = terms.len() / 3;
    let left = right + GAP + 18.0;
    let grid_width = width - MARGIN - Bar::ROOM - 6.0 - left;
    let cell_width = (grid_width - 2.0 * GAP) / 3.0 / n_columns;
    let n_rows = sample.rows.len().max(1) as f64;
    let top = MARGIN + 17.0 + NAME + SMALL + 8.0;
    // Panels are as tall as the attention beside them allows, but never so flat that nothing is seen.
    let free = (bottom - top - GAP * (n_grid_rows as f64 - 1.0)) / n_grid_rows as f64 / n_rows;
    let cell = [cell_width, cell_width.min(free.max(cell_width * 0.6))];
    let scale = round_scale(&terms);
    let panel = [cell[0] * n_columns, cell[1] * n_rows];
    let shares = shares_of(site, terms.len());
    for (place, term) in terms.iter().enumerate() {
        let (row, column) = (place / 3, place % 3);
        let at = [left + column as f64 * (panel[0] + GAP), top + row as f64 * (panel[1] + GAP)];
        Cells { at, cell }.draw(&mut svg, term, |value| colours.signed(value / scale));
        if let Some(share) = shares.get(place) {
            svg.text([at[0] + panel[0], at[1] + panel[1] + SMALL], &percent(*share), Text::new(SMALL - 0.5).end().colour(colours.muted()));
        }
    }
    let grid = [3.0 * panel[0] + 2.0 * GAP, n_grid_rows as f64 * (panel[1] + GAP) - GAP];
    name_axes(&mut svg, [left, top], panel, n_grid_rows);
    let bar = Bar { lowest: -scale, highest: scale, says: "term, less its row's mean" };
    bar.draw(&mut svg, [left + grid[0] + GAP, top], grid[1].max(30.0), |value| colours.signed(value / scale));
    let height = (under + 16.0).max(top + grid[1].max(30.0) + SMALL) + MARGIN;
    let used = if style.width_mm.is_some() { width } else { left + grid[0] + GAP + Bar::ROOM + MARGIN };
    Ok(Figure::new(svg, [used, height], &heading))
}

/// Takes off each row's mean over the keys it sees.
fn centred(term: &Matrix, site: &SiteReport) -> Matrix {
    let mut term = term.clone();
    let (n_rows, n_columns) = (term.n_rows, term.n_columns);
    // A decoder that asks itself sees its past alone.
    let is_causal = site.kind == "decoder-self" && n_rows == n_columns;
    for row in 0..n_rows {
        let n_seen = if is_causal { row + 1 } else { n_columns };
        let seen = &mut term.values[row * n_columns..][..n_seen];
        let mean = seen.iter().map(|&value| f64::from(value)).sum::<f64>() / n_seen as f64;
        seen.iter_mut().for_each(|value| *value = (f64::from(*value) - mean) as f32);
    }
    term
}

/// The end of the one scale all terms share.
fn round_scale(terms: &[Matrix]) -> f64 {
    round_up_finely(terms.iter().flat_map(Matrix::rows).flatten().map(|&value| f64::from(value).abs()).fold(0.0, f64::max))
}

/// Shares of the score's variance along the keys, in the order of the pieces.
fn shares_of(site: &SiteReport, n_pieces: usize) -> Vec<f64> {
    let Some(shares) = &site.shares else { return Vec::new() };
    if n_pieces == crate::N_PARTS {
        shares.parts.get("centred").map(|parts| [parts.query, parts.key].concat()).unwrap_or_default()
    } else {
        shares.tables.get("centred").map(|table| table.concat()).unwrap_or_default()
    }
}

/// Names the parts: the key's above the columns, the query's beside the rows; for six parts the sides beside the rows.
fn name_axes(svg: &mut Svg, [left, top]: [f64; 2], panel: [f64; 2], n_grid_rows: usize) {
    let colours = svg.colours();
    let (is_square, muted) = (n_grid_rows == 3, Text::new(SMALL).middle().colour(colours.muted()));
    let middle = left + 1.5 * panel[0] + GAP;
    svg.text([middle, top - NAME - 7.0], if is_square { "part of the key" } else { "part" }, muted);
    for (column, part) in Part::ALL.into_iter().enumerate() {
        let x = left + column as f64 * (panel[0] + GAP) + panel[0] / 2.0;
        svg.text([x, top - 4.0], part.name(), Text::new(NAME).middle().bold().colour(colours.part(part)));
    }
    let middle = top + (n_grid_rows as f64 * (panel[1] + GAP) - GAP) / 2.0;
    svg.text([left - NAME - 7.0, middle], if is_square { "part of the query" } else { "side" }, muted.turned(-90.0));
    for row in 0..n_grid_rows {
        let y = top + row as f64 * (panel[1] + GAP) + panel[1] / 2.0;
        let (says, colour) = match (is_square, row) {
            (true, _) => (Part::ALL[row % 3].name(), colours.part(Part::ALL[row % 3])),
            (false, 0) => ("query", colours.ink()),
            (false, _) => ("key", colours.ink()),
        };
        svg.text([left - 4.0, y], says, Text::new(NAME).middle().bold().colour(colour).turned(-90.0));
    }
}

/// A lying bar for the weights, under their matrix.
fn flat_bar(svg: &mut Svg, at: [f64; 2], width: f64, top: f64) {
    const STEPS: usize = 32;
    let colours = svg.colours();
    let width = width.clamp(30.0, 90.0);
    let step = width / STEPS as f64;
    for place in 0..STEPS {
        let overlap = if place + 1 < STEPS { 0.3 } else { 0.0 };
        let value = (place as f64 + 0.5) / STEPS as f64;
        svg.rect([at[0] + step * place as f64, at[1]], [step + overlap, 4.5], colours.weight(value));
    }
    svg.frame(at, [width, 4.5], super::svg::Stroke::new(colours.faint(), 0.5));
    let look = Text::new(SMALL).colour(colours.muted());
    let y = at[1] + 4.5 + SMALL + 1.0;
    svg.text([at[0], y], "0", look);
    svg.text([at[0] + width / 2.0, y], "weight", look.middle());
    svg.text([at[0] + width, y], &super::text::few_digits(top), look.end());
}
