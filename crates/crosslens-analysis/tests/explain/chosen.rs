//! Attention rebuilt from pieces that somebody chose.

use crosslens_analysis::explain::{Chosen, ExplainError, Options, explain};
use crosslens_analysis::report::Rebuilt;
use crosslens_analysis::{Estimator, Shrinkage, Sums};

use super::planted::{D, KEY, Plan, Planted, QUERY, dot, every_map, product, rows};

fn chosen(names: &[&str]) -> Vec<Chosen> {
    names.iter().map(|name| name.parse().expect("pieces")).collect()
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
    scores.iter().map(|score| (score - highest).exp() / total).collect()
}

/// Total variation and agreement of maxima of attention from what is left of both states when `without` is taken away, by the book.
fn by_the_book(planted: &Planted, without: impl Fn(usize, usize, u32) -> Vec<f64>) -> [f64; 2] {
    let (mut variation, mut agree, mut n_rows) = (0.0, 0.0, 0.0);
    for sentence in &planted.sentences {
        let left = |stream: usize, tokens: &[u32]| -> Vec<Vec<f64>> {
            let states = rows(&sentence.states[stream]).into_iter().zip(tokens).enumerate();
            states.map(|(step, (h, &token))| h.iter().zip(without(stream, step, token)).map(|(h, part)| h - part).collect()).collect()
        };
        let (queries, keys) = (left(QUERY, &sentence.fed), left(KEY, &sentence.source));
        let attention = &sentence.attention[0];
        for (query, z) in queries.iter().enumerate() {
            let rebuilt = softmax(&keys.iter().map(|h| product(z, h)).collect::<Vec<_>>());
            let truth: Vec<f64> = attention[query * keys.len()..][..keys.len()].iter().map(|&x| f64::from(x)).collect();
            let argmax = |row: &[f64]| (0..row.len()).fold(0, |best, key| if row[key] > row[best] { key } else { best });
            variation += truth.iter().zip(&rebuilt).map(|(a, b)| (a - b).abs() / 2.0).sum::<f64>();
            agree += f64::from(u8::from(argmax(&truth) == argmax(&rebuilt)));
            n_rows += 1.0;
        }
    }
    [variation / n_rows, agree / n_rows]
}

/// Without χ on both sides four terms are left, without μ four others.
#[test]
fn four_terms_are_what_two_parts_make() {
    let planted = Planted::of(&Plan { n_sentences: 60, ..Plan::default() }, vec![dot()]);
    let fit = |stream: usize| {
        let mut sums = Sums::new(D);
        for sentence in &planted.sentences {
            sums.add(if stream == QUERY { &sentence.fed } else { &sentence.source }, &sentence.states[stream]);
        }
        sums.fit::<f64>(Estimator::Paper, Shrinkage::None).expect("there are states").components
    };
    let fits = [fit(0), fit(1)];
    let options = Options { subsets: chosen(&["rr,tt,tr,rt", "ii,ir,ri,rr"]), bootstrap: 3, ..Options::default() };
    let site = planted.explain(&options).report.sites.remove(0);
    let matches = |rebuilt: &Rebuilt, [tv, argmax]: [f64; 2]| {
        assert!((rebuilt.tv - tv).abs() < 1e-4 && (rebuilt.argmax - argmax).abs() < 0.01, "{rebuilt:?}: {tv} and {argmax}");
        assert!(tv > 0.01, "something is lost: {tv}");
    };
    matches(&site.rebuilt["tt,tr,rt,rr"], by_the_book(&planted, |stream, _, token| fits[stream].input(token).to_vec()));
    matches(&site.rebuilt["ii,ir,ri,rr"], by_the_book(&planted, |stream, step, _| fits[stream].temporal(step).to_vec()));
    let intervals = site.intervals.expect("they were asked for").rebuilt;
    assert!(intervals.contains_key("tt,tr,rt,rr") && intervals.contains_key("ii,ir,ri,rr"));
}

/// A choice is measured where it can be: terms at bilinear scores, parts at additive ones; of all pieces it is the true attention.
#[test]
fn terms_and_parts_go_to_their_own_scores() {
    let planted = Planted::of(&Plan::default(), every_map(3));
    let (terms, parts) = ("tt,ti,tr,it,ii,ir,rt,ri,rr,bias", "qt,qi,qr,kt,ki,kr");
    let report = planted.explain(&Options { subsets: chosen(&[terms, parts, "tt"]), ..Options::default() }).report;
    for site in &report.sites {
        let is_additive = site.map == "additive";
        let all = &site.rebuilt[if is_additive { parts } else { terms }];
        assert!(all.tv < 1e-5, "{}: {all:?}", site.map);
        assert_eq!(site.rebuilt.contains_key(terms), !is_additive);
        assert_eq!(
            site.rebuilt.get("tt").map(|rebuilt| rebuilt.tv),
            site.rebuilt.get("temporal").filter(|_| !is_additive).map(|rebuilt| rebuilt.tv)
        );
    }
}

#[test]
fn pieces_that_no_head_has_are_refused() {
    let refused = |maps, name: &str| {
        let options = Options { subsets: chosen(&[name]), ..Options::default() };
        let error = explain(&Planted::of(&Plan::default(), maps), None, &options, &mut |_| ()).expect_err("no such pieces");
        assert!(matches!(error, ExplainError::Subset { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(refused(vec![dot()], "qt"), "attention cannot be rebuilt from `qt`: no score is additive: name terms, tt to rr");
    assert_eq!(
        refused(every_map(1).split_off(5), "tt"),
        "attention cannot be rebuilt from `tt`: every score is additive: name parts, qt to kr"
    );
    assert_eq!(refused(Vec::new(), "tt"), "attention cannot be rebuilt from `tt`: the network has no attention");
}
