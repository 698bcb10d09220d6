//! Several hypotheses side by side.
//!
//! At each step the best continuations of all hypotheses are ranked, twice as many as there are beams (more where several tokens end a
//! sentence). Those among the first `n_beams` that end the sentence are whole, with their log probability divided by
//! `length^length_penalty`; the best that do not end it go on.

use crosslens_analysis::Token;

use super::{Writer, Written, rules};
use crate::generation::EarlyStopping;

#[derive(Clone)]
struct Hypothesis {
    /// With the start token.
    read: Vec<Token>,
    /// Sum of log probabilities.
    score: f32,
    /// Of each token that was written, before any rule.
    log_probabilities: Vec<f32>,
}

pub(super) fn search(mut writer: Writer<'_>, first: Vec<f32>, start: Vec<Token>, n_tokens: usize) -> Vec<Written> {
    let rules = &writer.how.rules;
    let (n_beams, n_prompt) = (rules.n_beams, start.len());
    let n_ranked = n_beams * (1 + rules.ends.len()).max(2);
    let by_length = |score: f32, length: usize| score / (length as f32).powf(rules.length_penalty as f32);
    let mut running = vec![Hypothesis { read: start, score: 0.0, log_probabilities: Vec::new() }];
    let mut next = first;
    // Best first; scores by length.
    let mut whole: Vec<Hypothesis> = Vec::new();
    for length in 1..=n_tokens {
        let n_words = next.len() / running.len();
        let plain = next.clone();
        for (hypothesis, row) in running.iter().zip(next.chunks_exact_mut(n_words)) {
            rules::apply(rules, &hypothesis.read, n_prompt, n_tokens, row);
            row.iter_mut().for_each(|value| *value += hypothesis.score);
        }
        let mut going = Vec::with_capacity(n_beams);
        let full = rules.early_stopping == EarlyStopping::Yes && whole.len() == n_beams;
        for (rank, place) in best(&next, n_ranked).into_iter().enumerate() {
            let (parent, token) = (place / n_words, (place % n_words) as Token);
            let mut read = running[parent].read.clone();
            read.push(token);
            let mut log_probabilities = running[parent].log_probabilities.clone();
            log_probabilities.push(plain[place]);
            let hypothesis = Hypothesis { read, score: next[place], log_probabilities };
            if !rules.ends.contains(&token) && length < n_tokens {
                if going.len() < n_beams {
                    going.push((parent, hypothesis));
                }
            } else if rank < n_beams && !full {
                let score = by_length(hypothesis.score, length);
                let place = whole.iter().position(|other| score > other.score).unwrap_or(whole.len());
                whole.insert(place, Hypothesis { score, ..hypothesis });
                whole.truncate(n_beams);
            }
        }
        if going.is_empty() || length == n_tokens {
            break;
        }
        let hoped = if rules.early_stopping == EarlyStopping::Never && rules.length_penalty > 0.0 { n_tokens } else { length };
        let can_be_bettered = whole.len() < n_beams || by_length(going[0].1.score, hoped) > whole[whole.len() - 1].score;
        if !can_be_bettered || (rules.early_stopping == EarlyStopping::Yes && whole.len() == n_beams) {
            break;
        }
        let (parents, hypotheses): (Vec<_>, Vec<_>) = going.into_iter().unzip();
        running = hypotheses;
        writer.cache.keep(&parents);
        let last: Vec<Token> = running.iter().map(|hypothesis| hypothesis.read[hypothesis.read.len() - 1]).collect();
        next = writer.log_probabilities(&last);
    }
    let written =
        |Hypothesis { read, score, log_probabilities }| Written { tokens: read[1..].to_vec(), score: f64::from(score), log_probabilities };
    whole.into_iter().take(writer.how.n_best.max(1)).map(written).collect()
}

/// The places of the highest values, highest first, the first of equal ones before.
fn best(values: &[f32], n: usize) -> Vec<usize> {
    let before = |a: &usize, b: &usize| values[*b].total_cmp(&values[*a]).then(a.cmp(b));
    let mut places: Vec<usize> = (0..values.len()).filter(|&place| values[place] > f32::NEG_INFINITY).collect();
    if places.len() > n {
        places.select_nth_unstable_by(n - 1, before);
        places.truncate(n);
    }
    places.sort_by(before);
    places
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn the_best_come_first_and_the_impossible_never() {
        assert_eq!(best(&[1.0, f32::NEG_INFINITY, 3.0, 3.0, 2.0], 3), [2, 3, 4]);
        assert_eq!(best(&[f32::NEG_INFINITY, 1.0], 3), [1]);
    }
}
