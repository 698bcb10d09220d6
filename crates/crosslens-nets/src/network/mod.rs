//! The networks: a configuration becomes a layout of parameters and the passes over them.
//!
//! There are two kinds, recurrent ones (this folder) and Transformers (`transformer/`). What they share stands here and in `engine.rs`.
//! Equations and names stand in `docs/math.md`.

mod additive;
mod attention;
mod cells;
mod config;
mod decoder;
pub(crate) mod description;
mod dropout;
mod encoder;
pub(crate) mod engine;
pub(crate) mod hook;
mod inputs;
mod layer;
mod layout;
mod linear;
mod memory;
pub(crate) mod observe;
mod packing;
mod positions;
mod prepared;
mod readout;
mod recurrence;
mod recurrent;
mod rows;
pub(crate) mod shard;
mod stepping;
pub(crate) mod transformer;

use crosslens_analysis::Token;
use crosslens_kernels::Real;

pub use crosslens_analysis::Outcome;

pub use config::{Cell, Family, Inputs, NetworkConfig, NetworkError, Positions, Score};
pub use engine::{Engine, Feeding};
pub(crate) use engine::{Workplace, shard_count};
pub use layout::{Layout, Tensor};
pub use observe::{Observation, SelfAttention};
pub use recurrence::{ConstantInput, Place, Recurrence, RecurrenceError};
pub use stepping::{Stepper, Stepping};
pub use transformer::{Activation, NormPlace, StepVectors, TransformerConfig};

pub(crate) use cells::gru_reset_after_forward;
pub(crate) use packing::Packing;
pub(crate) use readout::likeliest;
pub(crate) use recurrent::Recurrent;
pub(crate) use transformer::Transformer;

use prepared::Maps;

use crate::random::generator;

/// Most numbers a network may train: a gigabyte of weights.
const MAX_PARAMETERS: usize = 1 << 28;

/// A network without its weights: what is connected to what, and which parameter is where.
#[derive(Clone, Debug)]
pub struct Network {
    config: NetworkConfig,
    layout: Layout,
    maps: Maps,
    body: Body,
    n_source_words: usize,
    n_target_words: usize,
}

/// The kinds of networks; each has passes of its own.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Recurrent(Box<Recurrent>),
    Transformer(Box<Transformer>),
}

impl Network {
    /// Builds the network for vocabularies of these sizes; `seed` draws the rotation of its positions.
    pub fn new(config: &NetworkConfig, n_source_words: usize, n_target_words: usize, seed: u64) -> Result<Self, NetworkError> {
        config.check()?;
        for (words, side) in [(n_source_words, "source_words"), (n_target_words, "target_words")] {
            if words == 0 {
                return Err(NetworkError::OutOfRange { field: side, value: "0".into(), range: "at least 1" });
            }
        }
        let (mut layout, mut maps) = (Layout::default(), Maps::default());
        let body = if config.family == Family::Transformer {
            Body::Transformer(Box::new(Transformer::new(config, [n_source_words, n_target_words], &mut layout, &mut maps)))
        } else {
            Body::Recurrent(Box::new(Recurrent::new(config, [n_source_words, n_target_words], seed, &mut layout, &mut maps)?))
        };
        if layout.len() > MAX_PARAMETERS {
            return Err(NetworkError::TooLarge { parameters: layout.len(), most: MAX_PARAMETERS });
        }
        Ok(Self { config: config.clone(), layout, maps, body, n_source_words, n_target_words })
    }

    /// How it was described.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Its parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn n_source_words(&self) -> usize {
        self.n_source_words
    }

    /// The number of the start token, one past the target's words.
    pub fn start_token(&self) -> Token {
        self.n_target_words as Token
    }

    /// Fails where sentences of so many steps cannot be read: beyond the positions that a Transformer has learned.
    pub fn check_lengths(&self, source: usize, target: usize) -> Result<(), NetworkError> {
        let Some(most) = self.config.transformer.and_then(|config| config.most_steps()) else { return Ok(()) };
        match [("source", source), ("target", target)].into_iter().find(|(_, steps)| *steps > most) {
            Some((side, steps)) => Err(NetworkError::TooLong { side, steps, most }),
            None => Ok(()),
        }
    }

    /// Weights drawn as `docs/math.md` says.
    pub fn draw_weights<F: Real>(&self, seed: u64) -> Vec<F> {
        self.layout.draw(&mut generator(&[seed, 0x3E16]))
    }

    /// The rotation of the positions, `[d, d]`, where there are any: the one constant of a network.
    pub fn rotation(&self) -> Option<&[f64]> {
        match &self.body {
            Body::Recurrent(network) => network.rotation.as_deref(),
            Body::Transformer(_) => None,
        }
    }

    /// Replaces the rotation, by one read from a file. Panics if there is none or its size differs.
    pub fn set_rotation(&mut self, rotation: Vec<f64>) {
        let own = match &mut self.body {
            Body::Recurrent(network) => network.rotation.as_mut(),
            Body::Transformer(_) => None,
        };
        let own = own.expect("only a recurrent network with positions has a rotation");
        assert_eq!(own.len(), rotation.len(), "size of the rotation");
        *own = rotation;
    }

    /// Dimensions of a token's vector.
    pub fn d_input(&self) -> usize {
        match &self.body {
            Body::Recurrent(network) => network.source_space.d,
            Body::Transformer(_) => self.config.hidden,
        }
    }
}
