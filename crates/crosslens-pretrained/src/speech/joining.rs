//! Joins what was heard in windows that overlap.

use super::spoken::Spoken;

/// Tokens that both windows must have heard alike to be sure of the same place.
const LEAST_RUN: usize = 2;
/// So many are no chance, however short the overlap.
const SURE_RUN: f64 = 4.0;

/// Where two windows overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlap {
    /// The parts of the seconds of either side that the other heard too.
    pub(crate) parts: [f64; 2],
    /// Its middle, in the seconds that tokens count in.
    pub(crate) middle: f64,
}

/// Where to leave the tokens of one window and where to go on in those of the next, which overlap by a part of each.
///
/// In the middle of the longest run of tokens that both have,
///
/// ```text
/// left   … the quick brown fox jum                 a run at left[i…] and right[j…] rates
/// right          uick brown fox jumps over …       min(length, n) − 2·|(i − j) − expected|/longer
/// ```
/// with `n` tokens in the overlap, were they evenly spread, and `longer` those of the side that has more: longer runs are of words that
/// repeat. Of equal runs, as there are many then, the one wins that lies where so long an overlap should. A run that rates 0 or less, or that would throw away more than `n` tokens and
/// more than twice its length, is a chance: two common words.
///
/// Without a run, both sides heard other things, before and after a pause for instance, or one of them heard badly. Where attention says
/// when tokens were said, each side keeps its own half of the overlap. Else both keep all: a word twice is better than a word lost.
pub(crate) fn join(left: &[Spoken], right: &[Spoken], overlap: &Overlap) -> (usize, usize) {
    longest_run(left, right, overlap.parts).or_else(|| cut_at(left, right, overlap.middle)).unwrap_or((left.len(), 0))
}

fn longest_run(left: &[Spoken], right: &[Spoken], parts: [f64; 2]) -> Option<(usize, usize)> {
    let expected = left.len() as f64 * (1.0 - parts[0]);
    let n_shared = (left.len() as f64 * parts[0]).max(right.len() as f64 * parts[1]).round().max(SURE_RUN);
    let mut best: Option<(f64, usize, usize)> = None;
    // lengths[j]: of the run that ends at the present token of the left and right[j].
    let mut lengths = vec![0usize; right.len()];
    for (i, spoken) in left.iter().enumerate() {
        for j in (0..right.len()).rev() {
            lengths[j] = if spoken.token == right[j].token { 1 + if j > 0 { lengths[j - 1] } else { 0 } } else { 0 };
            let length = lengths[j];
            let n_lost = left.len() - (i + 1) + (j + 1 - length);
            if length < LEAST_RUN || n_lost as f64 > n_shared.max(2.0 * length as f64) {
                continue;
            }
            let astray = (i as f64 - j as f64 - expected).abs() / left.len().max(right.len()) as f64;
            let rating = (length as f64).min(n_shared) - 2.0 * astray;
            if rating > best.map_or(0.0, |(other, ..)| other) {
                let half = length / 2;
                best = Some((rating, i + 1 - length + half, j + 1 - length + half));
            }
        }
    }
    best.map(|(_, i, j)| (i, j))
}

/// Where the second `middle` lies in both; nothing unless attention gave both of them times, which never go back.
fn cut_at(left: &[Spoken], right: &[Spoken], middle: f64) -> Option<(usize, usize)> {
    let is_timed = |tokens: &[Spoken]| tokens.iter().any(|spoken| spoken.secs.is_some());
    if !is_timed(left) || !is_timed(right) {
        return None;
    }
    let is_before = |spoken: &Spoken| spoken.secs.map(|(from, _)| from < middle);
    let kept = left.iter().position(|spoken| is_before(spoken) == Some(false)).unwrap_or(left.len());
    let from = right.iter().rposition(|spoken| is_before(spoken) == Some(true)).map_or(0, |last| last + 1);
    Some((kept, from))
}

#[cfg(test)]
mod tests {
    use crosslens_analysis::Token;
    use proptest::prelude::*;

    use super::*;

    /// Windows from 0 to 30 and from 20 to 50 seconds.
    const THIRDS: Overlap = Overlap { parts: [1.0 / 3.0; 2], middle: 25.0 };

    /// Tokens, each with the second it was said in, if that is known.
    fn spoken(tokens: &[Token], second: impl Fn(usize) -> Option<f64>) -> Vec<Spoken> {
        let spoken = |(place, &token)| Spoken { token, log_probability: -0.1, secs: second(place).map(|from| (from, from + 1.0)) };
        tokens.iter().enumerate().map(spoken).collect()
    }

    fn joined(left: &[Token], right: &[Token]) -> Vec<Token> {
        let (i, j) = join(&spoken(left, |_| None), &spoken(right, |_| None), &THIRDS);
        [&left[..i], &right[j..]].concat()
    }

    #[test]
    fn the_longest_run_joins_two_windows() {
        assert_eq!(joined(&[1, 2, 3, 4, 5, 6], &[5, 6, 7, 8]), [1, 2, 3, 4, 5, 6, 7, 8]);
        // A word was cut at the end of the left and at the beginning of the right.
        assert_eq!(joined(&[1, 2, 3, 4, 5, 90], &[91, 4, 5, 6, 7]), [1, 2, 3, 4, 5, 6, 7]);
    }

    /// The run of ten lies where the overlap is, longer ones do not.
    #[test]
    fn words_that_repeat_are_neither_doubled_nor_lost() {
        let said = |from: usize, to: usize| (from..to).map(|second| (second % 7) as Token).collect::<Vec<_>>();
        assert_eq!(joined(&said(0, 30), &said(20, 50)), said(0, 50));
        assert_eq!(joined(&[5; 30], &[5; 30]).len(), 50);
    }

    /// Speech may begin and end within the overlap: then all is heard twice.
    #[test]
    fn a_run_far_from_where_it_was_expected_is_found() {
        let said: Vec<Token> = (0..10).collect();
        assert_eq!(joined(&said, &said), said);
    }

    /// Who heard which half of the overlap nobody knows.
    #[test]
    fn without_a_run_both_sides_keep_all() {
        let (left, right): (Vec<Token>, Vec<Token>) = ((0..20).collect(), (30..50).collect());
        assert_eq!(joined(&left, &right), [left, right].concat());
    }

    /// A token a second. Both misheard what was said from 20 to 30: until 25 the left is believed, then the right.
    #[test]
    fn without_a_run_times_say_where_to_cut() {
        let (left, right): (Vec<Token>, Vec<Token>) = ((0..30).collect(), (120..150).collect());
        let timed = |tokens: &[Token], from: usize| spoken(tokens, |place| Some((from + place) as f64));
        assert_eq!(join(&timed(&left, 0), &timed(&right, 20), &THIRDS), (25, 5));
        assert_eq!(join(&timed(&left, 0), &spoken(&right, |_| None), &THIRDS), (30, 0), "the times of one side say nothing of the other");
        assert_eq!(join(&timed(&left[..20], 0), &timed(&right[10..], 30), &THIRDS), (20, 0), "a pause over the overlap");
    }

    /// Two common words, said early in the left and late in the right, or so that most of an overlap would be lost for them.
    #[test]
    fn two_words_that_are_alike_by_chance_join_nothing() {
        for (i, j) in [(5, 50), (5, 20), (30, 12)] {
            let (mut left, mut right): (Vec<Token>, Vec<Token>) = ((0..60).collect(), (100..160).collect());
            left.splice(i..i + 2, [900, 901]);
            right.splice(j..j + 2, [900, 901]);
            assert_eq!(joined(&left, &right), [left, right].concat(), "at {i} and {j}");
        }
    }

    /// A third of 60 tokens lies in the overlap; none of them is lost.
    #[test]
    fn what_one_side_alone_heard_is_kept() {
        let said: Vec<Token> = (0..60).collect();
        assert_eq!(joined(&said, &[]), said);
        assert_eq!(joined(&[], &said), said);
        assert_eq!(joined(&[], &[]), Vec::<Token>::new());
    }

    proptest! {
        #[test]
        fn places_are_within_both(left in proptest::collection::vec(0u32..4, 0..40), right in proptest::collection::vec(0u32..4, 0..40)) {
            let (i, j) = join(&spoken(&left, |_| None), &spoken(&right, |_| None), &THIRDS);
            prop_assert!(i <= left.len() && j <= right.len());
        }

        #[test]
        fn different_words_are_joined_as_they_were_said(from in 0u32..28, to in 31u32..60) {
            let (left, right): (Vec<Token>, Vec<Token>) = ((0..30).collect(), (from..to).collect());
            prop_assert_eq!(joined(&left, &right), (0..to).collect::<Vec<Token>>());
        }
    }
}
