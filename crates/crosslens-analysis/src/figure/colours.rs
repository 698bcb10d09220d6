//! The one colour scheme of figures and pages.
//!
//! Nothing here is a table: every colour is a point of OKLab (Björn Ottosson, 2020), in which equal steps look equally large. A colour
//! is given by lightness `L`, chroma `C` and hue `H` in degrees, `a = C cos H`, `b = C sin H`.
//!
//! ```text
//! weights, t in 0..1      L falls from 0.985 to 0.305 in equal steps, C = 0.125 sin(0.82 π t), H turns from 200° to 275°
//! signed,  t in −1..1     L falls from 0.97 to 0.45 on both sides, C = 0.155 |t|, H = 40° below zero and 250° above
//! parts                   temporal L 0.48 H 250°, input L 0.77 H 75°, residual L 0.66 H 10°: apart under every colour blindness
//! streams                 other hues than those of the parts: what a state is of is another matter than which stream it belongs to
//! ```
//!
//! On dark paper lightness rises instead, so that zero is always near the paper.

use serde::Serialize;

use crate::Part;

/// Stops a ramp is written out with: as many as a page draws with, and zero is the one in the middle.
pub const N_STOPS: usize = 257;

/// Streams that have a colour of their own; further ones share the last.
pub const N_STREAMS: usize = 4;

/// Light or dark paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Ink on white, as in a paper.
    #[default]
    Light,
    /// For slides and screens.
    Dark,
}

/// A point of OKLab by lightness, chroma and hue in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Oklch {
    lightness: f64,
    chroma: f64,
    hue: f64,
}

/// A colour as a screen shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Colour {
    rgb: [u8; 3],
}

impl Colour {
    /// As CSS and SVG write it, `#rrggbb`.
    pub fn hex(self) -> String {
        let [r, g, b] = self.rgb;
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// Whether dark ink is read better on it than light ink.
    pub fn is_light(self) -> bool {
        let [r, g, b] = self.rgb.map(f64::from);
        0.299 * r + 0.587 * g + 0.114 * b > 140.0
    }
}

impl Oklch {
    const fn new(lightness: f64, chroma: f64, hue: f64) -> Self {
        Self { lightness, chroma, hue }
    }

    fn lab(self) -> [f64; 3] {
        let hue = self.hue.to_radians();
        [self.lightness, self.chroma * hue.cos(), self.chroma * hue.sin()]
    }

    fn colour(self) -> Colour {
        colour_of(self.lab())
    }
}

/// From OKLab to the bytes of sRGB; what a screen cannot show is cut off.
fn colour_of([lightness, a, b]: [f64; 3]) -> Colour {
    let cube = |x: f64| x * x * x;
    let l = cube(lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let m = cube(lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let s = cube(lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    let encoded = |x: f64| if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
    Colour { rgb: linear.map(|x| (encoded(x.clamp(0.0, 1.0)) * 255.0).round() as u8) }
}

/// The colours of one theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colours {
    theme: Theme,
}

/// [`Colours`] written out, to be handed to a page as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheme {
    /// From no weight to the highest, [`N_STOPS`] of them.
    pub weights: Vec<String>,
    /// From the lowest through zero to the highest, [`N_STOPS`] of them, zero in the middle.
    pub signed: Vec<String>,
    /// Temporal, input, residual.
    pub parts: [String; 3],
    /// Encoder, decoder, and whatever else there is.
    pub streams: [String; N_STREAMS],
    /// What is drawn over a picture of any colour.
    pub overlay: String,
    /// What is drawn on.
    pub paper: String,
    /// Text and axes.
    pub ink: String,
    /// Text that steps back.
    pub muted: String,
    /// Lines that guide the eye.
    pub faint: String,
}

impl Colours {
    /// The colours of a theme.
    pub fn of(theme: Theme) -> Self {
        Self { theme }
    }

    fn is_dark(self) -> bool {
        self.theme == Theme::Dark
    }

    /// The colour of a weight from 0 to 1.
    pub fn weight(self, weight: f64) -> Colour {
        let t = clamped(weight, 0.0);
        let lightness = if self.is_dark() { 0.225 + 0.68 * t } else { 0.985 - 0.68 * t };
        let hue = if self.is_dark() { 275.0 - 75.0 * t } else { 200.0 + 75.0 * t };
        Oklch::new(lightness, 0.125 * (0.82 * std::f64::consts::PI * t).sin(), hue).colour()
    }

    /// The colour of a term from −1 to 1.
    pub fn signed(self, term: f64) -> Colour {
        let t = clamped(term, -1.0);
        let lightness = if self.is_dark() { 0.235 + 0.52 * t.abs() } else { 0.97 - 0.52 * t.abs() };
        Oklch::new(lightness, 0.155 * t.abs(), if t < 0.0 { 40.0 } else { 250.0 }).colour()
    }

    /// The colour of a part.
    pub fn part(self, part: Part) -> Colour {
        self.part_point(part).colour()
    }

    fn part_point(self, part: Part) -> Oklch {
        let lift = if self.is_dark() { 0.06 } else { 0.0 };
        match part {
            Part::Temporal => Oklch::new(0.48 + lift, 0.14, 250.0),
            Part::Input => Oklch::new(0.77 + lift, 0.15, 75.0),
            Part::Residual => Oklch::new(0.66 + lift, 0.18, 10.0),
        }
    }

    /// The colour between those of two parts; a part's own for the same twice.
    pub fn pair(self, query: Part, key: Part) -> Colour {
        let (a, b) = (self.part_point(query).lab(), self.part_point(key).lab());
        colour_of([0, 1, 2].map(|axis| (a[axis] + b[axis]) / 2.0))
    }

    /// The colour of a stream, by its place among them.
    pub fn stream(self, place: usize) -> Colour {
        let lift = if self.is_dark() { 0.06 } else { 0.0 };
        match place {
            0 => Oklch::new(0.56 + lift, 0.11, 165.0),
            1 => Oklch::new(0.52 + lift, 0.17, 300.0),
            2 => Oklch::new(0.6 + lift, 0.12, 30.0),
            _ => Oklch::new(0.6, 0.02, 270.0),
        }
        .colour()
    }

    /// What is drawn over a picture of any colour.
    pub fn overlay(self) -> Colour {
        Oklch::new(0.58, 0.23, 15.0).colour()
    }

    /// What is drawn on.
    pub fn paper(self) -> Colour {
        if self.is_dark() { Oklch::new(0.2, 0.01, 270.0).colour() } else { Colour { rgb: [255; 3] } }
    }

    /// Text and axes.
    pub fn ink(self) -> Colour {
        Oklch::new(if self.is_dark() { 0.95 } else { 0.24 }, 0.01, 270.0).colour()
    }

    /// Text that steps back.
    pub fn muted(self) -> Colour {
        Oklch::new(if self.is_dark() { 0.72 } else { 0.52 }, 0.012, 270.0).colour()
    }

    /// Lines that guide the eye.
    pub fn faint(self) -> Colour {
        Oklch::new(if self.is_dark() { 0.36 } else { 0.88 }, 0.006, 270.0).colour()
    }

    /// All of them written out.
    pub fn scheme(self) -> Scheme {
        let along = |place: usize| place as f64 / (N_STOPS - 1) as f64;
        Scheme {
            weights: (0..N_STOPS).map(|place| self.weight(along(place)).hex()).collect(),
            signed: (0..N_STOPS).map(|place| self.signed(2.0 * along(place) - 1.0).hex()).collect(),
            parts: Part::ALL.map(|part| self.part(part).hex()),
            streams: std::array::from_fn(|place| self.stream(place).hex()),
            overlay: self.overlay().hex(),
            paper: self.paper().hex(),
            ink: self.ink().hex(),
            muted: self.muted().hex(),
            faint: self.faint().hex(),
        }
    }
}

/// At most 1, at least `lowest`; what is no number is 0.
fn clamped(value: f64, lowest: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(lowest, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(colour: Colour) -> [f64; 3] {
        let decoded = |x: f64| if x <= 0.040_45 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) };
        colour.rgb.map(|byte| decoded(f64::from(byte) / 255.0))
    }

    /// From linear sRGB to OKLab, the inverse of what is tested.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).max(0.0).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).max(0.0).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).max(0.0).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        ]
    }

    fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    fn scheme_stream(place: usize) -> String {
        Colours::default().stream(place).hex()
    }

    const THEMES: [Theme; 2] = [Theme::Light, Theme::Dark];

    #[test]
    fn weights_change_lightness_in_equal_steps() {
        for theme in THEMES {
            let colours = Colours::of(theme);
            let lightness = |place: usize| lab(linear(colours.weight(place as f64 / 16.0)))[0];
            let sign = if theme == Theme::Dark { 1.0 } else { -1.0 };
            for place in 0..16 {
                let step = sign * (lightness(place + 1) - lightness(place));
                assert!((step - 0.68 / 16.0).abs() < 0.008, "{theme:?} {place}: {step}");
            }
        }
    }

    #[test]
    fn signed_terms_are_as_strong_below_zero_as_above() {
        for theme in THEMES {
            let colours = Colours::of(theme);
            let zero = lab(linear(colours.signed(0.0)));
            assert!(distance(zero, [zero[0], 0.0, 0.0]) < 0.01, "zero is grey");
            for t in [0.25, 0.5, 0.75, 1.0] {
                let [below, above] = [-t, t].map(|t| lab(linear(colours.signed(t))));
                assert!((below[0] - above[0]).abs() < 0.03, "{theme:?} {t}: {below:?} {above:?}");
                let [below, above] = [below, above].map(|point| distance(point, zero));
                assert!((below - above).abs() < 0.04, "{theme:?} {t}: {below} {above}");
            }
        }
    }

    /// Simulations of full protanopia, deuteranopia and tritanopia: Machado, Oliveira and Fernandes, 2009, on linear sRGB.
    #[test]
    fn parts_stay_apart_under_every_colour_blindness() {
        let same = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let protan = [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]];
        let deutan = [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_82, 0.042_94, 0.968_881]];
        let tritan = [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_9]];
        for theme in THEMES {
            for (name, sight) in [("full", same), ("protan", protan), ("deutan", deutan), ("tritan", tritan)] {
                let seen = Part::ALL.map(|part| {
                    let colour = linear(Colours::of(theme).part(part));
                    lab(sight.map(|row| row.iter().zip(colour).map(|(weight, x)| weight * x).sum::<f64>().clamp(0.0, 1.0)))
                });
                for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                    let apart = distance(seen[a], seen[b]);
                    assert!(apart > 0.1, "{theme:?}, {name}: {:?} and {:?} are {apart:.3} apart", Part::ALL[a], Part::ALL[b]);
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_the_scale_and_no_numbers_have_a_colour() {
        let colours = Colours::default();
        assert_eq!(colours.weight(7.0), colours.weight(1.0));
        assert_eq!(colours.weight(-1.0), colours.weight(0.0));
        assert_eq!(colours.weight(f64::NAN), colours.weight(0.0));
        assert_eq!(colours.signed(f64::NEG_INFINITY), colours.signed(-1.0));
        assert_eq!(colours.pair(Part::Input, Part::Input), colours.part(Part::Input));
    }

    #[test]
    fn a_scheme_is_json_with_hex_stops() {
        let scheme = Colours::of(Theme::Light).scheme();
        assert_eq!((scheme.weights.len(), scheme.signed.len()), (N_STOPS, N_STOPS));
        assert_eq!(scheme.signed[N_STOPS / 2], Colours::default().signed(0.0).hex());
        assert_eq!((&scheme.weights[N_STOPS - 1], &scheme.streams[3]), (&Colours::default().weight(1.0).hex(), &scheme_stream(9)));
        let json = serde_json::to_value(&scheme).expect("text only");
        let hex = json["parts"][0].as_str().expect("text");
        assert!(hex.len() == 7 && hex.starts_with('#') && u32::from_str_radix(&hex[1..], 16).is_ok(), "{hex}");
        assert_eq!(json["paper"], "#ffffff");
    }
}
