use std::collections::BTreeMap;

use crosslens_analysis::{Pair, Token, Vocabulary};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::error::{check_order, check_range};
use super::joining::{Bounds, Outcome, Shape, outcome};
use super::scan_grammar::{Action, Phrase, Word};
use super::sentences::MOST_STEPS;
use super::stream::generator;
use super::{END_WORD, Lengths, Split, Task, TaskError, end_token, vocabulary};

/// The word that ends every phrase of a joined sentence, on both sides, where periods are asked for.
pub const PERIOD_WORD: &str = "<.>";

/// A configuration is refused when fewer than one sentence in so many is accepted.
const MOST_PER_ACCEPTED: u64 = 1_000;

/// Sentences drawn for one pair before giving up; the chance of it is below (1 − 1/1000)^1,000,000, some 10⁻⁴³⁴.
const MOST_TRIES: usize = 1_000_000;

/// How to make the extended SCAN task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EscanConfig {
    /// The SCAN words to use: phrases with any other word are left out. Default run, walk, look, jump, left, twice, and.
    pub words: Vec<String>,
    /// A target grows until it has so many tokens, periods included, `<eos>` apart. Default 10.
    pub min_out_len: usize,
    /// No target gets longer than this, periods included, `<eos>` apart. Default 18.
    pub max_out_len: usize,
    /// A pair with a longer source, periods included, `<eos>` apart, is drawn again. Default none: any source is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_len: Option<usize>,
    /// Whether every phrase ends with `<.>` on both sides. Default true.
    pub periods: bool,
    /// Whether every kind of phrase is equally likely, instead of every phrase; see [`Escan`]. Default false.
    pub multiply: bool,
    /// Whether phrases in which `twice` follows `left` are left out. Default false.
    pub filter_out_left_twice: bool,
}

impl Default for EscanConfig {
    fn default() -> Self {
        Self {
            words: ["run", "walk", "look", "jump", "left", "twice", "and"].map(String::from).to_vec(),
            min_out_len: 10,
            max_out_len: 18,
            max_in_len: None,
            periods: true,
            multiply: false,
            filter_out_left_twice: false,
        }
    }
}

impl EscanConfig {
    /// The six phrases of run, walk, look and left, joined to targets of 20 to 22 tokens.
    pub fn small() -> Self {
        Self {
            words: ["run", "walk", "look", "left"].map(String::from).to_vec(),
            min_out_len: 20,
            max_out_len: 25,
            max_in_len: Some(27),
            ..Self::default()
        }
    }

    /// Checks the fields and makes the task.
    pub fn build(&self) -> Result<Escan, TaskError> {
        let words = self.checked_words()?;
        let bounds = self.checked_bounds()?;
        let phrases = self.phrases(&words);
        if phrases.is_empty() {
            return Err(TaskError::NoPhrase { words: self.words.join(", ") });
        }
        if let Some(idle) = words.iter().find(|word| !phrases.iter().any(|phrase| phrase.words().contains(word))) {
            return Err(TaskError::IdleWord { word: idle.name().into() });
        }

        let is_done = |action: &Action| phrases.iter().any(|phrase| phrase.actions().contains(action));
        let actions = Action::ALL.into_iter().filter(is_done);
        let marks = || self.periods.then_some(PERIOD_WORD).into_iter().chain([END_WORD]);
        let source_vocabulary = vocabulary(words.iter().map(|word| word.name()).chain(marks()));
        let target_vocabulary = vocabulary(actions.map(Action::name).chain(marks()));

        let choices = self.choices(&phrases, &source_vocabulary, &target_vocabulary);
        let longest = accepted_lengths(bounds, self.max_in_len, &choices)?;
        Ok(Escan {
            source_end: end_token(&source_vocabulary),
            target_end: end_token(&target_vocabulary),
            source_vocabulary,
            target_vocabulary,
            bounds,
            choices,
            max_lengths: Lengths { source: longest.source + 1, target: longest.target + 1 },
        })
    }

    /// The words in the order of the grammar, whatever order they are listed in.
    fn checked_words(&self) -> Result<Vec<Word>, TaskError> {
        for (place, word) in self.words.iter().enumerate() {
            if !Word::ALL.iter().any(|known| known.name() == word) {
                let known = Word::ALL.map(Word::name).join(", ");
                return Err(TaskError::UnknownWord { word: word.clone(), known });
            }
            if self.words[..place].contains(word) {
                return Err(TaskError::RepeatedWord { word: word.clone() });
            }
        }
        Ok(Word::ALL.into_iter().filter(|word| self.words.iter().any(|listed| listed == word.name())).collect())
    }

    fn checked_bounds(&self) -> Result<Bounds, TaskError> {
        check_range("min_out_len", self.min_out_len, 1, MOST_STEPS)?;
        check_range("max_out_len", self.max_out_len, 1, MOST_STEPS)?;
        check_order(("min_out_len", self.min_out_len), ("max_out_len", self.max_out_len))?;
        if let Some(max_in_len) = self.max_in_len {
            check_range("max_in_len", max_in_len, 1, usize::MAX)?;
        }
        let max_in_len = self.max_in_len.unwrap_or(usize::MAX);
        Ok(Bounds { min_out_len: self.min_out_len, max_out_len: self.max_out_len, max_in_len })
    }

    /// The phrases all of whose command words are among `words`, less those with `left twice` where they are filtered out.
    fn phrases(&self, words: &[Word]) -> Vec<Phrase> {
        let is_kept = |phrase: &Phrase| {
            let command = phrase.words();
            let has_left_twice = command.windows(2).any(|pair| pair == [Word::Left, Word::Twice]);
            command.iter().all(|word| words.contains(word)) && !(self.filter_out_left_twice && has_left_twice)
        };
        Phrase::all().filter(is_kept).collect()
    }

    /// What is drawn from, by growing number of actions: single phrases, or the kinds of phrases.
    fn choices(&self, phrases: &[Phrase], source: &Vocabulary, target: &Vocabulary) -> Vec<Choice> {
        let period = |vocabulary: &Vocabulary| self.periods.then(|| vocabulary.token(PERIOD_WORD).expect("periods are in the vocabulary"));
        let mut groups: BTreeMap<Phrase, Vec<Pair>> = BTreeMap::new();
        for &phrase in phrases {
            let word_tokens = phrase.words().into_iter().map(|word| source.token(word.name()).expect("every word is in the vocabulary"));
            let action_tokens = phrase.actions().into_iter().map(|action| target.token(action.name()).expect("so is every action"));
            let pair = Pair::new(word_tokens.chain(period(source)).collect(), action_tokens.chain(period(target)).collect());
            groups.entry(if self.multiply { phrase.kind() } else { phrase }).or_default().push(pair);
        }
        let mut choices: Vec<Choice> = groups.into_iter().map(|(kind, pairs)| Choice { n_actions: kind.actions().len(), pairs }).collect();
        choices.sort_by_key(|choice| choice.n_actions);
        choices
    }
}

/// Several SCAN phrases joined into one sentence (extended SCAN of Aitken et al. 2021).
///
/// ```text
/// source   run left <.> walk and look twice <.> <eos>
/// target   I_TURN_LEFT I_RUN <.> I_WALK I_LOOK I_LOOK <.> <eos>
/// ```
/// While the target has fewer than `min_out_len` tokens a phrase is drawn and appended to both sides, with its period. A phrase
/// is drawn again if the target would then have more than `max_out_len − 1` tokens, period apart; without periods this keeps
/// every target one below `max_out_len`, as in the reference program. If the source ends up longer than `max_in_len`, or no phrase
/// fits any more, the whole sentence is drawn again.
///
/// Phrases are equally likely. With `multiply` a kind of phrase is drawn uniformly, then a phrase of that kind; the paper leaves
/// open what a kind is, here it is the command with run, walk, look and jump not told apart ([`Phrase::kind`]).
#[derive(Clone, Debug)]
pub struct Escan {
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    source_end: Token,
    target_end: Token,
    bounds: Bounds,
    choices: Vec<Choice>,
    max_lengths: Lengths,
}

/// Phrases of one shape, as tokens with their periods; one of them is drawn at a time.
#[derive(Clone, Debug)]
struct Choice {
    n_actions: usize,
    pairs: Vec<Pair>,
}

impl Escan {
    /// How many phrases there are to draw from.
    pub fn n_phrases(&self) -> usize {
        self.choices.iter().map(|choice| choice.pairs.len()).sum()
    }

    /// One sentence without end tokens; none if it must be drawn again.
    fn join(&self, random: &mut impl Rng) -> Option<Pair> {
        let mut joined = Pair::default();
        while joined.target.len() < self.bounds.min_out_len {
            // Drawing among the choices that fit is drawing among all until one fits.
            let n_fitting = self.choices.partition_point(|choice| self.bounds.fits(joined.target.len(), choice.n_actions));
            if n_fitting == 0 {
                return None;
            }
            let pairs = &self.choices[random.random_range(0..n_fitting)].pairs;
            let phrase = &pairs[random.random_range(0..pairs.len())];
            joined.source.extend_from_slice(&phrase.source);
            joined.target.extend_from_slice(&phrase.target);
        }
        (joined.source.len() <= self.bounds.max_in_len).then_some(joined)
    }
}

impl Task for Escan {
    fn source_vocabulary(&self) -> &Vocabulary {
        &self.source_vocabulary
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        &self.target_vocabulary
    }

    fn max_lengths(&self) -> Lengths {
        self.max_lengths
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        let mut random = generator(split, seed, index);
        let mut pair = (0..MOST_TRIES)
            .find_map(|_| self.join(&mut random))
            .expect("one sentence in MOST_PER_ACCEPTED is accepted: checked in EscanConfig::build");
        pair.source.push(self.source_end);
        pair.target.push(self.target_end);
        pair
    }
}

/// The longest sentences that are accepted, `<eos>` apart; refuses bounds that accept none or hardly any.
fn accepted_lengths(bounds: Bounds, max_in_len: Option<usize>, choices: &[Choice]) -> Result<Lengths, TaskError> {
    let shapes = shapes(choices);
    let Outcome { accepted, longest, .. } = outcome(bounds, &shapes);
    let Some(longest) = longest else {
        let of_any_source = outcome(Bounds { max_in_len: usize::MAX, ..bounds }, &shapes);
        return Err(match (max_in_len, of_any_source.shortest_source) {
            (Some(max_in_len), Some(shortest)) => TaskError::SourcesTooLong { max_in_len, shortest },
            _ => TaskError::OutOfReach { min_out_len: bounds.min_out_len, max_out_len: bounds.max_out_len },
        });
    };
    let one_in = (1.0 / accepted).round() as u64;
    if one_in > MOST_PER_ACCEPTED {
        return Err(TaskError::RarelyAccepted { one_in, most: MOST_PER_ACCEPTED });
    }
    Ok(longest)
}

/// The shapes of the choices, each listed once.
fn shapes(choices: &[Choice]) -> Vec<Shape> {
    let mut counts: BTreeMap<(usize, usize, usize), usize> = BTreeMap::new();
    for choice in choices {
        let pair = &choice.pairs[0];
        *counts.entry((pair.source.len(), pair.target.len(), choice.n_actions)).or_default() += 1;
    }
    counts.into_iter().map(|((source, target, n_actions), n_choices)| Shape { source, target, n_actions, n_choices }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn the_words_leave_as_many_phrases_as_counted_in_the_data() {
        let verbs = ["run walk look", "run walk look jump"];
        for (more, left_twice_out, counts) in [
            ("left", false, [6, 8]),
            ("left and", false, [42, 72]),
            ("left and twice", false, [156, 272]),
            ("left and twice", true, [90, 156]),
        ] {
            for (verbs, count) in verbs.into_iter().zip(counts) {
                let words = words(&format!("{verbs} {more}"));
                let config = EscanConfig { words, filter_out_left_twice: left_twice_out, ..Default::default() };
                assert_eq!(config.build().expect("the words are sound").n_phrases(), count, "{verbs} {more} {left_twice_out}");
            }
        }
        assert_eq!(EscanConfig::default().build().expect("the default is sound").n_phrases(), 272);
        assert_eq!(EscanConfig::small().build().expect("the preset is sound").n_phrases(), 6);
    }

    /// 19 tokens and a phrase of 2 actions with its period make 22; the reference program pads the same data to 23.
    #[test]
    fn the_small_preset_is_as_wide_as_the_reference() {
        let task = EscanConfig::small().build().expect("the preset is sound");
        assert_eq!(task.max_lengths(), Lengths { source: 23, target: 23 });
        assert_eq!(task.source_vocabulary().words(), ["run", "walk", "look", "left", "<.>", "<eos>"]);
        assert_eq!(task.target_vocabulary().words(), ["I_RUN", "I_WALK", "I_LOOK", "I_TURN_LEFT", "<.>", "<eos>"]);
    }

    #[test]
    fn the_longest_sentences_do_turn_up() {
        for config in [EscanConfig::small(), EscanConfig { max_in_len: Some(13), ..Default::default() }] {
            let task = config.build().expect("the configuration is sound");
            let pairs: Vec<Pair> = (0..20_000).map(|index| task.pair(Split::Train, 0, index)).collect();
            let source = pairs.iter().map(|pair| pair.source.len()).max().expect("there are pairs");
            let target = pairs.iter().map(|pair| pair.target.len()).max().expect("there are pairs");
            assert_eq!(task.max_lengths(), Lengths { source, target });
        }
    }

    /// Targets that stop at 9 tokens and sources over 16 are drawn again; over 20,000 draws the accepted share has a standard
    /// deviation of 0.0035 at most.
    #[test]
    fn sentences_are_accepted_as_often_as_calculated() {
        let config = EscanConfig {
            words: words("run walk turn left and"),
            min_out_len: 10,
            max_out_len: 10,
            max_in_len: Some(16),
            ..Default::default()
        };
        let task = config.build().expect("the configuration is sound");
        let calculated = outcome(task.bounds, &shapes(&task.choices)).accepted;
        let n_accepted = (0..20_000).filter(|&index| task.join(&mut generator(Split::Test, 4, index)).is_some()).count();
        assert!((0.1..0.9).contains(&calculated), "{calculated}");
        assert!((n_accepted as f64 / 20_000.0 - calculated).abs() < 0.015, "{n_accepted} {calculated}");
    }

    /// One phrase a sentence: `u` in 4 ways or `u and u` in 16; 4 of 20 phrases but 1 of 2 kinds is short.
    #[test]
    fn multiply_makes_kinds_equally_likely() {
        let share_of_short = |multiply| {
            let config =
                EscanConfig { words: words("run walk look jump and"), min_out_len: 1, max_out_len: 3, multiply, ..Default::default() };
            let task = config.build().expect("the configuration is sound");
            (0..10_000).filter(|&index| task.pair(Split::Train, 2, index).target.len() == 3).count() as f64 / 10_000.0
        };
        assert!((share_of_short(false) - 0.2).abs() < 0.02);
        assert!((share_of_short(true) - 0.5).abs() < 0.02);
    }

    #[test]
    fn without_periods_a_target_stays_one_below_its_bound() {
        let config =
            EscanConfig { words: words("run walk jump"), max_out_len: 20, max_in_len: Some(31), periods: false, ..Default::default() };
        let task = config.build().expect("the configuration is sound");
        assert_eq!(task.max_lengths(), Lengths { source: 11, target: 11 });
        let one_below = EscanConfig { min_out_len: 20, ..config }.build().expect_err("20 words and 1 do not fit into 20");
        assert_eq!(one_below, TaskError::OutOfReach { min_out_len: 20, max_out_len: 20 });
    }
}
