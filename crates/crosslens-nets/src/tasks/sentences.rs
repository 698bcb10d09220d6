use crosslens_analysis::{Token, Vocabulary};
use rand::{Rng, RngExt};

use super::error::{check_order, check_range};
use super::{END_WORD, TaskError, vocabulary};

/// The most words a sentence may be asked to have.
pub(super) const MOST_STEPS: usize = 1_000;

/// The most words a vocabulary may be asked to have.
const MOST_WORDS: usize = 10_000;

/// Sentences of independent words, each uniform over `0..n_words`, whose length is uniform in `min_length..=max_length`.
///
/// Where the two lengths are equal the sentences have no end token: there is nothing it could tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sentences {
    n_words: Token,
    min_length: usize,
    max_length: usize,
}

impl Sentences {
    /// Checks the three fields, under the names they have in every configuration.
    pub(super) fn new(n_words: usize, min_length: usize, max_length: usize) -> Result<Self, TaskError> {
        check_range("n_words", n_words, 2, MOST_WORDS)?;
        check_range("min_length", min_length, 1, MOST_STEPS)?;
        check_range("max_length", max_length, 1, MOST_STEPS)?;
        check_order(("min_length", min_length), ("max_length", max_length))?;
        Ok(Self { n_words: Token::try_from(n_words).expect("n_words is at most MOST_WORDS: checked above"), min_length, max_length })
    }

    /// Whether a sentence ends with [`END_WORD`].
    pub(super) fn are_ended(&self) -> bool {
        self.min_length < self.max_length
    }

    /// The steps of the longest sentence, the end token included.
    pub(super) fn max_steps(&self) -> usize {
        self.max_length + usize::from(self.are_ended())
    }

    /// How many words there are, end word apart.
    pub(super) fn n_words(&self) -> Token {
        self.n_words
    }

    /// The words `{letter}0`, `{letter}1`, … then the extra words, then [`END_WORD`] where sentences have it.
    pub(super) fn vocabulary(&self, letter: char, extra: &[&str]) -> Vocabulary {
        let words = (0..self.n_words).map(|word| format!("{letter}{word}"));
        let end = self.are_ended().then_some(END_WORD);
        vocabulary(words.chain(extra.iter().copied().chain(end).map(String::from)))
    }

    /// One sentence, without its end token.
    pub(super) fn draw(&self, random: &mut impl Rng) -> Vec<Token> {
        let n_steps = random.random_range(self.min_length..=self.max_length);
        (0..n_steps).map(|_| random.random_range(0..self.n_words)).collect()
    }

    /// Adds the end token, the last of its vocabulary, where sentences have it.
    pub(super) fn end(&self, sentence: &mut Vec<Token>, vocabulary: &Vocabulary) {
        if self.are_ended() {
            sentence.push(super::end_token(vocabulary));
        }
    }
}
