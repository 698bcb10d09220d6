//! What was said, and when.

use serde::{Deserialize, Serialize};

/// Latest time of a transcript that is written, in seconds: some thirty years.
pub(super) const MAX_SECONDS: f64 = 1e9;

/// A word and when it was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedWord {
    /// The word, with its punctuation and without blanks around it.
    pub text: String,
    /// From, in seconds.
    pub start: f64,
    /// To, in seconds; not before `start`.
    pub end: f64,
    /// `exp` of the mean log probability of its tokens: from 0 to 1.
    pub confidence: f64,
}

/// A stretch of speech, a sentence or a part of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// From, in seconds.
    pub start: f64,
    /// To, in seconds; not before `start`.
    pub end: f64,
    /// What was said.
    pub text: String,
    /// `exp` of the mean log probability of its tokens: from 0 to 1.
    pub confidence: f64,
    /// The probability that nobody speaks, where a model gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_speech: Option<f64>,
    /// Its words, if their times were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<TimedWord>,
}

/// All that was said in a recording of sound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The language, as the model calls it (`en`), if it knows languages.
    #[serde(default)]
    pub language: Option<String>,
    /// Length of the sound in seconds.
    pub duration: f64,
    /// What was said, in order.
    pub segments: Vec<Segment>,
}
