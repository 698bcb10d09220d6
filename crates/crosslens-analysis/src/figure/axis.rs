//! Plots: an area with two scales, round ticks and faint lines.

use super::svg::{Stroke, Svg, Text};
use super::text::few_digits;

/// Size of the numbers at ticks.
pub(crate) const TICK: f64 = 6.0;

/// Values from `lowest` to `highest`, on a line or on a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    pub(crate) is_log: bool,
}

impl Scale {
    /// A linear scale that holds these values, a little more on both sides.
    pub(crate) fn around(values: impl IntoIterator<Item = f64>, margin: f64) -> Self {
        let (lowest, highest) = values
            .into_iter()
            .filter(|value| value.is_finite() && value.abs() < 1e15)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if lowest > highest {
            return Self { lowest: 0.0, highest: 1.0, is_log: false };
        }
        let room = ((highest - lowest) * margin).max(1e-9 * (1.0 + highest.abs()));
        Self { lowest: lowest - room, highest: highest + room, is_log: false }
    }

    /// Raised to end with a tick.
    pub(crate) fn raised(self, n: usize) -> Self {
        match self.ticks(n)[..] {
            [first, second, ..] => {
                let step = second - first;
                Self { highest: (self.highest / step - 1e-9).ceil() * step, ..self }
            }
            _ => self,
        }
    }

    /// Where a value lies, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = if self.is_log {
            (value.max(self.lowest) / self.lowest).ln() / (self.highest / self.lowest).ln()
        } else {
            (value - self.lowest) / (self.highest - self.lowest)
        };
        if place.is_finite() { place.clamp(-0.05, 1.05) } else { 0.0 }
    }

    /// Round values within the scale, about `n` of them.
    pub(crate) fn ticks(&self, n: usize) -> Vec<f64> {
        if self.is_log {
            let (from, to) = (self.lowest.log10().ceil() as i32, self.highest.log10().floor() as i32);
            let every = ((to - from).max(0) as usize / n.max(1) + 1).max(1);
            let powers: Vec<f64> = (from..=to).step_by(every).map(|power| 10f64.powi(power)).collect();
            if powers.len() > 1 {
                return powers;
            }
            let halves = (from - 1..=to).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
            return halves.filter(|value| (self.lowest..=self.highest).contains(value)).collect();
        }
        let rough = (self.highest - self.lowest) / n.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].iter().map(|step| step * power).find(|&step| step >= rough * 0.999).unwrap_or(rough);
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        // A little slack, so that rounding does not lose a tick at an end.
        let (from, to) = ((self.lowest / step - 1e-9).ceil() as i64, (self.highest / step + 1e-9).floor() as i64);
        (from..=to.min(from.saturating_add(40))).map(|k| k as f64 * step).collect()
    }
}

/// An area with its scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) at: [f64; 2],
    pub(crate) size: [f64; 2],
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Plot {
    /// Where a point lies on paper.
    pub(crate) fn point(&self, x: f64, y: f64) -> [f64; 2] {
        [self.at[0] + self.size[0] * self.x.place(x), self.at[1] + self.size[1] * (1.0 - self.y.place(y))]
    }

    /// Lines and numbers of the y scale.
    pub(crate) fn draw_y(&self, svg: &mut Svg, n: usize, says: impl Fn(f64) -> String) {
        let (faint, muted) = (svg.colours().faint(), svg.colours().muted());
        for value in self.y.ticks(n) {
            let [_, y] = self.point(0.0, value);
            svg.line([self.at[0], y], [self.at[0] + self.size[0], y], Stroke::new(faint, 0.5));
            svg.text([self.at[0] - 3.0, y + 0.35 * TICK], &says(value), Text::new(TICK).end().colour(muted));
        }
    }

    /// Ticks and numbers of the x scale, under the area.
    pub(crate) fn draw_x(&self, svg: &mut Svg, n: usize, says: impl Fn(f64) -> String) {
        let (ink, muted) = (svg.colours().muted(), svg.colours().muted());
        let bottom = self.at[1] + self.size[1];
        svg.line([self.at[0], bottom], [self.at[0] + self.size[0], bottom], Stroke::new(ink, 0.6));
        for value in self.x.ticks(n) {
            let [x, _] = self.point(value, 0.0);
            svg.line([x, bottom], [x, bottom + 2.0], Stroke::new(ink, 0.6));
            svg.text([x, bottom + 3.0 + TICK], &says(value), Text::new(TICK).middle().colour(muted));
        }
    }
}

/// A tick as a plain number.
pub(crate) fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() >= 1000.0 && value % 1000.0 == 0.0 && value.abs() < 1e6 {
        return format!("{}k", few_digits(value / 1000.0));
    }
    few_digits(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale { lowest: 0.0, highest: 1.0, is_log: false };
        assert_eq!(scale.ticks(5).len(), 6);
        let raised = Scale { lowest: -0.02, highest: 0.93, is_log: false }.raised(5);
        assert!((raised.highest - 1.0).abs() < 1e-12, "{raised:?}");
        let log = Scale { lowest: 2e-4, highest: 3.0, is_log: true };
        assert_eq!(log.ticks(6).iter().map(|&x| few_digits(x)).collect::<Vec<_>>(), ["0.001", "0.01", "0.1", "1"]);
        assert!((log.place(3.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_values_and_one_value_still_have_a_scale() {
        assert_eq!(Scale::around([], 0.1).highest, 1.0);
        let one = Scale::around([2.0, f64::NAN], 0.1);
        assert!(one.lowest < 2.0 && one.highest > 2.0 && one.place(2.0) > 0.4);
        assert!(Scale { lowest: 1e300, highest: 1e301, is_log: false }.ticks(4).len() < 50);
    }
}
