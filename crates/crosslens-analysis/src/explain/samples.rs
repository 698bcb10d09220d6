//! What the page needs of single sentences.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::scene::{CodeExamples, Scene};
use crate::{AverageAttention, Breakdown, Description, N_TERMS, Recorded, ScoreMap, Side, SiteSplit, Token, Visible};

/// Some sentences in full.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The sentences.
    pub sentences: Vec<Sample>,
    /// By site: the average attention, `[query step, key step]`.
    pub averages: Vec<Vec<Vec<f64>>>,
    /// Names of the source's tokens in these sentences.
    pub source: TokenNames,
    /// Names of the target's.
    pub target: TokenNames,
    /// By site: which keys a query may see; all where the list ends.
    pub visible: Vec<Visible>,
    /// What codes of the source stand for, where they are codes of frames or patches.
    pub codes: Vec<CodeExamples>,
    /// By sentence, then site: mean total variation of its attention from the average; empty where there is no average.
    pub distances: Vec<Vec<f64>>,
}

/// Names of the tokens that stand in some sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenNames {
    /// By token.
    pub names: BTreeMap<Token, String>,
    /// The token that begins what the decoder reads.
    pub start: Option<Token>,
    /// The token that ends a sentence.
    pub end: Option<Token>,
}

impl TokenNames {
    /// A token's name, or its number where it has none.
    pub fn name(&self, token: Token) -> Cow<'_, str> {
        match self.names.get(&token) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("#{token}")),
        }
    }
}

impl Samples {
    /// Sentences of a model, with the names of their tokens.
    pub(super) fn new(description: &Description, sentences: Vec<Sample>, averages: Vec<Vec<Vec<f64>>>) -> Self {
        let names = |side: Side| {
            let words = description.words(side);
            let of = |sample: &Sample| -> Vec<Token> {
                let sentence = &sample.sentence;
                match side {
                    Side::Source => sentence.source.clone(),
                    Side::Target => {
                        [&sentence.fed, &sentence.predicted, sentence.target.as_ref().unwrap_or(&Vec::new())].map(Vec::as_slice).concat()
                    }
                }
            };
            let tokens = sentences.iter().flat_map(of).chain(words.start).chain(words.end);
            TokenNames { names: tokens.map(|token| (token, words.name(token).into_owned())).collect(), start: words.start, end: words.end }
        };
        let (source, target) = (names(Side::Source), names(Side::Target));
        let visible = description.sites.iter().map(|site| site.visible).collect();
        Self { sentences, averages, source, target, visible, codes: Vec::new(), distances: Vec::new() }
    }
}

/// One sentence in full.
#[derive(Clone, Debug)]
pub struct Sample {
    /// As it was recorded, without its states.
    pub sentence: Recorded,
    /// By site: query steps and key steps.
    pub shapes: Vec<(usize, usize)>,
    /// By site: attention, `[query, key]`, zero where a key may not be seen.
    pub attention: Vec<Vec<f32>>,
    /// By site: `[piece, query, key]`.
    pub pieces: Vec<Vec<f32>>,
    /// By site: the bias of positions, `[query, key]`; empty where there is none.
    pub bias: Vec<Vec<f32>>,
    /// By site: `‖α·V h‖`, `[query, key]`: how much each key adds to what attention sums; empty where that is not known.
    pub value_weighted: Vec<Vec<f32>>,
    /// What its source looks or sounds like, where it is no text.
    pub scene: Option<Scene>,
}

impl Sample {
    /// Bytes that a sentence takes once it is split at every site: attention, its pieces, what they bring, and biases.
    pub(super) fn n_bytes(description: &Description, sentence: &Recorded) -> usize {
        let steps = |stream: usize| sentence.n_steps(description.streams[stream].side);
        let cells = description.sites.iter().map(|site| steps(site.query).saturating_mul(steps(site.key)));
        cells.fold(0, usize::saturating_add).saturating_mul((N_TERMS + 3) * size_of::<f32>())
    }

    /// Splits a sentence at every site.
    pub(super) fn of(description: &Description, splits: &[SiteSplit<'_, f32>], sentence: &Recorded) -> Self {
        Self::at(description, splits.iter().enumerate(), sentence)
    }

    /// Splits a sentence at some sites, each with its number.
    pub(super) fn at<'s>(
        description: &Description,
        splits: impl Iterator<Item = (usize, &'s SiteSplit<'s, f32>)>,
        sentence: &Recorded,
    ) -> Self {
        let mut sample = Self {
            sentence: Recorded { states: Vec::new(), attention: Vec::new(), ..sentence.clone() },
            shapes: Vec::new(),
            attention: Vec::new(),
            pieces: Vec::new(),
            bias: Vec::new(),
            value_weighted: Vec::new(),
            scene: None,
        };
        let mut breakdown = Breakdown::default();
        let (mut score, mut weights) = (Vec::new(), Vec::new());
        for (number, split) in splits {
            split.split(sentence, &mut breakdown);
            let (n_queries, n_keys) = (breakdown.n_queries(), breakdown.n_keys());
            let mut attention = vec![0.0; n_queries * n_keys];
            let mut pieces = vec![0.0; breakdown.n_pieces() * n_queries * n_keys];
            let mut bias = vec![0.0; if split.site().map.position_bias().is_some() { n_queries * n_keys } else { 0 }];
            for query in 0..n_queries {
                let row = breakdown.bias(query);
                bias.iter_mut().skip(query * n_keys).zip(row).for_each(|(bias, &x)| *bias = x);
                breakdown.sum(crate::Subset::all(split.site().map.is_additive()), query, &mut score);
                crate::shares::weights(&score, &mut weights);
                attention[query * n_keys..][..weights.len()].copy_from_slice(&weights);
                for piece in 0..breakdown.n_pieces() {
                    let row = breakdown.piece(piece, query);
                    pieces[(piece * n_queries + query) * n_keys..][..row.len()].copy_from_slice(row);
                }
            }
            let weighted = |norms: Vec<f32>| -> Vec<f32> {
                attention.iter().enumerate().map(|(place, &weight)| weight * norms[place % n_keys]).collect()
            };
            let value_weighted = value_norms(description, number, sentence).map(weighted).unwrap_or_default();
            sample.shapes.push((n_queries, n_keys));
            sample.attention.push(attention);
            sample.pieces.push(pieces);
            sample.bias.push(bias);
            sample.value_weighted.push(value_weighted);
        }
        sample
    }
}

impl Sample {
    /// By site: how far its attention lies from the average, as the mean of `½ Σ_k |α − ᾱ|` over its steps.
    pub(super) fn distances(&self, description: &Description, averages: &[AverageAttention]) -> Vec<f64> {
        let mut row = Vec::new();
        let mut of_site = |site: usize| {
            let (n_queries, n_keys) = self.shapes[site];
            let mut sum = 0.0;
            for query in 0..n_queries {
                let n_visible = description.sites[site].visible.n_keys(query, n_keys);
                averages[site].row::<f32>(query, n_visible, &mut row);
                let own = &self.attention[site][query * n_keys..][..n_visible];
                sum += own.iter().zip(&row).map(|(a, b)| f64::from((a - b).abs()) / 2.0).sum::<f64>();
            }
            sum / n_queries.max(1) as f64
        };
        (0..self.shapes.len()).map(&mut of_site).collect()
    }
}

/// `‖V h‖` of every key of a site; `None` where `V` is not known: what asks by learned maps and says nothing of its values, as dumps do,
/// hardly sums the states themselves.
fn value_norms(description: &Description, site: usize, sentence: &Recorded) -> Option<Vec<f32>> {
    let site = &description.sites[site];
    if site.value.is_none() && matches!(site.map, ScoreMap::Projected { .. }) {
        return None;
    }
    let states = sentence.states[site.key].chunks_exact(description.streams[site.key].d);
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt() as f32;
    let norms = states
        .map(|state| match &site.value {
            None => norm(&mut state.iter().map(|&x| f64::from(x))),
            Some(value) => norm(&mut (0..value.d_out).map(|column| {
                let bias = value.bias.get(column).copied().unwrap_or(0.0);
                let products =
                    state.iter().enumerate().map(|(row, &x)| f64::from(x) * f64::from(value.weights[row * value.d_out + column]));
                f64::from(bias) + products.sum::<f64>()
            })),
        })
        .collect();
    Some(norms)
}
