//! Writing: the likeliest token each time, several hypotheses side by side, or tokens drawn by their probability.

mod beam;
pub(crate) mod rules;
mod sample;

use crosslens_analysis::Token;

use crate::PretrainedError;
use crate::generation::{EarlyStopping, Generation};
use crate::layers::Unwatched;
use crate::model::Model;
use crate::stack::Cache;

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
}

/// What a model wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Without the start token; with the end token, unless the length ran out. A prefix is part of it.
    pub tokens: Vec<Token>,
    /// Log probability of what came after the prefix; of a beam search, divided by its length to the power of the length penalty.
    pub score: f64,
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
        let mut logits = self.model.logits(&states);
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
    pub fn write_all(&self, sources: &[Vec<Token>], how: &Decoding, n_threads: usize) -> Result<Vec<Written>, PretrainedError> {
        let mut results: Vec<_> = sources.iter().map(|source| (source, None)).collect();
        crate::subject::threads(self, n_threads)?.for_each(&mut results, |_, (source, result)| *result = Some(self.write(source, how)));
        let first = |written: Vec<Written>| written.into_iter().next().unwrap_or(Written { tokens: Vec::new(), score: 0.0 });
        results.into_iter().filter_map(|(_, result)| result).map(|result| result.map(first)).collect()
    }

    /// Writes what it makes of a source.
    pub fn write(&self, source: &[Token], how: &Decoding) -> Result<Vec<Written>, PretrainedError> {
        self.check_source(source)?;
        let start: Vec<Token> = std::iter::once(how.rules.start).chain(how.prefix.iter().copied()).collect();
        self.check_fed(&start)?;
        let positions = self.decoder.positions.as_ref().map_or(usize::MAX - 1, |positions| positions.len());
        // The last token written is never read.
        let n_tokens = how.rules.max_tokens.min((positions + 1).saturating_sub(start.len()).max(1));
        let encoded = self.encode(&[source], &mut Unwatched);
        let mut writer = Writer { model: self, how, cache: self.decoder.begin(&encoded.states) };
        let mut next = Vec::new();
        for &token in &start {
            next = writer.log_probabilities(&[token]);
        }
        let written =
            if how.rules.n_beams > 1 { beam::search(writer, next, start, n_tokens) } else { sample::write(writer, next, start, n_tokens) };
        Ok(written)
    }
}
