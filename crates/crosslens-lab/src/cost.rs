//! What a network costs to train beside others: enough for a bar that says how much time is left.

use crosslens_nets::network::{Cell, Family, NetworkConfig, Score};
use crosslens_nets::tasks::{Split, TaskConfig};
use crosslens_nets::train::RunConfig;

/// Sentences whose length is looked at.
const N_SENTENCES: u64 = 32;
/// The hidden size the costs below were measured at.
const HIDDEN: f64 = 128.0;

/// All updates of a run, in a unit of its own.
///
/// ```text
/// steps · sentences in a batch · words of a sentence, both sides · cost of a word
/// ```
pub(crate) fn cost(config: &RunConfig) -> f64 {
    let training = &config.training;
    training.steps as f64 * training.batch as f64 * words(config) * per_word(&config.network)
}

/// One word, where 1 is one of a network with dot products and without recurrence; read off training times on two cores.
fn per_word(network: &NetworkConfig) -> f64 {
    let gates = match (network.family, network.cell) {
        (Family::Ao, _) => 0.0,
        (Family::Transformer, _) => 4.0,
        (_, Cell::Vanilla) => 1.0,
        (_, Cell::Ugrnn) => 2.0,
        (_, Cell::Gru | Cell::GruResetAfter) => 3.0,
        (_, Cell::Lstm) => 4.0,
    };
    let directions = if network.bidirectional { 1.5 } else { 1.0 };
    let score = match network.score {
        None | Some(Score::Dot | Score::ScaledDot) => 0.0,
        Some(Score::General) => 1.0,
        Some(Score::Additive) => 8.0,
        Some(Score::Qkv) => 2.0 * network.heads as f64,
    };
    (1.0 + gates * directions * network.layers as f64 + score) * (network.hidden as f64 / HIDDEN).powi(2)
}

/// Mean length of a source and its target together. A corpus is not read for it: its sentences are taken to be as long as they may be.
fn words(config: &RunConfig) -> f64 {
    if let TaskConfig::Corpus(corpus) = &config.task {
        return 2.0 * corpus.max_words as f64;
    }
    let Ok(task) = config.task.build() else { return 1.0 };
    let pairs = (0..N_SENTENCES).map(|number| task.pair(Split::Train, config.seed, number));
    pairs.map(|pair| (pair.source.len() + pair.target.len()) as f64).sum::<f64>() / N_SENTENCES as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::RECIPES;

    /// Seconds on two idle cores, of the last 64 for two thirds of its updates; the order of what is left on a bar hangs on no more than a
    /// factor of two.
    #[test]
    fn costs_are_in_proportion_to_measured_times() {
        let measured = [
            ("one-to-one-aed", 16.8),
            ("one-to-one-ao", 2.3),
            ("one-to-one-ved", 7.5),
            ("reverse-aed", 6.3),
            ("reverse-ao", 1.1),
            ("escan-aed", 18.7),
            ("escan-bahdanau", 19.0),
            ("escan-luong", 9.5),
            ("escan-ao", 10.1),
            ("translation-aed", 96.0),
        ];
        let ratio = |(name, seconds): (&str, f64)| {
            let recipe = RECIPES.iter().find(|recipe| recipe.name == name).expect("a recipe");
            cost(&recipe.config()) / seconds
        };
        let unit = ratio(measured[0]);
        for case in measured {
            let ratio = ratio(case) / unit;
            assert!((0.5..=2.0).contains(&ratio), "{}: {ratio}", case.0);
        }
    }
}
