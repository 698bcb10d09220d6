//! Corpora in memory, built from known parts.

use std::ops::Range;

use crosslens_analysis::explain::{Corpus, CorpusError, Explained, Options, explain};
use crosslens_analysis::{
    Consumed, Description, Linear, Recordable, Recorded, RelativeBias, ScoreMap, Side, Site, SiteKind, Stream, Token, Visible, Words,
};

/// Dimensions of every state.
pub(crate) const D: usize = 5;
/// Place of the query's and of the key's stream.
pub(crate) const QUERY: usize = 0;
pub(crate) const KEY: usize = 1;

/// Numbers that look random and are the same every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03);
        random.uniform();
        random
    }

    /// From 0 to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 29);
        (x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Mean 0, variance 1, nearly normal.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub(crate) fn vector(&mut self, n: usize, size: f64) -> Vec<f64> {
        (0..n).map(|_| size * self.normal()).collect()
    }
}

/// How large the parts of a stream are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) time: f64,
    pub(crate) token: f64,
    pub(crate) rest: f64,
}

/// A corpus to be planted.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) n_sentences: usize,
    pub(crate) lengths: Range<usize>,
    pub(crate) n_words: usize,
    pub(crate) sizes: Sizes,
}

impl Default for Plan {
    fn default() -> Self {
        Self { seed: 1, n_sentences: 40, lengths: 3..7, n_words: 4, sizes: Sizes { time: 1.0, token: 1.0, rest: 0.5 } }
    }
}

/// The parts one stream was built from.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) temporal: Vec<Vec<f64>>,
    pub(crate) input: Vec<Vec<f64>>,
}

/// Recorded sentences in memory; there is no model to run again.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) description: Description,
    pub(crate) sentences: Vec<Recorded>,
    /// By stream.
    pub(crate) truth: Vec<Truth>,
}

impl Corpus for Planted {
    fn description(&self) -> &Description {
        &self.description
    }

    fn n_sentences(&self) -> u64 {
        self.sentences.len() as u64
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        Ok(self.sentences[sentences.start as usize..sentences.end as usize].to_vec())
    }

    fn model(&self) -> Option<&dyn Recordable> {
        None
    }
}

impl Planted {
    /// Random words and parts, under the given score maps, one head each.
    pub(crate) fn of(plan: &Plan, maps: Vec<ScoreMap>) -> Self {
        let mut random = Random::new(plan.seed);
        let description = description(plan.n_words, maps);
        let truth: Vec<Truth> = (0..2)
            .map(|_| Truth {
                temporal: (0..plan.lengths.end).map(|_| random.vector(D, plan.sizes.time)).collect(),
                input: (0..=plan.n_words).map(|_| random.vector(D, plan.sizes.token)).collect(),
            })
            .collect();
        let mut planted = Self { description, sentences: Vec::new(), truth };
        for number in 0..plan.n_sentences {
            let n_steps = plan.lengths.start + random.below(plan.lengths.len());
            let mut words = |n: usize| -> Vec<Token> {
                let content = (1..n).map(|_| 1 + random.below(plan.n_words - 1) as Token).collect::<Vec<_>>();
                content.into_iter().chain([END]).collect()
            };
            let (source, target) = (words(n_steps), words(n_steps));
            planted.push(number as u64, source, target, plan.sizes.rest, &mut random);
        }
        planted
    }

    /// Adds a sentence: states from the planted parts and noise, attention from its own scores.
    pub(crate) fn push(&mut self, number: u64, source: Vec<Token>, target: Vec<Token>, rest: f64, random: &mut Random) {
        let start = self.description.target.start.expect("there is a start token");
        let fed: Vec<Token> = std::iter::once(start).chain(target.iter().copied()).take(target.len()).collect();
        let mut states = |stream: usize, tokens: &[Token]| -> Vec<f32> {
            let truth = &self.truth[stream];
            let parts = tokens.iter().enumerate().flat_map(|(step, &token)| truth.temporal[step].iter().zip(&truth.input[token as usize]));
            parts.map(|(mu, chi)| (mu + chi + rest * random.normal()) as f32).collect()
        };
        let states = vec![states(QUERY, &fed), states(KEY, &source)];
        let sentence = Recorded {
            number,
            source,
            signal: None,
            fed,
            predicted: target.clone(),
            target: Some(target),
            loss: Some(0.25),
            states,
            attention: Vec::new(),
        };
        self.sentences.push(sentence);
        self.attend(self.sentences.len() - 1);
    }

    /// Works out a sentence's attention again.
    pub(crate) fn attend(&mut self, sentence: usize) {
        let sites = self.description.sites.iter();
        self.sentences[sentence].attention = sites.map(|site| attention(site, &self.sentences[sentence])).collect();
    }

    /// Replaces every state of a stream, and attention with it.
    pub(crate) fn change(&mut self, stream: usize, change: impl Fn(&mut [f32])) {
        for number in 0..self.sentences.len() {
            self.sentences[number].states[stream].chunks_exact_mut(D).for_each(&change);
            self.attend(number);
        }
    }

    pub(crate) fn explain(&self, options: &Options) -> Explained {
        explain(self, None, options, &mut |_| ()).expect("an explanation")
    }
}

/// The token that ends sentences.
pub(crate) const END: Token = 0;

fn description(n_words: usize, maps: Vec<ScoreMap>) -> Description {
    let words = |count: usize, start| Words { count: count as u32, names: Vec::new(), start, end: Some(END) };
    let stream = |name: &str, side| Stream { name: name.into(), side, consumed: Consumed::Current, d: D };
    let site =
        |(head, map)| Site { kind: SiteKind::Cross, layer: 0, head, query: QUERY, key: KEY, map, visible: Visible::All, value: None };
    Description {
        model: "planted".into(),
        model_hash: "none".into(),
        source: words(n_words, None),
        target: words(n_words + 1, Some(n_words as Token)),
        streams: vec![stream("decoder", Side::Target), stream("encoder", Side::Source)],
        sites: maps.into_iter().enumerate().map(site).collect(),
        readout: None,
    }
}

pub(crate) fn dot() -> ScoreMap {
    ScoreMap::Dot { scale: 1.0 }
}

/// One of every kind.
pub(crate) fn every_map(seed: u64) -> Vec<ScoreMap> {
    let mut random = Random::new(seed ^ 0xA11);
    let mut linear = |d_out: usize, has_bias: bool| {
        let mut floats = |n: usize| random.vector(n, 0.5).iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let (weights, bias) = (floats(D * d_out), if has_bias { floats(d_out) } else { Vec::new() });
        Linear { d_in: D, d_out, weights, bias }
    };
    let vector = vec![1.0, -0.75, 0.5, 1.5];
    let position_bias = RelativeBias { lowest: -2, values: vec![-1.0, 0.25, 1.5, 0.5, -0.5] };
    vec![
        dot(),
        ScoreMap::Dot { scale: 0.375 },
        ScoreMap::Bilinear { query: linear(D, false) },
        ScoreMap::Projected { query: linear(3, true), key: linear(3, true), scale: 0.5, position_bias: None },
        ScoreMap::Projected { query: linear(3, true), key: linear(3, true), scale: 0.5, position_bias: Some(position_bias.into()) },
        ScoreMap::Additive { query: linear(4, false), key: linear(4, true), vector },
    ]
}

pub(crate) fn affine(linear: &Linear, x: &[f64]) -> Vec<f64> {
    let bias = |column: usize| linear.bias.get(column).map_or(0.0, |&b| f64::from(b));
    let column = |column: usize| -> f64 {
        x.iter().enumerate().map(|(row, x)| x * f64::from(linear.weights[row * linear.d_out + column])).sum::<f64>() + bias(column)
    };
    (0..linear.d_out).map(column).collect()
}

pub(crate) fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A score by the book.
pub(crate) fn score(map: &ScoreMap, z: &[f64], h: &[f64], query: usize, key: usize) -> f64 {
    match map {
        ScoreMap::Dot { scale } => product(z, h) * f64::from(*scale),
        ScoreMap::Bilinear { query } => product(&affine(query, z), h),
        ScoreMap::Projected { query: by_query, key: by_key, scale, position_bias } => {
            let bias = position_bias.as_ref().map_or(0.0, |bias| f64::from(bias.at(query, key)));
            product(&affine(by_query, z), &affine(by_key, h)) * f64::from(*scale) + bias
        }
        ScoreMap::Additive { query: by_query, key: by_key, vector } => {
            let sums = affine(by_query, z).into_iter().zip(affine(by_key, h));
            sums.zip(vector).map(|((a, b), &v)| f64::from(v) * (a + b).tanh()).sum()
        }
    }
}

pub(crate) fn rows(states: &[f32]) -> Vec<Vec<f64>> {
    states.chunks_exact(D).map(|state| state.iter().map(|&x| f64::from(x)).collect()).collect()
}

/// Attention by the book, `[query, key]`.
fn attention(site: &Site, sentence: &Recorded) -> Vec<f32> {
    let (queries, keys) = (rows(&sentence.states[site.query]), rows(&sentence.states[site.key]));
    let mut attention = Vec::new();
    for (query, z) in queries.iter().enumerate() {
        let n_visible = site.visible.n_keys(query, keys.len());
        let scores: Vec<f64> = keys[..n_visible].iter().enumerate().map(|(key, h)| score(&site.map, z, h, query, key)).collect();
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
        let seen = scores.iter().map(|score| ((score - highest).exp() / total) as f32);
        attention.extend(seen.chain(std::iter::repeat_n(0.0, keys.len() - n_visible)));
    }
    attention
}
