//! How training went: loss above, accuracy below.

use super::axis::{Plot, Scale, plain};
use super::colours::Colour;
use super::svg::{Stroke, Svg, Text};
use super::text::percent;
use super::{COLUMN_MM, Figure, FigureError, Style};
use crate::Part;
use crate::timeline::TrainingPoint;

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

/// Draws loss and accuracy over steps.
pub fn training(points: &[TrainingPoint], style: &Style) -> Result<Figure, FigureError> {
    if points.is_empty() {
        return Err(FigureError::Missing("line of metrics: the run has not tried itself yet"));
    }
    // Evenly fewer of many, the last one always.
    let every = points.len().div_ceil(MAX_POINTS);
    let last = (points.len() - 1) % every;
    let points: Vec<TrainingPoint> = points.iter().copied().skip(last).step_by(every).collect();

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
    let steps = Scale { lowest: 0.0, highest: points.last().map_or(1.0, |point| point.step as f64).max(1.0), is_log: false };
    let size = [width - 2.0 * MARGIN - 30.0, (width * 0.27).clamp(50.0, 110.0)];
    let left = MARGIN + 24.0;

    let top = legend(&mut svg, [left, MARGIN], "Loss, nats", &losses);
    let plot = Plot { at: [left, top], size, x: steps, y: loss_scale(&points, &losses) };
    plot.draw_y(&mut svg, 4, plain);
    draw_curves(&mut svg, &plot, &points, &losses);

    let top = legend(&mut svg, [left, top + size[1] + 10.0], "Accuracy", &accuracies);
    let plot = Plot { at: [left, top], y: Scale { lowest: 0.0, highest: 1.0, is_log: false }, ..plot };
    plot.draw_y(&mut svg, 4, percent);
    draw_curves(&mut svg, &plot, &points, &accuracies);
    plot.draw_x(&mut svg, 5, plain);
    let bottom = top + size[1] + 20.0;
    svg.text([left + size[0] / 2.0, bottom - 1.0], "updates", Text::new(LETTERS).middle().colour(colours.muted()));
    Ok(Figure::new(svg, [width, bottom + MARGIN], "Loss and accuracy while training"))
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
