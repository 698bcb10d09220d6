use super::ngrams::{greatest_counts, n_matches, n_runs};
use super::tokens::{is_space, words};
use super::{NoReference, References, version};

/// How chrF is computed (Popović 2015, 2017), as sacreBLEU does.
///
/// ```text
/// P, R   mean precision and recall of n-grams over the orders that both sides have: characters without white space, then words
/// chrF   100 · (1 + β²) P R / (β² P + R)
/// ```
/// Of several references the one with the best score of its sentence is counted, the first of equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chrf {
    /// The longest n-grams of characters. Default 6.
    pub char_order: usize,
    /// The longest n-grams of words, punctuation cut off their ends; 2 makes chrF++. Default 0.
    pub word_order: usize,
    /// How much more recall counts than precision. Default 2.
    pub beta: u32,
    /// Whether case is ignored.
    pub lowercase: bool,
}

impl Default for Chrf {
    fn default() -> Self {
        Self { char_order: 6, word_order: 0, beta: 2, lowercase: false }
    }
}

/// N-grams of one order: written, in the reference, in both.
type Counts = [u64; 3];

impl Chrf {
    /// chrF++: words and pairs of words count too.
    pub fn plus_plus() -> Self {
        Self { word_order: 2, ..Self::default() }
    }

    /// `chrF2`, `chrF2++`.
    pub fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    /// Counts of no sentence yet.
    pub fn tally(self) -> ChrfTally {
        ChrfTally { chrf: self, references: References::Unknown, n_sentences: 0, counts: vec![[0; 3]; self.char_order + self.word_order] }
    }

    /// The score of a single sentence.
    pub fn sentence<R: AsRef<str>>(self, written: &str, references: &[R]) -> Result<f64, NoReference> {
        let mut tally = self.tally();
        tally.add(written, references)?;
        Ok(tally.score())
    }

    fn pieces(&self, sentence: &str) -> Pieces {
        let sentence = if self.lowercase { sentence.to_lowercase() } else { sentence.to_owned() };
        let letters = sentence.chars().filter(|&letter| !is_space(letter)).collect();
        let words =
            if self.word_order > 0 { words(&sentence).flat_map(without_punctuation).map(str::to_owned).collect() } else { Vec::new() };
        Pieces { letters: [letters], words: [words] }
    }

    fn counts(&self, written: &Pieces, reference: &Pieces) -> Vec<Counts> {
        let letters = (1..=self.char_order).map(|n| compare(&written.letters, &reference.letters, n));
        let words = (1..=self.word_order).map(|n| compare(&written.words, &reference.words, n));
        letters.chain(words).collect()
    }

    fn score(&self, counts: &[Counts]) -> f64 {
        let (mut precision, mut recall, mut n_orders) = (0.0, 0.0, 0.0);
        for &[written, reference, both] in counts.iter().filter(|[written, reference, _]| *written > 0 && *reference > 0) {
            precision += both as f64 / written as f64;
            recall += both as f64 / reference as f64;
            n_orders += 1.0;
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (precision / n_orders, recall / n_orders);
        let factor = f64::from(self.beta).powi(2);
        100.0 * (1.0 + factor) * precision * recall / (factor * precision + recall)
    }
}

/// What n-grams are made of, as lists of one sequence each.
struct Pieces {
    letters: [Vec<char>; 1],
    words: [Vec<String>; 1],
}

/// An order that the reference does not have is not held against what was written.
fn compare<T: std::hash::Hash + Eq>(written: &[Vec<T>; 1], reference: &[Vec<T>; 1], n: usize) -> Counts {
    let n_reference = n_runs(reference[0].len(), n);
    let n_written = if n_reference == 0 { 0 } else { n_runs(written[0].len(), n) };
    [n_written, n_reference, n_matches(&written[0], n, greatest_counts(reference, n))]
}

/// A word and the punctuation at its end, or else at its beginning: `(hi)` becomes `(hi` and `)`, as in the published program.
fn without_punctuation(word: &str) -> impl Iterator<Item = &str> {
    let is_mark = |letter: char| letter.is_ascii_punctuation();
    let last = word.char_indices().next_back().filter(|&(at, letter)| at > 0 && is_mark(letter));
    let first = word.chars().next().filter(|&letter| is_mark(letter) && word.len() > 1);
    let cut = last.map(|(at, _)| at).or(first.map(char::len_utf8)).unwrap_or(word.len());
    let (one, other) = word.split_at(cut);
    [one, other].into_iter().filter(|piece| !piece.is_empty())
}

/// Counts over sentences, from which chrF follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChrfTally {
    chrf: Chrf,
    references: References,
    n_sentences: u64,
    counts: Vec<Counts>,
}

impl ChrfTally {
    /// Counts one translation against the reference that suits it best.
    pub fn add<R: AsRef<str>>(&mut self, written: &str, references: &[R]) -> Result<(), NoReference> {
        let written = self.chrf.pieces(written);
        let mut best: Option<(f64, Vec<Counts>)> = None;
        for reference in references {
            let counts = self.chrf.counts(&written, &self.chrf.pieces(reference.as_ref()));
            let score = self.chrf.score(&counts);
            if best.as_ref().is_none_or(|best| score > best.0) {
                best = Some((score, counts));
            }
        }
        let (_, counts) = best.ok_or(NoReference { sentence: self.n_sentences })?;
        self.add_counts(&counts);
        self.n_sentences += 1;
        self.references = self.references.or(References::Always(references.len()));
        Ok(())
    }

    /// Adds what was counted elsewhere, in the same way.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.chrf, other.chrf, "tallies that are merged count in the same way");
        self.add_counts(&other.counts);
        self.n_sentences += other.n_sentences;
        self.references = self.references.or(other.references);
    }

    fn add_counts(&mut self, counts: &[Counts]) {
        for (sum, more) in self.counts.iter_mut().zip(counts) {
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum += more;
            }
        }
    }

    /// The score of all sentences counted, from 0 to 100; 0 of none.
    pub fn score(&self) -> f64 {
        self.chrf.score(&self.counts)
    }

    /// How the score was computed, in sacreBLEU's words: `nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:…`.
    pub fn signature(&self) -> String {
        let Chrf { char_order, word_order, lowercase, .. } = self.chrf;
        let case = if lowercase { "lc" } else { "mixed" };
        format!("nrefs:{}|case:{case}|eff:yes|nc:{char_order}|nw:{word_order}|space:no|{}", self.references, version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of `ab` and `ac`: one of two matches, no pair does: P = R = (1/2 + 0)/2 over the two orders there are.
    #[test]
    fn orders_that_are_missing_are_left_out() {
        let score = Chrf::default().sentence("a b", &["ac"]).expect("a reference");
        assert!((score - 25.0).abs() < 1e-12, "{score}");
        assert_eq!(Chrf::default().sentence("", &["a"]), Ok(0.0));
        assert_eq!(Chrf::default().tally().score(), 0.0);
    }

    #[test]
    fn punctuation_is_cut_off_words_once() {
        let cut = |word: &str| without_punctuation(word).collect::<Vec<_>>().join("|");
        for (word, expected) in
            [("hi", "hi"), ("hi.", "hi|."), ("(hi)", "(hi|)"), ("(hi", "(|hi"), (".", "."), ("..", ".|."), ("é!", "é|!"), ("«é", "«é")]
        {
            assert_eq!(cut(word), expected);
        }
    }

    #[test]
    fn shards_add_up() {
        let (mut whole, mut one, mut other) = (Chrf::plus_plus().tally(), Chrf::plus_plus().tally(), Chrf::plus_plus().tally());
        for (tally, written) in [(&mut one, "le chat dort"), (&mut other, "un chien court")] {
            tally.add(written, &["le chien dort"]).expect("a reference");
            whole.add(written, &["le chien dort"]).expect("a reference");
        }
        one.merge(&other);
        assert_eq!(one, whole);
        assert_eq!((whole.chrf.name().as_str(), &whole.signature()[..40]), ("chrF2++", "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|spa"));
    }
}
