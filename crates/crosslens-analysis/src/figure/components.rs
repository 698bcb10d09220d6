//! Where the parts of states lie: temporal paths, input components and readouts along the first two principal axes.

use super::axis::{Plot, Scale};
use super::heat::round_up;
use super::svg::{Anchor, Stroke, Svg, Text};
use super::text::{few_digits, percent, shown, width};
use super::{COLUMN_MM, Figure, FigureError, PAGE_MM, Style};
use crate::Part;
use crate::geometry::{FrameReport, GeometryReport, PlacedToken, StreamGeometry};
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

    /// Keeps labels off a mark.
    fn mark(&mut self, [x, y]: [f64; 2]) {
        self.0.push([x - 2.0, y - 2.0, x + 2.0, y + 2.0]);
    }
}

/// Axes, and what is drawn along the first two of them.
#[derive(Default)]
struct Panel<'a> {
    /// What an axis is called, and the shares of variance along each.
    axis: &'static str,
    shares: &'a [f64],
    /// By stream: its name and where its temporal components lie.
    paths: Vec<(&'a str, &'a [[f64; 3]])>,
    /// By stream: its name and its input components.
    inputs: Vec<(&'a str, &'a [PlacedToken])>,
    arrows: Option<Arrows<'a>>,
}

/// Draws the geometry of a report.
///
/// The first panel has the temporal paths along the axes of all states. Input components are beside the readouts in a second, along the
/// axes along which readouts differ most; where there are no such axes they lie amid the paths. Streams of different widths have panels of
/// their own, two at most in all.
pub(super) fn components(report: &Report, style: &Style) -> Result<Figure, FigureError> {
    let Some(geometry) = &report.geometry else { return Err(FigureError::Missing("geometry")) };
    let plane = Panel::of_plane(geometry);
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (number, frame) in geometry.frames.iter().enumerate() {
        let streams = geometry.streams.iter().filter(|stream| stream.frame == Some(number) && !stream.path.is_empty());
        let streams: Vec<&StreamGeometry> = streams.take(MAX_STREAMS).collect();
        if !streams.is_empty() {
            panels.push(Panel::of_frame(frame, &streams, plane.is_none()));
        }
    }
    if panels.is_empty() {
        return Err(FigureError::Missing("principal components to draw in"));
    }
    panels.truncate(if plane.is_some() { 1 } else { 2 });
    panels.extend(plane);
    let total = style.width(if panels.len() > 1 { PAGE_MM } else { COLUMN_MM })?;
    let mut svg = style.svg();
    let gap = 14.0;
    let size = (total - 2.0 * MARGIN - gap * (panels.len() - 1) as f64) / panels.len() as f64;
    let mut bottom = 0.0;
    for (place, panel) in panels.iter().enumerate() {
        let at = [MARGIN + place as f64 * (size + gap), MARGIN];
        bottom = f64::max(bottom, panel.draw(&mut svg, at, size));
    }
    Ok(Figure::new(svg, [total, bottom + MARGIN], "Components of states along their principal axes"))
}

/// Readouts as arrows from the origin, shrunk or stretched by a round number to reach about as far as the input components.
struct Arrows<'a> {
    words: &'a [String],
    to: Vec<[f64; 3]>,
    times: f64,
}

impl<'a> Arrows<'a> {
    fn of(words: &'a [String], readouts: &[[f64; 3]], inputs: &[PlacedToken]) -> Self {
        let reach = |points: &mut dyn Iterator<Item = [f64; 3]>| {
            points.map(|[x, y, _]| x.hypot(y)).filter(|length| length.is_finite()).fold(0.0, f64::max)
        };
        let far = reach(&mut inputs.iter().map(|input| input.at));
        let long = reach(&mut readouts.iter().copied());
        let times = if long > 0.0 && far > 0.0 { round_up(far / long) } else { 1.0 };
        let to = readouts.iter().take(MAX_DRAWN).map(|readout| readout.map(|x| times * x)).collect();
        Self { words, to, times }
    }
}

impl<'a> Panel<'a> {
    fn of_frame(frame: &'a FrameReport, streams: &[&'a StreamGeometry], has_inputs: bool) -> Self {
        let with_inputs = streams.iter().filter(|stream| has_inputs && !stream.inputs.is_empty());
        Self {
            axis: "PC",
            shares: &frame.shares,
            paths: streams.iter().map(|stream| (stream.name.as_str(), first_of(&stream.path, MAX_STEPS))).collect(),
            inputs: with_inputs.map(|stream| (stream.name.as_str(), first_of(&stream.inputs, MAX_DRAWN))).collect(),
            arrows: None,
        }
    }

    fn of_plane(geometry: &'a GeometryReport) -> Option<Self> {
        let (plane, readout) = (geometry.plane.as_ref()?, geometry.readout.as_ref()?);
        let inputs = first_of(&plane.inputs, MAX_DRAWN);
        Some(Self {
            axis: "readout axis",
            shares: &plane.shares,
            paths: Vec::new(),
            inputs: vec![(plane.stream.as_str(), inputs)],
            arrows: Some(Arrows::of(&readout.words, &plane.readouts, inputs)),
        })
    }

    /// Draws it; gives where it ends.
    fn draw(&self, svg: &mut Svg, at: [f64; 2], size: f64) -> f64 {
        let colours = svg.colours();
        let plot = equal_plot([at[0] + 10.0, at[1]], [size - 10.0, size * 0.82], &self.points());
        svg.frame(plot.at, plot.size, Stroke::new(colours.faint(), 0.6));
        let says = |axis: usize| match self.shares.get(axis) {
            Some(share) => format!("{} {} ({} of variance)", self.axis, axis + 1, percent(*share)),
            None => format!("{} {}", self.axis, axis + 1),
        };
        let small = Text::new(6.0).colour(colours.muted());
        let below = plot.at[1] + plot.size[1];
        svg.text([plot.at[0] + plot.size[0] / 2.0, below + 8.0], &says(0), small.middle());
        svg.text([plot.at[0] - 4.0, plot.at[1] + plot.size[1] / 2.0], &says(1), small.middle().turned(-90.0));
        let mut taken = Taken::default();
        self.draw_paths(svg, &plot, &mut taken);
        self.draw_words(svg, &plot, &mut taken);
        self.draw_legend(svg, [plot.at[0], below + 18.0])
    }

    /// All that must fit.
    fn points(&self) -> Vec<[f64; 2]> {
        let paths = self.paths.iter().flat_map(|(_, path)| path.iter().copied());
        let inputs = self.inputs.iter().flat_map(|(_, inputs)| inputs.iter().map(|input| input.at));
        let arrows = self.arrows.iter().flat_map(|arrows| arrows.to.iter().copied().chain([[0.0; 3]]));
        paths.chain(inputs).chain(arrows).map(|[x, y, _]| [x, y]).collect()
    }

    /// Temporal paths: discs for the first stream, rings for the second, some steps named; faint lines join the same step of two paths.
    fn draw_paths(&self, svg: &mut Svg, plot: &Plot, taken: &mut Taken) {
        let colours = svg.colours();
        let colour = colours.part(Part::Temporal);
        let paths: Vec<Vec<[f64; 2]>> =
            self.paths.iter().map(|(_, path)| path.iter().map(|point| plot.point(point[0], point[1])).collect()).collect();
        if let [first, second, ..] = &paths[..] {
            first.iter().zip(second).for_each(|(&a, &b)| svg.line(a, b, Stroke::new(colours.faint(), 0.6)));
        }
        for (number, path) in paths.iter().enumerate() {
            svg.path(path, path_stroke(svg, number));
        }
        for (number, path) in paths.iter().enumerate() {
            for &place in path {
                mark_step(svg, place, number);
                taken.mark(place);
            }
        }
        for path in &paths {
            let n = path.len().max(1) as f64;
            let middle = [0, 1].map(|axis| path.iter().map(|place| place[axis]).sum::<f64>() / n);
            for (step, &place) in path.iter().enumerate() {
                if step + 1 == path.len() || step.is_multiple_of(5) && step + 3 < path.len() {
                    label(svg, plot, place, middle, &step.to_string(), Text::new(5.5).colour(colour), taken);
                }
            }
        }
    }

    /// Readouts as arrows, input components as marks, and the words of both.
    fn draw_words(&self, svg: &mut Svg, plot: &Plot, taken: &mut Taken) {
        let colours = svg.colours();
        let origin = plot.point(0.0, 0.0);
        let arrows = || self.arrows.iter().flat_map(|arrows| arrows.to.iter().zip(arrows.words));
        for (to, _) in arrows() {
            svg.arrow(origin, plot.point(to[0], to[1]), Stroke::new(colours.muted(), 0.7));
        }
        let inputs = || {
            let streams = self.inputs.iter().enumerate();
            streams.flat_map(|(number, (_, inputs))| inputs.iter().map(move |input| (number, input)))
        };
        for (number, input) in inputs() {
            let place = plot.point(input.at[0], input.at[1]);
            mark_input(svg, place, number);
            taken.mark(place);
        }
        let middle = if self.arrows.is_some() { origin } else { [plot.at[0] + plot.size[0] / 2.0, plot.at[1] + plot.size[1] / 2.0] };
        for (_, input) in inputs() {
            label(svg, plot, plot.point(input.at[0], input.at[1]), middle, &shown(&input.name), Text::new(LETTERS), taken);
        }
        for (to, word) in arrows() {
            label(svg, plot, plot.point(to[0], to[1]), origin, &shown(word), Text::new(LETTERS).colour(colours.muted()), taken);
        }
    }

    /// What marks mean; gives where it ends.
    fn draw_legend(&self, svg: &mut Svg, [left, y]: [f64; 2]) -> f64 {
        let colours = svg.colours();
        let look = Text::new(LETTERS);
        let (mut x, mut y) = (left, y + 2.0);
        let middle = |y: f64| y - 2.3;
        for (number, (name, _)) in self.paths.iter().enumerate() {
            svg.line([x, middle(y)], [x + 12.0, middle(y)], path_stroke(svg, number));
            mark_step(svg, [x + 6.0, middle(y)], number);
            let says = format!("{}, temporal", shown(name));
            svg.text([x + 15.0, y], &says, look);
            x += 15.0 + width(&says, LETTERS) + 9.0;
        }
        if !self.paths.is_empty() && !self.inputs.is_empty() {
            (x, y) = (left, y + 10.0);
        }
        for (number, (name, _)) in self.inputs.iter().enumerate() {
            mark_input(svg, [x + 6.0, middle(y)], number);
            let says = format!("{}, input", shown(name));
            svg.text([x + 13.0, y], &says, look);
            x += 13.0 + width(&says, LETTERS) + 9.0;
        }
        if let Some(arrows) = &self.arrows {
            svg.arrow([x, middle(y)], [x + 12.0, middle(y)], Stroke::new(colours.muted(), 0.7));
            let times = if (arrows.times - 1.0).abs() > 1e-9 { format!(" × {}", few_digits(arrows.times)) } else { String::new() };
            svg.text([x + 15.0, y], &format!("readout{times}, less their mean"), look);
        }
        y + 2.0
    }
}

fn first_of<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
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

/// Whether marks of a stream are hollow: those of every other one.
fn is_hollow(number: usize) -> bool {
    number % 2 == 1
}

fn path_stroke(svg: &Svg, number: usize) -> Stroke {
    let stroke = Stroke::new(svg.colours().part(Part::Temporal), 0.9);
    if number >= 2 { stroke.dashed() } else { stroke }
}

fn mark_step(svg: &mut Svg, place: [f64; 2], number: usize) {
    let colour = svg.colours().part(Part::Temporal);
    if is_hollow(number) {
        svg.circle(place, 1.9, Some(svg.colours().paper()), Some(Stroke::new(colour, 0.9)));
    } else {
        svg.circle(place, 2.1, Some(colour), None);
    }
}

fn mark_input(svg: &mut Svg, [x, y]: [f64; 2], number: usize) {
    let corners = |r: f64| [[x, y - r], [x + r, y], [x, y + r], [x - r, y]];
    svg.shape(&corners(3.0), svg.colours().part(Part::Input));
    if is_hollow(number) {
        svg.shape(&corners(1.7), svg.colours().paper());
    }
}

/// Writes beside a place, away from `middle` if it can, where nothing is in the way yet; leaves it out where there is no room.
fn label(svg: &mut Svg, plot: &Plot, [x, y]: [f64; 2], middle: [f64; 2], says: &str, look: Text, taken: &mut Taken) {
    let (wide, size) = (width(says, look.size), look.size);
    let (high, low) = (y - 3.2, y + 3.0 + 0.72 * size);
    let mut tries = [
        (Anchor::Start, x + 3.8, y + 0.36 * size, [1.0, 0.0]),
        (Anchor::End, x - 3.8, y + 0.36 * size, [-1.0, 0.0]),
        (Anchor::Middle, x, high - 0.8, [0.0, -1.0]),
        (Anchor::Middle, x, low + 0.8, [0.0, 1.0]),
        (Anchor::Start, x + 2.4, high, [0.7, -0.7]),
        (Anchor::End, x - 2.4, high, [-0.7, -0.7]),
        (Anchor::Start, x + 2.4, low, [0.7, 0.7]),
        (Anchor::End, x - 2.4, low, [-0.7, 0.7]),
    ];
    let away = |[dx, dy]: [f64; 2]| dx * (x - middle[0]) + dy * (y - middle[1]);
    tries.sort_by(|a, b| away(b.3).total_cmp(&away(a.3)));
    for (anchor, x, y, _) in tries {
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
