//! Byte-pair encoding: neighbours are merged, the pair with the highest score first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::model_file::{Entry, Kind};
use super::trie::Trie;

/// A stretch of text in a chain of such. Merged into the one before it, it becomes empty.
struct Symbol {
    range: Range<usize>,
    previous: Option<usize>,
    next: Option<usize>,
    /// User-defined pieces merge with nothing.
    is_frozen: bool,
}

/// Two neighbours that make a piece.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Bytes of both; if it is no longer that, one of them has been merged with another.
    n_bytes: usize,
}

impl Ord for Pair {
    /// The highest score first, then the leftmost. Scores are finite.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left)).then(other.n_bytes.cmp(&self.n_bytes))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

/// A text being merged.
struct Merging<'a> {
    text: &'a str,
    pieces: &'a Trie,
    entries: &'a [Entry],
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
    /// For each unused piece that was made: how many bytes of it were its left part.
    parts_of_unused: HashMap<u32, usize>,
}

/// Cuts `text`, whose pieces lie in `pieces`; `id_of` names what comes out. Takes `O(n log n)` for `n` characters.
///
/// Unused pieces take part in merging, and are taken apart again at the end.
pub(super) fn cut(
    text: &str,
    pieces: &Trie,
    user_defined: &Trie,
    entries: &[Entry],
    id_of: impl Fn(&str) -> u32,
) -> Vec<(Range<usize>, u32)> {
    let mut merging =
        Merging { text, pieces, entries, symbols: symbols(text, user_defined), pairs: BinaryHeap::new(), parts_of_unused: HashMap::new() };
    merging.merge();
    merging.pieces(id_of)
}

fn symbols(text: &str, user_defined: &Trie) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let whole = user_defined.longest_prefix(&text.as_bytes()[start..]).map(|(length, _)| length);
        let length = whole.or_else(|| text[start..].chars().next().map(char::len_utf8)).unwrap_or(1);
        let previous = symbols.len().checked_sub(1);
        if let Some(previous) = previous {
            symbols[previous].next = Some(symbols.len());
        }
        symbols.push(Symbol { range: start..start + length, previous, next: None, is_frozen: whole.is_some() });
        start += length;
    }
    symbols
}

impl Merging<'_> {
    fn merge(&mut self) {
        for left in 1..self.symbols.len() {
            self.consider(Some(left - 1), Some(left));
        }
        while let Some(pair) = self.pairs.pop() {
            let [left, right] = [&self.symbols[pair.left].range, &self.symbols[pair.right].range];
            if left.is_empty() || right.is_empty() || left.len() + right.len() != pair.n_bytes {
                continue;
            }
            let end = right.end;
            let next = self.symbols[pair.right].next;
            self.symbols[pair.left].range.end = end;
            self.symbols[pair.left].next = next;
            self.symbols[pair.right].range = end..end;
            if let Some(next) = next {
                self.symbols[next].previous = Some(pair.left);
            }
            self.consider(self.symbols[pair.left].previous, Some(pair.left));
            self.consider(Some(pair.left), next);
        }
    }

    /// Notes two neighbours if they make a piece.
    fn consider(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else { return };
        let [first, second] = [&self.symbols[left], &self.symbols[right]];
        if first.is_frozen || second.is_frozen {
            return;
        }
        let range = first.range.start..second.range.end;
        let Some(id) = self.pieces.get(&self.text[range.clone()]) else { return };
        let entry = &self.entries[id as usize];
        if entry.kind == Kind::Unused {
            self.parts_of_unused.insert(id, first.range.len());
        }
        self.pairs.push(Pair { score: entry.score, left, right, n_bytes: range.len() });
    }

    fn pieces(&self, id_of: impl Fn(&str) -> u32) -> Vec<(Range<usize>, u32)> {
        let mut pieces = Vec::new();
        for symbol in self.symbols.iter().filter(|symbol| !symbol.range.is_empty()) {
            let mut open = vec![symbol.range.clone()];
            while let Some(range) = open.pop() {
                let id = id_of(&self.text[range.clone()]);
                let is_unused = self.entries[id as usize].kind == Kind::Unused;
                match self.parts_of_unused.get(&id).filter(|_| is_unused) {
                    Some(&n_left) => open.extend([range.start + n_left..range.end, range.start..range.start + n_left]),
                    None => pieces.push((range, id)),
                }
            }
        }
        pieces
    }
}
