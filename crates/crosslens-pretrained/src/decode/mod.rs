//! Writing: the likeliest token each time, several hypotheses side by side, or tokens drawn by their probability.

mod beam;
mod drawing;
pub(crate) mod rules;
mod sample;

use crosslens_analysis::Token;

use crate::PretrainedError;
use crate::generation::{EarlyStopping, Generation};
use crate::layers::{Pace, Unwatched};
use crate::model::{Encoded, Model};
use crate::senses::Source;
use crate::stack::Cache;

pub use drawing::Drawing;
pub use sample::Sampling;

/// How to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoding {
    /// The rules: start, end, what is forced and what is not allowed.
    pub rules: Generation,
    /// Hypotheses to return, best first; at most as many as there are beams.
    pub n_best: usize,
    /// Draws tokens instead of taking the likeliest; with one beam only.
    pub sampling: Option<Sampling>,
    /// What is written already.
    pub prefix: Vec<Token>,
}

impl Decoding {
    /// As the model's files say.
    pub fn of(model: &Model) -> Self {
        Self { rules: model.generation().clone(), n_best: 1, sampling: None, prefix: Vec::new() }
    }

    /// The likeliest token each time.
    pub fn greedy(model: &Model) -> Self {
        let rules = Generation { n_beams: 1, early_stopping: EarlyStopping::No, ..model.generation().clone() };
        Self { rules, n_best: 1, sampling: None, prefix: Vec::new() }
    }

    /// What the decoder reads before it writes.
    fn start(&self) -> Vec<Token> {
        std::iter::once(self.rules.start).chain(self.prefix.iter().copied()).collect()
    }
}

/// What a model wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Without the start token; with the end token, unless the length ran out. A prefix is part of it.
    pub tokens: Vec<Token>,
    /// Log probability of what came after the prefix; of a beam search, divided by its length to the power of the length penalty.
    pub score: f64,
    /// Log probability of each token after the prefix, by the model alone: no rule has changed it.
    pub log_probabilities: Vec<f32>,
}

/// A decoder at work on one sentence.
struct Writer<'m> {
    model: &'m Model,
    how: &'m Decoding,
    cache: Cache,
}

impl Writer<'_> {
    /// Reads the last tokens of each hypothesis; returns log probabilities `[hypothesis, words]`.
    fn log_probabilities(&mut self, tokens: &[Token]) -> Vec<f32> {
        let states = self.model.decoder.step(&mut self.cache, tokens, &mut Unwatched);
        let mut logits = self.model.logits(&states, Pace::Steps);
        let mut copy = vec![0.0; self.model.readout.table.rows()];
        for row in logits.chunks_exact_mut(copy.len()) {
            copy.copy_from_slice(row);
            let sum = crosslens_kernels::log_sum_exp(&mut copy);
            row.iter_mut().for_each(|logit| *logit -= sum);
        }
        logits
    }
}

impl Model {
    /// Writes the best it makes of each source, several at a time; 0 threads means one per core.
    pub fn write_all(&self, sources: &[Source<'_>], how: &Decoding, n_threads: usize) -> Result<Vec<Written>, PretrainedError> {
        let mut results: Vec<_> = sources.iter().map(|&source| (source, None)).collect();
        crate::subject::threads(self, n_threads)?.for_each(&mut results, |_, (source, result)| *result = Some(self.write(*source, how)));
        let first = |written: Vec<Written>| written.into_iter().next().unwrap_or_default();
        results.into_iter().filter_map(|(_, result)| result).map(|result| result.map(first)).collect()
    }

    /// Writes what it makes of a source.
    pub fn write<'s>(&self, source: impl Into<Source<'s>>, how: &Decoding) -> Result<Vec<Written>, PretrainedError> {
        let source = source.into();
        // Before the encoder runs for nothing.
        self.check_fed(&how.start())?;
        self.take_in(source)?.write(how)
    }

    /// Encodes a source, to ask the decoder about it.
    pub(crate) fn take_in(&self, source: Source<'_>) -> Result<TakenIn<'_>, PretrainedError> {
        let n_states = self.n_source_steps(source)?;
        let encoded = self.encode(&[source], &mut Unwatched);
        let begun = self.decoder.begin(&encoded.states, n_states);
        Ok(TakenIn { model: self, encoded, begun })
    }
}

/// A source that was encoded, about which a decoder can be asked more than once.
pub(crate) struct TakenIn<'m> {
    model: &'m Model,
    pub(crate) encoded: Encoded,
    /// A decoder that has read nothing yet.
    begun: Cache,
}

impl TakenIn<'_> {
    /// Writes what the decoder makes of it.
    pub(crate) fn write(&self, how: &Decoding) -> Result<Vec<Written>, PretrainedError> {
        let start = how.start();
        self.model.check_fed(&start)?;
        let positions = self.model.decoder.positions.as_ref().map_or(usize::MAX - 1, |positions| positions.len());
        let (most, n_given) = (how.rules.max_tokens, how.prefix.len());
        let room = match most.checked_sub(n_given) {
            _ if !how.rules.prefix_counts => most,
            Some(room) if room > 0 => room,
            _ => return Err(PretrainedError::TooLong { side: "beginning", found: n_given, most: most.saturating_sub(1) }),
        };
        // The last token written is never read.
        let n_tokens = room.min((positions + 1).saturating_sub(start.len()).max(1));
        let mut writer = Writer { model: self.model, how, cache: self.begun.clone() };
        let mut next = Vec::new();
        for &token in &start {
            next = writer.log_probabilities(&[token]);
        }
        let written =
            if how.rules.n_beams > 1 { beam::search(writer, next, start, n_tokens) } else { sample::write(writer, next, start, n_tokens) };
        Ok(written)
    }

    /// Log probabilities `[words]` of what comes after the start token.
    pub(crate) fn first(&self, how: &Decoding) -> Result<Vec<f32>, PretrainedError> {
        self.model.check_fed(&[how.rules.start])?;
        Ok(Writer { model: self.model, how, cache: self.begun.clone() }.log_probabilities(&[how.rules.start]))
    }
}
