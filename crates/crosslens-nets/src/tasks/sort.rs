use crosslens_analysis::{Pair, Vocabulary};
use serde::{Deserialize, Serialize};

use super::sentences::Sentences;
use super::stream::generator;
use super::{Lengths, Split, Task, TaskError};

/// How to make the sorting task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SortConfig {
    /// How many words each side has, `<eos>` apart; at least 2. Default 5.
    pub n_words: usize,
    /// The fewest words of a sentence, `<eos>` apart. Default 5.
    pub min_length: usize,
    /// The most words of a sentence, `<eos>` apart, inclusive; equal lengths make sentences without `<eos>`. Default 9.
    pub max_length: usize,
}

impl Default for SortConfig {
    fn default() -> Self {
        Self { n_words: 5, min_length: 5, max_length: 9 }
    }
}

impl SortConfig {
    /// Checks the fields and makes the task.
    pub fn build(&self) -> Result<Sort, TaskError> {
        let sentences = Sentences::new(self.n_words, self.min_length, self.max_length)?;
        Ok(Sort { source_vocabulary: sentences.vocabulary('I', &[]), target_vocabulary: sentences.vocabulary('O', &[]), sentences })
    }
}

/// The words of the source in ascending order, `Ik` written as `Ok`; words are independent and uniform.
///
/// ```text
/// source   I2 I0 I1 I0 <eos>
/// target   O0 O0 O1 O2 <eos>
/// ```
#[derive(Clone, Debug)]
pub struct Sort {
    sentences: Sentences,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
}

impl Task for Sort {
    fn source_vocabulary(&self) -> &Vocabulary {
        &self.source_vocabulary
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        &self.target_vocabulary
    }

    fn max_lengths(&self) -> Lengths {
        Lengths { source: self.sentences.max_steps(), target: self.sentences.max_steps() }
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        let mut source = self.sentences.draw(&mut generator(split, seed, index));
        let mut target = source.clone();
        target.sort_unstable();
        self.sentences.end(&mut source, &self.source_vocabulary);
        self.sentences.end(&mut target, &self.target_vocabulary);
        Pair::new(source, target)
    }
}
