//! One hypothesis: the likeliest token each time, or one drawn.

use crosslens_analysis::Token;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Writer, Written, rules};

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it: below 1 likelier tokens gain.
    pub temperature: f32,
    /// Only so many likeliest tokens are drawn from, and those as likely as the last of them; 0 for all.
    pub top_k: usize,
    /// Only the likeliest tokens that together reach this probability.
    pub top_p: f64,
    /// The same seed, the same text.
    pub seed: u64,
}

pub(super) fn write(mut writer: Writer<'_>, mut next: Vec<f32>, mut read: Vec<Token>, n_tokens: usize) -> Vec<Written> {
    let (rules, n_prompt) = (&writer.how.rules, read.len());
    let mut random = writer.how.sampling.map(|sampling| Xoshiro256PlusPlus::seed_from_u64(sampling.seed));
    let mut log_probabilities = Vec::new();
    for step in 0..n_tokens {
        let plain = next.clone();
        rules::apply(rules, &read, n_prompt, n_tokens, &mut next);
        let token = match (&writer.how.sampling, &mut random) {
            (Some(sampling), Some(random)) => draw(sampling, random.random(), &next),
            _ => likeliest(&next),
        };
        log_probabilities.push(plain[token as usize]);
        read.push(token);
        if rules.ends.contains(&token) || step + 1 == n_tokens {
            break;
        }
        next = writer.log_probabilities(&[token]);
    }
    read.remove(0);
    let score = log_probabilities.iter().copied().map(f64::from).sum();
    vec![Written { tokens: read, score, log_probabilities }]
}

/// The first of the likeliest tokens.
pub(super) fn likeliest(log_probabilities: &[f32]) -> Token {
    let mut best = 0;
    for (token, &value) in log_probabilities.iter().enumerate() {
        if value > log_probabilities[best] {
            best = token;
        }
    }
    best as Token
}

/// The token at which the probabilities, likeliest first, pass `point` of their sum.
fn draw(sampling: &Sampling, point: f32, log_probabilities: &[f32]) -> Token {
    let kept = kept(sampling, log_probabilities);
    let goal = f64::from(point) * kept.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut sum = 0.0;
    let drawn = kept.iter().find(|(_, weight)| {
        sum += weight;
        sum > goal
    });
    drawn.or(kept.last()).map_or_else(|| likeliest(log_probabilities), |(token, _)| *token)
}

/// The tokens that are drawn from, likeliest first, with weights in the ratio of their probabilities.
///
/// As transformers does it: what is less likely than the last of `top_k` goes, so that its equals stay; then the least likely go as long as
/// they together have no more than `1 - top_p`, compared in single precision, the first of equals before the others.
fn kept(sampling: &Sampling, log_probabilities: &[f32]) -> Vec<(Token, f64)> {
    let mut order: Vec<usize> = (0..log_probabilities.len()).filter(|&token| log_probabilities[token] > f32::NEG_INFINITY).collect();
    order.sort_by(|&a, &b| log_probabilities[b].total_cmp(&log_probabilities[a]).then(b.cmp(&a)));
    let Some(&first) = order.first() else { return Vec::new() };
    if (1..order.len()).contains(&sampling.top_k) {
        let least = log_probabilities[order[sampling.top_k - 1]];
        order.truncate(order.partition_point(|&token| log_probabilities[token] >= least));
    }
    let (highest, temperature) = (log_probabilities[first], sampling.temperature.max(f32::MIN_POSITIVE));
    let weight = |token: usize| f64::from((log_probabilities[token] - highest) / temperature).exp();
    let mut kept: Vec<(Token, f64)> = order.iter().map(|&token| (token as Token, weight(token))).collect();
    if sampling.top_p < 1.0 {
        let all: f64 = kept.iter().map(|(_, weight)| weight).sum();
        let mut rest = 0.0;
        let n_gone = kept.iter().rev().take_while(|(_, weight)| {
            rest += weight;
            (rest / all) as f32 <= (1.0 - sampling.top_p) as f32
        });
        kept.truncate((kept.len() - n_gone.count()).max(1));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn tokens_are_drawn_by_their_probability() {
        let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 0 };
        let row = logs(&[0.2, 0.5, 0.3]);
        assert_eq!([0.0, 0.49, 0.51, 0.79, 0.81].map(|point| draw(&sampling, point, &row)), [1, 1, 2, 2, 0]);
        assert_eq!(draw(&Sampling { top_k: 1, ..sampling }, 0.99, &row), 1);
        assert_eq!(draw(&Sampling { top_p: 0.6, ..sampling }, 0.99, &row), 2);
        assert_eq!(draw(&Sampling { temperature: 0.01, ..sampling }, 0.99, &row), 1);
    }

    /// Which tokens are left and how likely they are, on logits with ties, forbidden tokens and a `top_p` that is met exactly: golden
    /// values of transformers' warpers.
    #[test]
    fn tokens_are_drawn_from_those_that_transformers_draws_from() {
        #[derive(serde::Deserialize)]
        struct Golden {
            draws: Vec<Draw>,
        }
        #[derive(serde::Deserialize)]
        struct Draw {
            logits: Vec<Option<f32>>,
            temperature: f32,
            top_k: usize,
            top_p: f64,
            kept: Vec<Token>,
            probabilities: Vec<f64>,
        }
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/drawing.json")).expect("golden values");
        let golden: Golden = serde_json::from_str(&text).expect("draws");
        assert!(golden.draws.len() > 30);
        for Draw { logits, temperature, top_k, top_p, kept: expected, probabilities } in golden.draws {
            let row: Vec<f32> = logits.into_iter().map(|logit| logit.unwrap_or(f32::NEG_INFINITY)).collect();
            let mut found = kept(&Sampling { temperature, top_k, top_p, seed: 0 }, &row);
            let all: f64 = found.iter().map(|(_, weight)| weight).sum();
            found.iter_mut().for_each(|(_, weight)| *weight /= all);
            // What has no probability in single precision is left out there.
            found.retain(|(_, probability)| *probability > 1e-30);
            found.sort_by_key(|(token, _)| *token);
            let expected: Vec<(Token, f64)> = expected.into_iter().zip(probabilities).filter(|(_, p)| *p > 1e-30).collect();
            let tokens = |all: &[(Token, f64)]| all.iter().map(|(token, _)| *token).collect::<Vec<_>>();
            assert_eq!(tokens(&found), tokens(&expected), "{temperature}, {top_k}, {top_p} of {row:?}");
            for ((_, found), (_, expected)) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-6, "{temperature}, {top_k}, {top_p}: {found} and {expected}");
            }
        }
    }

    /// Of 20,000 draws each token has its share to 4 standard errors.
    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely() {
        const DRAWS: usize = 20_000;
        let row = logs(&[0.02, 0.4, 0.08, 0.3, 0.15, 0.05]);
        for (temperature, top_k, top_p) in [(1.0, 0, 1.0), (0.7, 4, 1.0), (1.5, 0, 0.8)] {
            let sampling = Sampling { temperature, top_k, top_p, seed: 3 };
            let mut random = Xoshiro256PlusPlus::seed_from_u64(sampling.seed);
            let mut counts = [0usize; 6];
            (0..DRAWS).for_each(|_| counts[draw(&sampling, random.random(), &row) as usize] += 1);
            let kept = kept(&sampling, &row);
            let all: f64 = kept.iter().map(|(_, weight)| weight).sum();
            for (token, &count) in counts.iter().enumerate() {
                let likely = kept.iter().find(|(kept, _)| *kept as usize == token).map_or(0.0, |(_, weight)| weight / all);
                let error = (likely * (1.0 - likely) / DRAWS as f64).sqrt();
                let share = count as f64 / DRAWS as f64;
                assert!((share - likely).abs() <= 4.0 * error, "token {token}: {share} of the draws, likely {likely}");
            }
        }
    }

    #[test]
    fn what_is_forbidden_is_never_drawn() {
        let sampling = Sampling { temperature: 5.0, top_k: 0, top_p: 1.0, seed: 0 };
        let row = [f32::NEG_INFINITY, -1.0, f32::NEG_INFINITY];
        assert_eq!([0.0, 0.5, 0.999_999].map(|point| draw(&sampling, point, &row)), [1, 1, 1]);
    }
}
