//! Where the parts of states lie: temporal paths, input components and readouts along the first two principal axes.

use super::axis::{Plot, Scale};
use super::heat::round_up;
use super::svg::{Anchor, Stroke, Svg, Text};
use super::text::{few_digits, percent, shown, width};
use super::{COLUMN_MM, Figure, FigureError, PAGE_MM, Style};
use crate::Part;
use crate::geometry::{FrameReport, GeometryReport, StreamGeometry};
use crate::report::Report;

const MARGIN: f64 = 6.0;
const LETTERS: f64 = 6.5;
/// Most input components and readouts that are drawn.
const MAX_DRAWN: usize = 64;
/// Most steps of a path.
const MAX_STEPS: usize = 1000;
/// Most streams in a panel; the first of them.
const MAX_STREAMS: usize = 4;

/// Boxes that labels may not cover.
#[derive(Default)]
struct Taken(Vec<[f64; 4]>);

impl Taken {
    /// Takes a box unless something is there.
    fn take(&mut self, [left, top, right, bottom]: [f64; 4]) -> bool {
        let is_free = self.0.iter().all(|other| right < other[0] || left > other[2] || bottom < other[1] || top > other[3]);
        if is_free {
            self.0.push([left, top, right, bottom]);
        }
        is_free
    }
}

/// Draws the geometry of a report: one panel for each set of axes, two at most.
pub(super) fn components(report: &Report, style: &Style) -> Result<Figure, FigureError> {
    let Some(geometry) = &report.geometry else { return Err(FigureError::Missing("geometry")) };
    let panels: Vec<(&FrameReport, Vec<&StreamGeometry>)> = geometry
        .frames
        .iter()
        .enumerate()
        .map(|(number, frame)| {
            let streams = geometry.streams.iter().filter(|stream| stream.frame == Some(number) && !stream.path.is_empty());
            (frame, streams.take(MAX_STREAMS).collect::<Vec<_>>())
        })
        .filter(|(_, streams)| !streams.is_empty())
        .take(2)
        .collect();
    if panels.is_empty() {
        return Err(FigureError::Missing("principal components to draw in"));
    }
    let total = style.width(if panels.len() > 1 { PAGE_MM } else { COLUMN_MM })?;
    let mut svg = style.svg();
    let gap = 14.0;
    let panel = (total - 2.0 * MARGIN - gap * (panels.len() - 1) as f64) / panels.len() as f64;
    let mut bottom = 0.0;
    for (place, (frame, streams)) in panels.iter().enumerate() {
        let at = [MARGIN + place as f64 * (panel + gap), MARGIN];
        bottom = f64::max(bottom, draw_panel(&mut svg, at, panel, geometry, frame, streams));
    }
    Ok(Figure::new(svg, [total, bottom + MARGIN], "Components of states along their principal axes"))
}

/// The first two of three coordinates.
fn flat(point: &[f64; 3]) -> [f64; 2] {
    [point[0], point[1]]
}

/// Readouts in a frame: their words, where they begin, where they end, and by how much they were stretched.
struct Arrows<'a> {
    words: &'a [String],
    from: [f64; 2],
    to: Vec<[f64; 2]>,
    times: f64,
}

impl<'a> Arrows<'a> {
    /// Those of the frame that holds the encoder's states, stretched by a round number to reach about as far as the input components.
    fn of(geometry: &'a GeometryReport, frame: &FrameReport, streams: &[&StreamGeometry]) -> Option<Self> {
        let readout = geometry.readout.as_ref()?;
        let arrows = readout.arrows.as_ref().filter(|arrows| !arrows.is_empty() && arrows.len() <= readout.words.len())?;
        if !streams.iter().any(|stream| stream.name.contains("encoder")) {
            return None;
        }
        let from = flat(&frame.origin);
        let reach =
            |points: &mut dyn Iterator<Item = [f64; 2]>| points.map(|[x, y]| x.hypot(y)).filter(|r| r.is_finite()).fold(0.0, f64::max);
        let inputs = streams.iter().flat_map(|stream| stream.inputs.iter().map(|input| flat(&input.at)));
        let far = reach(&mut inputs.map(|[x, y]| [x - from[0], y - from[1]]));
        let long = reach(&mut arrows.iter().map(flat));
        // Rounded down, so that arrows stay within what is drawn.
        let times = if long > 0.0 && far > 0.0 { round_up(far / long * 0.999) / 2.0 } else { 1.0 };
        let to = arrows.iter().take(MAX_DRAWN).map(|arrow| [from[0] + times * arrow[0], from[1] + times * arrow[1]]).collect();
        Some(Self { words: &readout.words, from, to, times })
    }
}

/// One set of axes; gives where it ends.
fn draw_panel(svg: &mut Svg, at: [f64; 2], size: f64, geometry: &GeometryReport, frame: &FrameReport, streams: &[&StreamGeometry]) -> f64 {
    let colours = svg.colours();
    let arrows = Arrows::of(geometry, frame, streams);
    let inputs = || streams.iter().flat_map(|stream| stream.inputs.iter().take(MAX_DRAWN));
    let mut points: Vec<[f64; 2]> = streams.iter().flat_map(|stream| stream.path.iter().take(MAX_STEPS).map(flat)).collect();
    points.extend(inputs().map(|input| flat(&input.at)));
    points.extend(arrows.iter().flat_map(|arrows| arrows.to.iter().copied().chain([arrows.from])));
    let plot = equal_plot([at[0] + 10.0, at[1]], [size - 10.0, size * 0.82], &points);

    svg.frame(plot.at, plot.size, Stroke::new(colours.faint(), 0.6));
    let says = |axis: usize| match frame.shares.get(axis) {
        Some(share) => format!("PC {} ({} of variance)", axis + 1, percent(*share)),
        None => format!("PC {}", axis + 1),
    };
    let small = Text::new(6.0).colour(colours.muted());
    let below = plot.at[1] + plot.size[1];
    svg.text([plot.at[0] + plot.size[0] / 2.0, below + 8.0], &says(0), small.middle());
    svg.text([plot.at[0] - 4.0, plot.at[1] + plot.size[1] / 2.0], &says(1), small.middle().turned(-90.0));

    let mut taken = Taken::default();
    if let Some(arrows) = &arrows {
        for to in &arrows.to {
            svg.arrow(plot.point(arrows.from[0], arrows.from[1]), plot.point(to[0], to[1]), Stroke::new(colours.muted(), 0.7));
        }
    }
    // Faint lines join what two paths are at the same step.
    if let [first, second, ..] = streams {
        for (a, b) in first.path.iter().zip(&second.path).take(MAX_STEPS) {
            svg.line(plot.point(a[0], a[1]), plot.point(b[0], b[1]), Stroke::new(colours.faint(), 0.6));
        }
    }
    for (number, stream) in streams.iter().enumerate() {
        draw_path(svg, &plot, stream, number, &mut taken);
    }
    for input in inputs() {
        let [x, y] = plot.point(input.at[0], input.at[1]);
        diamond(svg, [x, y]);
        taken.0.push([x - 2.0, y - 2.0, x + 2.0, y + 2.0]);
    }
    for input in inputs() {
        let place = plot.point(input.at[0], input.at[1]);
        label(svg, &plot, place, &shown(&input.name), Text::new(LETTERS).colour(colours.ink()), &mut taken);
    }
    if let Some(arrows) = &arrows {
        for (to, word) in arrows.to.iter().zip(arrows.words) {
            let place = plot.point(to[0], to[1]);
            label(svg, &plot, place, &shown(word), Text::new(LETTERS).colour(colours.muted()), &mut taken);
        }
    }
    draw_legend(svg, [plot.at[0], below + 18.0], streams, inputs().next().is_some(), arrows.as_ref())
}

/// Scales that hold all points, a unit as long on one axis as on the other.
fn equal_plot(at: [f64; 2], size: [f64; 2], points: &[[f64; 2]]) -> Plot {
    let [x, y] = [0, 1].map(|axis| Scale::around(points.iter().map(|point| point[axis]), 0.1));
    let unit = ((x.highest - x.lowest) / size[0]).max((y.highest - y.lowest) / size[1]);
    let widened = |scale: Scale, size: f64| {
        let (middle, half) = ((scale.lowest + scale.highest) / 2.0, unit * size / 2.0);
        Scale { lowest: middle - half, highest: middle + half, is_log: false }
    };
    Plot { at, size, x: widened(x, size[0]), y: widened(y, size[1]) }
}

/// A temporal path: discs for the first stream, rings for the others, its first and last step named.
fn draw_path(svg: &mut Svg, plot: &Plot, stream: &StreamGeometry, number: usize, taken: &mut Taken) {
    let colours = svg.colours();
    let colour = colours.part(Part::Temporal);
    let places: Vec<[f64; 2]> = stream.path.iter().take(MAX_STEPS).map(|point| plot.point(point[0], point[1])).collect();
    svg.path(&places, path_stroke(svg, number));
    for &place in &places {
        let [x, y] = place;
        if is_ring(number) {
            svg.circle(place, 1.9, Some(colours.paper()), Some(Stroke::new(colour, 0.9)));
        } else {
            svg.circle(place, 2.0, Some(colour), None);
        }
        taken.0.push([x - 2.0, y - 2.0, x + 2.0, y + 2.0]);
    }
    for (step, &place) in places.iter().enumerate() {
        if step == 0 || step + 1 == places.len() || step.is_multiple_of(5) {
            label(svg, plot, place, &step.to_string(), Text::new(5.5).colour(colour), taken);
        }
    }
}

fn is_ring(number: usize) -> bool {
    number % 2 == 1
}

fn path_stroke(svg: &Svg, number: usize) -> Stroke {
    let stroke = Stroke::new(svg.colours().part(Part::Temporal), 0.9);
    if number >= 2 { stroke.dashed() } else { stroke }
}

fn diamond(svg: &mut Svg, [x, y]: [f64; 2]) {
    svg.shape(&[[x, y - 2.6], [x + 2.6, y], [x, y + 2.6], [x - 2.6, y]], svg.colours().part(Part::Input));
}

/// Writes beside a place where nothing is in the way yet; leaves it out where there is no room.
fn label(svg: &mut Svg, plot: &Plot, [x, y]: [f64; 2], says: &str, look: Text, taken: &mut Taken) {
    let (wide, size) = (width(says, look.size), look.size);
    let up = 0.36 * size;
    let tries = [
        (Anchor::Start, x + 3.6, y + up),
        (Anchor::End, x - 3.6, y + up),
        (Anchor::Middle, x, y - 4.2),
        (Anchor::Middle, x, y + 3.6 + 0.75 * size),
        (Anchor::Start, x + 2.6, y - 2.8),
        (Anchor::End, x - 2.6, y - 2.8),
        (Anchor::Start, x + 2.6, y + 2.4 + 0.72 * size),
        (Anchor::End, x - 2.6, y + 2.4 + 0.72 * size),
    ];
    for (anchor, x, y) in tries {
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - wide / 2.0,
            Anchor::End => x - wide,
        };
        let place = [left, y - 0.75 * size, left + wide, y + 0.1 * size];
        let is_inside =
            place[0] > plot.at[0] && place[1] > plot.at[1] && place[2] < plot.at[0] + plot.size[0] && place[3] < plot.at[1] + plot.size[1];
        if is_inside && taken.take(place) {
            svg.text([x, y], says, Text { anchor, ..look });
            return;
        }
    }
}

/// What marks mean; gives where it ends.
fn draw_legend(svg: &mut Svg, [left, y]: [f64; 2], streams: &[&StreamGeometry], has_inputs: bool, arrows: Option<&Arrows<'_>>) -> f64 {
    let colours = svg.colours();
    let look = Text::new(LETTERS);
    let (mut x, mut y) = (left, y + 2.0);
    let middle = |y: f64| y - 2.3;
    for (number, stream) in streams.iter().enumerate() {
        svg.line([x, middle(y)], [x + 12.0, middle(y)], path_stroke(svg, number));
        let colour = colours.part(Part::Temporal);
        if is_ring(number) {
            svg.circle([x + 6.0, middle(y)], 1.9, Some(colours.paper()), Some(Stroke::new(colour, 0.9)));
        } else {
            svg.circle([x + 6.0, middle(y)], 2.0, Some(colour), None);
        }
        let says = format!("{}, by step", shown(&stream.name));
        svg.text([x + 15.0, y], &says, look);
        x += 15.0 + width(&says, LETTERS) + 9.0;
    }
    (x, y) = (left, y + 10.0);
    if has_inputs {
        diamond(svg, [x + 6.0, middle(y)]);
        svg.text([x + 15.0, y], "input component", look);
        x += 15.0 + width("input component", LETTERS) + 9.0;
    }
    if let Some(arrows) = arrows {
        svg.arrow([x, middle(y)], [x + 12.0, middle(y)], Stroke::new(colours.muted(), 0.7));
        let times = if (arrows.times - 1.0).abs() > 1e-9 { format!(" (× {})", few_digits(arrows.times)) } else { String::new() };
        svg.text([x + 15.0, y], &format!("readout{times}"), look);
    }
    y + 2.0
}
