//! What one sentence says about one site.

use super::Chosen;
use crate::align::SoftAlignment;
use crate::shares::{argmax, evenness, weights};
use crate::{
    AverageAttention, Breakdown, ClosenessTally, Components, Description, Part, Recorded, ShareTally, Side, SiteKind, SiteSplit, Subset,
};

/// Another attention that is compared with the true one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) kind: VariantKind,
}

impl Variant {
    fn new(name: &str, kind: VariantKind) -> Self {
        Self { name: name.to_owned(), kind }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VariantKind {
    /// Rebuilt from some pieces of the scores.
    Rebuilt(Subset),
    Uniform,
    Average,
}

impl VariantKind {
    /// Whether it is made without splitting any score.
    pub(super) fn needs_no_terms(self) -> bool {
        !matches!(self, Self::Rebuilt(_))
    }
}

/// The attentions a site is compared with, by its map, those that were asked for last.
pub(super) fn variants(is_additive: bool, has_bias: bool, subsets: &[Chosen]) -> Vec<Variant> {
    let made_of = |parts: &[Part]| VariantKind::Rebuilt(Subset::made_of(parts, is_additive));
    let mut all = vec![
        Variant::new("temporal", made_of(&[Part::Temporal])),
        Variant::new("input", made_of(&[Part::Input])),
        Variant::new("residual", made_of(&[Part::Residual])),
        Variant::new("temporal+input", made_of(&[Part::Temporal, Part::Input])),
        Variant::new("no-temporal", VariantKind::Rebuilt(Subset::without_temporal(is_additive))),
    ];
    if has_bias {
        let made_of = |parts: &[Part]| VariantKind::Rebuilt(Subset::made_of(parts, is_additive).with_bias());
        all.push(Variant::new("temporal+bias", made_of(&[Part::Temporal])));
        all.push(Variant::new("temporal+input+bias", made_of(&[Part::Temporal, Part::Input])));
    }
    all.push(Variant::new("uniform", VariantKind::Uniform));
    all.push(Variant::new("average", VariantKind::Average));
    let chosen = subsets.iter().filter(|chosen| chosen.is_additive() == is_additive);
    all.extend(chosen.map(|chosen| Variant::new(&chosen.to_string(), VariantKind::Rebuilt(chosen.subset()))));
    all
}

/// Measures of one sentence at one site; all but the maxima add up.
#[derive(Clone, Debug)]
pub(super) struct Measures {
    /// By query step.
    pub(super) shares: Vec<ShareTally>,
    /// By variant: all steps, and those before the end token.
    pub(super) closeness: Vec<[ClosenessTally; 2]>,
    /// `(query, key looked at, keys before the end token)` of content steps.
    pub(super) looks: Vec<(usize, usize, usize)>,
    /// Whether every score is a number.
    pub(super) is_finite: bool,
    /// Largest `|Σ pieces − score|`, `|score|`, `|softmax − the model's weights|`.
    pub(super) error: f64,
    pub(super) highest: f64,
    pub(super) attention_error: Option<f64>,
    /// Weight along the heaviest monotone path and all weight, where that is asked for.
    pub(super) path: Option<(f64, f64)>,
    /// Mean total variation from the average attention.
    pub(super) drift: f64,
    /// Share of the source's content keys that no content step looks at with more than a tenth of its weight.
    pub(super) uncovered: f64,
    /// Mean entropy of the rows, over `ln` of the keys they see.
    pub(super) entropy: f64,
}

/// Steps of a side before its end token.
pub(super) fn n_content(description: &Description, sentence: &Recorded, side: Side) -> usize {
    let (tokens, end) = match side {
        Side::Source => (&sentence.source, description.source.end),
        // A decoder's last step writes the end token, whatever it was fed.
        Side::Target => (sentence.target.as_ref().unwrap_or(&sentence.predicted), description.target.end),
    };
    // What was written may not be known: then every step counts.
    end.and_then(|end| tokens.iter().position(|&token| token == end)).unwrap_or(sentence.n_steps(side))
}

/// The rows of attention of a variant.
pub(super) fn variant_row(kind: VariantKind, breakdown: &Breakdown<f32>, average: &AverageAttention, query: usize, row: &mut Vec<f32>) {
    let n_keys = breakdown.n_visible(query);
    match kind {
        VariantKind::Rebuilt(subset) => {
            breakdown.sum(subset, query, row);
            crosslens_kernels::softmax(row);
        }
        VariantKind::Uniform => {
            row.clear();
            row.resize(n_keys, 1.0 / n_keys as f32);
        }
        VariantKind::Average => average.row(query, n_keys, row),
    }
}

/// A look with less weight than this covers nothing.
const COVERS: f32 = 0.1;

/// What sentences are measured with.
pub(super) struct Basis<'a> {
    pub(super) description: &'a Description,
    /// By stream.
    pub(super) components: &'a [Components<f32>],
    /// By site.
    pub(super) splits: &'a [SiteSplit<'a, f32>],
    pub(super) averages: &'a [AverageAttention],
    pub(super) variants: &'a [Vec<Variant>],
    /// The K of the top-K shares.
    pub(super) ks: &'a [usize],
    /// Whether monotone paths are looked for.
    pub(super) monotone: bool,
}

/// Measures a sentence at one site; `next` follows it, and `breakdown` is room to work in.
pub(super) fn measure(
    basis: &Basis<'_>,
    site: usize,
    sentence: &Recorded,
    next: Option<&Recorded>,
    breakdown: &mut Breakdown<f32>,
) -> Measures {
    let Basis { description, ks, .. } = *basis;
    let (split, average, variants) = (&basis.splits[site], &basis.averages[site], &basis.variants[site]);
    split.split_before(sentence, next, breakdown);
    let is_additive = split.site().map.is_additive();
    let (query_side, key_side) = (description.streams[split.site().query].side, description.streams[split.site().key].side);
    let (content_queries, content_keys) = (n_content(description, sentence, query_side), n_content(description, sentence, key_side));
    let mut scores = Vec::new();
    split.scores(sentence, breakdown, &mut scores);
    let recorded = sentence.attention.get(site).filter(|weights| !weights.is_empty());
    let mut measures = Measures {
        shares: Vec::with_capacity(breakdown.n_queries()),
        closeness: vec![Default::default(); variants.len()],
        looks: Vec::new(),
        is_finite: true,
        error: 0.0,
        highest: 0.0,
        attention_error: recorded.map(|_| 0.0),
        path: None,
        drift: 0.0,
        uncovered: 0.0,
        entropy: 0.0,
    };
    let (mut score, mut truth, mut row) = (Vec::new(), Vec::new(), Vec::new());
    let mut covered = vec![false; content_keys];
    let is_wanted = basis.monotone && split.site().kind == SiteKind::Cross;
    let mut whole = Vec::with_capacity(if is_wanted { breakdown.n_queries() * breakdown.n_keys() } else { 0 });
    for query in 0..breakdown.n_queries() {
        breakdown.sum(Subset::all(is_additive), query, &mut score);
        let direct = &scores[query * breakdown.n_keys()..][..score.len()];
        let (error, highest) = differences(&score, direct);
        measures.is_finite &= error.is_finite() && highest.is_finite();
        measures.error = measures.error.max(f64::from(error));
        measures.highest = measures.highest.max(f64::from(highest));
        let mut tally = ShareTally::new(breakdown.n_pieces(), ks);
        tally.add_row(breakdown, query, &score);
        measures.shares.push(tally);
        weights(&score, &mut truth);
        if let (Some(recorded), Some(error)) = (recorded, &mut measures.attention_error) {
            let own = &recorded[query * breakdown.n_keys()..][..truth.len()];
            let larger = |a: f64, b: f64| if b.is_nan() { f64::INFINITY } else { a.max(b) };
            *error = truth.iter().zip(own).map(|(a, b)| f64::from((a - b).abs())).fold(*error, larger);
        }
        if is_wanted {
            whole.extend_from_slice(&truth);
        }
        let is_content = query < content_queries;
        for (variant, tallies) in variants.iter().zip(&mut measures.closeness) {
            variant_row(variant.kind, breakdown, average, query, &mut row);
            let closeness = ClosenessTally::of_row(&truth, &row);
            tallies[0].add(&closeness, 1.0);
            if is_content {
                tallies[1].add(&closeness, 1.0);
            }
            if variant.kind == VariantKind::Average {
                measures.drift += closeness.summed_variation();
            }
        }
        measures.entropy += evenness(&truth);
        if is_content {
            measures.looks.push((query, argmax(&truth), content_keys));
            covered.iter_mut().zip(&truth).for_each(|(covered, &weight)| *covered |= weight > COVERS);
        }
    }
    if is_wanted && let Ok(soft) = SoftAlignment::new(breakdown.n_queries(), breakdown.n_keys(), whole) {
        let path = soft.moving_path();
        measures.path = Some((path.weight, path.total));
    }
    let rows = breakdown.n_queries().max(1) as f64;
    measures.drift /= rows;
    measures.entropy /= rows;
    measures.uncovered = covered.iter().filter(|&&covered| !covered).count() as f64 / covered.len().max(1) as f64;
    measures
}

/// Largest `|sum − direct|` and `|direct|` of a row of scores; infinite or NaN where a score is.
fn differences(sums: &[f32], direct: &[f32]) -> (f32, f32) {
    /// Kept apart, so that the loop vectorises.
    const APART: usize = 8;
    crosslens_kernels::vectorised(
        #[inline(always)]
        || {
            let mut largest = [(0.0, 0.0); APART];
            let ((sums, last), (directs, rest)) = (sums.as_chunks::<APART>(), direct.as_chunks::<APART>());
            for (sums, directs) in sums.iter().zip(directs) {
                for i in 0..APART {
                    largest[i] = larger(largest[i], ((sums[i] - directs[i]).abs(), directs[i].abs()));
                }
            }
            let last = last.iter().zip(rest).map(|(sum, direct)| ((sum - direct).abs(), direct.abs()));
            largest.into_iter().chain(last).fold((0.0, 0.0), larger)
        },
    )
}

/// The larger of both; unlike with `max`, NaN wins.
#[inline(always)]
fn larger(best: (f32, f32), other: (f32, f32)) -> (f32, f32) {
    let larger = |best: f32, other: f32| if other <= best || best.is_nan() { best } else { other };
    (larger(best.0, other.0), larger(best.1, other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest of |1 − 2| and |3 − 3|, of |2| and |3|; and whatever stands after it, what is no number is seen.
    #[test]
    fn a_score_that_is_no_number_is_seen_at_any_place() {
        assert_eq!(differences(&[1.0, 3.0], &[2.0, 3.0]), (1.0, 3.0));
        for n in 1..20 {
            for place in 0..n {
                for (sum, direct) in
                    [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::INFINITY, 1.0), (1.0, f32::INFINITY), (f32::INFINITY, f32::INFINITY)]
                {
                    let (mut sums, mut directs) = (vec![5.0; n], vec![4.0; n]);
                    (sums[place], directs[place]) = (sum, direct);
                    let (error, highest) = differences(&sums, &directs);
                    assert!(!(error.is_finite() && highest.is_finite()), "{sum} and {direct} at {place} of {n}");
                }
            }
        }
    }
}
