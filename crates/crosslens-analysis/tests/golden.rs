//! Components, terms, shares and rebuilt attention against an independent NumPy program, `tests/golden/make_analysis.py`.
//!
//! Everything is computed in `f64` from states that `f32` holds exactly; the tolerance of 1e-9 leaves room for sums in another order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_analysis::{
    AverageAttention, Breakdown, ClosenessTally, Components, Consumed, Description, Estimator, Linear, Part, Recorded, RelativeBias,
    ScoreMap, ShareTally, Shrinkage, Side, Site, SiteKind, SiteSplit, Stream, Subset, Sums, Token, TopShare, Visible, WordVariance, Words,
};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;
/// Words' variances are taken about components in `f32`, whose own rounding, 6e-8 of a state, is all that may differ.
const F32_TOLERANCE: f64 = 1e-5;

struct Case {
    name: String,
    arrays: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
    scalars: Value,
}

impl Case {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the case is committed");
        let file = SafeTensors::deserialize(&bytes).expect("the case is a safetensors file");
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("it has metadata");
        let metadata = metadata.metadata().clone().expect("it has metadata");
        let mut arrays = BTreeMap::new();
        for (name, view) in file.tensors() {
            let numbers = view.data().as_chunks::<8>().0.iter();
            let values = match view.dtype() {
                Dtype::F64 => numbers.map(|bytes| f64::from_le_bytes(*bytes)).collect(),
                Dtype::I64 => numbers.map(|bytes| i64::from_le_bytes(*bytes) as f64).collect(),
                other => panic!("{name} is {other:?}"),
            };
            arrays.insert(name, (view.shape().to_vec(), values));
        }
        Self { name: metadata["case"].clone(), arrays, scalars: serde_json::from_str(&metadata["scalars"]).expect("scalars are JSON") }
    }

    fn get(&self, name: &str) -> &[f64] {
        &self.arrays.get(name).unwrap_or_else(|| panic!("{}: no array {name}", self.name)).1
    }

    fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    fn tokens(&self, name: &str) -> Vec<Token> {
        self.get(name).iter().map(|&x| x as Token).collect()
    }

    fn linear(&self, side: &str) -> Linear {
        let (shape, weights) = &self.arrays[&format!("{side}_weights")];
        let floats = |values: &[f64]| values.iter().map(|&x| x as f32).collect();
        let bias = self.arrays.get(&format!("{side}_bias")).map_or(Vec::new(), |(_, bias)| floats(bias));
        Linear { d_in: shape[0], d_out: shape[1], weights: floats(weights), bias }
    }

    fn map(&self) -> ScoreMap {
        let scale = self.scalars["scale"].as_f64().unwrap_or(1.0) as f32;
        match self.scalars["map"].as_str().expect("the map has a name") {
            "dot" | "scaled-dot" => ScoreMap::Dot { scale },
            "general" => ScoreMap::Bilinear { query: self.linear("query") },
            "projected" => {
                let values = self.has("position_bias_values").then(|| self.get("position_bias_values"));
                let position_bias = values.map(|values| RelativeBias {
                    lowest: self.scalars["lowest"].as_i64().expect("a bias has a lowest distance"),
                    values: values.iter().map(|&x| x as f32).collect(),
                });
                let position_bias = position_bias.map(Into::into);
                ScoreMap::Projected { query: self.linear("query"), key: self.linear("key"), scale, position_bias }
            }
            "additive" => {
                let vector = self.get("vector").iter().map(|&x| x as f32).collect();
                ScoreMap::Additive { query: self.linear("query"), key: self.linear("key"), vector }
            }
            other => panic!("unknown map {other}"),
        }
    }

    fn side(&self, name: &str) -> Side {
        if self.scalars[name] == "source" { Side::Source } else { Side::Target }
    }

    fn description(&self) -> Description {
        // The cases count `<init>` among the tokens; here it is numbered one past them.
        let words = |count: &str, end: &str| Words {
            count: self.scalars["init"].as_u64().unwrap_or_else(|| self.scalars[count].as_u64().expect("a count")) as u32,
            names: Vec::new(),
            start: None,
            end: self.scalars[end].as_u64().map(|end| end as Token),
        };
        let d = |name: &str| self.arrays[name].0[1];
        let consumed = if self.scalars["init"].is_null() { Consumed::Current } else { Consumed::Previous };
        let stream = |name: &str, side: Side, consumed| Stream { name: name.into(), side, consumed, d: d(&format!("{name}_states")) };
        let visible = if self.scalars["visible"] == "causal" { Visible::Causal } else { Visible::All };
        Description {
            model: self.name.clone(),
            model_hash: String::new(),
            source: words("n_source_tokens", "end_source"),
            target: words("n_target_tokens", "end_target"),
            streams: vec![stream("query", self.side("query_side"), consumed), stream("key", self.side("key_side"), Consumed::Current)],
            sites: vec![Site { kind: SiteKind::Cross, layer: 0, head: 0, query: 0, key: 1, map: self.map(), visible, value: None }],
            readout: None,
        }
    }

    fn sentences(&self, description: &Description) -> Vec<Recorded> {
        let (source, fed) = (self.tokens("source"), self.tokens("fed"));
        let (mut source_row, mut target_row) = (0, 0);
        let mut sentences = Vec::new();
        let lengths = self.get("source_lengths").iter().zip(self.get("target_lengths"));
        for (number, (&n_source, &n_target)) in lengths.enumerate() {
            let (n_source, n_target) = (n_source as usize, n_target as usize);
            let states = ["query", "key"].iter().zip(&description.streams).map(|(name, stream)| {
                let (from, n) = if stream.side == Side::Source { (source_row, n_source) } else { (target_row, n_target) };
                self.get(&format!("{name}_states"))[from * stream.d..(from + n) * stream.d].iter().map(|&x| x as f32).collect()
            });
            sentences.push(Recorded {
                number: number as u64,
                source: source[source_row..source_row + n_source].to_vec(),
                fed: fed[target_row..target_row + n_target].to_vec(),
                states: states.collect(),
                ..Recorded::default()
            });
            source_row += n_source;
            target_row += n_target;
        }
        sentences
    }

    fn compare(&self, name: &str, found: &[f64]) {
        self.compare_within(TOLERANCE, name, found);
    }

    fn compare_within(&self, tolerance: f64, name: &str, found: &[f64]) {
        let expected = self.get(name);
        assert_eq!(found.len(), expected.len(), "{}: length of {name}", self.name);
        for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs();
            assert!(error <= tolerance * (1.0 + expected.abs()), "{}: {name}[{place}] is {found}, expected {expected}", self.name);
        }
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/cases");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("cases are committed").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 10, "all cases are there");
    paths.iter().map(|path| Case::read(path)).collect()
}

fn sums(case: &Case, description: &Description, sentences: &[Recorded]) -> Vec<Sums> {
    let names = ["query", "key"];
    let mut sums: Vec<Sums> = description.streams.iter().map(|stream| Sums::new(stream.d)).collect();
    for (number, stream) in description.streams.iter().enumerate() {
        let mut consumed = Vec::new();
        for sentence in sentences {
            let tokens = sentence.tokens(stream, description.words(stream.side));
            sums[number].add(&tokens, &sentence.states[number]);
            consumed.extend_from_slice(&tokens);
        }
        assert_eq!(consumed, case.tokens(&format!("{}_tokens", names[number])), "{}: tokens consumed", case.name);
    }
    sums
}

fn flat(components: &Components<f64>, seen: &[Token]) -> (Vec<f64>, Vec<f64>) {
    let temporal = (0..components.n_steps()).flat_map(|step| components.temporal(step).to_vec()).collect();
    (temporal, seen.iter().flat_map(|&token| components.input(token).to_vec()).collect())
}

fn estimators(case: &Case) -> Vec<(&'static str, Estimator, Shrinkage)> {
    let mut all = vec![("paper", Estimator::Paper, Shrinkage::None), ("joint", Estimator::Joint, Shrinkage::None)];
    if let Some(lambda) = case.scalars["lambda"].as_f64() {
        all.push(("joint_shrunk", Estimator::Joint, Shrinkage::Given(lambda)));
    }
    all
}

#[test]
fn components_and_variance_are_those_of_explicit_regressions() {
    for case in cases() {
        let description = case.description();
        let sentences = case.sentences(&description);
        for (side, sums) in ["query", "key"].iter().zip(sums(&case, &description, &sentences)) {
            let seen = case.tokens(&format!("{side}.seen"));
            assert_eq!(sums.token_counts().iter().map(|&(token, _)| token).collect::<Vec<_>>(), seen);
            for (name, estimator, shrinkage) in estimators(&case) {
                let fit = sums.fit(estimator, shrinkage).expect("the case has states");
                let (temporal, input) = flat(&fit.components, &seen);
                case.compare(&format!("{name}.{side}.temporal"), &temporal);
                case.compare(&format!("{name}.{side}.input"), &input);
                assert_eq!(fit.connections.n_pieces as u64, case.scalars[format!("{side}_components")].as_u64().expect("a count"));
            }
            let paper = sums.variance(Estimator::Paper, 0.0).expect("the case has states");
            let joint = sums.variance(Estimator::Joint, 0.0).expect("the case has states");
            case.compare(&format!("{side}.variance"), &[joint.time, joint.token, joint.shared, paper.rest, joint.rest]);
        }
    }
}

#[test]
fn words_vary_as_the_definitions_say() {
    for case in cases() {
        let description = case.description();
        let sentences = case.sentences(&description);
        let sums = sums(&case, &description, &sentences);
        for (number, side) in ["query", "key"].into_iter().enumerate() {
            let excluded = case.scalars["word_variance_excludes"][side].as_array().expect("a list of tokens");
            let is_excluded = |token: Token| excluded.iter().any(|other| other.as_u64() == Some(token.into()));
            let components = sums[number].fit::<f32>(Estimator::Paper, Shrinkage::None).expect("the case has states").components;
            let mut variance = WordVariance::default();
            for sentence in &sentences {
                let stream = &description.streams[number];
                let tokens = sentence.tokens(stream, description.words(stream.side));
                variance.add(&tokens, &sentence.states[number], &components, is_excluded);
            }
            let means = variance.means(&sums[number], &components).expect("words occur twice");
            case.compare_within(F32_TOLERANCE, &format!("{side}.word_variance"), &means);
        }
    }
}

#[test]
fn terms_and_shares_are_those_of_the_definitions() {
    for case in cases() {
        let description = case.description();
        let sentences = case.sentences(&description);
        let sums = sums(&case, &description, &sentences);
        let is_additive = case.scalars["map"] == "additive";
        for (name, estimator, shrinkage) in estimators(&case) {
            let fit = |number: usize| sums[number].fit::<f64>(estimator, shrinkage).expect("the case has states").components;
            let (query, key) = (fit(0), fit(1));
            let split = SiteSplit::new(&description, &description.sites[0], &query, &key).expect("sizes fit");
            let mut breakdown = Breakdown::default();
            let n_pieces = if is_additive { 6 } else { 9 };
            let mut by_step: Vec<ShareTally> = Vec::new();
            let (mut pieces, mut direct, mut bias) = (Vec::new(), Vec::new(), Vec::new());
            let (mut score, mut scores) = (Vec::new(), Vec::new());
            for sentence in &sentences {
                split.split(sentence, &mut breakdown);
                split.scores(sentence, &breakdown, &mut scores);
                assert_eq!(breakdown.n_pieces(), n_pieces);
                for query in 0..breakdown.n_queries() {
                    breakdown.sum(Subset::all(is_additive), query, &mut score);
                    for key in 0..breakdown.n_visible(query) {
                        pieces.extend((0..n_pieces).map(|piece| breakdown.piece(piece, query)[key]));
                        let added = breakdown.bias(query).get(key).copied().unwrap_or(0.0);
                        direct.push(scores[query * breakdown.n_keys() + key] - added);
                        bias.push(added);
                    }
                    if by_step.len() <= query {
                        by_step.resize(query + 1, ShareTally::new(n_pieces, &[1, 3]));
                    }
                    by_step[query].add_row(&breakdown, query, &score);
                }
            }
            case.compare(&format!("{}.{name}", if is_additive { "parts" } else { "terms" }), &pieces);
            case.compare("scores", &direct);
            let mut total = ShareTally::new(n_pieces, &[1, 3]);
            by_step.iter().for_each(|step| total.add(step, 1.0));
            // Nine or six numbers, and one of the bias where there is one.
            let with_bias =
                |top: &TopShare| top.pieces.iter().copied().chain(case.has("position_bias").then_some(top.bias)).collect::<Vec<_>>();
            let top = total.top();
            case.compare(&format!("shares.{name}.top1"), &with_bias(&top[0].absolute));
            case.compare(&format!("shares.{name}.top1_signed"), &with_bias(&top[0].signed));
            case.compare(&format!("shares.{name}.top1_centred"), &with_bias(&top[0].centred));
            case.compare(&format!("shares.{name}.top3"), &with_bias(&top[1].absolute));
            case.compare(&format!("shares.{name}.top3_centred"), &with_bias(&top[1].centred));
            let top: Vec<f64> = by_step.iter().flat_map(|step| with_bias(&step.top()[0].absolute)).collect();
            case.compare(&format!("by_step.{name}.top1"), &top);
            case.compare(&format!("shares.{name}.query_mean"), &total.query_mean());
            if is_additive {
                case.compare(&format!("shares.{name}.parts"), &total.centred());
                continue;
            }
            if case.has("position_bias") {
                case.compare("position_bias", &bias);
            }
            case.compare(&format!("shares.{name}.centred"), &total.centred());
            case.compare(&format!("shares.{name}.centred_position_bias"), &[total.centred_bias()]);
            let centred: Vec<f64> = by_step.iter().flat_map(ShareTally::centred).collect();
            case.compare(&format!("by_step.{name}.centred"), &centred);
        }
    }
}

#[test]
fn rebuilt_attention_is_as_close_as_the_definitions_say() {
    for case in cases() {
        let description = case.description();
        let sentences = case.sentences(&description);
        let sums = sums(&case, &description, &sentences);
        let is_additive = case.scalars["map"] == "additive";
        let fit = |number: usize| sums[number].fit::<f64>(Estimator::Paper, Shrinkage::None).expect("the case has states").components;
        let (query, key) = (fit(0), fit(1));
        let split = SiteSplit::new(&description, &description.sites[0], &query, &key).expect("sizes fit");
        let mut subsets = vec![
            ("rebuilt.temporal", Subset::made_of(&[Part::Temporal], is_additive)),
            ("rebuilt.temporal+input", Subset::made_of(&[Part::Temporal, Part::Input], is_additive)),
        ];
        if !is_additive {
            subsets.push(("rebuilt.no-temporal", Subset::without_temporal(false)));
        }
        if case.has("position_bias") {
            subsets.push(("rebuilt.temporal+bias", Subset::made_of(&[Part::Temporal], false).with_bias()));
        }
        let mut average = AverageAttention::default();
        let (mut breakdown, mut row, mut all) = (Breakdown::default(), Vec::new(), Vec::new());
        let mut weights_of = |sentence: &Recorded, subset: Subset, look: &mut dyn FnMut(usize, &[f64])| {
            split.split(sentence, &mut breakdown);
            for query in 0..breakdown.n_queries() {
                breakdown.sum(subset, query, &mut row);
                crosslens_kernels::softmax(&mut row);
                look(query, &row);
            }
        };
        let mut truth: Vec<Vec<Vec<f64>>> = Vec::new();
        for sentence in &sentences {
            let mut rows = Vec::new();
            weights_of(sentence, Subset::all(is_additive), &mut |query, row| {
                average.add_row(query, row);
                rows.push(row.to_vec());
                all.extend_from_slice(row);
            });
            truth.push(rows);
        }
        case.compare("attention", &all);
        for (name, subset) in subsets {
            let mut tally = ClosenessTally::default();
            for (sentence, truth) in sentences.iter().zip(&truth) {
                weights_of(sentence, subset, &mut |query, row| tally.add_row(&truth[query], row));
            }
            let mean = tally.mean();
            case.compare(name, &[mean.total_variation, mean.kl, mean.argmax]);
        }
        let (mut uniform, mut mean) = (ClosenessTally::default(), ClosenessTally::default());
        for rows in &truth {
            for (query, row) in rows.iter().enumerate() {
                uniform.add_row(row, &vec![1.0 / row.len() as f64; row.len()]);
                let mut other = Vec::new();
                average.row(query, row.len(), &mut other);
                mean.add_row(row, &other);
            }
        }
        for (name, tally) in [("rebuilt.uniform", uniform), ("rebuilt.average", mean)] {
            case.compare(name, &[tally.mean().total_variation, tally.mean().kl, tally.mean().argmax]);
        }
    }
}
