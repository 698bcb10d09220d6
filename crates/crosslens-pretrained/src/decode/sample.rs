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
    /// Only so many likeliest tokens are drawn from; 0 for all.
    pub top_k: usize,
    /// Only the likeliest tokens that together reach this probability.
    pub top_p: f32,
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
    let mut order: Vec<usize> = (0..log_probabilities.len()).filter(|&token| log_probabilities[token] > f32::NEG_INFINITY).collect();
    order.sort_by(|&a, &b| log_probabilities[b].total_cmp(&log_probabilities[a]).then(a.cmp(&b)));
    if sampling.top_k > 0 {
        order.truncate(sampling.top_k);
    }
    let Some(&first) = order.first() else { return likeliest(log_probabilities) };
    let highest = log_probabilities[first];
    let weight = |token: usize| f64::from((log_probabilities[token] - highest) / sampling.temperature.max(1e-6)).exp();
    let mut weights: Vec<f64> = order.iter().map(|&token| weight(token)).collect();
    let all: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let enough = weights.iter().position(|weight| {
        sum += weight;
        sum >= f64::from(sampling.top_p) * all
    });
    weights.truncate(enough.map_or(weights.len(), |last| last + 1));
    let goal = f64::from(point) * weights.iter().sum::<f64>();
    let mut sum = 0.0;
    let place = weights.iter().position(|weight| {
        sum += weight;
        sum > goal
    });
    order[place.unwrap_or(weights.len() - 1)] as Token
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

    #[test]
    fn what_is_forbidden_is_never_drawn() {
        let sampling = Sampling { temperature: 5.0, top_k: 0, top_p: 1.0, seed: 0 };
        let row = [f32::NEG_INFINITY, -1.0, f32::NEG_INFINITY];
        assert_eq!([0.0, 0.5, 0.999_999].map(|point| draw(&sampling, point, &row)), [1, 1, 1]);
    }
}
