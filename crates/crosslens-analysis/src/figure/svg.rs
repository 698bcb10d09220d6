//! Builds the text of an SVG file: one unit is a point, numbers have at most two digits after the dot, and the same calls give the same
//! bytes.

use std::fmt::Write as _;

use super::colours::{Colour, Colours};
use super::text::trimmed;

/// Millimetres of a point.
pub(crate) const MM_PER_POINT: f64 = 25.4 / 72.0;
/// Fonts in the order they are looked for. The first is the one that PDF and PNG files carry.
const FONTS: &str = "'Noto Sans', 'Helvetica Neue', Helvetica, Arial, sans-serif";

/// A drawing that grows downwards.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    body: String,
    colours: Colours,
}

/// Where a text stands relative to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) colour: Option<Colour>,
    pub(crate) is_bold: bool,
    /// Degrees, clockwise.
    pub(crate) turned: f64,
}

impl Text {
    pub(crate) fn new(size: f64) -> Self {
        Self { size, anchor: Anchor::Start, colour: None, is_bold: false, turned: 0.0 }
    }

    pub(crate) fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub(crate) fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    pub(crate) fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    pub(crate) fn colour(self, colour: Colour) -> Self {
        Self { colour: Some(colour), ..self }
    }

    pub(crate) fn turned(self, degrees: f64) -> Self {
        Self { turned: degrees, ..self }
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) is_dashed: bool,
}

impl Stroke {
    pub(crate) fn new(colour: Colour, width: f64) -> Self {
        Self { colour, width, is_dashed: false }
    }

    pub(crate) fn dashed(self) -> Self {
        Self { is_dashed: true, ..self }
    }

    fn attributes(self) -> String {
        let dashes = if self.is_dashed { " stroke-dasharray=\"3 2\"" } else { "" };
        format!("stroke=\"{}\" stroke-width=\"{}\"{dashes}", self.colour.hex(), number(self.width))
    }
}

impl Svg {
    pub(crate) fn new(colours: Colours) -> Self {
        Self { body: String::new(), colours }
    }

    pub(crate) fn colours(&self) -> Colours {
        self.colours
    }

    fn add(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.body.write_fmt(arguments).expect("a string takes all");
        self.body.push('\n');
    }

    pub(crate) fn rect(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], fill: Colour) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        self.add(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>", fill.hex()));
    }

    pub(crate) fn frame(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], stroke: Stroke) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let stroke = stroke.attributes();
        self.add(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" {stroke}/>"));
    }

    pub(crate) fn circle(&mut self, [x, y]: [f64; 2], radius: f64, fill: Option<Colour>, stroke: Option<Stroke>) {
        let fill = fill.map_or("none".to_owned(), Colour::hex);
        let stroke = stroke.map_or(String::new(), |stroke| " ".to_owned() + &stroke.attributes());
        let [x, y, radius] = [x, y, radius.max(0.0)].map(number);
        self.add(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"{stroke}/>"));
    }

    /// So much of a circle's line, clockwise from its top.
    pub(crate) fn arc(&mut self, [x, y]: [f64; 2], radius: f64, share: f64, stroke: Stroke) {
        if share >= 1.0 {
            self.circle([x, y], radius, None, Some(stroke));
        } else if share > 0.0 {
            let around = std::f64::consts::TAU * radius;
            let [x, y, radius, drawn, around] = [x, y, radius, share * around, around].map(number);
            let stroke = stroke.attributes();
            self.add(format_args!(
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"none\" {stroke} stroke-dasharray=\"{drawn} {around}\" \
                 transform=\"rotate(-90 {x} {y})\"/>"
            ));
        }
    }

    pub(crate) fn line(&mut self, from: [f64; 2], to: [f64; 2], stroke: Stroke) {
        let [[x1, y1], [x2, y2]] = [from, to].map(|point| point.map(number));
        self.add(format_args!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {}/>", stroke.attributes()));
    }

    /// A line through some points; nothing for fewer than two.
    pub(crate) fn path(&mut self, points: &[[f64; 2]], stroke: Stroke) {
        if points.len() > 1 {
            let points = list(points);
            let stroke = stroke.attributes();
            self.add(format_args!(
                "<polyline points=\"{points}\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" {stroke}/>"
            ));
        }
    }

    /// A filled shape.
    pub(crate) fn shape(&mut self, points: &[[f64; 2]], fill: Colour) {
        self.add(format_args!("<polygon points=\"{}\" fill=\"{}\"/>", list(points), fill.hex()));
    }

    /// A line with a head at its end.
    pub(crate) fn arrow(&mut self, from: [f64; 2], to: [f64; 2], stroke: Stroke) {
        let (x, y) = (to[0] - from[0], to[1] - from[1]);
        let length = x.hypot(y);
        if length.is_nan() || length < 0.5 {
            return;
        }
        let head = (3.0 * stroke.width + 1.5).min(length);
        let (x, y) = (x / length, y / length);
        let base = [to[0] - head * x, to[1] - head * y];
        self.line(from, base, stroke);
        self.shape(
            &[to, [base[0] - 0.4 * head * y, base[1] + 0.4 * head * x], [base[0] + 0.4 * head * y, base[1] - 0.4 * head * x]],
            stroke.colour,
        );
    }

    /// Text with its baseline at `y`. What it says is escaped here, and nowhere else.
    pub(crate) fn text(&mut self, [x, y]: [f64; 2], says: &str, look: Text) {
        let says = escaped(says);
        if says.is_empty() {
            return;
        }
        let mut attributes = format!("x=\"{}\" y=\"{}\" font-size=\"{}\"", number(x), number(y), number(look.size));
        match look.anchor {
            Anchor::Start => (),
            Anchor::Middle => attributes += " text-anchor=\"middle\"",
            Anchor::End => attributes += " text-anchor=\"end\"",
        }
        if look.is_bold {
            attributes += " font-weight=\"bold\"";
        }
        if let Some(colour) = look.colour {
            attributes += &format!(" fill=\"{}\"", colour.hex());
        }
        if look.turned != 0.0 {
            attributes += &format!(" transform=\"rotate({} {} {})\"", number(look.turned), number(x), number(y));
        }
        self.add(format_args!("<text {attributes}>{says}</text>"));
    }

    /// The whole file: `size` in points, a title for those who do not see the picture.
    pub(crate) fn finish(self, [width, height]: [f64; 2], title: &str) -> String {
        let [width_mm, height_mm] = [width, height].map(|points| number(points * MM_PER_POINT));
        let [width, height] = [width, height].map(number);
        let (paper, ink) = (self.colours.paper().hex(), self.colours.ink().hex());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width_mm}mm\" height=\"{height_mm}mm\" \
             viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{paper}\"/>\n\
             <g font-family=\"{FONTS}\" fill=\"{ink}\">\n{}</g>\n</svg>\n",
            escaped(title),
            self.body
        )
    }
}

fn list(points: &[[f64; 2]]) -> String {
    points.iter().map(|[x, y]| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

/// At most two digits after the dot; what is no number, or none that a drawing can hold, is 0.
fn number(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e6 { trimmed(format!("{value:.2}")) } else { "0".into() }
}

/// Text for XML: its five signs written out; controls, which XML forbids, left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if character.is_control() || u32::from(character) & 0xfffe == 0xfffe => (),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_numbers() {
        for (value, text) in
            [(1.0, "1"), (0.126, "0.13"), (-0.001, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (1e300, "0"), (12.5, "12.5")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("<a href='x'>&\"\u{0}\u{ffff}\u{1b}</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
    }
}
