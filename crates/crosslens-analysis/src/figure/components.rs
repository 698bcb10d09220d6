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

/// One set of axes, and what is drawn along which two of them.
struct Panel<'a> {
    frame: &'a FrameReport,
    streams: Vec<&'a StreamGeometry>,
    arrows: Option<Arrows<'a>>,
    axes: [usize; 2],
    has_paths: bool,
    has_inputs: bool,
    /// By stream: where its input components are counted from.
    middles: Vec<[f64; 3]>,
}

/// Draws the geometry of a report.
///
/// Paths, input components and readouts share a panel; where input components would be a blot amid the paths they have a panel of their
/// own, along those two of three axes along which they vary most, each stream's and the readouts about their own mean: what all words
/// share tells no word from another. Streams of different widths have panels of their own too, two at most.
pub(super) fn components(report: &Report, style: &Style) -> Result<Figure, FigureError> {
    let Some(geometry) = &report.geometry else { return Err(FigureError::Missing("geometry")) };
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (number, frame) in geometry.frames.iter().enumerate() {
        let streams = geometry.streams.iter().filter(|stream| stream.frame == Some(number) && !stream.path.is_empty());
        let streams: Vec<&StreamGeometry> = streams.take(MAX_STREAMS).collect();
        if !streams.is_empty() {
            panels.extend(Panel::of(geometry, frame, streams));
        }
    }
    panels.truncate(2);
    if panels.is_empty() {
        return Err(FigureError::Missing("principal components to draw in"));
    }
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

/// Readouts in a frame: their words, where they begin, where they end, and by how much they were stretched.
struct Arrows<'a> {
    words: &'a [String],
    from: [f64; 3],
    to: Vec<[f64; 3]>,
    times: f64,
}

impl<'a> Arrows<'a> {
    /// Those of the frame that holds the encoder's states, stretched by a round number to reach about as far as the input components.
    fn of(
        geometry: &'a GeometryReport,
        from: [f64; 3],
        is_centred: bool,
        streams: &[&StreamGeometry],
        inputs: &[[f64; 3]],
        axes: [usize; 2],
    ) -> Option<Self> {
        let readout = geometry.readout.as_ref()?;
        let arrows = readout.arrows.as_ref().filter(|arrows| !arrows.is_empty() && arrows.len() <= readout.words.len())?;
        let middle = if is_centred { mean(arrows) } else { [0.0; 3] };
        let arrows: Vec<[f64; 3]> = arrows.iter().map(|arrow| less(arrow, &middle)).collect();
        if !streams.iter().any(|stream| stream.name.contains("encoder")) {
            return None;
        }
        let reach = |points: &mut dyn Iterator<Item = [f64; 3]>| {
            points.map(|point| point[axes[0]].hypot(point[axes[1]])).filter(|length| length.is_finite()).fold(0.0, f64::max)
        };
        let far = reach(&mut inputs.iter().map(|at| [0, 1, 2].map(|axis| at[axis] - from[axis])));
        let long = reach(&mut arrows.iter().copied());
        let times = if long > 0.0 && far > 0.0 { round_down(far / long) } else { 1.0 };
        let to = arrows.iter().take(MAX_DRAWN).map(|arrow| [0, 1, 2].map(|axis| from[axis] + times * arrow[axis])).collect();
        Some(Self { words: &readout.words, from, to, times })
    }
}

/// The last of 1, 2 and 5 of a power of ten up to a value.
fn round_down(value: f64) -> f64 {
    let above = round_up(value);
    [0.4, 0.5, 1.0].map(|part| part * above).into_iter().rev().find(|&below| below <= value * (1.0 + 1e-9)).unwrap_or(0.4 * above)
}

fn mean(points: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / points.len().max(1) as f64)
}

fn less(point: &[f64; 3], middle: &[f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| point[axis] - middle[axis])
}

/// The longer side of the box that holds some points along two axes.
fn extent(points: &[[f64; 3]], axes: [usize; 2]) -> f64 {
    let along = |axis: usize| {
        let scale = Scale::around(points.iter().map(|point| point[axis]), 0.0);
        scale.highest - scale.lowest
    };
    along(axes[0]).max(along(axes[1]))
}

impl<'a> Panel<'a> {
    /// One panel of all, or two where the input components need one of their own.
    fn of(geometry: &'a GeometryReport, frame: &'a FrameReport, streams: Vec<&'a StreamGeometry>) -> Vec<Self> {
        /// How many times smaller input components may lie than the paths.
        const TOO_SMALL: f64 = 2.5;
        let paths: Vec<[f64; 3]> = streams.iter().flat_map(|stream| stream.path.iter().take(MAX_STEPS).copied()).collect();
        let places = |stream: &StreamGeometry| stream.inputs.iter().take(MAX_DRAWN).map(|input| input.at).collect::<Vec<_>>();
        let inputs: Vec<[f64; 3]> = streams.iter().flat_map(|stream| places(stream)).collect();
        let none = vec![[0.0; 3]; streams.len()];
        let arrows = |is_centred, inputs: &[[f64; 3]], axes| {
            let from = if is_centred { [0.0; 3] } else { frame.origin };
            Arrows::of(geometry, from, is_centred, &streams, inputs, axes)
        };
        let panel = |axes: [usize; 2], has_paths: bool, has_inputs: bool, middles: &[[f64; 3]], arrows| Self {
            frame,
            arrows,
            streams: streams.clone(),
            axes,
            has_paths,
            has_inputs,
            middles: middles.to_vec(),
        };
        let first = [0, 1];
        if inputs.is_empty() || extent(&inputs, first) * TOO_SMALL > extent(&paths, first) {
            return vec![panel(first, true, !inputs.is_empty(), &none, arrows(false, &inputs, first))];
        }
        let middles: Vec<[f64; 3]> = streams.iter().map(|stream| mean(&places(stream))).collect();
        let centred: Vec<[f64; 3]> = streams
            .iter()
            .zip(&middles)
            .flat_map(|(stream, middle)| places(stream).into_iter().map(|at| less(&at, middle)).collect::<Vec<_>>())
            .collect();
        let mut axes = [0, 1, 2];
        let along = |axis: usize| extent(&centred, [axis, axis]);
        axes.sort_by(|&a, &b| along(b).total_cmp(&along(a)));
        let own = [axes[0].min(axes[1]), axes[0].max(axes[1])];
        vec![panel(first, true, false, &none, None), panel(own, false, true, &middles, arrows(true, &centred, own))]
    }

    /// Input components with the number of their stream and their place, counted from its middle.
    fn inputs(&self) -> impl Iterator<Item = (usize, &'a PlacedToken, [f64; 3])> {
        let streams = self.streams.iter().zip(&self.middles).enumerate();
        streams.flat_map(|(number, (stream, middle))| {
            stream.inputs.iter().take(MAX_DRAWN).map(move |input| (number, input, less(&input.at, middle)))
        })
    }

    fn place(&self, plot: &Plot, point: &[f64; 3]) -> [f64; 2] {
        plot.point(point[self.axes[0]], point[self.axes[1]])
    }

    /// Draws it; gives where it ends.
    fn draw(&self, svg: &mut Svg, at: [f64; 2], size: f64) -> f64 {
        let colours = svg.colours();
        let plot = equal_plot([at[0] + 10.0, at[1]], [size - 10.0, size * 0.82], &self.points());
        svg.frame(plot.at, plot.size, Stroke::new(colours.faint(), 0.6));
        let says = |axis: usize| match self.frame.shares.get(axis) {
            Some(share) => format!("PC {} ({} of variance)", axis + 1, percent(*share)),
            None => format!("PC {}", axis + 1),
        };
        let small = Text::new(6.0).colour(colours.muted());
        let below = plot.at[1] + plot.size[1];
        svg.text([plot.at[0] + plot.size[0] / 2.0, below + 8.0], &says(self.axes[0]), small.middle());
        svg.text([plot.at[0] - 4.0, plot.at[1] + plot.size[1] / 2.0], &says(self.axes[1]), small.middle().turned(-90.0));
        let mut taken = Taken::default();
        if let Some(arrows) = &self.arrows {
            let from = self.place(&plot, &arrows.from);
            arrows.to.iter().for_each(|to| svg.arrow(from, self.place(&plot, to), Stroke::new(colours.muted(), 0.7)));
        }
        if self.has_paths {
            self.draw_paths(svg, &plot, &mut taken);
        }
        if self.has_inputs {
            self.draw_inputs(svg, &plot, &mut taken);
        }
        self.draw_legend(svg, [plot.at[0], below + 18.0])
    }

    /// All that must fit.
    fn points(&self) -> Vec<[f64; 2]> {
        let mut points: Vec<[f64; 3]> = Vec::new();
        if self.has_paths {
            points.extend(self.streams.iter().flat_map(|stream| stream.path.iter().take(MAX_STEPS)));
        }
        if self.has_inputs {
            points.extend(self.inputs().map(|(_, _, at)| at));
        }
        points.extend(self.arrows.iter().flat_map(|arrows| arrows.to.iter().copied().chain([arrows.from])));
        points.iter().map(|point| self.axes.map(|axis| point[axis])).collect()
    }

    /// Temporal paths: discs for the first stream, rings for the second, some steps named; faint lines join the same step of two paths.
    fn draw_paths(&self, svg: &mut Svg, plot: &Plot, taken: &mut Taken) {
        let colours = svg.colours();
        let colour = colours.part(Part::Temporal);
        let paths: Vec<Vec<[f64; 2]>> =
            self.streams.iter().map(|stream| stream.path.iter().take(MAX_STEPS).map(|point| self.place(plot, point)).collect()).collect();
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

    /// Input components with their tokens, and the words of readouts.
    fn draw_inputs(&self, svg: &mut Svg, plot: &Plot, taken: &mut Taken) {
        let colours = svg.colours();
        for (number, _, at) in self.inputs() {
            let place = self.place(plot, &at);
            mark_input(svg, place, number);
            taken.mark(place);
        }
        let middle = [plot.at[0] + plot.size[0] / 2.0, plot.at[1] + plot.size[1] / 2.0];
        for (_, input, at) in self.inputs() {
            label(svg, plot, self.place(plot, &at), middle, &shown(&input.name), Text::new(LETTERS), taken);
        }
        if let Some(arrows) = &self.arrows {
            let from = self.place(plot, &arrows.from);
            for (to, word) in arrows.to.iter().zip(arrows.words) {
                label(svg, plot, self.place(plot, to), from, &shown(word), Text::new(LETTERS).colour(colours.muted()), taken);
            }
        }
    }

    /// What marks mean; gives where it ends.
    fn draw_legend(&self, svg: &mut Svg, [left, y]: [f64; 2]) -> f64 {
        let colours = svg.colours();
        let look = Text::new(LETTERS);
        let (mut x, mut y) = (left, y + 2.0);
        let middle = |y: f64| y - 2.3;
        if self.has_paths {
            for (number, stream) in self.streams.iter().enumerate() {
                svg.line([x, middle(y)], [x + 12.0, middle(y)], path_stroke(svg, number));
                mark_step(svg, [x + 6.0, middle(y)], number);
                let says = format!("{}, temporal", shown(&stream.name));
                svg.text([x + 15.0, y], &says, look);
                x += 15.0 + width(&says, LETTERS) + 9.0;
            }
            (x, y) = (left, y + 10.0);
        }
        if self.has_inputs {
            for (number, stream) in self.streams.iter().enumerate().filter(|(_, stream)| !stream.inputs.is_empty()) {
                mark_input(svg, [x + 6.0, middle(y)], number);
                let says = format!("{}, input", shown(&stream.name));
                svg.text([x + 13.0, y], &says, look);
                x += 13.0 + width(&says, LETTERS) + 7.0;
            }
        }
        if let Some(arrows) = &self.arrows {
            svg.arrow([x, middle(y)], [x + 12.0, middle(y)], Stroke::new(colours.muted(), 0.7));
            let times = if (arrows.times - 1.0).abs() > 1e-9 { format!(" × {}", few_digits(arrows.times)) } else { String::new() };
            svg.text([x + 15.0, y], &format!("readout{times}"), look);
        }
        if !self.has_paths {
            y += 9.0;
            svg.text([left, y], "each about its mean over words", Text::new(6.0).colour(colours.muted()));
        }
        y + 2.0
    }
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
