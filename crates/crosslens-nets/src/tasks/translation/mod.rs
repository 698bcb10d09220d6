//! A miniature English–French grammar: real word order, agreement and elision, with true alignments, and no data.

mod draw;
mod lexicon;
mod syntax;
mod wording;

use std::hash::Hasher as _;

use crosslens_analysis::align::Gold;
use crosslens_analysis::{Pair, Token, Vocabulary};
use serde::{Deserialize, Serialize};

use super::error::check_range;
use super::stream::generator;
use super::{END_WORD, Lengths, Split, Task, TaskError, end_token, vocabulary};
use crate::random::mix;
use lexicon::{AFTER, BE, BEFORE, HAVE, INTRANSITIVE, LAST, NOUNS, OFTEN, PREPOSITIONS, TRANSITIVE};

pub use wording::AlignedPair;

/// One sentence in so many is kept for the test.
const ONE_IN_TEST: u64 = 10;

/// How to make the translation task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TranslationConfig {
    /// The most words of either side, `<eos>` apart; longer sentences are drawn again. At least 6. Default 14.
    pub max_length: usize,
}

impl Default for TranslationConfig {
    fn default() -> Self {
        Self { max_length: 14 }
    }
}

impl TranslationConfig {
    /// Checks the field and makes the task.
    pub fn build(&self) -> Result<Translation, TaskError> {
        check_range("max_length", self.max_length, 6, 40)?;
        let (english, french) = words();
        Ok(Translation {
            max_length: self.max_length,
            source_vocabulary: vocabulary(english.into_iter().chain([END_WORD])),
            target_vocabulary: vocabulary(french.into_iter().chain([END_WORD])),
        })
    }
}

/// English sentences and their French translations, lower-case, both ending with `<eos>`.
///
/// ```text
/// source   she does not see the big red cat <eos>
/// target   elle ne voit pas le grand chat rouge <eos>
/// ```
/// Articles agree in gender and number and are elided (`l' enfant`, `cet oiseau`, `mon école`), adjectives stand before or after their noun,
/// object pronouns before the verb (`elle le voit`), negation around it, and a participle agrees with the pronoun before it (`il l' a vue`).
/// Verbs have a present, a past and a future; adverbs, places and `and` make sentences longer. Elided words are words of their own.
///
/// The two splits share no English sentence: a tenth of them, by their hash, is drawn for the test only. There are more sentences than
/// can be listed; their true alignment comes with them ([`Translation::aligned`]).
#[derive(Clone, Debug)]
pub struct Translation {
    max_length: usize,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
}

impl Translation {
    /// The words and the alignment of pair number `index` of a stream; the same pair as [`Task::pair`] gives.
    pub fn aligned(&self, split: Split, seed: u64, index: u64) -> AlignedPair {
        let mut random = generator(split, seed, index);
        loop {
            let pair = wording::write(&draw::sentence(&mut random));
            let is_short = pair.source.len().max(pair.target.len()) <= self.max_length;
            if is_short && split_of(&pair.source) == split {
                return pair;
            }
        }
    }

    /// The true links of a pair, places from 0, `<eos>` without any; see [`AlignedPair`] for what is sure and what possible.
    pub fn alignment(&self, split: Split, seed: u64, index: u64) -> Gold {
        self.aligned(split, seed, index).gold
    }
}

/// Which split a sentence belongs to. FNV-1a, whose values will never change.
fn split_of(words: &[&str]) -> Split {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for word in words {
        hash.write(word.as_bytes());
        hash.write(b" ");
    }
    if mix(hash.finish()).is_multiple_of(ONE_IN_TEST) { Split::Test } else { Split::Train }
}

struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Task for Translation {
    fn source_vocabulary(&self) -> &Vocabulary {
        &self.source_vocabulary
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        &self.target_vocabulary
    }

    fn max_lengths(&self) -> Lengths {
        Lengths { source: self.max_length + 1, target: self.max_length + 1 }
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        let pair = self.aligned(split, seed, index);
        Pair::new(tokens(&self.source_vocabulary, &pair.source), tokens(&self.target_vocabulary, &pair.target))
    }
}

fn tokens(vocabulary: &Vocabulary, words: &[&str]) -> Vec<Token> {
    let token = |word: &&str| vocabulary.token(word).expect("every form of the lexicon is in the vocabulary: tested");
    words.iter().map(token).chain([end_token(vocabulary)]).collect()
}

/// All English and all French words, each once, in a fixed order.
fn words() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut english = vec!["the", "a", "an", "this", "these", "my", "some", "and", "not", "never", "do", "does", "did", "will"];
    english.extend(["i", "he", "she", "we", "they", "me", "him", "her", "us", "them", "be", "am", "is", "are", "was", "were"]);
    let mut french = vec!["le", "la", "l'", "les", "un", "une", "de", "des", "ce", "cet", "cette", "ces", "mon", "ma", "mes", "et"];
    french.extend(["ne", "n'", "pas", "jamais", "je", "j'", "il", "elle", "nous", "ils", "me", "m'"]);
    french.extend(BE.iter().flatten().chain(&HAVE));
    for noun in NOUNS {
        english.extend(noun.english);
        french.extend(noun.french);
    }
    for adjective in BEFORE.iter().chain(AFTER) {
        english.push(adjective.english);
        french.extend(adjective.french.as_flattened());
        french.push(adjective.before_vowel);
    }
    for verb in TRANSITIVE.iter().chain(INTRANSITIVE) {
        english.extend(verb.english);
        french.extend(verb.present.iter().chain(&verb.future));
        // No object pronoun is feminine and plural.
        french.extend([verb.participle[0][0], verb.participle[0][1], verb.participle[1][0]]);
    }
    for [word, translation] in OFTEN.iter().chain(LAST).chain(PREPOSITIONS) {
        english.push(word);
        french.push(translation);
    }
    (each_once(english), each_once(french))
}

fn each_once(words: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = std::collections::BTreeSet::new();
    words.into_iter().filter(|word| seen.insert(*word)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn task() -> Translation {
        TranslationConfig::default().build().expect("the default is sound")
    }

    #[test]
    fn every_word_has_a_link_and_every_link_has_its_words() {
        let task = task();
        for index in 0..5_000 {
            let AlignedPair { source, target, gold } = task.aligned(Split::Train, 1, index);
            let links: Vec<_> = gold.possible().iter().collect();
            assert!(links.iter().all(|link| link.source < source.len() && link.target < target.len()), "{source:?} {target:?}");
            let linked =
                |n: usize, side: fn(&crosslens_analysis::align::Link) -> usize| links.iter().map(side).collect::<BTreeSet<_>>().len() == n;
            assert!(linked(source.len(), |link| link.source) && linked(target.len(), |link| link.target), "{source:?} {target:?} {gold:?}");

            // Every word with a counterpart of its own has exactly one: what is left are the words that help.
            let helpers = ["do", "does", "did", "will"];
            let sure: BTreeSet<usize> = gold.sure().iter().map(|link| link.source).collect();
            assert_eq!(sure.len(), gold.sure().len());
            assert!((0..source.len()).all(|place| sure.contains(&place) != helpers.contains(&source[place])), "{source:?} {gold:?}");
        }
    }

    #[test]
    fn pairs_are_the_aligned_words_with_their_end() {
        let task = task();
        for index in 0..200 {
            let (pair, aligned) = (task.pair(Split::Test, 3, index), task.aligned(Split::Test, 3, index));
            assert_eq!(task.source_vocabulary.text(&pair.source), format!("{} <eos>", aligned.source.join(" ")));
            assert_eq!(task.target_vocabulary.text(&pair.target), format!("{} <eos>", aligned.target.join(" ")));
        }
    }

    /// A sentence drawn twice in 40,000 must be rare: they are not drawn from a few thousand.
    #[test]
    fn there_are_tens_of_thousands_of_sentences_and_none_is_in_both_splits() {
        let task = task();
        let sources = |split, n| (0..n).map(|index| task.aligned(split, 5, index).source).collect::<BTreeSet<_>>();
        let (train, test) = (sources(Split::Train, 40_000), sources(Split::Test, 4_000));
        assert!(train.len() > 25_000, "{}", train.len());
        assert!(test.len() > 2_500, "{}", test.len());
        assert!(train.is_disjoint(&test));
    }

    #[test]
    fn one_english_sentence_has_one_translation() {
        let task = task();
        let mut translations = std::collections::BTreeMap::new();
        for index in 0..20_000 {
            let AlignedPair { source, target, gold } = task.aligned(Split::Train, 7, index);
            let known = translations.entry(source.clone()).or_insert_with(|| (target.clone(), gold.clone()));
            assert_eq!((&known.0, &known.1), (&target, &gold), "{source:?}");
        }
    }

    #[test]
    fn every_word_of_the_vocabularies_is_used() {
        let task = task();
        let mut used: [BTreeSet<Token>; 2] = Default::default();
        for index in 0..40_000 {
            let pair = task.pair(Split::Train, 9, index);
            used[0].extend(pair.source);
            used[1].extend(pair.target);
        }
        for (used, vocabulary) in used.iter().zip([&task.source_vocabulary, &task.target_vocabulary]) {
            let missing: Vec<_> =
                (0..vocabulary.len() as Token).filter(|word| !used.contains(word)).map(|word| vocabulary.word(word)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn attention_must_leave_the_diagonal() {
        let task = task();
        let (mut n_links, mut n_off, mut n_crossing) = (0_u32, 0_u32, 0_u32);
        for index in 0..2_000 {
            let links: Vec<_> = task.alignment(Split::Train, 2, index).sure().iter().collect();
            n_links += links.len() as u32;
            n_off += links.iter().filter(|link| link.source != link.target).count() as u32;
            n_crossing += u32::from(!links.is_sorted_by_key(|link| link.target));
        }
        assert!(n_off * 4 > n_links, "{n_off} of {n_links} links lie off the diagonal");
        assert!(n_crossing * 2 > 2_000, "{n_crossing} of 2000 sentences have words in another order");
    }
}
