//! A task whose pairs come from elsewhere: a corpus, a file, any iterator.

use crosslens_analysis::{Pair, Token, Vocabulary};

use super::{Lengths, Split, Task, TaskError};
use crate::random;

/// Pairs given beforehand.
///
/// Training goes through them again and again, in an order shuffled anew for every round; the test pairs come in the order they were given,
/// from the start again after the last.
///
/// ```
/// use crosslens_analysis::{Pair, Vocabulary};
/// use crosslens_nets::tasks::{Listed, Split, Task};
///
/// let words = Vocabulary::new(["a", "b"])?;
/// let pairs = (0..2).map(|word| Pair::new(vec![word], vec![1 - word]));
/// let task = Listed::new(words.clone(), words, pairs.clone(), pairs)?;
/// assert_eq!(task.pair(Split::Test, 0, 3).target, [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Listed {
    source: Vocabulary,
    target: Vocabulary,
    train: Vec<Pair>,
    test: Vec<Pair>,
    lengths: Lengths,
}

impl Listed {
    /// Takes the pairs of two iterators and checks every one of them.
    pub fn new(
        source: Vocabulary,
        target: Vocabulary,
        train: impl IntoIterator<Item = Pair>,
        test: impl IntoIterator<Item = Pair>,
    ) -> Result<Self, TaskError> {
        let (train, test): (Vec<Pair>, Vec<Pair>) = (train.into_iter().collect(), test.into_iter().collect());
        let mut lengths = Lengths { source: 0, target: 0 };
        for (split, pairs) in [("training", &train), ("test", &test)] {
            if pairs.is_empty() {
                return Err(TaskError::NoPairs { split });
            }
            for (number, pair) in pairs.iter().enumerate() {
                for (side, tokens, words) in [("source", &pair.source, &source), ("target", &pair.target, &target)] {
                    if let Some(what) = fault(tokens, words) {
                        return Err(TaskError::BadPair { split, number, side, what });
                    }
                }
                lengths.source = lengths.source.max(pair.source.len());
                lengths.target = lengths.target.max(pair.target.len());
            }
        }
        Ok(Self { source, target, train, test, lengths })
    }

    /// Which training pair stands at a place of the stream.
    pub(super) fn train_number(&self, seed: u64, index: u64) -> usize {
        let n = self.train.len() as u64;
        let (round, place) = (index / n, index % n);
        shuffled(place, n, random::mix(seed ^ random::mix(round))) as usize
    }

    pub(super) fn train_pair(&self, number: usize) -> &Pair {
        &self.train[number]
    }
}

/// What is wrong with one side of a pair.
fn fault(tokens: &[Token], words: &Vocabulary) -> Option<String> {
    if tokens.is_empty() {
        return Some("is empty".into());
    }
    let unknown = tokens.iter().find(|&&token| token as usize >= words.len())?;
    Some(format!("has the token {unknown}, the vocabulary {} words", words.len()))
}

impl Task for Listed {
    fn source_vocabulary(&self) -> &Vocabulary {
        &self.source
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        &self.target
    }

    fn max_lengths(&self) -> Lengths {
        self.lengths
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        match split {
            Split::Test => self.test[(index % self.test.len() as u64) as usize].clone(),
            Split::Train => self.train[self.train_number(seed, index)].clone(),
        }
    }
}

/// Where `place` goes under a permutation of `0..n` drawn by `key`, without a table: four Feistel rounds on the next larger power of four,
/// walked until the result is below `n`.
pub(super) fn shuffled(place: u64, n: u64, key: u64) -> u64 {
    let half = (u64::BITS - (n - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut place = place;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (random::mix(key ^ random::mix(right << 8 | round)) & mask));
        }
        place = left << half | right;
        if place < n {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskConfig;

    fn words() -> Vocabulary {
        Vocabulary::new(["a", "b", "c"]).expect("three words")
    }

    fn pairs(n: u32) -> impl Iterator<Item = Pair> {
        (0..n).map(|number| Pair::new(vec![number % 3; number as usize + 1], vec![number % 3]))
    }

    #[test]
    fn every_round_shows_every_pair_once_in_another_order() {
        for n in [1u32, 2, 3, 7, 64, 100] {
            let task = Listed::new(words(), words(), pairs(n), pairs(1)).expect("the pairs are good");
            let round = |round: u64| -> Vec<usize> {
                (0..u64::from(n)).map(|place| task.pair(Split::Train, 5, round * u64::from(n) + place).source.len()).collect()
            };
            for number in 0..3 {
                let mut lengths = round(number);
                lengths.sort_unstable();
                assert_eq!(lengths, (1..=n as usize).collect::<Vec<_>>(), "{n} pairs");
            }
            assert!(n < 7 || round(0) != round(1), "{n} pairs are shuffled anew");
            assert_eq!(round(1), round(1));
        }
    }

    #[test]
    fn a_listed_task_gives_back_the_task_it_lists() {
        let task = TaskConfig::named("sort").expect("a task").build().expect("it is sound");
        let list = |split| (0..50).map(move |index| (split, index));
        let pairs = |split| list(split).map(|(split, index)| task.pair(split, 3, index)).collect::<Vec<_>>();
        let listed =
            Listed::new(task.source_vocabulary().clone(), task.target_vocabulary().clone(), pairs(Split::Train), pairs(Split::Test))
                .expect("the pairs of a task are good");
        assert!((0..50).all(|index| listed.pair(Split::Test, 9, index) == task.pair(Split::Test, 3, index)));
        assert!(listed.max_lengths().source <= task.max_lengths().source);
    }

    #[test]
    fn bad_pairs_are_named() {
        let bad = |pair: Pair| Listed::new(words(), words(), [pair], pairs(1)).expect_err("the pair is bad").to_string();
        assert_eq!(bad(Pair::new(vec![3], vec![0])), "training pair 0: the source has the token 3, the vocabulary 3 words");
        assert_eq!(bad(Pair::new(vec![0], vec![])), "training pair 0: the target is empty");
        assert_eq!(Listed::new(words(), words(), pairs(1), []).expect_err("no test").to_string(), "there are no test pairs");
    }
}
