//! What shows a claim, as data; drawn by whoever makes the page.

use serde::Serialize;

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// `bars`, `lines`, `points` or `matrix`.
    pub kind: &'static str,
    /// What there is to see.
    pub caption: &'static str,
    /// What runs to the right; empty where labels say it all.
    pub x: &'static str,
    /// What runs upward.
    pub y: &'static str,
    /// Names along x, for bars.
    pub labels: Vec<String>,
    /// The data, `[x, y]`; of bars x is the place of the label.
    pub series: Vec<Series>,
    /// Rows of a matrix, `[step, place]`.
    pub matrix: Vec<Vec<f64>>,
    /// Whether both axes measure the same, so that angles and lengths can be seen; points are then seen from the origin.
    pub equal_axes: bool,
}

/// One line, or one set of bars or points.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// `[x, y]`.
    pub points: Vec<[f64; 2]>,
    /// What each point is called, in their order; empty where they have no names.
    pub names: Vec<String>,
}

impl Figure {
    /// Bars by label, one series a name.
    pub fn bars(caption: &'static str, y: &'static str, labels: Vec<String>, series: Vec<(String, Vec<f64>)>) -> Self {
        let series = series.into_iter().map(|(name, values)| Series::by_step(name, &values));
        Self { kind: "bars", caption, y, labels, series: series.collect(), ..Self::default() }
    }

    /// Lines over x.
    pub fn lines(caption: &'static str, x: &'static str, y: &'static str, series: Vec<Series>) -> Self {
        Self { kind: "lines", caption, x, y, series, ..Self::default() }
    }

    /// Points.
    pub fn points(caption: &'static str, x: &'static str, y: &'static str, series: Vec<Series>) -> Self {
        Self { kind: "points", caption, x, y, series, ..Self::default() }
    }

    /// The same with one scale for both axes.
    #[must_use]
    pub fn with_equal_axes(self) -> Self {
        Self { equal_axes: true, ..self }
    }

    /// One matrix of attention.
    pub fn matrix(caption: &'static str, matrix: Vec<Vec<f64>>) -> Self {
        Self { kind: "matrix", caption, x: "source", y: "decoder step", matrix, ..Self::default() }
    }
}

impl Series {
    /// Points without names.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, names: Vec::new() }
    }

    /// A line by step.
    pub fn by_step(name: impl Into<String>, values: &[f64]) -> Self {
        Self::new(name, values.iter().enumerate().map(|(step, &value)| [step as f64, value]).collect())
    }

    /// The same with a name for each point.
    #[must_use]
    pub fn named(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), ..self }
    }
}
