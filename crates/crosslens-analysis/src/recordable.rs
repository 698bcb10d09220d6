//! What a model must be able to do to be explained.

use crate::{Description, Outcome, Pair, Recorded, Token};

/// What the decoder reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed<'a> {
    /// The target (teacher forcing).
    Target,
    /// Its own likeliest word.
    Own,
    /// These tokens, one list for each pair and as long as its target: those it read when it was recorded.
    Given(&'a [Vec<Token>]),
}

/// One row of attention, about to be used.
#[derive(Clone, Copy, Debug)]
pub struct AttentionRow<'a> {
    /// The site's place in [`Description::sites`].
    pub site: usize,
    /// The pair's place in the batch.
    pub pair: usize,
    /// The query's step.
    pub query: usize,
    /// The state that asks, as it is in this run.
    pub query_state: &'a [f32],
    /// The states that are asked, `[key, d]`.
    pub key_states: &'a [f32],
}

/// Changes what a model does while it runs. Every method leaves things as they are unless it is written otherwise.
pub trait Intervene: Sync {
    /// Whether anything is changed at all: where not, a model need not ask, and runs as it would by itself.
    fn changes(&self) -> bool {
        true
    }

    /// The one site that is changed, where it is one and only its weights are: a model may take what comes before it from an earlier run.
    fn site(&self) -> Option<usize> {
        None
    }

    /// May replace the attention weights of a row; they should stay a distribution over the keys.
    fn weights(&self, _row: AttentionRow<'_>, _weights: &mut [f32]) {}

    /// May replace the states `[key, d]` that attention sums, before any value map.
    fn values(&self, _site: usize, _pair: usize, _states: &mut [f32]) {}

    /// May change what reaches the readout: the part from the decoder's state and the part from the context, either possibly empty.
    fn readout(&self, _pair: usize, _query: usize, _state: &mut [f32], _context: &mut [f32]) {}
}

/// Lets everything be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untouched;

impl Intervene for Untouched {
    fn changes(&self) -> bool {
        false
    }
}

/// What a model did with one pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The likeliest token of each step.
    pub predicted: Vec<Token>,
    /// Mean cross-entropy of the target.
    pub loss: f64,
}

impl Answer {
    /// How it compares with the target.
    pub fn outcome(&self, target: &[Token]) -> Outcome {
        let right_words = self.predicted.iter().zip(target).filter(|(a, b)| a == b).count();
        Outcome { loss: self.loss, words: target.len(), right_words, phrases: 1, right_phrases: usize::from(right_words == target.len()) }
    }
}

/// An input that is no token, read at every step on both sides. Positions, where a model encodes them, stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// All zero.
    Zero,
    /// Every entry `1/d` where words are one-hot vectors; the mean of the words' vectors where they are learned.
    Average,
}

/// Why a model could not be recorded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A token the model does not know.
    #[error("pair {pair}: token {token} of the {side} is not among the model's {count}")]
    UnknownToken {
        /// The pair's place in the batch.
        pair: usize,
        /// Source or target.
        side: &'static str,
        /// The token.
        token: Token,
        /// How many the model knows.
        count: usize,
    },
    /// A sentence without a token.
    #[error("pair {pair}: the {side} is empty")]
    Empty {
        /// The pair's place in the batch.
        pair: usize,
        /// Source or target.
        side: &'static str,
    },
    /// The model's own reason.
    #[error("the model cannot be run")]
    Model(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// A model whose attention can be recorded and run again under changes.
///
/// Recording is asked for batch by batch, so that memory stays flat whatever the corpus.
pub trait Recordable: Send + Sync {
    /// What it records.
    fn description(&self) -> &Description;

    /// Runs the pairs and returns what was seen, in their order and numbered from 0.
    fn record(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError>;

    /// The same for sums: states and attention, bit for bit those of [`Recordable::record`]. What is predicted and its loss may be left
    /// out, with the work they take.
    fn record_states(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        self.record(pairs, fed)
    }

    /// Runs the pairs under an intervention.
    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError>;

    /// The states `[step, d]` of each stream over so many steps that read no token; `None` where the model cannot do that.
    fn probe(&self, _probe: Probe, _n_steps: usize) -> Option<Vec<Vec<f32>>> {
        None
    }

    /// The same model with fresh weights: the control.
    fn untrained(&self, seed: u64) -> Option<Box<dyn Recordable>>;
}
