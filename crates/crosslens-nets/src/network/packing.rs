//! Sentences of different lengths side by side, without padding.
//!
//! A recurrent layer wants the rows of one step together (*step-major*), attention the rows of one sentence (*sentence-major*). Both
//! orders hold the same valid rows and nothing else. In step-major order the longest sentence comes first, so that the sentences still
//! running at a step are a prefix of those of the step before.

use std::ops::Range;

use crosslens_analysis::Token;

/// The rows of one side of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packing {
    /// Rank (place in step-major order) → sentence.
    pub(crate) sentences: Vec<usize>,
    /// Sentence → rank.
    pub(crate) ranks: Vec<usize>,
    /// Sentence → length.
    pub(crate) lengths: Vec<usize>,
    /// Step → its first row in step-major order, with the total at the end.
    steps: Vec<usize>,
    /// Sentence → its first row in sentence-major order, with the total at the end.
    starts: Vec<usize>,
    /// Step-major row → sentence-major row.
    pub(crate) to_sentence: Vec<usize>,
    /// Step-major row → step-major row of the same sentence read backwards.
    pub(crate) reversed: Vec<usize>,
    /// Rank → step-major row of the sentence's last step.
    pub(crate) last: Vec<usize>,
    /// Step-major row → step.
    pub(crate) step_of: Vec<u32>,
}

impl Packing {
    /// Lays out sentences of these lengths; allocates only when they are more than ever before.
    pub(crate) fn arrange(&mut self, lengths: impl Iterator<Item = usize>) {
        self.lengths.clear();
        self.lengths.extend(lengths);
        let n = self.lengths.len();
        self.sentences.clear();
        self.sentences.extend(0..n);
        let lengths = &self.lengths;
        self.sentences.sort_unstable_by_key(|&sentence| (std::cmp::Reverse(lengths[sentence]), sentence));
        self.ranks.clear();
        self.ranks.resize(n, 0);
        for (rank, &sentence) in self.sentences.iter().enumerate() {
            self.ranks[sentence] = rank;
        }

        self.starts.clear();
        self.starts.push(0);
        for &length in lengths {
            self.starts.push(self.starts[self.starts.len() - 1] + length);
        }

        let n_steps = self.sentences.first().map_or(0, |&longest| lengths[longest]);
        self.steps.clear();
        self.to_sentence.clear();
        self.step_of.clear();
        let mut running = n;
        for step in 0..n_steps {
            self.steps.push(self.to_sentence.len());
            while lengths[self.sentences[running - 1]] <= step {
                running -= 1;
            }
            self.to_sentence.extend(self.sentences[..running].iter().map(|&sentence| self.starts[sentence] + step));
            self.step_of.extend((0..running).map(|_| step as u32));
        }
        self.steps.push(self.to_sentence.len());

        self.last.clear();
        self.last.extend(self.sentences.iter().enumerate().map(|(rank, &sentence)| self.steps[lengths[sentence] - 1] + rank));
        self.reversed.clear();
        for step in 0..n_steps {
            let running = self.steps[step + 1] - self.steps[step];
            self.reversed.extend((0..running).map(|rank| self.steps[lengths[self.sentences[rank]] - 1 - step] + rank));
        }
    }

    /// Number of sentences.
    pub(crate) fn n_sentences(&self) -> usize {
        self.lengths.len()
    }

    /// Number of steps of the longest sentence.
    pub(crate) fn n_steps(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }

    /// Number of valid rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.to_sentence.len()
    }

    /// Step-major rows of a step; the row of rank `r` is the `r`-th.
    pub(crate) fn rows(&self, step: usize) -> Range<usize> {
        self.steps[step]..self.steps[step + 1]
    }

    /// Sentence-major rows of a sentence.
    pub(crate) fn sentence_rows(&self, sentence: usize) -> Range<usize> {
        self.starts[sentence]..self.starts[sentence + 1]
    }

    /// Tokens in step-major order.
    pub(crate) fn tokens<'a>(&self, tokens: &mut Vec<Token>, sentence: impl Fn(usize) -> &'a [Token]) {
        tokens.clear();
        for step in 0..self.n_steps() {
            let running = self.rows(step).len();
            tokens.extend(self.sentences[..running].iter().map(|&number| sentence(number)[step]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths 1, 3, 2: ranks are sentences 1, 2, 0; steps hold 3, 2 and 1 rows.
    #[test]
    fn the_longest_comes_first_and_nothing_is_padded() {
        let mut packing = Packing::default();
        packing.arrange([1, 3, 2].into_iter());
        assert_eq!(packing.sentences, [1, 2, 0]);
        assert_eq!([packing.rows(0), packing.rows(1), packing.rows(2)], [0..3, 3..5, 5..6]);
        assert_eq!(packing.to_sentence, [1, 4, 0, 2, 5, 3]);
        assert_eq!(packing.last, [5, 4, 2]);
        assert_eq!(packing.reversed, [5, 4, 2, 3, 1, 0]);
        assert_eq!(packing.sentence_rows(1), 1..4);
        assert_eq!(packing.step_of, [0, 0, 0, 1, 1, 2]);
    }
}
