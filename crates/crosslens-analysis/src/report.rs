//! The explanation of a model's attention, as it is written to `report.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::geometry::GeometryReport;

/// The schema this version writes.
pub const REPORT_SCHEMA: &str = "crosslens-report/1";

/// An explanation. Every field is documented in `docs/report.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// What was explained.
    pub model: ModelReport,
    /// On what.
    pub corpus: CorpusReport,
    /// How well the model does.
    pub task: TaskReport,
    /// How components were fitted.
    pub components: ComponentsReport,
    /// The streams of states, whether attention reads them or not.
    pub streams: Vec<StreamReport>,
    /// One explanation per attention head.
    pub sites: Vec<SiteReport>,
    /// The average attention against position, in one number for the model; null where no head from decoder to encoder can tell.
    #[serde(default)]
    pub claim: Option<ClaimReport>,
    /// How the model was run again: `recorded`, `live` or `free`; null where it was not.
    #[serde(default)]
    pub rerun: Option<String>,
    /// What it did then with nothing changed, on the sentences of the causal checks; null where it was not run.
    #[serde(default)]
    pub unchanged: Option<Causal>,
    /// The model run with its values made of some parts only; null where it cannot be run.
    pub values: Option<BTreeMap<String, Causal>>,
    /// The model run with half of its readout; null where it cannot be run, empty where the readout has one half.
    pub readout: Option<BTreeMap<String, Causal>>,
    /// How states, components and readouts lie to each other; null if not asked for.
    pub geometry: Option<GeometryReport>,
    /// The worst sentences first, if they were asked for.
    pub ranking: Option<Ranking>,
    /// The file beside this one that holds single sentences.
    pub samples: Option<String>,
}

/// What was explained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReport {
    /// In words.
    pub description: String,
    /// Tells models apart.
    pub hash: String,
    /// Where it was found, if it was a file.
    pub path: Option<String>,
}

/// On what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorpusReport {
    /// Sentence pairs explained.
    pub pairs: u64,
    /// Sentence pairs the components were fitted on.
    pub fitted_pairs: u64,
    /// Whether those are others; null where sums were given and it is not known of which sentences.
    pub held_out: Option<bool>,
    /// Where the sentences come from, in words.
    pub source: String,
    /// What untrained weights were explained on; null where they were not.
    #[serde(default)]
    pub control: Option<ControlCorpus>,
    /// What stands for tokens of the source, where that is sounds or pictures, which have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<CodesReport>,
    /// What to bear in mind with these numbers, in words: a sound that breaks off, a sentence explained alone, accuracy of a part, parts put
    /// together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What untrained weights were explained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlCorpus {
    /// Sentence pairs explained, the first of those the model was explained on.
    pub pairs: u64,
    /// Sentence pairs their components were fitted on.
    pub fitted_pairs: u64,
    /// Whether those are others.
    pub held_out: bool,
}

/// How well the average attention stands for a sentence, against how far position alone goes; means over heads from decoder to encoder.
///
/// ```text
/// average  = 1 − TV(average) / TV(uniform)        temporal = 1 − TV(rebuilt from position) / TV(uniform)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimReport {
    /// How much of the way from uniform to a sentence's own attention the average goes.
    pub average: f64,
    /// How much attention rebuilt from position alone goes, the bias of positions with it.
    pub temporal: f64,
    /// `average − temporal`: 0 where the average is as good as what position makes.
    pub difference: f64,
    /// Heads in the means.
    pub heads: usize,
}

/// Codes in place of tokens: the nearest of some centres that k-means found in all sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodesReport {
    /// What has a code: `frames` of sounds or `patches` of pictures.
    pub of: String,
    /// Codes asked for at most.
    pub asked: usize,
    /// Codes found: fewer where there are fewer kinds.
    pub found: usize,
    /// Seeds the search: the same files, the same codes.
    pub seed: u64,
}

/// How well the model does on the pairs explained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Share of steps right; null without targets or predictions.
    pub word_accuracy: Option<f64>,
    /// Share of sentences right.
    pub phrase_accuracy: Option<f64>,
    /// Mean cross-entropy in nats.
    pub loss: Option<f64>,
    /// Whether the model can be run again.
    pub can_rerun: bool,
}

/// How components were fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentsReport {
    /// `paper` or `joint`.
    pub estimator: String,
    /// Whether rare tokens were shrunk; by how much stands with each stream.
    pub shrunk: bool,
}

/// One stream of states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Dimensions of a state.
    pub d: usize,
    /// What explains its variance.
    pub variance: VarianceReport,
    /// What it was fitted from.
    pub counts: CountsReport,
    /// The λ of the fit.
    pub shrinkage: f64,
    /// Condition of the joint system; null for the paper's estimator.
    pub condition: Option<f64>,
    /// Trace of the words' covariance after taking μ away, over that before, averaged over words seen twice or more; null without one.
    pub word_variance_ratio: Option<f64>,
    /// The two means of that ratio, and the words with the largest variance; null without a word seen twice.
    #[serde(default)]
    pub word_variance: Option<WordVarianceReport>,
    /// Which steps and tokens were seen fewer than five times.
    #[serde(default)]
    pub thin: ThinReport,
}

/// How far the states of one word lie apart: traces of covariances before and after taking μ away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordVarianceReport {
    /// Mean over words, as the states are.
    pub before: f64,
    /// With μ of their step taken away.
    pub after: f64,
    /// Words seen twice or more.
    pub words: usize,
    /// Those that lie widest apart before, at most ten, the widest first.
    pub widest: Vec<WordReport>,
}

/// How far the states of one word lie apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordReport {
    /// The word.
    pub word: String,
    /// How often it was seen.
    pub count: u64,
    /// As the states are.
    pub before: f64,
    /// With μ of their step taken away.
    pub after: f64,
}

/// Steps and tokens seen fewer than five times: the rarest first, at most twenty of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThinReport {
    /// Steps.
    pub steps: Vec<ThinStep>,
    /// Tokens.
    pub tokens: Vec<ThinToken>,
}

/// A step that few sentences reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinStep {
    /// The step, from 0.
    pub step: usize,
    /// How often it was reached.
    pub count: u64,
}

/// A token that stands in few places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinToken {
    /// Its name.
    pub word: String,
    /// How often it was seen.
    pub count: u64,
}

/// Shares of variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VarianceReport {
    /// Only the step.
    pub time: f64,
    /// Only the token.
    pub token: f64,
    /// Either.
    pub shared: f64,
    /// Neither, under the estimator.
    pub rest: f64,
}

/// What components were fitted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsReport {
    /// States.
    pub states: u64,
    /// Steps.
    pub steps: usize,
    /// Distinct tokens.
    pub tokens: usize,
    /// Steps seen fewer than five times.
    pub few_steps: usize,
    /// Tokens seen fewer than five times.
    pub few_tokens: usize,
    /// Connected pieces of the token × step graph.
    pub pieces: usize,
    /// Observations that alone hold pieces together.
    pub weak_links: u64,
}

/// Two sides of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sides<T> {
    /// The states that are asked.
    pub key: T,
    /// The states that ask.
    pub query: T,
}

/// One attention head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    /// `cross`, `encoder-self` or `decoder-self`.
    pub kind: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// How scores are formed.
    pub map: String,
    /// What explains the variance of its two streams.
    pub variance: Sides<VarianceReport>,
    /// What their components were fitted from.
    pub counts: Sides<CountsReport>,
    /// How exactly the pieces add up.
    pub error: ErrorReport,
    /// What each piece contributes; null where the error is too large.
    pub shares: Option<SharesReport>,
    /// Attention rebuilt from some pieces, and baselines.
    pub rebuilt: BTreeMap<String, Rebuilt>,
    /// What untrained weights of the same shape give; null if not asked for.
    pub control: Option<SharesReport>,
    /// Shares by query step.
    pub by_step: Option<ByStep>,
    /// 95 % intervals from resampled sentences; null if not asked for.
    pub intervals: Option<Intervals>,
    /// How well the average attention stands for a sentence.
    pub average_attention: AverageReport,
    /// Mean entropy of a row over the logarithm of the keys it sees: 0 where one key has all weight, 1 where all have the same.
    #[serde(default)]
    pub entropy: f64,
    /// Whether attention runs along a diagonal; null without a content step.
    pub diagonal: Option<DiagonalReport>,
    /// Share of the weight along the heaviest path that never goes back, what a key gets anyway left out; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotone: Option<f64>,
    /// What drives it, in words.
    pub verdict: Verdict,
}

/// How exactly the pieces add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// Largest |sum of pieces − score| over the largest |score|.
    pub score: f64,
    /// Largest |softmax of the sum − the model's own attention|; null where that was not recorded.
    pub attention: Option<f64>,
}

impl ErrorReport {
    /// The larger of the two; infinite where one is no number.
    pub fn worst(&self) -> f64 {
        let both = [self.score, self.attention.unwrap_or(0.0)];
        if both.iter().any(|error| error.is_nan()) { f64::INFINITY } else { both[0].max(both[1]) }
    }
}

/// What each piece contributes. Rows of the tables: the query's part; columns: the key's; order temporal, input, residual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharesReport {
    /// Tables by measure: `top1`, `top3`, `topK`, with `_signed` and `_centred`, and `centred`; for bilinear maps.
    #[serde(flatten)]
    pub tables: BTreeMap<String, [[f64; 3]; 3]>,
    /// The same for additive maps: three parts of the query, three of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Sides<[f64; 3]>>,
    /// Centred share of the bias of positions.
    pub position_bias: f64,
    /// Its shares at the highest scores by measure, which add up to 1 with those of the tables; empty where there is no such bias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub position_bias_top: BTreeMap<String, f64>,
    /// Of the centred shares of the query's temporal part what comes from its mean: by part of the key, or one number for additive maps,
    /// which know no pairs of parts.
    pub query_mean: Vec<f64>,
}

impl SharesReport {
    /// Centred shares of what both sides owe to step, token and the rest alone, and of the query's mean with the key's temporal part: what
    /// is the same at every step. Of an additive score nothing is, since the mean passes through its tanh together with the rest.
    pub fn totals(&self) -> ([f64; 3], f64) {
        if let Some(parts) = self.parts.get("centred") {
            let of = |part: usize| parts.query[part] + parts.key[part];
            return ([of(0), of(1), of(2)], 0.0);
        }
        let table = self.tables.get("centred").copied().unwrap_or_default();
        ([table[0][0], table[1][1], table[2][2]], self.query_mean.first().copied().unwrap_or(0.0))
    }
}

/// Attention rebuilt from some pieces, compared with the true one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// Total variation.
    pub tv: f64,
    /// Divergence of the true one from it, nats.
    pub kl: f64,
    /// Share of steps with the maximum at the same key.
    pub argmax: f64,
    /// The same for steps before the end token.
    pub content: ContentCloseness,
    /// The model run with it in place: word accuracy, loss and more; each null where it was not run.
    #[serde(flatten, serialize_with = "causal_or_nulls")]
    pub causal: Option<Causal>,
}

/// The fields of [`Causal`], null without one.
fn causal_or_nulls<S: serde::Serializer>(causal: &Option<Causal>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Default, Serialize)]
    struct NotRun {
        accuracy: Option<f64>,
        phrase_accuracy: Option<f64>,
        content_word_accuracy: Option<f64>,
        loss: Option<f64>,
        changed: Option<f64>,
    }
    match causal {
        Some(causal) => causal.serialize(serializer),
        None => NotRun::default().serialize(serializer),
    }
}

/// Closeness on the steps before the end token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentCloseness {
    /// Total variation.
    pub tv: f64,
    /// Divergence, nats.
    pub kl: f64,
    /// Share of steps with the maximum at the same key.
    pub argmax: f64,
}

/// The model run under a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Causal {
    /// Share of steps right.
    #[serde(rename = "accuracy")]
    pub word_accuracy: f64,
    /// Share of sentences right.
    pub phrase_accuracy: f64,
    /// Share of steps right before the end token.
    pub content_word_accuracy: f64,
    /// Mean cross-entropy, nats.
    pub loss: f64,
    /// Share of predictions that changed.
    pub changed: f64,
}

/// Shares by query step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByStep {
    /// Rows at each step.
    pub rows: Vec<f64>,
    /// Tables, or six numbers, by measure, then step.
    #[serde(flatten)]
    pub measures: BTreeMap<String, Vec<Vec<f64>>>,
    /// Shares of the bias of positions by measure, then step; empty where there is no such bias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub position_bias: BTreeMap<String, Vec<f64>>,
    /// By step, as in [`SharesReport`].
    #[serde(default)]
    pub query_mean: Vec<Vec<f64>>,
}

/// 95 % intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// Resamples.
    pub resamples: usize,
    /// By measure, then piece: low and high.
    #[serde(flatten)]
    pub shares: BTreeMap<String, Vec<[f64; 2]>>,
    /// Of the bias of positions at the highest scores, by measure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub position_bias_top: BTreeMap<String, [f64; 2]>,
    /// By rebuilt attention: total variation, divergence, argmax.
    pub rebuilt: BTreeMap<String, [[f64; 2]; 3]>,
    /// Of the shares by step; absent where they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_step: Option<StepIntervals>,
}

/// 95 % intervals of the shares by query step. At a step that few sentences reach, of the resamples that drew one of them; none where no
/// resample did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepIntervals {
    /// Resamples that drew a sentence with this step.
    pub resamples: Vec<usize>,
    /// By measure, step and piece: low and high.
    #[serde(flatten)]
    pub measures: BTreeMap<String, Vec<Vec<[f64; 2]>>>,
    /// Of the shares of the bias of positions by measure, then step; empty where there is no such bias.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub position_bias: BTreeMap<String, Vec<Vec<[f64; 2]>>>,
    /// By step, as in [`SharesReport`].
    pub query_mean: Vec<Vec<[f64; 2]>>,
}

/// How well the average attention stands for a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AverageReport {
    /// Mean total variation of a sentence's attention from the average.
    pub tv: f64,
    /// That over the total variation of the uniform attention: 0 where the average says all, 1 where it says no more than uniform.
    pub tv_over_uniform: f64,
}

/// A diagonal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiagonalReport {
    /// `forward` (key = query + offset) or `backward` (key = last content key − query + offset).
    pub direction: String,
    /// The offset most content steps share.
    pub offset: i64,
    /// Share of content steps that do.
    pub share: f64,
}

/// What drives a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// One or two words.
    pub label: String,
    /// A sentence.
    pub text: String,
}

/// Sentences worth a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// `drift`, `coverage`, `entropy` or `loss`.
    pub by: String,
    /// The worst first.
    pub sentences: Vec<Ranked>,
}

/// A sentence worth a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Its number in the corpus.
    pub number: u64,
    /// How bad it is.
    pub value: f64,
    /// Its source, as text.
    pub source: String,
    /// What the model wrote.
    pub predicted: String,
    /// What it should have written, if known.
    pub target: Option<String>,
}
