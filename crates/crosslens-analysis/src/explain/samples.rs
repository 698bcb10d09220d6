//! What the page needs of single sentences.

use std::collections::BTreeMap;

use crate::{Breakdown, Description, Recorded, SiteSplit, Token, Words};

/// Some sentences in full.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Names of the source tokens that occur in the sentences.
    pub source_names: BTreeMap<Token, String>,
    /// Names of the target tokens that occur in the sentences.
    pub target_names: BTreeMap<Token, String>,
    /// The sentences.
    pub sentences: Vec<Sample>,
    /// By site: the average attention, `[query step, key step]`.
    pub averages: Vec<Vec<Vec<f64>>>,
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
    /// By site: `‖α·V h‖`, `[query, key]`: how much each key adds to what attention sums.
    pub value_weighted: Vec<Vec<f32>>,
}

impl Samples {
    /// Some sentences with the names of their tokens.
    pub(super) fn new(description: &Description, sentences: Vec<Sample>, averages: Vec<Vec<Vec<f64>>>) -> Self {
        let names = |words: &Words, tokens: &mut dyn Iterator<Item = Token>| {
            tokens.map(|token| (token, words.name(token).into_owned())).collect::<BTreeMap<_, _>>()
        };
        let all = || sentences.iter().map(|sample| &sample.sentence);
        let written = |sentence: &Recorded| sentence.target.clone().unwrap_or_default();
        let target = all().flat_map(|sentence| [&sentence.fed[..], &sentence.predicted[..], &written(sentence)[..]].concat());
        Self {
            source_names: names(&description.source, &mut all().flat_map(|sentence| sentence.source.iter().copied())),
            target_names: names(&description.target, &mut target.into_iter()),
            sentences,
            averages,
        }
    }
}

impl Sample {
    /// Splits a sentence at every site.
    pub(super) fn of(description: &Description, splits: &[SiteSplit<'_, f32>], sentence: &Recorded) -> Self {
        let mut sample = Self {
            sentence: Recorded { states: Vec::new(), attention: Vec::new(), ..sentence.clone() },
            shapes: Vec::new(),
            attention: Vec::new(),
            pieces: Vec::new(),
            value_weighted: Vec::new(),
        };
        let mut breakdown = Breakdown::default();
        let (mut score, mut weights) = (Vec::new(), Vec::new());
        for (number, split) in splits.iter().enumerate() {
            split.split(sentence, &mut breakdown);
            let (n_queries, n_keys) = (breakdown.n_queries(), breakdown.n_keys());
            let mut attention = vec![0.0; n_queries * n_keys];
            let mut pieces = vec![0.0; breakdown.n_pieces() * n_queries * n_keys];
            for query in 0..n_queries {
                breakdown.sum(crate::Subset::all(split.site().map.is_additive()), query, &mut score);
                crate::shares::weights(&score, &mut weights);
                attention[query * n_keys..][..weights.len()].copy_from_slice(&weights);
                for piece in 0..breakdown.n_pieces() {
                    let row = breakdown.piece(piece, query);
                    pieces[(piece * n_queries + query) * n_keys..][..row.len()].copy_from_slice(row);
                }
            }
            let norms = value_norms(description, number, sentence);
            let value_weighted = attention.iter().enumerate().map(|(place, &weight)| weight * norms[place % n_keys]).collect();
            sample.shapes.push((n_queries, n_keys));
            sample.attention.push(attention);
            sample.pieces.push(pieces);
            sample.value_weighted.push(value_weighted);
        }
        sample
    }
}

/// `‖V h‖` of every key of a site.
pub(super) fn value_norms(description: &Description, site: usize, sentence: &Recorded) -> Vec<f32> {
    let site = &description.sites[site];
    let states = sentence.states[site.key].chunks_exact(description.streams[site.key].d);
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt() as f32;
    states
        .map(|state| match &site.value {
            None => norm(&mut state.iter().map(|&x| f64::from(x))),
            Some(value) => norm(&mut (0..value.d_out).map(|column| {
                let bias = value.bias.get(column).copied().unwrap_or(0.0);
                let products =
                    state.iter().enumerate().map(|(row, &x)| f64::from(x) * f64::from(value.weights[row * value.d_out + column]));
                f64::from(bias) + products.sum::<f64>()
            })),
        })
        .collect()
}
