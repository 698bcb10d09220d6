//! How training went: loss, accuracy and, where it was recorded, what made the scores.

use super::axis::{Plot, Scale, plain};
use super::colours::Colour;
use super::svg::{Stroke, Svg, Text};
use super::text::percent;
use super::{COLUMN_MM, Figure, FigureError, SiteName, Style};
use crate::Part;
use crate::timeline::{SitePoint, TimelinePoint, TrainingPoint};

const MARGIN: f64 = 6.0;
const LETTERS: f64 = 6.5;
/// Most points that are drawn.
const MAX_POINTS: usize = 2000;

/// One curve.
struct Curve {
    name: &'static str,
    colour: Colour,
    is_dashed: bool,
    of: fn(&TrainingPoint) -> Option<f64>,
}

/// Draws loss and accuracy over steps and, of the checkpoints in `recorded`, the shares of one head.
///
/// The first of cross-attention unless told.
pub fn training(
    points: &[TrainingPoint],
    recorded: &[TimelinePoint],
    site: Option<SiteName>,
    style: &Style,
) -> Result<Figure, FigureError> {
    if points.is_empty() {
        return Err(FigureError::Missing("line of metrics: the run has not tried itself yet"));
    }
    let points: Vec<TrainingPoint> = evenly(points).copied().collect();
    let bands = bands(recorded, site)?;

    let width = style.width(COLUMN_MM)?;
    let mut svg = style.svg();
    let colours = svg.colours();
    let (blue, orange) = (colours.part(Part::Temporal), colours.part(Part::Input));
    let losses = [
        Curve { name: "training batches", colour: colours.muted(), is_dashed: true, of: |point| point.train_loss },
        Curve { name: "fresh sentences", colour: blue, is_dashed: false, of: |point| point.loss },
    ];
    let accuracies = [
        Curve { name: "words right", colour: blue, is_dashed: false, of: |point| point.word_accuracy },
        Curve { name: "sentences right", colour: orange, is_dashed: false, of: |point| point.phrase_accuracy },
    ];
    let last = points.iter().map(|point| point.step).chain(bands.iter().map(|band| band.step)).max();
    let steps = Scale { lowest: 0.0, highest: last.map_or(1.0, |step| step as f64).max(1.0), is_log: false };
    let size = [width - 2.0 * MARGIN - 30.0, (width * 0.27).clamp(50.0, 110.0)];
    let left = MARGIN + 24.0;

    let top = legend(&mut svg, [left, MARGIN], "Loss, nats", &losses);
    let plot = Plot { at: [left, top], size, x: steps, y: loss_scale(&points, &losses) };
    plot.draw_y(&mut svg, 4, plain);
    draw_curves(&mut svg, &plot, &points, &losses);

    let top = legend(&mut svg, [left, top + size[1] + 10.0], "Accuracy", &accuracies);
    let mut plot = Plot { at: [left, top], y: Scale { lowest: 0.0, highest: 1.0, is_log: false }, ..plot };
    plot.draw_y(&mut svg, 4, percent);
    draw_curves(&mut svg, &plot, &points, &accuracies);

    let mut top = top;
    if !bands.is_empty() {
        let parts = [("position", Part::Temporal), ("token", Part::Input), ("the rest", Part::Residual)];
        let parts = parts.map(|(name, part)| Band { name, colour: colours.part(part) });
        top = legend_of_bands(&mut svg, [left, top + size[1] + 10.0], "Scores made of", &parts);
        plot.at = [left, top];
        draw_bands(&mut svg, &plot, &bands, &parts);
        plot.draw_y(&mut svg, 4, percent);
    }
    plot.draw_x(&mut svg, 5, plain);
    let bottom = top + size[1] + 20.0;
    svg.text([left + size[0] / 2.0, bottom - 1.0], "updates", Text::new(LETTERS).middle().colour(colours.muted()));
    let title = if bands.is_empty() { "Loss and accuracy while training" } else { "Loss, accuracy and shares while training" };
    Ok(Figure::new(svg, [width, bottom + MARGIN], title))
}

/// Evenly fewer of many, the last one always.
fn evenly<T>(points: &[T]) -> impl Iterator<Item = &T> {
    let every = points.len().div_ceil(MAX_POINTS).max(1);
    points.iter().skip(points.len().saturating_sub(1) % every).step_by(every)
}

/// Shares at one checkpoint, stacked.
struct Stacked {
    step: u64,
    /// From 0 to 1; what lies below zero is cut, as on the page.
    edges: [f64; 4],
}

/// What one band shows.
struct Band {
    name: &'static str,
    colour: Colour,
}

/// The shares of one head where they are known; nothing where no checkpoint has any.
fn bands(recorded: &[TimelinePoint], site: Option<SiteName>) -> Result<Vec<Stacked>, FigureError> {
    let Some(sites) = recorded.first().map(|point| &point.sites).filter(|sites| !sites.is_empty()) else { return Ok(Vec::new()) };
    let is_cross = |site: &SitePoint| site.kind == "cross";
    let found = match site {
        None => Some(sites.iter().position(is_cross).unwrap_or(0)),
        Some(SiteName::Number(number)) => Some(number).filter(|&number| number < sites.len()),
        Some(SiteName::Place(layer, head)) => {
            let is_meant = |site: &SitePoint| (site.layer, site.head) == (layer, head);
            sites.iter().position(|site| is_meant(site) && is_cross(site)).or_else(|| sites.iter().position(is_meant))
        }
    };
    let Some(found) = found else {
        let known = sites.iter().map(|site| format!("{}.{}", site.layer, site.head)).collect::<Vec<_>>().join(", ");
        return Err(FigureError::UnknownSite { asked: site.unwrap_or(SiteName::Number(0)), known });
    };
    let stacked = |point: &TimelinePoint| {
        let [position, token, rest] = point.sites.get(found)?.totals()?.map(|share| share.max(0.0));
        let sum = (position + token + rest).max(f64::MIN_POSITIVE);
        sum.is_finite().then_some(Stacked { step: point.step, edges: [0.0, position / sum, (position + token) / sum, 1.0] })
    };
    Ok(evenly(recorded).filter_map(stacked).collect())
}

/// A panel's title and its bands' names; gives where the panel begins.
fn legend_of_bands(svg: &mut Svg, [left, top]: [f64; 2], title: &str, bands: &[Band]) -> f64 {
    let y = top + 8.0;
    svg.text([left, y], title, Text::new(7.5).bold());
    let mut x = left + super::text::width(title, 7.5) * 1.1 + 10.0;
    for band in bands {
        svg.rect([x, y - 5.0], [6.0, 6.0], band.colour);
        svg.text([x + 9.0, y], band.name, Text::new(LETTERS));
        x += 9.0 + super::text::width(band.name, LETTERS) + 8.0;
    }
    y + 6.0
}

fn draw_bands(svg: &mut Svg, plot: &Plot, bands: &[Stacked], parts: &[Band]) {
    for (place, part) in parts.iter().enumerate() {
        let edge = |edge: usize| bands.iter().map(move |band| (band.step as f64, band.edges[edge]));
        let lower = edge(place).map(|(step, share)| plot.point(step, share));
        let upper = edge(place + 1).map(|(step, share)| plot.point(step, share));
        let outline: Vec<[f64; 2]> = lower.chain(upper.collect::<Vec<_>>().into_iter().rev()).collect();
        svg.shape(&outline, part.colour);
    }
}

/// From zero; on a logarithm where losses span more than a power of ten and a half.
fn loss_scale(points: &[TrainingPoint], curves: &[Curve]) -> Scale {
    let values = points.iter().flat_map(|point| curves.iter().filter_map(|curve| (curve.of)(point)));
    let values: Vec<f64> = values.filter(|value| value.is_finite() && *value >= 0.0).collect();
    let highest = values.iter().copied().fold(0.0, f64::max).max(1e-12);
    let lowest = values.iter().copied().filter(|&value| value > 0.0).fold(highest, f64::min).max(highest * 1e-9);
    if highest / lowest > 30.0 {
        Scale { lowest: lowest * 0.8, highest: highest * 1.2, is_log: true }
    } else {
        Scale { lowest: 0.0, highest: highest * 1.05, is_log: false }
    }
}

/// A panel's title and its curves' names; gives where the panel begins.
fn legend(svg: &mut Svg, [left, top]: [f64; 2], title: &str, curves: &[Curve]) -> f64 {
    let y = top + 8.0;
    svg.text([left, y], title, Text::new(7.5).bold());
    let mut x = left + super::text::width(title, 7.5) * 1.1 + 10.0;
    for curve in curves {
        svg.line([x, y - 2.4], [x + 10.0, y - 2.4], curve.stroke());
        svg.text([x + 13.0, y], curve.name, Text::new(LETTERS));
        x += 13.0 + super::text::width(curve.name, LETTERS) + 8.0;
    }
    y + 6.0
}

impl Curve {
    fn stroke(&self) -> Stroke {
        let stroke = Stroke::new(self.colour, 1.2);
        if self.is_dashed { stroke.dashed() } else { stroke }
    }
}

fn draw_curves(svg: &mut Svg, plot: &Plot, points: &[TrainingPoint], curves: &[Curve]) {
    for curve in curves {
        let places: Vec<[f64; 2]> = points
            .iter()
            .filter_map(|point| Some((point.step as f64, (curve.of)(point)?)))
            .filter(|(_, value)| value.is_finite())
            .map(|(step, value)| plot.point(step, value))
            .collect();
        svg.path(&places, curve.stroke());
        if let [only] = places[..] {
            svg.circle(only, 1.5, Some(curve.colour), None);
        }
    }
}
