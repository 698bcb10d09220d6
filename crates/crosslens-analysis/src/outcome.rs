use serde::{Deserialize, Serialize};

/// What a batch came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Mean cross-entropy over all valid target steps, in nats.
    pub loss: f64,
    /// Valid target steps.
    pub words: usize,
    /// Those predicted right.
    pub right_words: usize,
    /// Sentences.
    pub phrases: usize,
    /// Sentences with every step right.
    pub right_phrases: usize,
}

impl Outcome {
    /// Share of valid target steps predicted right.
    pub fn word_accuracy(&self) -> f64 {
        self.right_words as f64 / self.words.max(1) as f64
    }

    /// Share of sentences with every step right.
    pub fn phrase_accuracy(&self) -> f64 {
        self.right_phrases as f64 / self.phrases.max(1) as f64
    }

    /// Both batches taken together.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let words = self.words + other.words;
        let loss = (self.loss * self.words as f64 + other.loss * other.words as f64) / words.max(1) as f64;
        Self {
            loss,
            words,
            right_words: self.right_words + other.right_words,
            phrases: self.phrases + other.phrases,
            right_phrases: self.right_phrases + other.right_phrases,
        }
    }
}
