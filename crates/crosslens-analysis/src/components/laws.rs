//! What must hold for any states.

use proptest::prelude::*;

use super::*;
use crate::Token;

/// A sentence: tokens, and states of two dimensions.
type Sentence = (Vec<Token>, Vec<f32>);

const D: usize = 2;
const START: Token = 9;

/// Sentences that begin with a start token and go on with words whose choice leans on the step.
fn sentences() -> impl Strategy<Value = Vec<Sentence>> {
    let sentence = prop::collection::vec((0u32..4, -1.0f32..1.0, -1.0f32..1.0), 1..7).prop_map(|steps| {
        let mut tokens: Vec<Token> = steps.iter().enumerate().map(|(step, &(word, ..))| word + (step as Token / 3)).collect();
        tokens[0] = START;
        let states = steps.iter().enumerate().flat_map(|(step, &(word, a, b))| [a + step as f32, b - word as f32]).collect();
        (tokens, states)
    });
    prop::collection::vec(sentence, 3..20)
}

fn sums(sentences: &[Sentence]) -> Sums {
    let mut sums = Sums::new(D);
    sentences.iter().for_each(|(tokens, states)| sums.add(tokens, states));
    sums
}

/// `h − μ − χ` at every place, with its step and token.
fn residuals(sentences: &[Sentence], components: &Components<f64>) -> Vec<(usize, Token, Vec<f64>)> {
    let mut all = Vec::new();
    for (tokens, states) in sentences {
        for (step, (&token, state)) in tokens.iter().zip(states.chunks(D)).enumerate() {
            let parts = components.temporal(step).iter().zip(components.input(token));
            all.push((step, token, state.iter().zip(parts).map(|(&h, (mu, chi))| f64::from(h) - mu - chi).collect()));
        }
    }
    all
}

fn distance(a: &Components<f64>, b: &Components<f64>) -> f64 {
    let steps = (0..a.n_steps().max(b.n_steps())).flat_map(|step| a.temporal(step).iter().zip(b.temporal(step)));
    let tokens = (0..=START).flat_map(|token| a.input(token).iter().zip(b.input(token)));
    steps.chain(tokens).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// All sums, tokens ascending.
fn numbers(sums: &Sums) -> Vec<f64> {
    let by_token = sums.by_token().into_iter().flat_map(|(_, sum)| sum.to_vec());
    sums.by_step().iter().copied().chain(by_token).chain([sums.squares()]).collect()
}

fn fit(sums: &Sums, estimator: Estimator) -> Components<f64> {
    sums.fit(estimator, Shrinkage::None).expect("there are states").components
}

proptest! {
    #[test]
    fn merging_equals_one_pass_and_is_associative(all in sentences(), first in 0usize..20, second in 0usize..20) {
        let (first, second) = (first.min(all.len()), second.min(all.len()));
        let (first, second) = (first.min(second), first.max(second));
        let (a, b, c) = (sums(&all[..first]), sums(&all[first..second]), sums(&all[second..]));
        let merged = |x: &Sums, y: &Sums| { let mut sum = x.clone(); sum.merge(y).expect("one width"); sum };
        let left = merged(&merged(&a, &b), &c);
        let right = merged(&a, &merged(&b, &c));
        for other in [&right, &sums(&all)] {
            prop_assert_eq!(left.token_counts(), other.token_counts());
            prop_assert_eq!(left.step_counts(), other.step_counts());
            for (a, b) in numbers(&left).into_iter().zip(numbers(other)) {
                prop_assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{} and {}", a, b);
            }
            for estimator in [Estimator::Paper, Estimator::Joint] {
                prop_assert!(distance(&fit(&left, estimator), &fit(other, estimator)) < 1e-10);
            }
        }
    }

    /// Eighths are summed without rounding: parts merged in any order have the very bits of one pass.
    #[test]
    fn numbers_that_do_not_round_merge_bit_for_bit(
        steps in prop::collection::vec(prop::collection::vec((0u32..4, -64i8..64, -64i8..64), 1..6), 2..12),
        cut in 0usize..12,
    ) {
        let sentence = |steps: &Vec<(Token, i8, i8)>| -> Sentence {
            let states = steps.iter().flat_map(|&(_, a, b)| [f32::from(a) / 8.0, f32::from(b) / 8.0]);
            (steps.iter().map(|&(word, ..)| word).collect(), states.collect())
        };
        let all: Vec<Sentence> = steps.iter().map(sentence).collect();
        let (first, second) = all.split_at(cut.min(all.len()));
        let bits = |sums: &Sums| numbers(sums).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        for (left, right) in [(first, second), (second, first)] {
            let mut merged = sums(left);
            merged.merge(&sums(right)).expect("one width");
            prop_assert_eq!(bits(&merged), bits(&sums(&all)));
        }
    }

    /// Word `w` stands `often[w]·times[t]` times at step `t`, so that `c·N = n·m` and time and token are not entangled.
    #[test]
    fn on_any_balanced_data_both_estimators_agree(
        often in prop::collection::vec(1usize..4, 1..5),
        times in prop::collection::vec(1usize..4, 1..5),
        values in prop::collection::vec(-2.0f32..2.0, 97),
    ) {
        let mut times = times;
        times.sort_unstable_by(|a, b| b.cmp(a));
        let mut all: Vec<Sentence> = vec![(Vec::new(), Vec::new()); often.iter().sum::<usize>() * times[0]];
        let mut values = values.iter().copied().cycle();
        for (step, &times) in times.iter().enumerate() {
            let words: Vec<Token> = often.iter().enumerate().flat_map(|(word, &often)| vec![word as Token; often * times]).collect();
            for (number, (tokens, states)) in all.iter_mut().take(words.len()).enumerate() {
                tokens.push(words[(number + step) % words.len()]);
                states.extend(values.by_ref().take(D));
            }
        }
        prop_assert!(distance(&fit(&sums(&all), Estimator::Paper), &fit(&sums(&all), Estimator::Joint)) < 1e-9);
    }

    #[test]
    fn the_order_of_sentences_is_irrelevant(all in sentences(), turn in 0usize..20) {
        let mut turned = all.clone();
        turned.rotate_left(turn % all.len());
        turned.reverse();
        for estimator in [Estimator::Paper, Estimator::Joint] {
            prop_assert!(distance(&fit(&sums(&all), estimator), &fit(&sums(&turned), estimator)) < 1e-10);
        }
    }

    #[test]
    fn the_papers_parts_are_means(all in sentences()) {
        let components = fit(&sums(&all), Estimator::Paper);
        let rest = residuals(&all, &components);
        for (_, token, _) in &rest {
            let total: f64 = rest.iter().filter(|(_, other, _)| other == token).flat_map(|(.., rest)| rest).sum();
            prop_assert!(total.abs() < 1e-9);
        }
        prop_assert!(components.input(START).iter().all(|x| x.abs() < 1e-9), "a start token stands alone at its step");
    }

    #[test]
    fn the_joint_rest_is_orthogonal_to_every_step_and_token(all in sentences()) {
        let sums = sums(&all);
        let fit = sums.fit::<f64>(Estimator::Joint, Shrinkage::None).expect("there are states");
        let rest = residuals(&all, &fit.components);
        for dimension in 0..D {
            for (step, token, _) in &rest {
                let by_step: f64 = rest.iter().filter(|(other, ..)| other == step).map(|(.., rest)| rest[dimension]).sum();
                let by_token: f64 = rest.iter().filter(|(_, other, _)| other == token).map(|(.., rest)| rest[dimension]).sum();
                prop_assert!(by_step.abs() < 1e-8 && by_token.abs() < 1e-8, "{by_step} {by_token}");
            }
            for piece in 0..fit.connections.n_pieces {
                let total: f64 = rest.iter().filter(|(step, ..)| fit.connections.steps[*step] == piece)
                    .map(|(_, token, _)| fit.components.input(*token)[dimension]).sum();
                prop_assert!(total.abs() < 1e-8, "Σ m χ is {total} in piece {piece}");
            }
        }
        prop_assert!(fit.components.input(START).iter().all(|x| x.abs() < 1e-9), "a start token is a piece of its own");
    }

    #[test]
    fn a_constant_moves_only_the_temporal_part(all in sentences(), constant in -3.0f32..3.0) {
        let mut moved = all.clone();
        moved.iter_mut().for_each(|(_, states)| states.iter_mut().for_each(|x| *x += constant));
        for estimator in [Estimator::Paper, Estimator::Joint] {
            let (before, after) = (fit(&sums(&all), estimator), fit(&sums(&moved), estimator));
            for step in 0..before.n_steps() {
                prop_assert!(before.temporal(step).iter().zip(after.temporal(step)).all(|(a, b)| (b - a - f64::from(constant)).abs() < 1e-4));
            }
            for token in 0..=START {
                prop_assert!(before.input(token).iter().zip(after.input(token)).all(|(a, b)| (a - b).abs() < 1e-4));
            }
        }
    }

    #[test]
    fn the_shares_of_variance_add_up(all in sentences()) {
        let sums = sums(&all);
        let joint = sums.variance(Estimator::Joint, 0.0).expect("there are states");
        prop_assert!((joint.time + joint.token + joint.shared + joint.rest - 1.0).abs() < 1e-9);
        let paper = sums.variance(Estimator::Paper, 0.0).expect("there are states");
        prop_assert!(paper.rest >= joint.rest - 1e-9, "least squares leaves least");
        let rest: f64 = residuals(&all, &fit(&sums, Estimator::Paper)).iter().flat_map(|(.., rest)| rest).map(|x| x * x).sum();
        let all_states: Vec<&[f32]> = all.iter().flat_map(|(_, states)| states.chunks(D)).collect();
        let mut total = 0.0;
        for dimension in 0..D {
            let mean = all_states.iter().map(|h| f64::from(h[dimension])).sum::<f64>() / all_states.len() as f64;
            total += all_states.iter().map(|h| (f64::from(h[dimension]) - mean).powi(2)).sum::<f64>();
        }
        prop_assert!((paper.rest - rest / total).abs() < 1e-9);
    }
}

/// Token 7 stands at step 1 only, twice, among others there; token 9 alone makes step 0.
/// μ[1] = (1 + 3 + 8)/3 = 4, so χ[7] = (1 + 3)/2 − 4 = −2 and χ[8] = 8 − 4; the start's χ is 0 and its step has all of it.
#[test]
fn a_token_seen_at_one_step_has_what_its_step_has_not() {
    let states = |h: f32| vec![5.0, -1.0, h, 0.0];
    let all: Vec<Sentence> = vec![(vec![START, 7], states(1.0)), (vec![START, 7], states(3.0)), (vec![START, 8], states(8.0))];
    let components = fit(&sums(&all), Estimator::Paper);
    assert_eq!((components.temporal(0), components.temporal(1)), (&[5.0, -1.0][..], &[4.0, 0.0][..]));
    assert_eq!((components.input(7), components.input(8), components.input(START)), (&[-2.0, 0.0][..], &[4.0, 0.0][..], &[0.0, 0.0][..]));
    // At one step the two estimators are the same.
    assert!(distance(&components, &fit(&sums(&all), Estimator::Joint)) < 1e-12);
}

/// A file of sums may have any number of steps; the system of so many unknowns is not set up.
#[test]
fn too_many_steps_are_refused() {
    let mut sums = Sums::new(1);
    let tokens: Vec<Token> = (0..MAX_STEPS as Token + 1).map(|step| step % 3).collect();
    sums.add(&tokens, &vec![1.0; tokens.len()]);
    let refused = FitError::TooManySteps { steps: MAX_STEPS + 1, most: MAX_STEPS };
    assert_eq!(sums.fit::<f64>(Estimator::Joint, Shrinkage::None).expect_err("too many unknowns"), refused);
    assert_eq!(sums.variance(Estimator::Paper, 0.0).expect_err("too many unknowns"), refused);
    assert_eq!(sums.fit::<f64>(Estimator::Paper, Shrinkage::None).expect("means").components.n_steps(), MAX_STEPS + 1);
}

/// Every word twice at every step: `c·N = n·m`, so time and token are not entangled.
#[test]
fn on_balanced_data_both_estimators_agree() {
    let mut all = Vec::new();
    for word in 0..3u32 {
        for copy in 0..2 {
            let tokens: Vec<Token> = (0..4).map(|step| (word + step) % 3).collect();
            let states =
                tokens.iter().enumerate().flat_map(|(step, &w)| [(step * step) as f32 + (copy * w) as f32, w as f32 - 0.3 * copy as f32]);
            all.push((tokens.clone(), states.collect()));
        }
    }
    assert!(distance(&fit(&sums(&all), Estimator::Paper), &fit(&sums(&all), Estimator::Joint)) < 1e-12);
}

/// States built from known parts, with time and token entangled: least squares finds them, the paper's order does not.
#[test]
fn planted_parts_come_back() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let (mu, chi) = ([0.0, 1.0, 4.0, 9.0], [-2.0, 1.0, 3.0]);
    let noise = 0.5;
    let mut all = Vec::new();
    let mut counts = [0.0f64; 3];
    for _ in 0..4000 {
        let mut sentence = (Vec::new(), Vec::new());
        for (step, mu) in mu.iter().enumerate() {
            let word = if random() < 0.2 + 0.2 * step as f64 { 2 } else { (random() * 2.0) as usize };
            counts[word] += 1.0;
            sentence.0.push(word as Token);
            let rest = noise * (random() + random() + random() + random() - 2.0) * 3f64.sqrt();
            sentence.1.extend([(mu + chi[word] + rest) as f32, 0.0]);
        }
        all.push(sentence);
    }
    let gauge = counts.iter().zip(chi).map(|(n, chi)| n * chi).sum::<f64>() / counts.iter().sum::<f64>();
    let sums = sums(&all);
    let (joint, paper) = (fit(&sums, Estimator::Joint), fit(&sums, Estimator::Paper));
    let mut off: f64 = 0.0;
    for (word, chi) in chi.iter().enumerate() {
        let error = noise / counts[word].sqrt();
        let found = joint.input(word as Token)[0];
        assert!((found - (chi - gauge)).abs() < 4.0 * error, "χ[{word}] is {found}, planted {}", chi - gauge);
        off = off.max((paper.input(word as Token)[0] - (chi - gauge)).abs() / error);
    }
    for (step, mu) in mu.iter().enumerate() {
        assert!((joint.temporal(step)[0] - (mu + gauge)).abs() < 4.0 * noise / 2000f64.sqrt());
    }
    assert!(off > 10.0, "the paper's estimator should miss entangled parts, it is off by {off} errors");
}

/// Word 5 joins steps {0, 1} and {2, 3} by one observation: flagged, and the condition says how little holds.
#[test]
fn weak_links_are_flagged() {
    let sentence = |tokens: [Token; 4]| (tokens.to_vec(), vec![0.5; 4 * D]);
    let mut all = vec![sentence([1, 1, 2, 2]); 30];
    let apart = sums(&all).fit::<f64>(Estimator::Joint, Shrinkage::None).expect("there are states");
    assert_eq!((apart.connections.n_pieces, apart.connections.weak_links), (2, 0));
    all.push(sentence([1, 1, 2, 1]));
    let joined = sums(&all).fit::<f64>(Estimator::Joint, Shrinkage::None).expect("there are states");
    assert_eq!((joined.connections.n_pieces, joined.connections.weak_links), (1, 1));
    assert!(joined.condition > apart.condition.map(|c| 10.0 * c), "{:?} {:?}", joined.condition, apart.condition);
}

#[test]
fn shrinkage_pulls_rare_tokens_and_spares_common_ones() {
    let mut all = vec![(vec![0, 1, 0, 1], vec![1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0]); 50];
    all.extend(vec![(vec![1, 0, 1, 0], vec![-1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0]); 50]);
    all.push((vec![7], vec![9.0, 0.0]));
    let sums = sums(&all);
    let shrunk = sums.fit::<f64>(Estimator::Joint, Shrinkage::Given(1.0)).expect("there are states").components;
    let plain = fit(&sums, Estimator::Joint);
    assert!(shrunk.input(7)[0].abs() < 0.6 * plain.input(7)[0].abs());
    assert!((shrunk.input(0)[0] - shrunk.input(1)[0]) > 0.95 * (plain.input(0)[0] - plain.input(1)[0]));
    assert!(matches!(sums.fit::<f64>(Estimator::Joint, Shrinkage::Given(f64::NAN)), Err(FitError::Shrinkage { .. })));
    assert!(matches!(Sums::new(2).fit::<f64>(Estimator::Paper, Shrinkage::None), Err(FitError::Empty)));
}
