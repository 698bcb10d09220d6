//! What was heard, as tokens: in one window, and over a whole sound.

use crosslens_analysis::Token;

use super::SpeechError;
use crate::audio::Window;

/// A token that was heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spoken {
    /// The token: text, or a timestamp.
    pub token: Token,
    /// Its log probability.
    pub log_probability: f32,
    /// From and to, in seconds, if attention was asked for them; of text only.
    pub secs: Option<(f64, f64)>,
}

/// What was heard in one window; seconds count from its beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// Without the prompt and the end.
    pub tokens: Vec<Spoken>,
    /// The probability that nobody speaks, where the model gives one.
    pub no_speech: Option<f64>,
}

impl Heard {
    /// Mean log probability of the tokens; 0 without any.
    pub fn mean_log_probability(&self) -> f64 {
        mean_log_probability(&self.tokens)
    }
}

/// A stretch of speech; seconds count from the beginning of the sound.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenSegment {
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
    /// Its tokens, timestamps among them.
    pub tokens: Vec<Spoken>,
    /// The probability that nobody speaks in the window it was heard in.
    pub no_speech: Option<f64>,
}

impl SpokenSegment {
    /// Mean log probability of the tokens; 0 without any.
    pub fn mean_log_probability(&self) -> f64 {
        mean_log_probability(&self.tokens)
    }
}

fn mean_log_probability(tokens: &[Spoken]) -> f64 {
    tokens.iter().map(|token| f64::from(token.log_probability)).sum::<f64>() / tokens.len().max(1) as f64
}

/// Whoever writes down what is said in a window: a model, or a stand-in of tests.
pub trait Hears {
    /// What is said in it.
    fn hear(&mut self, window: Window<'_>) -> Result<Heard, SpeechError>;
}

impl<H: Hears> Hears for &mut H {
    fn hear(&mut self, window: Window<'_>) -> Result<Heard, SpeechError> {
        (**self).hear(window)
    }
}
