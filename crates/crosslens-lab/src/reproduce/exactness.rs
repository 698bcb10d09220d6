//! Whether three parts add up to every state, and what must be nothing is nothing.

use std::collections::BTreeMap;

use crosslens_analysis::{Components, Consumed, Estimator, Recordable, Recorded, Shrinkage, Side, Stream, Sums, Token, Words};
use serde::{Deserialize, Serialize};

use super::claim::higher;
use super::study::StudyError;

/// Errors over the largest entry of a state, all in the accuracy that explanations are made in, by the paper's estimator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exactness {
    /// Largest `|μ + χ + Δ − h|`.
    pub state: f64,
    /// Largest entry of the mean `Δ` of a token: `χ` takes all that the token's states have in common.
    pub residual: f64,
    /// Largest entry of `χ` of the token that begins what the decoder reads: it stands at the first step alone, whose `μ` has all of it.
    /// Null without such a token.
    pub start: Option<f64>,
}

impl Exactness {
    /// Measures it on the states of some sentences.
    pub(super) fn of(model: &dyn Recordable, sentences: &[Recorded]) -> Result<Self, StudyError> {
        let description = model.description();
        let mut found = Self { state: 0.0, residual: 0.0, start: None };
        for (place, stream) in description.streams.iter().enumerate() {
            let words = description.words(stream.side);
            let mut sums = Sums::new(stream.d);
            for sentence in sentences {
                sums.add(&sentence.tokens(stream, words), &sentence.states[place]);
            }
            let components: Components<f32> = sums.fit(Estimator::Paper, Shrinkage::None)?.components;
            let of_stream = of_stream(&components, place, stream, words, sentences);
            found.state = higher(found.state, of_stream.state);
            found.residual = higher(found.residual, of_stream.residual);
            found.start = of_stream.start.map(|start| higher(start, found.start.unwrap_or(0.0))).or(found.start);
        }
        Ok(found)
    }
}

fn of_stream(components: &Components<f32>, place: usize, stream: &Stream, words: &Words, sentences: &[Recorded]) -> Exactness {
    let (mut largest, mut error) = (0.0_f64, 0.0_f64);
    let mut residuals: BTreeMap<Token, (u64, Vec<f64>)> = BTreeMap::new();
    for sentence in sentences {
        let states = sentence.states[place].chunks_exact(stream.d);
        for (step, (state, &token)) in states.zip(sentence.tokens(stream, words).iter()).enumerate() {
            let (count, sum) = residuals.entry(token).or_insert_with(|| (0, vec![0.0; stream.d]));
            *count += 1;
            let parts = components.temporal(step).iter().zip(components.input(token));
            for ((&h, (&temporal, &input)), sum) in state.iter().zip(parts).zip(sum) {
                let residual = h - temporal - input;
                error = higher(error, f64::from((temporal + input + residual - h).abs()));
                largest = higher(largest, f64::from(h.abs()));
                *sum += f64::from(residual);
            }
        }
    }
    let means = residuals.values().flat_map(|(count, sum)| sum.iter().map(move |x| x.abs() / *count as f64));
    let is_fed = stream.side == Side::Target && stream.consumed == Consumed::Current;
    let start = words.start.filter(|_| is_fed).map(|start| components.input(start).iter().map(|&x| f64::from(x.abs())).fold(0.0, higher));
    Exactness { state: error / largest, residual: means.fold(0.0, higher) / largest, start: start.map(|start| start / largest) }
}
