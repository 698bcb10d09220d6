//! What was seen while a model worked: the waist of the hourglass.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Linear, Signal, Site, Token};

/// The two sides of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// What the encoder reads.
    Source,
    /// What the decoder writes.
    Target,
}

/// Which token a state of the target side has consumed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consumed {
    /// That of its own step.
    Current,
    /// That of the step before; at the first step the state has consumed none and stands under [`Words::init`].
    Previous,
}

/// How [`Consumed`] stands in files.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Consumed", rename_all = "kebab-case")]
pub(crate) enum ConsumedName {
    Current,
    Previous,
}

/// One kind of states that feed attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name in files, such as `encoder`.
    pub name: String,
    /// Whose steps it has.
    pub side: Side,
    /// Which token each state has consumed last.
    pub consumed: Consumed,
    /// Dimensions of a state.
    pub d: usize,
}

/// The tokens of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// How many there are, a start token included: every recorded token is below.
    pub count: u32,
    /// Their names; shorter than `count` where they are not known.
    pub names: Vec<String>,
    /// The token that begins what the decoder reads, if there is one.
    pub start: Option<Token>,
    /// The token that ends a sentence, if sentences have one.
    pub end: Option<Token>,
}

impl Words {
    /// The number under which states stand that have consumed no token.
    pub fn init(&self) -> Token {
        self.count
    }

    /// A token's name; `<init>` for no token, and a number where it has no name.
    pub fn name(&self, token: Token) -> Cow<'_, str> {
        match self.names.get(token as usize) {
            Some(name) => Cow::Borrowed(name),
            None if token == self.init() => Cow::Borrowed("<init>"),
            None => Cow::Owned(format!("#{token}")),
        }
    }
}

/// The last linear map, from what the decoder ends in to the logits of the target's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Readout {
    /// `[d_in, words]`.
    pub map: Linear,
    /// Rows that read the decoder's state: the first so many.
    pub d_state: usize,
    /// Rows that read the context: the next so many.
    pub d_context: usize,
}

/// What a model is, as far as an explanation needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// In words, for people.
    pub model: String,
    /// Tells models apart: the same for the same weights.
    pub model_hash: String,
    /// Tokens of the source side.
    pub source: Words,
    /// Tokens that are fed to the decoder.
    pub target: Words,
    /// The streams of states.
    pub streams: Vec<Stream>,
    /// The attention heads that read them; empty where a model has none.
    pub sites: Vec<Site>,
    /// The readout, where it is one linear map.
    pub readout: Option<Readout>,
}

impl Description {
    /// The tokens of one side.
    pub fn words(&self, side: Side) -> &Words {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

/// One sentence pair as the model saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its number in the corpus.
    pub number: u64,
    /// What the encoder read; of a sound or a picture, the code of each step.
    pub source: Vec<Token>,
    /// The sound or picture, where the source is one and the model is at hand; files do not keep it.
    pub signal: Option<Signal>,
    /// What the decoder read, step by step.
    pub fed: Vec<Token>,
    /// What it found likeliest at each step; empty where that is not known.
    pub predicted: Vec<Token>,
    /// What it should have written, if that is known; as long as `fed`.
    pub target: Option<Vec<Token>>,
    /// Mean cross-entropy of the target, if known.
    pub loss: Option<f64>,
    /// By stream, `[step, d]`.
    pub states: Vec<Vec<f32>>,
    /// By site, `[query step, key step]`: the model's own weights, zero where a key may not be seen; empty where they were not kept.
    pub attention: Vec<Vec<f32>>,
}

impl Recorded {
    /// Steps of one side.
    pub fn n_steps(&self, side: Side) -> usize {
        match side {
            Side::Source => self.source.len(),
            Side::Target => self.fed.len(),
        }
    }

    /// The token each state of a stream has consumed last.
    pub fn tokens(&self, stream: &Stream, words: &Words) -> Cow<'_, [Token]> {
        let tokens = match stream.side {
            Side::Source => &self.source,
            Side::Target => &self.fed,
        };
        match stream.consumed {
            Consumed::Current => Cow::Borrowed(tokens),
            Consumed::Previous => {
                let before = tokens.iter().take(tokens.len().saturating_sub(1)).copied();
                Cow::Owned(std::iter::once(words.init()).chain(before).take(tokens.len()).collect())
            }
        }
    }
}
