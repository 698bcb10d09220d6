use crosslens_analysis::{Pair, Token, Vocabulary};
use serde::{Deserialize, Serialize};

use super::sentences::Sentences;
use super::stream::generator;
use super::{Lengths, Split, Task, TaskError};

/// How to make the one-to-one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OneToOneConfig {
    /// How many words each side has, `<eos>` and `O0P` apart; at least 2. Default 3.
    pub n_words: usize,
    /// The fewest words of a sentence, `<eos>` apart. Default 15.
    pub min_length: usize,
    /// The most words of a sentence, `<eos>` apart, inclusive. Default 19.
    ///
    /// The paper's `phrase_length` is the padded width, so it is `max_length + 1` here. Equal lengths make sentences of fixed
    /// length, which have no `<eos>`.
    pub max_length: usize,
    /// Whether the target is written backwards, `<eos>` still last. Default false.
    pub reverse: bool,
    /// Whether `I0` right after `I0` becomes `O0P` instead of `O0`; see [`OneToOne`]. Default false.
    pub previous_word_rule: bool,
}

impl Default for OneToOneConfig {
    fn default() -> Self {
        Self { n_words: 3, min_length: 15, max_length: 19, reverse: false, previous_word_rule: false }
    }
}

impl OneToOneConfig {
    /// Checks the fields and makes the task.
    pub fn build(&self) -> Result<OneToOne, TaskError> {
        let sentences = Sentences::new(self.n_words, self.min_length, self.max_length)?;
        let extra: &[&str] = if self.previous_word_rule { &["O0P"] } else { &[] };
        Ok(OneToOne {
            source_vocabulary: sentences.vocabulary('I', &[]),
            target_vocabulary: sentences.vocabulary('O', extra),
            sentences,
            reverse: self.reverse,
            previous_word_rule: self.previous_word_rule,
        })
    }
}

/// Each word `Ik` of the source becomes `Ok` in its place; words are independent and uniform.
///
/// ```text
/// source     I2 I0 I0 I1 <eos>
/// target     O2 O0 O0 O1 <eos>
/// reversed   O1 O0 O0 O2 <eos>
/// ```
/// With the previous-word rule the word at place `t`, counted from 0, is `O0P` where `x[t] = x[t−1] = I0` and `t > 1`. The rule
/// looks at source words, so `I1 I0 I0 I0` gives `O1 O0 O0P O0P`. Place 1 is exempt, as in the reference program: `I0 I0 I0`
/// gives `O0 O0 O0P`. With both options the rule is applied first and its result reversed.
#[derive(Clone, Debug)]
pub struct OneToOne {
    sentences: Sentences,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    reverse: bool,
    previous_word_rule: bool,
}

impl OneToOne {
    /// The target of a source, both without end token.
    fn translate(&self, source: &[Token]) -> Vec<Token> {
        // Ik and Ok have the same number, and O0P is the first after them.
        let mut target = source.to_vec();
        if self.previous_word_rule {
            for place in 2..source.len() {
                if source[place] == 0 && source[place - 1] == 0 {
                    target[place] = self.sentences.n_words();
                }
            }
        }
        if self.reverse {
            target.reverse();
        }
        target
    }
}

impl Task for OneToOne {
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
        let mut target = self.translate(&source);
        self.sentences.end(&mut source, &self.source_vocabulary);
        self.sentences.end(&mut target, &self.target_vocabulary);
        Pair::new(source, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(config: OneToOneConfig, source: &str) -> String {
        let task = config.build().expect("the configuration is sound");
        let tokens: Vec<Token> = source.split(' ').map(|word| task.source_vocabulary.token(word).expect("a source word")).collect();
        task.target_vocabulary.text(&task.translate(&tokens))
    }

    #[test]
    fn a_word_after_itself_is_marked_except_at_the_second_place() {
        let rule = || OneToOneConfig { previous_word_rule: true, ..Default::default() };
        assert_eq!(translated(rule(), "I0 I0 I0 I1 I0"), "O0 O0 O0P O1 O0");
        assert_eq!(translated(rule(), "I1 I0 I0 I0"), "O1 O0 O0P O0P");
        assert_eq!(translated(rule(), "I1 I1 I1 I2 I2"), "O1 O1 O1 O2 O2");
        assert_eq!(translated(rule(), "I0"), "O0");
    }

    #[test]
    fn the_rule_is_applied_before_the_target_is_reversed() {
        let both = OneToOneConfig { previous_word_rule: true, reverse: true, ..Default::default() };
        assert_eq!(translated(both, "I0 I0 I0 I1"), "O1 O0P O0 O0");
    }

    #[test]
    fn sentences_of_fixed_length_have_no_end_word() {
        let task = OneToOneConfig { min_length: 4, max_length: 4, ..Default::default() }.build().expect("lengths may be equal");
        assert_eq!(task.source_vocabulary().words(), ["I0", "I1", "I2"]);
        assert_eq!(task.max_lengths(), Lengths { source: 4, target: 4 });
        assert_eq!(task.pair(Split::Train, 0, 0).source.len(), 4);
    }

    #[test]
    fn the_end_word_is_the_last_of_each_vocabulary() {
        let task = OneToOneConfig { previous_word_rule: true, ..Default::default() }.build().expect("the default is sound");
        assert_eq!(task.source_vocabulary().words(), ["I0", "I1", "I2", "<eos>"]);
        assert_eq!(task.target_vocabulary().words(), ["O0", "O1", "O2", "O0P", "<eos>"]);
    }

    /// 5 lengths in 4,000 sentences: 800 each on average, standard deviation 25.
    #[test]
    fn every_length_is_drawn_equally_often() {
        let task = OneToOneConfig::default().build().expect("the default is sound");
        let mut counts = [0_u32; 5];
        for index in 0..4_000 {
            counts[task.pair(Split::Train, 3, index).source.len() - 16] += 1;
        }
        assert!(counts.iter().all(|&count| (680..920).contains(&count)), "{counts:?}");
    }

    /// Written down once: a change here changes every run made with an earlier version.
    #[test]
    fn the_stream_of_a_seed_stays_what_it_was() {
        let task = OneToOneConfig { n_words: 10, min_length: 8, max_length: 9, ..Default::default() }.build().expect("the sizes are sound");
        let source = |split, index| task.source_vocabulary().text(&task.pair(split, 7, index).source);
        assert_eq!(
            [source(Split::Train, 0), source(Split::Test, 1_000_000_007)],
            ["I7 I7 I7 I9 I5 I8 I0 I1 <eos>", "I2 I1 I4 I1 I6 I7 I6 I5 <eos>"]
        );
    }
}
