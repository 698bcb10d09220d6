use serde::{Deserialize, Serialize};

use super::{CorpusReport, Reason};

/// Which pairs of a corpus are wanted. Words are what white space separates, a no-break space too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// The fewest words of each side; a side without any is always dropped. Default 1.
    pub min_words: usize,
    /// The most words of each side. Default none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_words: Option<usize>,
    /// The most bytes of each side in UTF-8. Default none: as many as a line may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// Whether a pair that was kept before, letter by letter, is dropped. Pairs are compared by hashes of 64 bits: among a hundred million
    /// pairs the chance that a single one is dropped wrongly is 3 in 10,000. Default true.
    pub dedupe: bool,
    /// Reading ends after so many pairs. Default none: the whole corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pairs: Option<u64>,
    /// Reading ends once the pairs kept have so many bytes, all of them together and both sides. Default none: the whole corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_bytes: Option<u64>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { min_words: 1, max_words: None, max_bytes: None, dedupe: true, max_pairs: None, max_total_bytes: None }
    }
}

impl Filter {
    /// That reading ended, and after how much, where as much was kept as is wanted.
    pub fn ended(&self, report: &CorpusReport) -> Option<String> {
        let (n_pairs, n_bytes) = (report.kept(), report.kept_bytes());
        if self.max_pairs.is_some_and(|most| n_pairs >= most) {
            return Some(format!("reading ended after {n_pairs} pairs"));
        }
        let is_full = self.max_total_bytes.is_some_and(|most| n_bytes >= most);
        is_full.then(|| format!("reading ended after {n_pairs} pairs, whose texts have {n_bytes} bytes"))
    }

    /// Why a pair is not wanted, but for duplicates.
    pub(super) fn objection(&self, source: &str, target: &str) -> Option<Reason> {
        let sides = [source, target];
        if self.max_bytes.is_some_and(|most| sides.iter().any(|side| side.len() > most)) {
            return Some(Reason::TooLong);
        }
        let n_words = sides.map(|side| side.split_whitespace().count());
        if n_words.contains(&0) {
            return Some(Reason::OneSided);
        }
        if self.max_words.is_some_and(|most| n_words.iter().any(|&n| n > most)) {
            return Some(Reason::TooLong);
        }
        n_words.iter().any(|&n| n < self.min_words).then_some(Reason::TooShort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_hold_for_each_side() {
        let filter = Filter { min_words: 2, max_words: Some(3), max_bytes: Some(10), ..Filter::default() };
        for (source, target, expected) in [
            ("a b", "a b c", None),
            ("a", "a b", Some(Reason::TooShort)),
            ("a b", "a", Some(Reason::TooShort)),
            ("a b", "a b c d", Some(Reason::TooLong)),
            ("a b c d", "a b", Some(Reason::TooLong)),
            ("a\u{a0}b", "ab cd efgh", None),
            ("a b", "ab cd efghi", Some(Reason::TooLong)),
            ("a b", "éé ééé", Some(Reason::TooLong)),
        ] {
            assert_eq!(filter.objection(source, target), expected, "{source} / {target}");
        }
        assert_eq!(Filter::default().objection(" \u{a0}", "a"), Some(Reason::OneSided));
    }
}
