//! What holds for every task and every configuration of it.

use crosslens_analysis::{Pair, Vocabulary};
use proptest::prelude::*;

use super::scan_grammar::Word;
use super::*;

fn one_to_one() -> impl Strategy<Value = OneToOneConfig> {
    (2..6_usize, 1..12_usize, 0..5_usize, any::<bool>(), any::<bool>()).prop_map(|(n_words, min_length, more, reverse, rule)| {
        OneToOneConfig { n_words, min_length, max_length: min_length + more, reverse, previous_word_rule: rule }
    })
}

fn sort() -> impl Strategy<Value = SortConfig> {
    (2..6_usize, 1..12_usize, 0..5_usize).prop_map(|(n_words, min_length, more)| SortConfig {
        n_words,
        min_length,
        max_length: min_length + more,
    })
}

fn scan() -> impl Strategy<Value = ScanConfig> {
    let split = prop::sample::select(vec![ScanSplit::Simple, ScanSplit::Length, ScanSplit::AddJump, ScanSplit::AddTurnLeft]);
    (split, any::<u32>()).prop_map(|(split, split_seed)| ScanConfig { split, split_seed })
}

/// Some of these are refused: callers skip them.
fn escan() -> impl Strategy<Value = EscanConfig> {
    let words = prop::sample::subsequence(Word::ALL.map(|word| word.name().to_owned()).to_vec(), 2..=13);
    (words, 1..20_usize, 0..10_usize, prop::option::of(1..40_usize), any::<[bool; 3]>()).prop_map(
        |(words, min_out_len, more, max_in_len, [periods, multiply, filter_out_left_twice])| EscanConfig {
            words,
            min_out_len,
            max_out_len: min_out_len + more,
            max_in_len,
            periods,
            multiply,
            filter_out_left_twice,
        },
    )
}

fn any_task() -> impl Strategy<Value = TaskConfig> {
    prop_oneof![
        one_to_one().prop_map(TaskConfig::OneToOne),
        sort().prop_map(TaskConfig::Sort),
        scan().prop_map(TaskConfig::Scan),
        escan().prop_map(TaskConfig::Escan),
        (6..20_usize).prop_map(|max_length| TaskConfig::Translation(TranslationConfig { max_length })),
    ]
}

fn split() -> impl Strategy<Value = Split> {
    prop::sample::select(vec![Split::Train, Split::Test])
}

/// The words of a sentence, `<eos>` removed from its end.
fn content<'v>(vocabulary: &'v Vocabulary, sentence: &[Token]) -> Vec<&'v str> {
    let mut words: Vec<&str> = sentence.iter().map(|&token| vocabulary.word(token).expect("every token is in the vocabulary")).collect();
    words.pop_if(|word| *word == END_WORD);
    words
}

/// Reads commands from left to right, a clause at a time, and does what they say: written apart from the grammar to check it.
fn interpret(command: &[&str]) -> Vec<&'static str> {
    let mut words = command.iter().copied().peekable();
    let mut done: Vec<&str> = Vec::new();
    let mut n_last = 0;
    let mut comes_before_last = false;
    while let Some(word) = words.next() {
        match word {
            "<.>" => done.push("<.>"),
            "and" => {}
            "after" => comes_before_last = true,
            verb => {
                let manner = words.next_if(|word| ["opposite", "around"].contains(word));
                let turn = words.next_if(|word| ["left", "right"].contains(word)).map(action);
                let times = words.next_if(|word| ["twice", "thrice"].contains(word));

                let act = (verb != "turn").then(|| action(verb));
                let turned: Vec<&str> = turn.into_iter().chain(act).collect();
                let once = match manner {
                    Some("opposite") => turn.into_iter().chain(turned).collect(),
                    Some(_) => turned.repeat(4),
                    None => turned,
                };
                let clause = once.repeat(times.map_or(1, |times| if times == "twice" { 2 } else { 3 }));

                let place = if comes_before_last { done.len() - n_last } else { done.len() };
                comes_before_last = false;
                n_last = clause.len();
                done.splice(place..place, clause);
            }
        }
    }
    done
}

fn action(word: &str) -> &'static str {
    match word {
        "run" => "I_RUN",
        "walk" => "I_WALK",
        "look" => "I_LOOK",
        "jump" => "I_JUMP",
        "left" => "I_TURN_LEFT",
        "right" => "I_TURN_RIGHT",
        other => panic!("{other} is no word of action"),
    }
}

#[test]
fn the_interpreter_of_these_tests_knows_the_published_examples() {
    let interpreted = |command: &str| interpret(&command.split(' ').collect::<Vec<_>>()).join(" ");
    assert_eq!(interpreted("jump opposite left after walk around left twice"), {
        "I_TURN_LEFT I_WALK ".repeat(8) + "I_TURN_LEFT I_TURN_LEFT I_JUMP"
    });
    assert_eq!(interpreted("look <.> turn around right and run thrice <.>"), {
        "I_LOOK <.> ".to_owned() + &"I_TURN_RIGHT ".repeat(4) + "I_RUN I_RUN I_RUN <.>"
    });
}

fn check_one_to_one(config: &OneToOneConfig, source: &[&str], target: &[&str]) -> Result<(), TestCaseError> {
    prop_assert!((config.min_length..=config.max_length).contains(&source.len()));
    let mut target = target.to_vec();
    if config.reverse {
        target.reverse();
    }
    prop_assert_eq!(source.len(), target.len());
    for (place, word) in target.into_iter().enumerate() {
        let marked = config.previous_word_rule && place >= 2 && source[place - 1..=place] == ["I0", "I0"];
        prop_assert_eq!(word, if marked { "O0P".to_owned() } else { source[place].replace('I', "O") });
    }
    Ok(())
}

fn check_sort(source: &[&str], target: &[&str]) -> Result<(), TestCaseError> {
    prop_assert!(target.is_sorted());
    for word in source {
        let translated = word.replace('I', "O");
        let n_source = source.iter().filter(|other| other == &word).count();
        prop_assert_eq!(n_source, target.iter().filter(|other| **other == translated).count());
    }
    prop_assert_eq!(source.len(), target.len());
    Ok(())
}

fn check_escan(config: &EscanConfig, source: &[&str], target: &[&str]) -> Result<(), TestCaseError> {
    prop_assert_eq!(interpret(source), target);
    prop_assert!((config.min_out_len..=config.max_out_len).contains(&target.len()));
    prop_assert!(config.max_in_len.is_none_or(|most| source.len() <= most));
    prop_assert_eq!(source.last() == Some(&PERIOD_WORD), config.periods);
    prop_assert!(source.iter().all(|&word| word == PERIOD_WORD || config.words.iter().any(|listed| listed == word)));
    prop_assert!(!(config.filter_out_left_twice && source.windows(2).any(|pair| pair == ["left", "twice"])));
    Ok(())
}

/// Written apart from the grammar: words that have one translation whatever stands around them, and what must stand around a negation.
fn check_translation(config: &TranslationConfig, source: &[&str], target: &[&str]) -> Result<(), TestCaseError> {
    prop_assert!(source.len().max(target.len()) <= config.max_length);
    let n = |words: &[&str], wanted: &[&str]| words.iter().filter(|word| wanted.contains(word)).count();
    for (english, french) in [
        (&["cat"][..], &["chat"][..]),
        (&["girls"], &["filles"]),
        (&["red"], &["rouge", "rouges"]),
        (&["old"], &["vieux", "vieil", "vieille", "vieilles"]),
        (&["and"], &["et"]),
        (&["not"], &["pas"]),
        (&["never"], &["jamais"]),
        (&["not", "never"], &["ne", "n'"]),
        (&["often"], &["souvent"]),
        (&["in"], &["dans"]),
        (&["these"], &["ces"]),
        (&["the", "him", "her", "them"], &["le", "la", "l'", "les"]),
    ] {
        prop_assert_eq!(n(source, english), n(target, french), "{:?} in {:?} / {:?}", english, source, target);
    }
    for two in target.windows(2) {
        let before_vowel = two[1].starts_with(['a', 'e', 'i', 'o', 'u', 'é', 'h']);
        prop_assert_eq!(two[0].ends_with('\''), before_vowel && two[0].ends_with('\''), "{:?}", target);
        prop_assert!(!(before_vowel && ["le", "la", "ne", "je", "me", "ce", "ma"].contains(&two[0])), "{:?}", target);
    }
    Ok(())
}

fn check_ends(task: &dyn Task, pair: &Pair) -> Result<(), TestCaseError> {
    for (vocabulary, sentence) in [(task.source_vocabulary(), &pair.source), (task.target_vocabulary(), &pair.target)] {
        prop_assert!(sentence.iter().all(|&token| (token as usize) < vocabulary.len()));
        if let Some(end) = vocabulary.token(END_WORD) {
            prop_assert_eq!(end as usize, vocabulary.len() - 1);
            prop_assert_eq!(sentence.iter().position(|&token| token == end), Some(sentence.len() - 1));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_target_follows_from_its_source(config in any_task(), split in split(), seed: u64, index: u64) {
        let Ok(task) = config.build() else { return Ok(()) };
        for index in (0..8).map(|more| index.wrapping_add(more)) {
            let pair = task.pair(split, seed, index);
            check_ends(&*task, &pair)?;
            let source = content(task.source_vocabulary(), &pair.source);
            let target = content(task.target_vocabulary(), &pair.target);
            match &config {
                TaskConfig::OneToOne(config) => check_one_to_one(config, &source, &target)?,
                TaskConfig::Sort(_) => check_sort(&source, &target)?,
                TaskConfig::Scan(_) => prop_assert_eq!(interpret(&source), target),
                TaskConfig::Escan(config) => check_escan(config, &source, &target)?,
                TaskConfig::Translation(config) => check_translation(config, &source, &target)?,
                TaskConfig::Corpus(_) => unreachable!("a corpus is no task of a name alone"),
            }
        }
    }

    #[test]
    fn no_sentence_is_longer_than_stated(config in any_task(), split in split(), seed: u64) {
        let Ok(task) = config.build() else { return Ok(()) };
        for index in 0..50 {
            let pair = task.pair(split, seed, index);
            prop_assert!(pair.source.len() <= task.max_lengths().source);
            prop_assert!(pair.target.len() <= task.max_lengths().target);
        }
    }

    #[test]
    fn the_same_arguments_give_the_same_pair_in_any_order(config in any_task(), split in split(), seed: u64) {
        let (Ok(task), Ok(again)) = (config.build(), config.build()) else { return Ok(()) };
        let forwards: Vec<Pair> = (0..20).map(|index| task.pair(split, seed, index)).collect();
        let mut backwards: Vec<Pair> = (0..20).rev().map(|index| again.pair(split, seed, index)).collect();
        backwards.reverse();
        prop_assert_eq!(forwards, backwards);
    }

    #[test]
    fn splits_seeds_and_indices_draw_different_pairs(name in prop::sample::select(NAMES), seed: u64, index in 0..1_u64 << 60) {
        let task = TaskConfig::named(name).expect("a listed name has a task").build().expect("the default builds");
        let stream = |split, seed, index| (index..index + 20).map(|index| task.pair(split, seed, index)).collect::<Vec<_>>();
        let pairs = stream(Split::Train, seed, index);
        prop_assert_ne!(&pairs, &stream(Split::Test, seed, index));
        prop_assert_ne!(&pairs, &stream(Split::Train, seed ^ 1, index));
        prop_assert_ne!(&pairs, &stream(Split::Train, seed, index + 20));
    }

    #[test]
    fn a_configuration_survives_being_written_as_toml(config in any_task()) {
        let text = toml::to_string(&config).expect("every configuration can be written");
        prop_assert_eq!(toml::from_str::<TaskConfig>(&text).expect("what was written can be read"), config);
    }
}
