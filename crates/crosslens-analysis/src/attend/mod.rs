//! Every attention matrix of a sentence, as arrays for other programs: [`Attended`].

mod save;

use std::collections::BTreeMap;

use crate::{Breakdown, Components, Description, N_PARTS, N_TERMS, Recorded, Side, Site, SiteKind, SiteSplit, SplitError, Token};

pub use save::{AttendFormat, AttendSaveError};

/// What to give besides attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// Scores before the softmax.
    pub scores: bool,
    /// The terms of every score, from the components of each stream.
    pub terms: Option<&'a [Components<f32>]>,
    /// The states that ask and are asked.
    pub states: bool,
}

/// The arrays of one sentence.
///
/// ```text
/// cross_attentions.{layer}, encoder_attentions.{layer}, decoder_attentions.{layer}     [head, query, key]
/// scores.{cross,encoder,decoder}.{layer}                                               [head, query, key]
/// terms.{cross,encoder,decoder}.{layer}                                                [head, term, query, key]
/// bias.{cross,encoder,decoder}.{layer}                                                 [head, query, key]
/// states.{stream}                                                                      [step, d]
/// ```
/// Terms are the nine of a bilinear score, `3·query part + key part`, or the six parts of an additive one, the query's first; parts are
/// temporal, input, residual. A bias of positions is no term: terms and `bias` add up to the score. Where a key may not be seen, attention
/// and terms are 0 and scores −∞.
#[derive(Clone, Debug, PartialEq)]
pub struct Attended {
    /// The words the encoder read.
    pub source: Vec<String>,
    /// Those the decoder read.
    pub fed: Vec<String>,
    /// Those it found likeliest.
    pub predicted: Vec<String>,
    /// The arrays, in the order of their names.
    pub arrays: Vec<NamedArray>,
}

/// Numbers with a name and a shape, the last axis fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArray {
    /// Its name in files.
    pub name: String,
    /// Sizes of its axes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub values: Vec<f32>,
}

impl Attended {
    /// Takes what was recorded of a sentence apart. Attention that was not kept is that of the scores.
    pub fn of(description: &Description, sentence: &Recorded, wishes: &Wishes<'_>) -> Result<Self, SplitError> {
        let mut arrays = Vec::new();
        let layers = layers(description);
        for ((kind, layer), sites) in &layers {
            arrays.extend(Layer::of(description, sentence, sites, wishes)?.arrays(kind, *layer, wishes));
        }
        if wishes.states {
            for (stream, states) in description.streams.iter().zip(&sentence.states) {
                let shape = vec![states.len() / stream.d.max(1), stream.d];
                arrays.push(NamedArray { name: format!("states.{}", stream.name), shape, values: states.clone() });
            }
        }
        arrays.sort_by(|a, b| a.name.cmp(&b.name));
        let words = |side: Side, tokens: &[Token]| tokens.iter().map(|&token| description.words(side).name(token).into_owned()).collect();
        Ok(Self {
            source: words(Side::Source, &sentence.source),
            fed: words(Side::Target, &sentence.fed),
            predicted: words(Side::Target, &sentence.predicted),
            arrays,
        })
    }
}

/// The places of all sites by kind and layer, heads ascending.
fn layers(description: &Description) -> BTreeMap<(&'static str, usize), Vec<usize>> {
    let mut layers: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, site) in description.sites.iter().enumerate() {
        layers.entry((short_name(site.kind), site.layer)).or_default().push(place);
    }
    layers.values_mut().for_each(|sites| sites.sort_by_key(|&site| description.sites[site].head));
    layers
}

/// As the arrays of other libraries are called.
fn short_name(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Cross => "cross",
        SiteKind::EncoderSelf => "encoder",
        SiteKind::DecoderSelf => "decoder",
    }
}

/// The heads of one layer, one after the other.
#[derive(Default)]
struct Layer {
    n_heads: usize,
    n_queries: usize,
    n_keys: usize,
    n_terms: usize,
    attention: Vec<f32>,
    scores: Vec<f32>,
    terms: Vec<f32>,
    bias: Vec<f32>,
    has_bias: bool,
}

impl Layer {
    fn of(description: &Description, sentence: &Recorded, sites: &[usize], wishes: &Wishes<'_>) -> Result<Self, SplitError> {
        let n_terms = |site: &Site| if site.map.is_additive() { N_PARTS } else { N_TERMS };
        let heads = || sites.iter().map(|&place| &description.sites[place]);
        let mut layer = Self { n_heads: sites.len(), n_terms: heads().map(n_terms).max().unwrap_or(0), ..Self::default() };
        layer.has_bias = heads().any(|site| site.map.position_bias().is_some());
        let nothing: Vec<Components<f32>> = match wishes.terms {
            Some(_) => Vec::new(),
            None => description.streams.iter().map(|stream| Components::nothing(stream.d)).collect(),
        };
        let components = wishes.terms.unwrap_or(&nothing);
        let mut breakdown = Breakdown::default();
        for &place in sites {
            let site = &description.sites[place];
            let split = SiteSplit::new(description, site, &components[site.query], &components[site.key])?;
            split.split(sentence, &mut breakdown);
            let mut scores = Vec::new();
            split.scores(sentence, &breakdown, &mut scores);
            layer.push(scores, sentence.attention.get(place).map(Vec::as_slice).unwrap_or_default(), &breakdown);
        }
        Ok(layer)
    }

    /// Adds a head: its scores, and its attention as it was recorded, or empty.
    fn push(&mut self, mut scores: Vec<f32>, attention: &[f32], breakdown: &Breakdown<f32>) {
        let (n_queries, n_keys) = (breakdown.n_queries(), breakdown.n_keys());
        (self.n_queries, self.n_keys) = (n_queries, n_keys);
        for query in 0..n_queries {
            scores[query * n_keys..][breakdown.n_visible(query)..n_keys].fill(f32::NEG_INFINITY);
        }
        if attention.is_empty() {
            let mut weights = Vec::new();
            for (query, row) in scores.chunks_exact(n_keys.max(1)).enumerate() {
                crate::shares::weights(&row[..breakdown.n_visible(query)], &mut weights);
                extend_to(&mut self.attention, &weights, n_keys);
            }
        } else {
            self.attention.extend(attention);
        }
        self.scores.extend(&scores);
        for piece in 0..self.n_terms {
            for query in 0..n_queries {
                let row = if piece < breakdown.n_pieces() { breakdown.piece(piece, query) } else { &[] };
                extend_to(&mut self.terms, row, n_keys);
            }
        }
        for query in 0..n_queries {
            extend_to(&mut self.bias, breakdown.bias(query), n_keys);
        }
    }

    fn arrays(self, kind: &str, layer: usize, wishes: &Wishes<'_>) -> Vec<NamedArray> {
        let (n_heads, n_queries, n_keys) = (self.n_heads, self.n_queries, self.n_keys);
        let matrices = |name: String, values| NamedArray { name, shape: vec![n_heads, n_queries, n_keys], values };
        let mut arrays = vec![matrices(format!("{kind}_attentions.{layer}"), self.attention)];
        if wishes.scores {
            arrays.push(matrices(format!("scores.{kind}.{layer}"), self.scores));
        }
        if wishes.terms.is_some() {
            let shape = vec![n_heads, self.n_terms, n_queries, n_keys];
            arrays.push(NamedArray { name: format!("terms.{kind}.{layer}"), shape, values: self.terms });
            if self.has_bias {
                arrays.push(matrices(format!("bias.{kind}.{layer}"), self.bias));
            }
        }
        arrays
    }
}

/// Adds a row and zeros up to its full length.
fn extend_to(values: &mut Vec<f32>, row: &[f32], length: usize) {
    values.extend(row);
    values.resize(values.len() + length - row.len(), 0.0);
}
