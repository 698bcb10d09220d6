//! Joins what was heard in windows that overlap.

use crosslens_analysis::Token;

/// Tokens that both windows must have heard alike to be sure of the same place.
const LEAST_RUN: usize = 2;
/// So many are no chance, however short the overlap.
const SURE_RUN: f64 = 4.0;

/// Where to leave the tokens of one window and where to go on in those of the next, which overlap by a part of each.
///
/// In the middle of the longest run of tokens that both have,
///
/// ```text
/// left   … the quick brown fox jum                 a run at left[i…] and right[j…] rates
/// right          uick brown fox jumps over …       min(length, n) − 2·|(i − j) − expected|/left.len()
/// ```
/// with `n` tokens in the overlap, were they evenly spread: longer runs are of words that repeat. Of equal runs, as there are many then,
/// the one wins that lies where so long an overlap should. `overlaps` are the parts of the seconds of either side that the other heard
/// too. Without a run, each side loses the outer half of its overlap: that is where words are cut in two. Where one side heard nothing,
/// the other keeps all it heard: nobody else wrote it down.
pub(crate) fn join(left: &[Token], right: &[Token], overlaps: [f64; 2]) -> (usize, usize) {
    if left.is_empty() || right.is_empty() {
        return (left.len(), 0);
    }
    let expected = left.len() as f64 * (1.0 - overlaps[0]);
    let n_shared = (left.len() as f64 * overlaps[0]).max(right.len() as f64 * overlaps[1]).round().max(SURE_RUN);
    let mut best: Option<(f64, usize, usize, usize)> = None;
    // lengths[j]: of the run that ends at the present token of the left and right[j].
    let mut lengths = vec![0usize; right.len()];
    for (i, token) in left.iter().enumerate() {
        for j in (0..right.len()).rev() {
            lengths[j] = if *token == right[j] { 1 + if j > 0 { lengths[j - 1] } else { 0 } } else { 0 };
            let length = lengths[j];
            if length >= LEAST_RUN {
                let astray = (i as f64 - j as f64 - expected).abs() / left.len() as f64;
                let rating = (length as f64).min(n_shared) - 2.0 * astray;
                if best.is_none_or(|(other, ..)| rating > other) {
                    best = Some((rating, i + 1 - length, j + 1 - length, length));
                }
            }
        }
    }
    match best {
        Some((_, i, j, length)) => (i + length / 2, j + length / 2),
        None => {
            let lost = |tokens: &[Token], overlap: f64| (tokens.len() as f64 * overlap.clamp(0.0, 1.0) / 2.0).round() as usize;
            (left.len() - lost(left, overlaps[0]), lost(right, overlaps[1]))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THIRDS: [f64; 2] = [1.0 / 3.0; 2];

    fn joined(left: &[Token], right: &[Token]) -> Vec<Token> {
        let (i, j) = join(left, right, THIRDS);
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

    /// Six tokens each, a third of them in the overlap: one is lost on either side.
    #[test]
    fn without_a_run_each_side_loses_half_of_its_overlap() {
        assert_eq!(joined(&[1, 2, 3, 4, 5, 6], &[11, 12, 13, 14, 15, 16]), [1, 2, 3, 4, 5, 12, 13, 14, 15, 16]);
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
            let (i, j) = join(&left, &right, THIRDS);
            prop_assert!(i <= left.len() && j <= right.len());
        }

        #[test]
        fn different_words_are_joined_as_they_were_said(from in 0u32..28, to in 31u32..60) {
            let (left, right): (Vec<Token>, Vec<Token>) = ((0..30).collect(), (from..to).collect());
            prop_assert_eq!(joined(&left, &right), (0..to).collect::<Vec<Token>>());
        }
    }
}
