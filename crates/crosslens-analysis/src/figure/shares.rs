//! How much each term contributes to a head's scores: one bar a term, with its interval, and what untrained weights give.

use super::axis::{Plot, Scale};
use super::colours::Colour;
use super::svg::{Stroke, Svg, Text};
use super::text::{percent, widest};
use super::{COLUMN_MM, Choice, Figure, FigureError, PAGE_MM, Style, site_of, site_title};
use crate::Part;
use crate::report::{Report, SharesReport, SiteReport};

const MARGIN: f64 = 6.0;
const LETTERS: f64 = 6.5;
/// Height of a term's place.
const ROW: f64 = 10.0;
/// Width of the column of numbers.
const NUMBERS: f64 = 30.0;
/// Most heads in one figure.
const MAX_SITES: usize = 24;
/// The measure that is drawn.
const MEASURE: &str = "centred";

/// One bar.
struct Share {
    name: String,
    value: f64,
    interval: Option<[f64; 2]>,
    control: Option<f64>,
    colour: Colour,
    /// Whether a new group begins here.
    begins: bool,
}

/// Draws the shares of one head, or of all of them side by side.
pub(super) fn shares(report: &Report, choice: &Choice, style: &Style) -> Result<Figure, FigureError> {
    let sites: Vec<&SiteReport> = match choice.site {
        Some(name) => vec![site_of(report, Some(name))?.1],
        None => report.sites.iter().filter(|site| site.shares.is_some()).collect(),
    };
    if sites.len() > MAX_SITES {
        return Err(FigureError::TooManySites { n_sites: sites.len(), most: MAX_SITES });
    }
    let mut svg = style.svg();
    let panels: Vec<(String, Vec<Share>)> = sites.iter().map(|site| (site_title(site), bars(site, &svg))).collect();
    if panels.iter().all(|(_, bars)| bars.is_empty()) {
        return Err(FigureError::Missing("shares: its terms do not add up to the scores, or it has no attention"));
    }
    let values = panels.iter().flat_map(|(_, bars)| bars).flat_map(|bar| {
        [Some(bar.value), bar.control, bar.interval.map(|ends| ends[0]), bar.interval.map(|ends| ends[1])].into_iter().flatten()
    });
    let scale = Scale::around(values.chain([0.0, 0.1]), 0.0).raised(5);

    let n_columns = panels.len().min(3);
    let width = style.width(if n_columns > 1 { PAGE_MM } else { COLUMN_MM })?;
    let names: Vec<String> = panels.iter().flat_map(|(_, bars)| bars.iter().map(|bar| bar.name.clone())).collect();
    let left = widest(&names, LETTERS) + 5.0;
    let panel = (width - 2.0 * MARGIN) / n_columns as f64;
    let mut y = MARGIN;
    for row in panels.chunks(n_columns) {
        let mut bottom = y;
        for (column, (title, bars)) in row.iter().enumerate() {
            let at = [MARGIN + column as f64 * panel, y];
            // The numbers stand in a column on the right.
            bottom = f64::max(bottom, draw_panel(&mut svg, at, [left, panel - left - NUMBERS], title, bars, scale));
        }
        y = bottom + 8.0;
    }
    let has_control = panels.iter().flat_map(|(_, bars)| bars).any(|bar| bar.control.is_some());
    let has_intervals = panels.iter().flat_map(|(_, bars)| bars).any(|bar| bar.interval.is_some());
    let height = draw_legend(&mut svg, [MARGIN + left, y], has_intervals, has_control) + MARGIN;
    Ok(Figure::new(svg, [width, height], "Shares of the score's variance along the keys"))
}

/// The bars of a head: nine terms by the query's part, or six parts by side; the bias of positions last.
fn bars(site: &SiteReport, svg: &Svg) -> Vec<Share> {
    let Some(shares) = &site.shares else { return Vec::new() };
    let (values, control) = (values(shares), site.control.as_ref().map(values));
    let intervals = site.intervals.as_ref().and_then(|intervals| intervals.shares.get(MEASURE));
    let is_additive = values.len() == crate::N_PARTS;
    let mut all: Vec<Share> = (0..values.len())
        .map(|place| {
            let (first, second) = (Part::ALL[place / 3 % 3], Part::ALL[place % 3]);
            let (name, colour) = match (is_additive, place < 3) {
                (false, _) => (format!("{first} × {second}"), svg.colours().pair(first, second)),
                (true, true) => (format!("query: {second}"), svg.colours().part(second)),
                (true, false) => (format!("key: {second}"), svg.colours().part(second)),
            };
            Share {
                name,
                value: values[place],
                interval: intervals.and_then(|intervals| intervals.get(place).copied()),
                control: control.as_ref().and_then(|control| control.get(place).copied()),
                colour,
                begins: place % 3 == 0 && place > 0,
            }
        })
        .collect();
    if shares.position_bias != 0.0 {
        let control = site.control.as_ref().map(|control| control.position_bias);
        let colour = svg.colours().muted();
        all.push(Share { name: "bias of positions".into(), value: shares.position_bias, interval: None, control, colour, begins: true });
    }
    all
}

/// Nine shares by query's part, then key's; six for an additive score.
fn values(shares: &SharesReport) -> Vec<f64> {
    match (shares.parts.get(MEASURE), shares.tables.get(MEASURE)) {
        (Some(parts), _) => [parts.query, parts.key].concat(),
        (None, Some(table)) => table.concat(),
        (None, None) => Vec::new(),
    }
}

/// Draws a head's bars, its names `room[0]` wide and its bars `room[1]`; gives where it ends.
fn draw_panel(svg: &mut Svg, [x, y]: [f64; 2], room: [f64; 2], title: &str, bars: &[Share], scale: Scale) -> f64 {
    let colours = svg.colours();
    svg.text([x, y + 8.0], title, Text::new(7.5).bold());
    let n_gaps = bars.iter().filter(|bar| bar.begins).count() as f64;
    let size = [room[1].max(10.0), bars.len() as f64 * ROW + n_gaps * 3.0];
    let plot = Plot { at: [x + room[0], y + 14.0], size, x: scale, y: Scale { lowest: 0.0, highest: 1.0, is_log: false } };
    let ticks = scale.ticks(5);
    for value in &ticks {
        let [tick, _] = plot.point(*value, 0.0);
        svg.line([tick, plot.at[1]], [tick, plot.at[1] + size[1]], Stroke::new(colours.faint(), 0.5));
        svg.text([tick, plot.at[1] + size[1] + 8.0], &percent(*value), Text::new(6.0).middle().colour(colours.muted()));
    }
    let [zero, _] = plot.point(0.0, 0.0);
    let mut top = plot.at[1];
    for bar in bars {
        if bar.begins {
            top += 3.0;
        }
        let middle = top + ROW / 2.0;
        svg.text([plot.at[0] - 4.0, middle + 0.35 * LETTERS], &bar.name, Text::new(LETTERS).end());
        let [end, _] = plot.point(bar.value, 0.0);
        svg.rect([zero.min(end), middle - 3.1], [(end - zero).abs(), 6.2], bar.colour);
        if let Some([low, high]) = bar.interval {
            let [low, high] = [low, high].map(|value| plot.point(value, 0.0)[0]);
            let stroke = Stroke::new(colours.ink(), 0.6);
            svg.line([low, middle], [high, middle], stroke);
            for end in [low, high] {
                svg.line([end, middle - 1.5], [end, middle + 1.5], stroke);
            }
        }
        if let Some(control) = bar.control {
            let [at, _] = plot.point(control, 0.0);
            diamond(svg, [at, middle]);
        }
        let right = plot.at[0] + size[0] + NUMBERS - 8.0;
        svg.text([right, middle + 2.1], &percent(bar.value), Text::new(6.0).end().colour(colours.muted()));
        top += ROW;
    }
    svg.line([zero, plot.at[1]], [zero, plot.at[1] + size[1]], Stroke::new(colours.muted(), 0.7));
    plot.at[1] + size[1] + 10.0
}

fn diamond(svg: &mut Svg, [x, y]: [f64; 2]) {
    let (paper, ink) = (svg.colours().paper(), svg.colours().ink());
    let corners = |r: f64| [[x, y - r], [x + r, y], [x, y + r], [x - r, y]];
    svg.shape(&corners(2.9), ink);
    svg.shape(&corners(1.9), paper);
}

/// What is measured and what marks mean; gives where it ends.
fn draw_legend(svg: &mut Svg, [x, y]: [f64; 2], has_intervals: bool, has_control: bool) -> f64 {
    let muted = svg.colours().muted();
    let look = Text::new(6.0).colour(muted);
    svg.text([x, y + 2.0], "share of the score's variance along the keys", look);
    let mut place = x;
    let y = y + 11.0;
    if has_control {
        diamond(svg, [place + 3.0, y - 2.0]);
        svg.text([place + 8.0, y], "untrained", look);
        place += 45.0;
    }
    if has_intervals {
        let stroke = Stroke::new(svg.colours().ink(), 0.6);
        svg.line([place, y - 2.0], [place + 8.0, y - 2.0], stroke);
        for end in [place, place + 8.0] {
            svg.line([end, y - 3.5], [end, y - 0.5], stroke);
        }
        svg.text([place + 11.0, y], "95 % interval", look);
    }
    if has_control || has_intervals { y + 1.0 } else { y - 8.0 }
}
