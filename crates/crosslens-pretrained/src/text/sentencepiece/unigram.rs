//! The unigram model: the cut whose pieces have the highest sum of scores.

use std::ops::Range;

use super::model_file::{Entry, Kind};
use super::trie::Trie;

/// How much worse an unknown character is than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Scores that do not depend on a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unigram {
    unknown_score: f32,
    highest_score: f32,
}

/// The best cut of a text up to a place: its score, and its last piece.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    start: usize,
    id: u32,
}

impl Unigram {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let scores = || entries.iter().filter(|entry| entry.kind == Kind::Normal).map(|entry| entry.score);
        Self {
            unknown_score: scores().fold(f32::MAX, f32::min) - UNKNOWN_PENALTY,
            highest_score: scores().fold(f32::MIN_POSITIVE, f32::max),
        }
    }

    /// Cuts `text`, whose pieces lie in `pieces`. A character without a piece of its own has the id `unknown`.
    ///
    /// ```text
    /// best(0) = 0;   best(j) = max over pieces text[i..j] of best(i) + score(text[i..j])
    /// ```
    /// Ties go to the piece that begins first. Sums are in single precision from left to right, as in SentencePiece: in repetitive
    /// text the last bits decide between cuts.
    pub(super) fn cut(&self, text: &str, pieces: &Trie, entries: &[Entry], unknown: u32) -> Vec<(Range<usize>, u32)> {
        let mut best: Vec<Option<Best>> = vec![None; text.len() + 1];
        let offer = |best: &mut Option<Best>, score: f32, start: usize, id: u32| {
            if best.is_none_or(|other| score > other.score) {
                *best = Some(Best { score, start, id });
            }
        };
        for (start, character) in text.char_indices() {
            let score_here = best[start].map_or(0.0, |best| best.score);
            let mut has_own_piece = false;
            let mut walk = pieces.walk();
            for (place, &byte) in text.as_bytes()[start..].iter().enumerate() {
                if !walk.step(byte) {
                    break;
                }
                let Some(id) = walk.id() else { continue };
                let entry = &entries[id as usize];
                let length = place + 1;
                let score = match entry.kind {
                    Kind::Unused => continue,
                    Kind::UserDefined => (f64::from(length as f32 * self.highest_score) - 0.1) as f32,
                    _ => entry.score,
                };
                offer(&mut best[start + length], score + score_here, start, id);
                has_own_piece |= length == character.len_utf8();
            }
            if !has_own_piece {
                offer(&mut best[start + character.len_utf8()], self.unknown_score + score_here, start, unknown);
            }
        }

        let mut cut = Vec::new();
        let mut end = text.len();
        while let Some(last) = best[end].filter(|_| end > 0) {
            cut.push((last.start..end, last.id));
            end = last.start;
        }
        cut.reverse();
        cut
    }
}
