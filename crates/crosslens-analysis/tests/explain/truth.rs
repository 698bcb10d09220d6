//! What was planted comes back.

use crosslens_analysis::explain::{Options, explain};
use crosslens_analysis::report::SiteReport;
use crosslens_analysis::{Estimator, Shrinkage, Sums, Token};

use super::planted::{D, END, KEY, Plan, Planted, QUERY, Random, Sizes, Truth, dot, every_map, product, rows};

fn only_site(planted: &Planted) -> SiteReport {
    planted.explain(&Options::default()).report.sites.remove(0)
}

fn temporal(site: &SiteReport) -> f64 {
    site.shares.as_ref().expect("the terms add up").tables["centred"][0][0]
}

#[test]
fn attention_planted_by_position_is_found_to_be_temporal() {
    let plan = Plan { n_sentences: 300, sizes: Sizes { time: 2.0, token: 0.1, rest: 0.1 }, ..Plan::default() };
    let site = only_site(&Planted::of(&plan, vec![dot()]));
    assert!(temporal(&site) > 0.97, "{}", temporal(&site));
    let (rebuilt, uniform) = (&site.rebuilt["temporal"], &site.rebuilt["uniform"]);
    assert!(rebuilt.argmax > 0.85 && rebuilt.tv < 0.2 * uniform.tv, "{rebuilt:?} {uniform:?}");
    assert_eq!(site.verdict.label, "not rerun");
    assert!(site.verdict.text.contains("not at hand to be run again"), "{}", site.verdict.text);
}

#[test]
fn attention_planted_by_content_is_not() {
    let plan = Plan { n_sentences: 300, sizes: Sizes { time: 0.05, token: 2.0, rest: 0.1 }, ..Plan::default() };
    let site = only_site(&Planted::of(&plan, vec![dot()]));
    // The start and the end token stand at steps of their own, which passes for position.
    assert!(temporal(&site) < 0.35, "{}", temporal(&site));
    let mut planted = Planted::of(&Plan { n_sentences: 0, ..plan.clone() }, vec![dot()]);
    let mut random = Random::new(9);
    for number in 0..300 {
        let mut words = || (0..5).map(|_| 1 + random.below(3) as Token).collect::<Vec<_>>();
        let (source, target) = (words(), words());
        planted.push(number, source, target, 0.1, &mut random);
    }
    // What is fed at the first step is a word like the others.
    planted.sentences.iter_mut().for_each(|sentence| sentence.fed[0] = sentence.source[0]);
    let truth = planted.truth[QUERY].clone();
    for number in 0..planted.sentences.len() {
        let word = planted.sentences[number].fed[0] as usize;
        let state = truth.temporal[0].iter().zip(&truth.input[word]).map(|(mu, chi)| (mu + chi) as f32);
        state.enumerate().for_each(|(place, x)| planted.sentences[number].states[QUERY][place] = x);
        planted.attend(number);
    }
    let site = only_site(&planted);
    assert!(temporal(&site).abs() < 0.03, "{}", temporal(&site));
    assert!(site.shares.as_ref().expect("the terms add up").tables["centred"][1][1] > 0.6);
    let (input, temporal) = (&site.rebuilt["input"], &site.rebuilt["temporal"]);
    // Equal words have equal scores but for the noise: the maximum is a matter of chance among them.
    assert!(input.tv < 0.4 * temporal.tv && input.argmax > temporal.argmax + 0.2, "{input:?} {temporal:?}");
    assert_eq!(site.verdict.label, "not rerun");
}

/// The planted parts in the gauge of the estimators: `Σ m χ = 0`, what all tokens share belongs to the steps.
fn in_gauge(truth: &Truth, counts: &[(Token, u64)]) -> Truth {
    let total: f64 = counts.iter().map(|&(_, count)| count as f64).sum();
    let mut shift = vec![0.0; D];
    for &(token, count) in counts {
        shift.iter_mut().zip(&truth.input[token as usize]).for_each(|(shift, chi)| *shift += count as f64 * chi / total);
    }
    let moved = |rows: &[Vec<f64>], sign: f64| rows.iter().map(|row| row.iter().zip(&shift).map(|(x, s)| x + sign * s).collect()).collect();
    Truth { temporal: moved(&truth.temporal, 1.0), input: moved(&truth.input, -1.0) }
}

/// Keys of length 6: balanced, every word as often at every step; or entangled, some words preferring late steps.
fn keys(is_balanced: bool) -> (Planted, Sums) {
    let mut planted = Planted::of(&Plan { n_sentences: 0, n_words: 4, lengths: 6..7, ..Plan::default() }, vec![dot()]);
    let mut random = Random::new(5);
    for number in 0..1200u64 {
        let word = |step: u64, random: &mut Random| -> Token {
            if is_balanced {
                1 + ((number + step) % 3) as Token
            } else if random.uniform() < 0.15 * step as f64 {
                3
            } else {
                1 + random.below(2) as Token
            }
        };
        let source: Vec<Token> = (0..6).map(|step| word(step, &mut random)).collect();
        planted.push(number, source.clone(), source, 0.5, &mut random);
    }
    let mut sums = Sums::new(D);
    planted.sentences.iter().for_each(|sentence| sums.add(&sentence.source, &sentence.states[KEY]));
    (planted, sums)
}

/// How many standard errors the worst component lies from what was planted. The noise is 0.5; a component of `n` states has the error
/// 0.5/√n, and a little more where tokens and steps are entangled.
fn errors_off(planted: &Planted, sums: &Sums, estimator: Estimator) -> f64 {
    let truth = in_gauge(&planted.truth[KEY], &sums.token_counts());
    let fit = sums.fit::<f64>(estimator, Shrinkage::None).expect("there are states").components;
    let off = |found: &[f64], planted: &[f64], count: f64| {
        found.iter().zip(planted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) * count.sqrt() / 0.5
    };
    let steps = sums.step_counts().iter().enumerate().map(|(step, &n)| off(fit.temporal(step), &truth.temporal[step], n as f64));
    let tokens = sums.token_counts().into_iter().map(|(token, n)| off(fit.input(token), &truth.input[token as usize], n as f64));
    steps.chain(tokens.collect::<Vec<_>>()).fold(0.0, f64::max)
}

/// 45 components lie within four standard errors with probability .997; entanglement widens them by less than 1.5.
#[test]
fn planted_parts_come_back_within_their_standard_error() {
    let (planted, sums) = keys(true);
    for estimator in [Estimator::Paper, Estimator::Joint] {
        let off = errors_off(&planted, &sums, estimator);
        assert!(off < 4.0, "balanced, {}: {off} errors", estimator.name());
    }
    let (planted, sums) = keys(false);
    let off = errors_off(&planted, &sums, Estimator::Joint);
    assert!(off < 6.0, "entangled, joint: {off} errors");
    let off = errors_off(&planted, &sums, Estimator::Paper);
    assert!(off > 10.0, "entangled, the paper's should miss them: {off} errors");
}

/// The shares of the fitted parts against those of the parts that were planted, worked out by the definition.
#[test]
fn planted_shares_come_back() {
    let (planted, sums) = keys(false);
    let key = in_gauge(&planted.truth[KEY], &sums.token_counts());
    let mut query_sums = Sums::new(D);
    planted.sentences.iter().for_each(|sentence| query_sums.add(&sentence.fed, &sentence.states[QUERY]));
    // The start token is a piece of its own: its part belongs to step 0.
    let start = planted.description.target.start.expect("there is a start token");
    let counts: Vec<_> = query_sums.token_counts().into_iter().filter(|&(token, _)| token != start).collect();
    let mut query = in_gauge(&planted.truth[QUERY], &counts);
    let (mu, chi) = (&planted.truth[QUERY].temporal[0], &planted.truth[QUERY].input[start as usize]);
    query.temporal[0] = mu.iter().zip(chi).map(|(mu, chi)| mu + chi).collect();
    query.input[start as usize] = vec![0.0; D];

    let parts = |truth: &Truth, step: usize, token: Token, state: &[f64]| -> [Vec<f64>; 3] {
        let (mu, chi) = (truth.temporal[step].clone(), truth.input[token as usize].clone());
        let rest = state.iter().zip(&mu).zip(&chi).map(|((h, mu), chi)| h - mu - chi).collect();
        [mu, chi, rest]
    };
    let (mut covariances, mut variance) = ([[0.0; 3]; 3], 0.0);
    for sentence in &planted.sentences {
        let keys: Vec<_> = rows(&sentence.states[KEY]).iter().enumerate().map(|(k, h)| parts(&key, k, sentence.source[k], h)).collect();
        for (q, z) in rows(&sentence.states[QUERY]).iter().enumerate() {
            let query = parts(&query, q, sentence.fed[q], z);
            let term = |a: usize, b: usize| keys.iter().map(|key| product(&query[a], &key[b])).collect::<Vec<f64>>();
            let terms: Vec<Vec<f64>> = (0..9).map(|n| term(n / 3, n % 3)).collect();
            let score: Vec<f64> = (0..keys.len()).map(|k| terms.iter().map(|term| term[k]).sum()).collect();
            let mean = score.iter().sum::<f64>() / score.len() as f64;
            let with_score = |x: &[f64]| x.iter().zip(&score).map(|(x, s)| x * (s - mean)).sum::<f64>();
            terms.iter().enumerate().for_each(|(n, term)| covariances[n / 3][n % 3] += with_score(term));
            variance += with_score(&score);
        }
    }
    let report = planted.explain(&Options { estimator: Estimator::Joint, ..Options::default() }).report;
    let table = report.sites[0].shares.as_ref().expect("the terms add up").tables["centred"];
    for (found, planted) in table.iter().flatten().zip(covariances.iter().flatten()) {
        assert!((found - planted / variance).abs() < 0.02, "{table:?} {covariances:?} / {variance}");
    }
}

/// A model whose attention is not the softmax of its scores is not explained by them.
#[test]
fn attention_that_disagrees_with_the_terms_gets_no_shares() {
    let planted = Planted::of(&Plan::default(), every_map(2));
    let options = Options { bootstrap: 3, ..Options::default() };
    for (error, is_refused) in [(2e-4, true), (5e-5, false)] {
        let mut changed = planted.clone();
        for attention in &mut changed.sentences[7].attention {
            attention[1] += error;
        }
        for site in changed.explain(&options).report.sites {
            assert_eq!(site.shares.is_none(), is_refused, "{}", site.map);
            assert_eq!((site.by_step.is_none(), site.intervals.is_none()), (is_refused, is_refused), "{}", site.map);
            assert_eq!(site.verdict.label == "not exact", is_refused, "{}", site.verdict.label);
            assert_eq!(site.verdict.text.contains("no shares are given"), is_refused, "{}", site.verdict.text);
        }
    }
}

#[test]
fn no_sentence_is_refused() {
    let planted = Planted::of(&Plan { n_sentences: 0, ..Plan::default() }, vec![dot()]);
    let error = explain(&planted, None, &Options::default(), &mut |_| ()).expect_err("there is nothing to explain");
    assert_eq!(error.to_string(), "there are no sentences to explain");
    assert_eq!(planted.description.source.end, Some(END));
}
