//! The geometry as it is written to `report.json`.

use serde::{Deserialize, Serialize};

use crate::Token;

/// How states, components and readouts lie to each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeometryReport {
    /// Axes to draw in, one set for all streams of the same width.
    pub frames: Vec<FrameReport>,
    /// By stream.
    pub streams: Vec<StreamGeometry>,
    /// The words' readouts; null where the readout is not one linear map.
    pub readout: Option<ReadoutGeometry>,
    /// The plane of the readouts, with input components in it; left out where values do not reach the readout as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<PlaneReport>,
    /// Input components beside readouts, by cross-attention head whose values reach the readout as they are.
    pub cosines: Vec<CosinesReport>,
    /// Angles between the temporal paths of the two sides, by pair of streams of the same width.
    pub subspaces: Vec<SubspacesReport>,
    /// The paths without any input, by stream; empty where the model cannot be probed.
    pub null_input: Vec<PathReport>,
    /// The paths over one word again and again, by stream of the source and word; empty where the model cannot be run.
    pub constant_words: Vec<PathReport>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Axes to draw in: those along which the states of some streams vary most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameReport {
    /// The streams' names.
    pub streams: Vec<String>,
    /// Shares of their joint variance along the first ten axes.
    pub shares: Vec<f64>,
    /// `(Σ λ)² / Σ λ²`.
    pub participation_ratio: f64,
    /// Where the zero state lies: readouts are arrows from here.
    pub origin: [f64; 3],
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamGeometry {
    /// Its name.
    pub name: String,
    /// Shares of its own variance along its own first ten axes; empty where principal components were not computed.
    pub shares: Vec<f64>,
    /// `(Σ λ)² / Σ λ²` of its own variance.
    pub participation_ratio: Option<f64>,
    /// The frame its places are given in.
    pub frame: Option<usize>,
    /// Where the mean of the temporal components lies.
    #[serde(default)]
    pub mean: [f64; 3],
    /// Where the temporal component of each step lies.
    pub path: Vec<[f64; 3]>,
    /// Where the stream's mean plus each token's input component lies, the most frequent tokens first.
    pub inputs: Vec<PlacedToken>,
    /// Where the stream's mean plus the residual of a state lies, for the first states explained.
    #[serde(default)]
    pub residuals: Vec<PlacedResidual>,
}

/// A residual's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedResidual {
    /// The state's step.
    pub step: usize,
    /// The token it has consumed last.
    pub token: Token,
    /// That token's name.
    pub name: String,
    /// Where it lies.
    pub at: [f64; 3],
}

/// A token's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedToken {
    /// The token.
    pub token: Token,
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub at: [f64; 3],
}

/// Readouts of content words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadoutGeometry {
    /// The words, in the order of every list below.
    pub words: Vec<String>,
    /// `arccos(−1/(N − 1))`, the angle at which `N` words would lie farthest apart, degrees; null for one word.
    pub simplex_angle: Option<f64>,
    /// What reads the decoder's state; null where nothing does.
    pub state: Option<HalfReport>,
    /// What reads the context; null where nothing does.
    pub context: Option<HalfReport>,
    /// Angle between a word's two halves, degrees; null unless they are equally wide.
    pub between_halves: Option<Vec<f64>>,
    /// The context readouts as arrows in the frame of the encoder's states; null where widths differ.
    pub arrows: Option<Vec<[f64; 3]>>,
}

/// The axes along which context readouts of content words differ most, three at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaneReport {
    /// The stream whose input components are given.
    pub stream: String,
    /// Shares of the readouts' variance along the axes.
    pub shares: Vec<f64>,
    /// Input components, the most frequent tokens first.
    pub inputs: Vec<PlacedToken>,
    /// Readouts about their mean, in the order of [`ReadoutGeometry::words`].
    pub readouts: Vec<[f64; 3]>,
}

/// One half of the readouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HalfReport {
    /// Lengths.
    pub norms: Vec<f64>,
    /// Angles between words; null for one word.
    pub angles: Option<AnglesReport>,
    /// The same once the words' mean is taken off.
    pub centred_angles: Option<AnglesReport>,
    /// Mean share of a readout's squared length in the span of the others; null for one word.
    pub inside_span: Option<f64>,
}

/// Angles between pairs, degrees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnglesReport {
    /// The lowest.
    pub lowest: f64,
    /// Their mean.
    pub mean: f64,
    /// The highest.
    pub highest: f64,
    /// All of them; null beyond 64 words.
    pub table: Option<Vec<Vec<f64>>>,
}

/// Input components of one head's keys beside the context readouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CosinesReport {
    /// The head's place among the sites.
    pub site: usize,
    /// By source word.
    pub words: Vec<ResemblanceReport>,
    /// Cosines by source word, then target word; null beyond 64 of either.
    pub table: Option<Vec<Vec<f64>>>,
}

/// What a source word's input component resembles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResemblanceReport {
    /// The source word.
    pub source: String,
    /// Its number.
    pub source_token: Token,
    /// The target word whose readout is most like it.
    pub best: String,
    /// Its number.
    pub best_token: Token,
    /// Their cosine.
    pub cosine: f64,
    /// The runner-up.
    pub next: String,
    /// Its cosine.
    pub next_cosine: f64,
}

/// Angles between two temporal paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubspacesReport {
    /// The stream that asks.
    pub query: String,
    /// The stream that is asked.
    pub key: String,
    /// Dimensions that hold 95 % of the variance of the query's path.
    pub query_dimensions: usize,
    /// The same for the key's.
    pub key_dimensions: usize,
    /// Principal angles, ascending, degrees.
    pub angles: Vec<f64>,
}

/// A path the model takes under a probe, beside the temporal components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The stream.
    pub stream: String,
    /// The word read at every step; null for no input.
    pub word: Option<String>,
    /// Steps compared.
    pub steps: usize,
    /// Cosine of the two paths, each about its middle.
    pub cosine: f64,
    /// Correlation of the step with that of the nearest temporal component; null where that never changes.
    pub step_correlation: Option<f64>,
    /// Where the path lies in the stream's frame; empty without one.
    pub path: Vec<[f64; 3]>,
}
