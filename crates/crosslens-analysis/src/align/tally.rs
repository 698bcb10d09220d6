//! How near links come to gold.

use super::{Gold, Links};

/// Counts over a corpus from which precision, recall, F1 and the alignment error rate follow.
///
/// With the links `A` that were found, and the sure `S` and possible `P ⊇ S` of the gold, summed over sentences:
///
/// ```text
/// precision = |A∩P| / |A|        recall = |A∩S| / |S|        F1 = 2·precision·recall / (precision + recall)
/// AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|)
/// ```
/// Each is `None` where it would divide by zero. Without possible links beyond the sure ones, AER = 1 − F1 (Och & Ney 2003).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentTally {
    /// `|A|`.
    pub n_found: u64,
    /// `|S|`.
    pub n_sure: u64,
    /// `|A∩S|`.
    pub n_found_sure: u64,
    /// `|A∩P|`.
    pub n_found_possible: u64,
}

impl AlignmentTally {
    /// Counts one pair of sentences.
    pub fn add(&mut self, found: &Links, gold: &Gold) {
        self.n_found += found.len() as u64;
        self.n_sure += gold.sure().len() as u64;
        self.n_found_sure += found.n_common(gold.sure()) as u64;
        self.n_found_possible += found.n_common(gold.possible()) as u64;
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.n_found += other.n_found;
        self.n_sure += other.n_sure;
        self.n_found_sure += other.n_found_sure;
        self.n_found_possible += other.n_found_possible;
    }

    /// Share of the found links that are possible.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.n_found_possible, self.n_found)
    }

    /// Share of the sure links that are found.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.n_found_sure, self.n_sure)
    }

    /// Harmonic mean of precision and recall; 0 where both are.
    pub fn f1(&self) -> Option<f64> {
        let (precision, recall) = (self.precision()?, self.recall()?);
        let sum = precision + recall;
        Some(if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum })
    }

    /// The alignment error rate; smaller is better.
    pub fn aer(&self) -> Option<f64> {
        ratio(self.n_found_sure + self.n_found_possible, self.n_found + self.n_sure).map(|agreement| 1.0 - agreement)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::link::tests::links;
    use super::*;

    fn tally(found: &Links, gold: &Gold) -> AlignmentTally {
        let mut tally = AlignmentTally::default();
        tally.add(found, gold);
        tally
    }

    /// A = {00, 11, 22, 33}, S = {00, 12}, P = S ∪ {11, 22}: A∩S = {00}, A∩P = {00, 11, 22}.
    /// Precision 3/4, recall 1/2, F1 = 2·(3/8)/(5/4) = 3/5, AER = 1 − (1 + 3)/(4 + 2) = 1/3.
    #[test]
    fn the_four_measures_follow_from_the_counts() {
        let found = Links::from_iter([(0, 0), (1, 1), (2, 2), (3, 3)]);
        let gold = Gold::new(Links::from_iter([(0, 0), (1, 2)]), Links::from_iter([(1, 1), (2, 2)]));
        let tally = tally(&found, &gold);
        assert_eq!(tally, AlignmentTally { n_found: 4, n_sure: 2, n_found_sure: 1, n_found_possible: 3 });
        assert_eq!((tally.precision(), tally.recall()), (Some(0.75), Some(0.5)));
        assert!((tally.f1().expect("both are defined") - 0.6).abs() < 1e-15);
        assert!((tally.aer().expect("there are links") - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_over_nothing_is_nothing() {
        let empty = AlignmentTally::default();
        assert_eq!((empty.precision(), empty.recall(), empty.f1(), empty.aer()), (None, None, None, None));
        let missed = tally(&Links::default(), &Gold::new(Links::from_iter([(0, 0)]), Links::default()));
        assert_eq!((missed.precision(), missed.recall(), missed.aer()), (None, Some(0.0), Some(1.0)));
        let wrong = tally(&Links::from_iter([(1, 0)]), &Gold::new(Links::from_iter([(0, 0)]), Links::default()));
        assert_eq!((wrong.f1(), wrong.aer()), (Some(0.0), Some(1.0)));
    }

    proptest! {
        #[test]
        fn gold_makes_no_error_against_itself(sure in links(), possible in links()) {
            let gold = Gold::new(sure, possible);
            if !gold.sure().is_empty() {
                prop_assert_eq!(tally(gold.sure(), &gold).aer(), Some(0.0));
                prop_assert_eq!(tally(gold.sure(), &gold).f1(), Some(1.0));
                prop_assert_eq!(tally(gold.possible(), &gold).aer(), Some(0.0));
            }
        }

        #[test]
        fn sentences_and_shards_add_up(pairs in prop::collection::vec((links(), links(), links()), 0..6), at in 0..6_usize) {
            let (mut whole, mut one, mut other) = Default::default();
            for (index, (found, sure, possible)) in pairs.into_iter().enumerate() {
                let gold = Gold::new(sure, possible);
                AlignmentTally::add(&mut whole, &found, &gold);
                AlignmentTally::add(if index < at { &mut one } else { &mut other }, &found, &gold);
            }
            one.merge(&other);
            prop_assert_eq!(one, whole);
        }

        #[test]
        fn without_possible_links_the_error_rate_is_one_minus_f1(found in links(), sure in links()) {
            let tally = tally(&found, &Gold::new(sure, Links::default()));
            if let (Some(aer), Some(f1)) = (tally.aer(), tally.f1()) {
                prop_assert!((aer + f1 - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn which_side_comes_first_does_not_matter(found in links(), sure in links(), possible in links()) {
            let gold = Gold::new(sure.clone(), possible.clone());
            let other = Gold::new(sure.transposed(), possible.transposed());
            prop_assert_eq!(tally(&found, &gold), tally(&found.transposed(), &other));
        }
    }
}
