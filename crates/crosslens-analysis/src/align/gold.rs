//! Alignments made by people.

use super::pharaoh::{Base, LinkError, numbered_lines, read_gold_line, shortened};
use super::{Link, Links};

/// What people agreed on: links that must be there (sure), and links that may be (possible). Every sure link is possible too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gold {
    sure: Links,
    possible: Links,
}

impl Gold {
    /// From both kinds; `possible` need not repeat what is sure.
    pub fn new(sure: Links, possible: Links) -> Self {
        let possible = possible.union(&sure);
        Self { sure, possible }
    }

    /// Links that must be there.
    pub fn sure(&self) -> &Links {
        &self.sure
    }

    /// Links that may be there, the sure ones among them.
    pub fn possible(&self) -> &Links {
        &self.possible
    }

    /// Refuses links to words that sentences of these lengths do not have; `line` and `base` are for the message.
    pub fn check_within(&self, line: usize, n_source: usize, n_target: usize, base: Base) -> Result<(), LinkError> {
        let outside = |link: &Link| link.source >= n_source || link.target >= n_target;
        match self.possible.iter().find(outside) {
            Some(link) => Err(LinkError::Outside { line, link: Links::from_iter([link]).pharaoh(base), n_source, n_target }),
            None => Ok(()),
        }
    }
}

/// A pair of sentences, word by word, with its gold alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldPair {
    /// Source words.
    pub source: Vec<String>,
    /// Target words.
    pub target: Vec<String>,
    /// Their links.
    pub gold: Gold,
}

/// Reads gold links and the sentences they belong to: line `n` of `sentences`, `source ||| target`, has the links of line `n` of `gold`.
///
/// Every link must lie within its sentences, so a wrong `base` or exchanged languages are found out.
pub fn read_gold_pairs(gold: &str, sentences: &str, base: Base) -> Result<Vec<GoldPair>, LinkError> {
    let mut golds = numbered_lines(gold);
    let mut pairs = Vec::new();
    for (line, text) in numbered_lines(sentences) {
        let Some((source, target)) = text.split_once("|||") else {
            return Err(LinkError::NoSeparator { line, text: shortened(text) });
        };
        let words = |side: &str| side.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (source, target) = (words(source), words(target));
        let Some((line, text)) = golds.next() else {
            return Err(LinkError::DifferentLengths { n_gold: pairs.len(), n_sentences: sentences.lines().count() });
        };
        let gold = read_gold_line(line, text, base)?;
        gold.check_within(line, source.len(), target.len(), base)?;
        pairs.push(GoldPair { source, target, gold });
    }
    match golds.count() {
        0 => Ok(pairs),
        more => Err(LinkError::DifferentLengths { n_gold: pairs.len() + more, n_sentences: pairs.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTENCES: &str = "the cat   ||| le chat  \nyes ||| oui\n";

    #[test]
    fn words_and_links_come_line_by_line() {
        let pairs = read_gold_pairs("1-1 2-2 1p2\n\n", SENTENCES, Base::One).expect("both are well-formed");
        assert_eq!(pairs.len(), 2);
        assert_eq!((pairs[0].source.join("_"), pairs[0].target.join("_")), ("the_cat".into(), "le_chat".into()));
        assert_eq!(pairs[0].gold.sure(), &Links::from_iter([(0, 0), (1, 1)]));
        assert_eq!(pairs[0].gold.possible(), &Links::from_iter([(0, 0), (1, 1), (0, 1)]));
        assert_eq!(pairs[1].gold, Gold::default());
    }

    #[test]
    fn a_link_outside_its_sentences_names_line_and_lengths() {
        let error = read_gold_pairs("1-1\n1-2\n", SENTENCES, Base::One).expect_err("`oui` is one word");
        assert_eq!(error, LinkError::Outside { line: 2, link: "1-2".into(), n_source: 1, n_target: 1 });
        assert!(error.to_string().starts_with("line 2: link `1-2` lies outside"), "{error}");
    }

    #[test]
    fn files_of_different_lengths_are_refused() {
        for gold in ["1-1", "1-1\n1-1\n1-1"] {
            let error = read_gold_pairs(gold, SENTENCES, Base::One).expect_err("two sentences");
            assert_eq!(error, LinkError::DifferentLengths { n_gold: gold.lines().count(), n_sentences: 2 });
        }
    }

    #[test]
    fn sentences_need_a_separator() {
        let error = read_gold_pairs("1-1\n1-1", "a ||| b\na b", Base::One).expect_err("the second line has none");
        assert_eq!(error, LinkError::NoSeparator { line: 2, text: "a b".into() });
    }

    #[test]
    fn what_is_sure_is_possible() {
        let gold = Gold::new(Links::from_iter([(0, 1)]), Links::from_iter([(2, 2)]));
        assert!(gold.sure().is_subset(gold.possible()));
        assert_eq!(gold.possible().len(), 2);
    }
}
