use std::fmt;

use super::ngrams::{greatest_counts, n_matches, n_runs};
use super::{BleuTokens, NoReference, References, version};

/// Longest n-grams.
const ORDER: usize = 4;

/// How BLEU is computed (Papineni et al. 2002), as sacreBLEU does with `smooth_method = "exp"`.
///
/// ```text
/// p[n]   matched n-grams / n-grams written, each matched at most as often as in the reference that has it most often
///        no match at all: 1 / (2^k · n-grams written), for the k-th such n
/// BP     1 where as long as the references, else exp(1 − r/c); c words written, r of the reference nearest in length, the shorter of two
/// BLEU   100 · BP · (p[1] p[2] p[3] p[4])^¼
/// ```
/// 0 where not a single word matches, or where there is no 4-gram at all: unless the order is effective, then the mean goes over the orders
/// that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bleu {
    /// How sentences are cut into words.
    pub tokens: BleuTokens,
    /// Whether case is ignored.
    pub lowercase: bool,
    /// Whether orders without any n-gram are left out; off for corpora.
    pub effective_order: bool,
}

impl Bleu {
    /// Counts of no sentence yet.
    pub fn tally(self) -> BleuTally {
        BleuTally {
            bleu: self,
            references: References::Unknown,
            n_sentences: 0,
            n_written: 0,
            n_reference: 0,
            matched: [0; ORDER],
            total: [0; ORDER],
        }
    }

    /// The score of a single sentence, always with effective order, as sacreBLEU's `sentence_bleu`.
    pub fn sentence<R: AsRef<str>>(self, written: &str, references: &[R]) -> Result<BleuScore, NoReference> {
        let mut tally = Self { effective_order: true, ..self }.tally();
        tally.add(written, references)?;
        Ok(tally.score())
    }

    fn words(self, sentence: &str) -> Vec<String> {
        if self.lowercase { self.tokens.words(&sentence.to_lowercase()) } else { self.tokens.words(sentence) }
    }
}

/// Counts over sentences, from which BLEU follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BleuTally {
    bleu: Bleu,
    references: References,
    n_sentences: u64,
    n_written: u64,
    n_reference: u64,
    matched: [u64; ORDER],
    total: [u64; ORDER],
}

impl BleuTally {
    /// Counts one translation against its references.
    pub fn add<R: AsRef<str>>(&mut self, written: &str, references: &[R]) -> Result<(), NoReference> {
        let written = self.bleu.words(written);
        let references: Vec<Vec<String>> = references.iter().map(|reference| self.bleu.words(reference.as_ref())).collect();
        let nearest = references.iter().map(Vec::len).min_by_key(|&length| (length.abs_diff(written.len()), length));
        let nearest = nearest.ok_or(NoReference { sentence: self.n_sentences })?;

        for n in 1..=ORDER {
            self.matched[n - 1] += n_matches(&written, n, greatest_counts(&references, n));
            self.total[n - 1] += n_runs(written.len(), n);
        }
        self.n_sentences += 1;
        self.n_written += written.len() as u64;
        self.n_reference += nearest as u64;
        self.references = self.references.or(References::Always(references.len()));
        Ok(())
    }

    /// Adds what was counted elsewhere, in the same way.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.bleu, other.bleu, "tallies that are merged count in the same way");
        self.references = self.references.or(other.references);
        self.n_sentences += other.n_sentences;
        self.n_written += other.n_written;
        self.n_reference += other.n_reference;
        for n in 0..ORDER {
            self.matched[n] += other.matched[n];
            self.total[n] += other.total[n];
        }
    }

    /// The score of all sentences counted; 0 of none.
    pub fn score(&self) -> BleuScore {
        let (written, reference) = (self.n_written as f64, self.n_reference as f64);
        let brevity_penalty = match self.n_written {
            length if length >= self.n_reference => 1.0,
            0 => 0.0,
            _ => (1.0 - reference / written).exp(),
        };
        let precisions = self.precisions();
        let order = if self.bleu.effective_order { self.total.iter().filter(|&&total| total > 0).count() } else { ORDER };
        let used = &precisions[..order];
        let score = if used.is_empty() || used.contains(&0.0) {
            0.0
        } else {
            brevity_penalty * (used.iter().map(|precision| precision.ln()).sum::<f64>() / order as f64).exp()
        };
        BleuScore {
            score,
            precisions,
            brevity_penalty,
            matched: self.matched,
            total: self.total,
            n_written: self.n_written,
            n_reference: self.n_reference,
        }
    }

    /// In percent; all 0 where nothing matches.
    fn precisions(&self) -> [f64; ORDER] {
        let mut precisions = [0.0; ORDER];
        if self.matched == [0; ORDER] {
            return precisions;
        }
        let mut smoothing = 1.0;
        for (precision, (&matched, &total)) in precisions.iter_mut().zip(self.matched.iter().zip(&self.total)) {
            if total == 0 {
                break;
            }
            *precision = if matched == 0 {
                smoothing *= 2.0;
                100.0 / (smoothing * total as f64)
            } else {
                100.0 * matched as f64 / total as f64
            };
        }
        precisions
    }

    /// How the score was computed, in sacreBLEU's words: `nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:…`.
    pub fn signature(&self) -> String {
        let Bleu { tokens, lowercase, effective_order } = self.bleu;
        let (case, effective) = (if lowercase { "lc" } else { "mixed" }, if effective_order { "yes" } else { "no" });
        format!("nrefs:{}|case:{case}|eff:{effective}|tok:{}|smooth:exp|{}", self.references, tokens.name(), version())
    }
}

/// BLEU and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BleuScore {
    /// From 0 to 100.
    pub score: f64,
    /// Precision of n-grams of 1 to 4 words in percent, smoothed.
    pub precisions: [f64; ORDER],
    /// What is left of the score for being too short.
    pub brevity_penalty: f64,
    /// N-grams that were matched.
    pub matched: [u64; ORDER],
    /// N-grams that were written.
    pub total: [u64; ORDER],
    /// Words written.
    pub n_written: u64,
    /// Words of the references nearest in length.
    pub n_reference: u64,
}

/// `BLEU = 42.13 71.2/49.0/36.1/27.5 (BP = 0.980 ratio = 0.980 hyp_len = 980 ref_len = 1000)`, as sacreBLEU writes it.
impl fmt::Display for BleuScore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, two, three, four] = self.precisions;
        let ratio = if self.n_reference == 0 { 0.0 } else { self.n_written as f64 / self.n_reference as f64 };
        write!(
            out,
            "BLEU = {:.2} {one:.1}/{two:.1}/{three:.1}/{four:.1} (BP = {:.3} ratio = {ratio:.3} hyp_len = {} ref_len = {})",
            self.score, self.brevity_penalty, self.n_written, self.n_reference
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written `the the cat`, references `the cat` and `a cat sat`: `the` counts once, so p = 2/3, 1/2, and 1/(2·1) for the trigram; there is
    /// no 4-gram. Lengths: |3−2| = 1, |3−3| = 0, so r = 3 and BP = 1.
    #[test]
    fn a_word_counts_as_often_as_in_one_reference() {
        let references = ["the cat", "a cat sat"];
        let mut tally = Bleu::default().tally();
        tally.add("the the cat", &references).expect("two references");
        let score = tally.score();
        assert_eq!((score.matched, score.total), ([2, 1, 0, 0], [3, 2, 1, 0]));
        assert_eq!((score.score, score.n_reference, score.brevity_penalty), (0.0, 3, 1.0));

        let sentence = Bleu::default().sentence("the the cat", &references).expect("two references");
        assert!((sentence.score - 100.0 * (2.0 / 3.0 * 0.5 * 0.5_f64).cbrt()).abs() < 1e-9, "{sentence}");
    }

    #[test]
    fn of_two_lengths_equally_near_the_shorter_counts() {
        let mut tally = Bleu::default().tally();
        tally.add("a b c", &["a b c d", "a b"]).expect("two references");
        assert_eq!(tally.score().n_reference, 2);
    }

    #[test]
    fn shards_add_up_and_the_number_of_references_is_said() {
        let (mut whole, mut one, mut other) = (Bleu::default().tally(), Bleu::default().tally(), Bleu::default().tally());
        one.add("a b c d e", &["a b c d f"]).expect("a reference");
        assert!(one.signature().starts_with("nrefs:1|"));
        other.add("x y", &["x", "y"]).expect("two references");
        whole.add("a b c d e", &["a b c d f"]).expect("a reference");
        whole.add("x y", &["x", "y"]).expect("two references");
        one.merge(&other);
        assert_eq!(one, whole);
        assert!(one.signature().starts_with("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:crosslens-"));
        assert_eq!(one.add::<&str>("a", &[]), Err(NoReference { sentence: 2 }));
    }
}
