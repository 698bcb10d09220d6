//! What to explain, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Chosen, CorpusError};
use crate::{Estimator, FitError, Shrinkage, SplitError};

/// Explained sentences that say whether a model does its task, where its heads are what is asked for: enough for its accuracy to a percent
/// or two. What a pretrained model predicts of the others nobody needs, and its readout is a large part of its work.
pub const HEADS_ANSWERED: u64 = 1000;

/// How an explanation is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How components are fitted.
    pub estimator: Estimator,
    /// How rare tokens are pulled towards nothing.
    pub shrinkage: Shrinkage,
    /// Fit on one half of the sentences, explain the other.
    pub held_out: bool,
    /// The K of the top-K shares beside 1 and 3.
    pub k: usize,
    /// Resamples for intervals; 0 for none.
    pub bootstrap: usize,
    /// Whether the shares by step have intervals too: as many sums again for every step and resample.
    pub step_intervals: bool,
    /// Draws the resamples.
    pub seed: u64,
    /// Sentences the causal checks run on; 0 for no check.
    pub causal: u64,
    /// Explained sentences whose predictions and losses are asked for, about so many and spread over the corpus, beside those of the causal
    /// checks and those that are shown; of the others a model that can leave them out does, which saves its readout. Accuracy, loss and
    /// ranks by loss are then of these alone, and a warning says so.
    pub answered: u64,
    /// How the model is run again in the causal checks.
    pub rerun: Rerun,
    /// Pieces that attention is rebuilt from, beside those it always is.
    pub subsets: Vec<Chosen>,
    /// Sentences kept for the page.
    pub samples: usize,
    /// Whether to look for the heaviest monotone path of every attention from the decoder to the encoder.
    pub monotone: bool,
    /// Worst sentences to list, and by what.
    pub rank: Option<Rank>,
    /// Whether to look at how states and readouts lie to each other; costs the square of a state's width for every state.
    pub geometry: bool,
    /// Whether what was counted is kept beside the report, so that explanations of parts of a corpus merge.
    pub keep_totals: bool,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
    /// Breaks it off between two batches, from another thread.
    pub stop: Stop,
}

/// A wish that an explanation end before it is done; whoever has a clone can have it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Wishes so.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody did.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            estimator: Estimator::Paper,
            shrinkage: Shrinkage::None,
            held_out: false,
            k: 1,
            bootstrap: 0,
            step_intervals: false,
            seed: 0,
            causal: 1000,
            answered: u64::MAX,
            rerun: Rerun::Recorded,
            subsets: Vec::new(),
            samples: 8,
            monotone: false,
            rank: None,
            geometry: false,
            keep_totals: false,
            n_threads: 0,
            stop: Stop::default(),
        }
    }
}

/// How a model is run again with its attention rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rerun {
    /// The attention is rebuilt from the recorded states, and the decoder reads what it read then.
    #[default]
    Recorded,
    /// The decoder reads what it read then, and the attention is rebuilt from the states of this run, which earlier changes have moved.
    Live,
    /// The attention is rebuilt from the recorded states, and the decoder feeds itself.
    Free,
}

impl Rerun {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Live => "live",
            Self::Free => "free",
        }
    }
}

/// What makes a sentence worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Attention far from its average.
    Drift,
    /// Source words never looked at.
    Coverage,
    /// Diffuse rows.
    Entropy,
    /// A target the model finds unlikely.
    Loss,
}

impl Rank {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::Coverage => "coverage",
            Self::Entropy => "entropy",
            Self::Loss => "loss",
        }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Letting the model write the targets that were not given.
    Writing,
    /// Summing states.
    Fitting,
    /// Splitting scores.
    Splitting,
    /// Running the model again with its attention changed.
    Checking,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// Sentences done.
    pub done: u64,
    /// Sentences to do.
    pub total: u64,
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// No sentence.
    #[error("there are no sentences to explain")]
    Empty,
    /// Somebody wished so: [`Options::stop`].
    #[error("the explanation was broken off")]
    Stopped,
    /// Sentences cannot be read or recorded.
    #[error("sentences {from} to {to} cannot be read")]
    Corpus {
        /// The first.
        from: u64,
        /// One past the last.
        to: u64,
        /// Why.
        source: CorpusError,
    },
    /// Components cannot be fitted.
    #[error("the components of stream `{stream}` cannot be fitted")]
    Fit {
        /// The stream.
        stream: String,
        /// Why.
        source: FitError,
    },
    /// States that are no numbers.
    #[error("the states of stream `{stream}` are not all finite numbers")]
    States {
        /// The stream.
        stream: String,
    },
    /// Scores that are no numbers.
    #[error("sentence {sentence}: the scores of {kind} attention, layer {layer}, head {head}, are not all finite numbers")]
    Scores {
        /// The sentence's number.
        sentence: u64,
        /// Which states ask which.
        kind: &'static str,
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// Components of other states.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// Sums that do not belong to this model.
    #[error("the sums given are of {given}, the model records {expected}")]
    OtherSums {
        /// What they are of.
        given: String,
        /// What they should be of.
        expected: String,
    },
    /// A sentence that is too long to be split.
    #[error(
        "sentence {sentence} has {source_steps} source and {target_steps} target steps; at most {} steps a side and {} cells of one \
         attention are explained: leave it out, or cut it",
        crate::MAX_STEPS,
        super::MAX_CELLS
    )]
    TooLong {
        /// The sentence's number.
        sentence: u64,
        /// Steps of its source.
        source_steps: usize,
        /// Steps of its target.
        target_steps: usize,
    },
    /// Pieces that no head has.
    #[error("attention cannot be rebuilt from `{subset}`: {why}")]
    Subset {
        /// What was chosen.
        subset: String,
        /// What there is instead.
        why: &'static str,
    },
    /// A loss that is no number.
    #[error("sentence {sentence}: its loss is {loss}, not a finite number")]
    Loss {
        /// The sentence's number.
        sentence: u64,
        /// What was recorded.
        loss: f64,
    },
    /// Nothing to rank sentences by.
    #[error("sentences cannot be ranked by {by}: {why}")]
    Rank {
        /// By what.
        by: &'static str,
        /// What is missing.
        why: &'static str,
    },
    /// Two passes over other sentences.
    #[error(
        "the second pass went over other sentences than the first, or over the same in another order (there were {first}, then {second}): \
         both passes must read the same sentences in the same order, unshuffled"
    )]
    OtherSentences {
        /// Sentences of the first pass.
        first: u64,
        /// Those of the second.
        second: u64,
    },
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}
