//! Words from tokens: their texts, times and confidence.

use super::{TimedWord, TimingError};

/// A word of no length is given so many seconds where there is room: one frame of Whisper.
const SHORTEST_WORD: f64 = 0.02;

/// Where words begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// At pieces that begin with a blank: punctuation goes with the word before it, an opening bracket with the one after.
    Spaces,
    /// At every piece, for languages written without blanks.
    Pieces,
}

/// Which word each token belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// The word of each token, from 0 on and without gaps; none of tokens that are no text.
    pub word_of: Vec<Option<usize>>,
    /// The words, without blanks around them.
    pub texts: Vec<String>,
}

/// Puts the pieces of a text together; a token that is no text has none and ends a word.
///
/// Pieces are whole characters: bytes that make one up are joined by the caller, in the first of their tokens, and the others have the
/// piece `""`, which goes with what is before it. A word that is blank is none.
pub fn group_pieces(pieces: &[Option<&str>], grouping: Grouping) -> Grouped {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut places = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let Some(piece) = piece else {
            open = false;
            places.push(None);
            continue;
        };
        let begins = match grouping {
            Grouping::Spaces => piece.starts_with(char::is_whitespace),
            Grouping::Pieces => !piece.is_empty(),
        };
        match words.last_mut() {
            Some(word) if open && !begins => word.push_str(piece),
            _ => words.push((*piece).to_owned()),
        }
        open = true;
        places.push(Some(words.len() - 1));
    }

    let mut texts = Vec::new();
    let mut number = |word: &String| {
        let text = word.trim();
        (!text.is_empty()).then(|| {
            texts.push(text.to_owned());
            texts.len() - 1
        })
    };
    let numbers: Vec<Option<usize>> = words.iter().map(&mut number).collect();
    Grouped { word_of: places.into_iter().map(|place| place.and_then(|place: usize| numbers[place])).collect(), texts }
}

/// Gives words their times and confidence.
///
/// ```text
/// start = start of its first token        end = start of the token after its last one, `end` for the last token of all
/// confidence = exp(mean of the log probabilities of its tokens)
/// ```
/// Words follow each other without overlap: no start is before the end of the last word. A word of no length is given 0.02 s: those after
/// it, if the next word (or the end) comes no sooner, else those before it, if the last word ended by then; where neither is free it
/// stays as it is. An `end` before the last token's start counts as that start.
pub fn timed_words(words: &Grouped, log_probabilities: &[f32], starts: &[f64], end: f64) -> Result<Vec<TimedWord>, TimingError> {
    check(words, log_probabilities, starts, end)?;
    let end = starts.last().map_or(end, |&last| end.max(last));
    let mut timed: Vec<TimedWord> = Vec::with_capacity(words.texts.len());
    let mut n_tokens = 0.0;
    for (token, word) in words.word_of.iter().enumerate() {
        let Some(word) = *word else { continue };
        let stop = starts.get(token + 1).copied().unwrap_or(end);
        if word == timed.len() {
            n_tokens = 0.0;
            timed.push(TimedWord { text: words.texts[word].clone(), start: starts[token], end: stop, confidence: 0.0 });
        }
        n_tokens += 1.0;
        // The mean of log probabilities so far, until all words have theirs.
        let timed = &mut timed[word];
        let log_probability = f64::from(log_probabilities[token]);
        timed.confidence =
            if n_tokens == 1.0 { log_probability } else { (timed.confidence * (n_tokens - 1.0) + log_probability) / n_tokens };
        timed.end = stop;
    }
    timed.iter_mut().for_each(|word| word.confidence = word.confidence.exp().min(1.0));
    widen(&mut timed, end);
    Ok(timed)
}

fn check(words: &Grouped, log_probabilities: &[f32], starts: &[f64], end: f64) -> Result<(), TimingError> {
    let lengths = [words.word_of.len(), log_probabilities.len(), starts.len()];
    if lengths != [lengths[0]; 3] {
        let [n_words_of, n_log_probabilities, n_starts] = lengths;
        return Err(TimingError::Lengths { n_words_of, n_log_probabilities, n_starts });
    }
    let mut last = 0.0;
    for (token, &start) in starts.iter().enumerate() {
        if !(start >= last && start.is_finite()) {
            return Err(TimingError::Time { token, start });
        }
        last = start;
    }
    if !(end >= 0.0 && end.is_finite()) {
        return Err(TimingError::Time { token: starts.len(), start: end });
    }
    if let Some(token) = log_probabilities.iter().position(|value| value.is_nan()) {
        return Err(TimingError::LogProbability { token });
    }
    let n_words = words.texts.len();
    let mut n_begun = 0;
    for (token, word) in words.word_of.iter().enumerate() {
        match *word {
            Some(word) if word == n_begun && word < n_words => n_begun += 1,
            Some(word) if word.checked_add(1) == Some(n_begun) => {}
            Some(word) => return Err(TimingError::Word { token, word, n_words }),
            None => {}
        }
    }
    if n_begun < n_words {
        return Err(TimingError::Word { token: words.word_of.len(), word: n_begun, n_words });
    }
    Ok(())
}

/// Gives words of no length the time beside them that is free.
fn widen(words: &mut [TimedWord], end: f64) {
    for place in 0..words.len() {
        let before = if place == 0 { 0.0 } else { words[place - 1].end };
        let after = words.get(place + 1).map_or(end, |next| next.start);
        let word = &mut words[place];
        if word.end > word.start {
            continue;
        }
        if word.start + SHORTEST_WORD <= after {
            word.end = word.start + SHORTEST_WORD;
        } else if word.start - SHORTEST_WORD >= before {
            word.start -= SHORTEST_WORD;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grouped(word_of: &[Option<usize>], texts: &[&str]) -> Grouped {
        Grouped { word_of: word_of.to_vec(), texts: texts.iter().map(|&text| text.to_owned()).collect() }
    }

    #[test]
    fn pieces_become_words() {
        let pieces =
            [None, Some(" Hel"), Some("lo"), Some(","), Some(" "), Some(" (wor"), Some("ld"), Some(")"), None, Some("x"), Some("")];
        let found = group_pieces(&pieces, Grouping::Spaces);
        let word_of = [None, Some(0), Some(0), Some(0), None, Some(1), Some(1), Some(1), None, Some(2), Some(2)];
        assert_eq!(found, grouped(&word_of, &["Hello,", "(world)", "x"]));
        let found = group_pieces(&[Some("今日"), Some("は"), Some(""), Some(" ")], Grouping::Pieces);
        assert_eq!(found, grouped(&[Some(0), Some(1), Some(1), None], &["今日", "は"]));
    }

    /// Two tokens of probability 0.5 and 0.125 have a mean log of ln 0.25; the word after them begins where the third token does.
    #[test]
    fn a_word_spans_its_tokens() {
        let words = grouped(&[None, Some(0), Some(0), Some(1), None], &["ab", "c"]);
        let log = |p: f32| p.ln();
        let logs = [log(1.0), log(0.5), log(0.125), log(0.75), log(1.0)];
        let found = timed_words(&words, &logs, &[0.0, 0.5, 0.75, 1.0, 1.5], 3.0).expect("five tokens");
        let times: Vec<(f64, f64)> = found.iter().map(|word| (word.start, word.end)).collect();
        assert_eq!(times, [(0.5, 1.0), (1.0, 1.5)]);
        assert!((found[0].confidence - 0.25).abs() < 1e-7 && (found[1].confidence - 0.75).abs() < 1e-7);
    }

    #[test]
    fn impossible_and_certain_tokens_have_a_confidence() {
        let words = grouped(&[Some(0), Some(0), Some(1)], &["a", "b"]);
        let found = timed_words(&words, &[f32::NEG_INFINITY, 0.0, 1e-7], &[0.0, 1.0, 2.0], 3.0).expect("three tokens");
        assert_eq!((found[0].confidence, found[1].confidence), (0.0, 1.0));
    }

    /// Word 0 has no length and a token that is no text behind it; word 1 has none and one before; word 2 lies between neighbours.
    #[test]
    fn words_of_no_length_take_what_is_free() {
        let words = grouped(&[Some(0), None, None, Some(1), Some(2), Some(3)], &["a", "b", "c", "d"]);
        let found = timed_words(&words, &[0.0; 6], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0], 3.0).expect("six tokens");
        let times: Vec<(f64, f64)> = found.iter().map(|word| (word.start, word.end)).collect();
        assert_eq!(times, [(1.0, 1.02), (1.98, 2.0), (2.0, 2.0), (2.0, 3.0)]);
        let alone = timed_words(&grouped(&[Some(0)], &["a"]), &[0.0], &[0.01], 0.01).expect("one token");
        assert_eq!((alone[0].start, alone[0].end), (0.01, 0.01), "no room on either side");
    }

    #[test]
    fn what_makes_no_words_is_refused() {
        let words = grouped(&[Some(0), Some(1)], &["a", "b"]);
        let refused = |words: &Grouped, logs: &[f32], starts: &[f64], end| timed_words(words, logs, starts, end).expect_err("refused");
        assert!(matches!(refused(&words, &[0.0], &[0.0, 1.0], 2.0), TimingError::Lengths { n_log_probabilities: 1, .. }));
        assert!(matches!(refused(&words, &[0.0; 2], &[0.0], 2.0), TimingError::Lengths { n_starts: 1, .. }));
        assert_eq!(refused(&words, &[0.0; 2], &[1.0, 0.5], 2.0), TimingError::Time { token: 1, start: 0.5 });
        assert!(matches!(refused(&words, &[0.0; 2], &[f64::NAN, 0.5], 2.0), TimingError::Time { token: 0, .. }));
        assert!(matches!(refused(&words, &[0.0; 2], &[0.0, 0.5], f64::NAN), TimingError::Time { token: 2, .. }));
        assert_eq!(refused(&words, &[0.0, f32::NAN], &[0.0, 0.5], 1.0), TimingError::LogProbability { token: 1 });
        for word_of in [[Some(1), Some(0)], [Some(0), None], [Some(0), Some(2)], [None, Some(1)], [Some(usize::MAX), None]] {
            let words = grouped(&word_of, &["a", "b"]);
            assert!(matches!(refused(&words, &[0.0; 2], &[0.0, 0.5], 1.0), TimingError::Word { .. }), "{word_of:?}");
        }
    }

    proptest! {
        #[test]
        fn words_follow_each_other(
            pieces in proptest::collection::vec(proptest::option::of("[ a-c,]{0,3}"), 0..20),
            steps in proptest::collection::vec(0u8..4, 20),
            end in 0.0f64..2.0,
        ) {
            let pieces: Vec<Option<&str>> = pieces.iter().map(Option::as_deref).collect();
            let words = group_pieces(&pieces, Grouping::Spaces);
            let n = pieces.len();
            let starts: Vec<f64> = steps[..n].iter().scan(0.0, |at, &step| { *at += 0.02 * f64::from(step); Some(*at) }).collect();
            let found = timed_words(&words, &vec![-0.5; n], &starts, end).expect("they fit");
            prop_assert_eq!(found.len(), words.texts.len());
            prop_assert!(found.iter().all(|word| word.end >= word.start && word.start >= 0.0 && !word.text.trim().is_empty()));
            prop_assert!(found.windows(2).all(|pair| pair[1].start >= pair[0].end));
        }
    }
}
