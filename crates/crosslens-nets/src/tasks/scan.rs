use crosslens_analysis::{Pair, Token, Vocabulary};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::scan_grammar::{Action, Phrase, Word};
use super::stream::generator;
use super::{END_WORD, Lengths, Split, Task, vocabulary};
use crate::random::mix;

/// How the phrases are divided between training and test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScanSplit {
    /// By chance: 16,728 for training, 4,182 for test (80 and 20 %, the published sizes; which phrase goes where is our own draw).
    #[default]
    Simple,
    /// Up to 22 actions for training (16,990), more for test (3,920).
    Length,
    /// `jump` alone and all phrases without it for training (13,204), the other phrases with it for test (7,706).
    AddJump,
    /// `turn left` alone and all phrases without it for training (19,702), the other phrases with it for test (1,208).
    AddTurnLeft,
}

/// How to make the SCAN task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScanConfig {
    /// Which phrases are trained on and which are held back. Default `simple`.
    pub split: ScanSplit,
    /// Chooses among the simple splits; the others do not look at it. Default 0.
    pub split_seed: u32,
}

impl ScanConfig {
    /// Makes the task; every configuration is sound.
    pub fn build(&self) -> Scan {
        let (train, test) = match self.split {
            ScanSplit::Simple => simple_split(self.split_seed),
            ScanSplit::Length => divide(|phrase| phrase.actions().len() <= 22),
            ScanSplit::AddJump => primitive_split(Phrase::has_jump),
            ScanSplit::AddTurnLeft => primitive_split(Phrase::has_turn_left),
        };
        Scan {
            source_vocabulary: vocabulary(Word::ALL.into_iter().map(Word::name).chain([END_WORD])),
            target_vocabulary: vocabulary(Action::ALL.into_iter().map(Action::name).chain([END_WORD])),
            train,
            test,
            adds_primitive: matches!(self.split, ScanSplit::AddJump | ScanSplit::AddTurnLeft),
        }
    }
}

/// Commands such as `walk left twice and jump`, each followed by the actions it stands for; both sides end with `<eos>`.
///
/// A pair is a phrase drawn uniformly, with replacement, from those of its split; the two splits share no phrase. In the
/// add-primitive splits one training pair in ten is the bare primitive (in the published training files it is repeated until it
/// makes up a tenth of the lines), the others are uniform over the rest.
#[derive(Clone, Debug)]
pub struct Scan {
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    train: Vec<usize>,
    test: Vec<usize>,
    /// Whether the first training phrase is the bare primitive, which is drawn one time in ten.
    adds_primitive: bool,
}

impl Scan {
    /// The numbers of the phrases of a split, each once; the bare primitive, where there is one, is the first of training.
    pub fn phrases(&self, split: Split) -> &[usize] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    /// The pair of one phrase, `<eos>` last on both sides.
    pub fn phrase_pair(phrase: Phrase) -> Pair {
        let words = phrase.words().into_iter().map(|word| word as Token);
        let actions = phrase.actions().into_iter().map(|action| action as Token);
        Pair::new(words.chain([Word::ALL.len() as Token]).collect(), actions.chain([Action::ALL.len() as Token]).collect())
    }
}

impl Task for Scan {
    fn source_vocabulary(&self) -> &Vocabulary {
        &self.source_vocabulary
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        &self.target_vocabulary
    }

    /// The longest command has 9 words (`run around left thrice and …`), the longest sequence 48 actions (24 a clause).
    fn max_lengths(&self) -> Lengths {
        Lengths { source: 9 + 1, target: 48 + 1 }
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        let mut random = generator(split, seed, index);
        let mut phrases = self.phrases(split);
        if split == Split::Train && self.adds_primitive {
            phrases = if random.random_ratio(1, 10) { &phrases[..1] } else { &phrases[1..] };
        }
        let number = phrases[random.random_range(0..phrases.len())];
        Self::phrase_pair(Phrase::numbered(number).expect("the splits hold numbers below Phrase::COUNT"))
    }
}

/// The phrases that are trained on, then the others, both in the order of their numbers.
fn divide(is_trained: impl Fn(Phrase) -> bool) -> (Vec<usize>, Vec<usize>) {
    (0..Phrase::COUNT).partition(|&number| is_trained(Phrase::numbered(number).expect("the number is below Phrase::COUNT")))
}

/// Four fifths of the phrases, those whose hashed numbers are the smallest, then the others.
fn simple_split(split_seed: u32) -> (Vec<usize>, Vec<usize>) {
    let key = mix(u64::from(split_seed));
    let mut train: Vec<usize> = (0..Phrase::COUNT).collect();
    train.sort_unstable_by_key(|&number| mix(key ^ number as u64));
    let mut test = train.split_off(Phrase::COUNT * 4 / 5);
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

/// Training: the shortest phrase with the primitive, which is the bare one, then every phrase without it; test: the others.
fn primitive_split(has_primitive: impl Fn(Phrase) -> bool) -> (Vec<usize>, Vec<usize>) {
    let (mut test, others) = divide(has_primitive);
    // Numbers count `once` before `twice` and one clause before two, so the bare primitive comes first.
    let mut train = vec![test.remove(0)];
    train.extend(others);
    (train, test)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn scan(split: ScanSplit) -> Scan {
        ScanConfig { split, split_seed: 0 }.build()
    }

    fn command(scan: &Scan, number: usize) -> String {
        let pair = Scan::phrase_pair(Phrase::numbered(number).expect("the number is of a phrase"));
        scan.source_vocabulary().text(&pair.source)
    }

    #[test]
    fn the_splits_have_the_published_sizes_and_share_no_phrase() {
        for (split, n_train, n_test) in [
            (ScanSplit::Simple, 16_728, 4_182),
            (ScanSplit::Length, 16_990, 3_920),
            (ScanSplit::AddJump, 13_204, 7_706),
            (ScanSplit::AddTurnLeft, 19_702, 1_208),
        ] {
            let scan = scan(split);
            assert_eq!((scan.phrases(Split::Train).len(), scan.phrases(Split::Test).len()), (n_train, n_test), "{split:?}");
            let all: BTreeSet<usize> = scan.train.iter().chain(&scan.test).copied().collect();
            assert_eq!(all.len(), Phrase::COUNT, "{split:?}");
        }
    }

    /// The words of the phrases are the judge here, not the parts the split looks at.
    #[test]
    fn a_held_back_primitive_is_trained_only_by_itself() {
        for (split, primitive) in [(ScanSplit::AddJump, "jump"), (ScanSplit::AddTurnLeft, "turn left")] {
            let scan = scan(split);
            assert_eq!(command(&scan, scan.train[0]), format!("{primitive} <eos>"));
            assert!(scan.train[1..].iter().all(|&number| !command(&scan, number).contains(primitive)));
            assert!(scan.test.iter().all(|&number| command(&scan, number).contains(primitive)));
        }
    }

    /// 1,000 of 10,000 pairs on average, standard deviation 30.
    #[test]
    fn a_tenth_of_the_training_pairs_is_the_bare_primitive() {
        let scan = scan(ScanSplit::AddJump);
        let bare = Scan::phrase_pair(Phrase::numbered(3).expect("phrase 3 is `jump`"));
        let n_bare = (0..10_000).filter(|&index| scan.pair(Split::Train, 1, index) == bare).count();
        assert!((850..1_150).contains(&n_bare), "{n_bare}");
        assert!((0..10_000).all(|index| scan.pair(Split::Test, 1, index) != bare));
    }

    #[test]
    fn another_split_seed_divides_the_phrases_otherwise() {
        let other = ScanConfig { split: ScanSplit::Simple, split_seed: 1 }.build();
        assert_ne!(scan(ScanSplit::Simple).test, other.test);
    }

    #[test]
    fn pairs_come_from_the_phrases_of_their_split() {
        let scan = scan(ScanSplit::Length);
        for index in 0..2_000 {
            assert!(scan.pair(Split::Train, 5, index).target.len() <= 22 + 1);
            assert!(scan.pair(Split::Test, 5, index).target.len() > 22 + 1);
        }
    }

    #[test]
    fn the_longest_phrases_are_as_long_as_stated() {
        let pairs: Vec<Pair> = Phrase::all().map(Scan::phrase_pair).collect();
        let source = pairs.iter().map(|pair| pair.source.len()).max().expect("there are phrases");
        let target = pairs.iter().map(|pair| pair.target.len()).max().expect("there are phrases");
        assert_eq!(scan(ScanSplit::Simple).max_lengths(), Lengths { source, target });
    }
}
