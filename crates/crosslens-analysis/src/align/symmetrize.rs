//! One alignment out of two directions.

use std::collections::BTreeSet;

use super::{Link, Links};

/// How the links of two directions become one set.
///
/// Both are given as links from source to target. `forward` is of the model that reads the source: each target word found its source words.
/// `backward` is of the model of the other direction, transposed. With the intersection as the beginning, links of the union are added:
///
/// ```text
/// grow-diag   while something changes, for each link (i, j) of the union in order of i, then j: add it if i or j has no link yet
///             and one of its eight neighbours (i ± 1 or 0, j ± 1 or 0) is there
/// final       then each link of forward, and after these each of backward, in order: add it if i or j has no link yet
/// final-and   the same, if neither i nor j has a link yet
/// ```
/// A link added early may keep a later one out, so the order counts; it is that of fast_align's `atools`. Moses' `symal` walks from the
/// links that are there to their neighbours, and can differ in `grow-diag` where several links compete for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetrization {
    /// Links of both.
    Intersection,
    /// Links of either.
    Union,
    /// The intersection, grown.
    GrowDiag,
    /// The same, then links of words that have none on one side.
    GrowDiagFinal,
    /// The same, then links of words that have none on both sides.
    GrowDiagFinalAnd,
}

impl Symmetrization {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Intersection, Self::Union, Self::GrowDiag, Self::GrowDiagFinal, Self::GrowDiagFinalAnd];

    /// Its name, as `atools` has it, but for `intersection`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intersection => "intersection",
            Self::Union => "union",
            Self::GrowDiag => "grow-diag",
            Self::GrowDiagFinal => "grow-diag-final",
            Self::GrowDiagFinalAnd => "grow-diag-final-and",
        }
    }

    /// The one of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Joins two directions.
    #[must_use]
    pub fn join(self, forward: &Links, backward: &Links) -> Links {
        let enough: fn(bool, bool) -> bool = match self {
            Self::Intersection => return forward.intersection(backward),
            Self::Union => return forward.union(backward),
            Self::GrowDiag => |_, _| false,
            Self::GrowDiagFinal => |source_is_free, target_is_free| source_is_free || target_is_free,
            Self::GrowDiagFinalAnd => |source_is_free, target_is_free| source_is_free && target_is_free,
        };
        let mut growing = Growing::from(forward.intersection(backward));
        growing.grow(&forward.union(backward));
        growing.finish(forward, enough);
        growing.finish(backward, enough);
        growing.links
    }
}

/// Links that become more, and the words that have one.
struct Growing {
    links: Links,
    sources: BTreeSet<usize>,
    targets: BTreeSet<usize>,
}

impl From<Links> for Growing {
    fn from(links: Links) -> Self {
        let sources = links.iter().map(|link| link.source).collect();
        let targets = links.iter().map(|link| link.target).collect();
        Self { links, sources, targets }
    }
}

impl Growing {
    fn add(&mut self, link: Link) {
        self.links.insert(link);
        self.sources.insert(link.source);
        self.targets.insert(link.target);
    }

    /// Adds neighbours out of `union`, pass after pass, each pass in order.
    ///
    /// Only links beside a new one are looked at again: those that come later in this pass, the others in the next. That finds what
    /// looking at all of them finds, since a link refused for its words stays refused, and saves a pass for each link of a long chain.
    fn grow(&mut self, union: &Links) {
        let mut this_pass = BTreeSet::new();
        for link in self.links.iter() {
            this_pass.extend(neighbours(link).filter(|&near| union.contains(near) && !self.links.contains(near)));
        }
        let mut next_pass = BTreeSet::new();
        loop {
            while let Some(link) = this_pass.pop_first() {
                if self.sources.contains(&link.source) && self.targets.contains(&link.target) {
                    continue;
                }
                self.add(link);
                for near in neighbours(link).filter(|&near| union.contains(near) && !self.links.contains(near)) {
                    let pass = if near > link { &mut this_pass } else { &mut next_pass };
                    pass.insert(near);
                }
            }
            if next_pass.is_empty() {
                return;
            }
            std::mem::swap(&mut this_pass, &mut next_pass);
        }
    }

    /// Adds links whose words are free `enough`.
    fn finish(&mut self, links: &Links, enough: fn(bool, bool) -> bool) {
        for link in links.iter() {
            if enough(!self.sources.contains(&link.source), !self.targets.contains(&link.target)) {
                self.add(link);
            }
        }
    }
}

/// The up to eight links beside one, diagonals included.
fn neighbours(link: Link) -> impl Iterator<Item = Link> {
    let around = |place: usize| [place.checked_sub(1), Some(place), place.checked_add(1)].into_iter().flatten();
    let beside = around(link.source).flat_map(move |source| around(link.target).map(move |target| Link { source, target }));
    beside.filter(move |&near| near != link)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::link::tests::links;
    use super::*;

    fn of(links: &[(usize, usize)]) -> Links {
        links.iter().copied().collect()
    }

    /// Both have 1-1. 0-0 grows from it, then 0-1 finds both its words taken. 4-4 and 3-1 touch nothing; both words of 4-4 are free, of 3-1
    /// the source word alone.
    #[test]
    fn each_step_adds_what_the_one_before_left_out() {
        let forward = of(&[(1, 1), (0, 0), (4, 4)]);
        let backward = of(&[(1, 1), (0, 1), (3, 1)]);
        assert_eq!(Symmetrization::GrowDiag.join(&forward, &backward), of(&[(0, 0), (1, 1)]));
        assert_eq!(Symmetrization::GrowDiagFinalAnd.join(&forward, &backward), of(&[(0, 0), (1, 1), (4, 4)]));
        assert_eq!(Symmetrization::GrowDiagFinal.join(&forward, &backward), of(&[(0, 0), (1, 1), (3, 1), (4, 4)]));
    }

    /// Both have 0-3 and 4-1. By source words 0-2 comes first and lets 1-1 grow, which leaves 1-2 no free word. By target words 1-1 comes
    /// too early, beside nothing, and 1-2 takes its place.
    #[test]
    fn the_order_of_the_words_counts() {
        let both = [(0, 3), (4, 1)];
        let forward = of(&[both[0], both[1], (0, 2), (1, 1)]);
        let backward = of(&[both[0], both[1], (1, 2)]);
        let here = Symmetrization::GrowDiag.join(&forward, &backward);
        let there = Symmetrization::GrowDiag.join(&forward.transposed(), &backward.transposed()).transposed();
        assert_eq!(here, of(&[(0, 2), (0, 3), (1, 1), (4, 1)]));
        assert_eq!(there, of(&[(0, 2), (0, 3), (1, 2), (4, 1)]));
    }

    #[test]
    fn names_are_found_again() {
        for kind in Symmetrization::ALL {
            assert_eq!(Symmetrization::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Symmetrization::from_name("grow"), None);
    }

    /// A chain that grows against the order takes one pass a link.
    #[test]
    fn a_long_chain_grows_in_no_time() {
        let last = 200_000;
        let chain: Links = (0..=last).map(|place| (place, place)).collect();
        let end = of(&[(last, last)]);
        assert_eq!(Symmetrization::GrowDiag.join(&chain, &end).len(), chain.len());
    }

    proptest! {
        #[test]
        fn each_is_part_of_the_next(a in links(), b in links()) {
            let [intersection, union, grown, ended, ended_and] = Symmetrization::ALL.map(|kind| kind.join(&a, &b));
            prop_assert!(intersection.is_subset(&grown));
            prop_assert!(grown.is_subset(&ended_and));
            prop_assert!(grown.is_subset(&ended));
            prop_assert!(ended.is_subset(&union) && ended_and.is_subset(&union));
        }

        #[test]
        fn the_same_links_twice_stay_as_they_are(a in links()) {
            for kind in Symmetrization::ALL {
                prop_assert_eq!(kind.join(&a, &a), a.clone());
            }
        }

        #[test]
        fn intersection_and_union_do_not_care_for_sides(a in links(), b in links()) {
            for kind in [Symmetrization::Intersection, Symmetrization::Union] {
                prop_assert_eq!(kind.join(&a.transposed(), &b.transposed()).transposed(), kind.join(&a, &b));
                prop_assert_eq!(kind.join(&b, &a), kind.join(&a, &b));
            }
        }

        #[test]
        fn growing_does_not_care_which_direction_comes_first(a in links(), b in links()) {
            prop_assert_eq!(Symmetrization::GrowDiag.join(&b, &a), Symmetrization::GrowDiag.join(&a, &b));
        }

        /// Where no two links compete for a word, sides do not matter to growing either: every row and column of the union has one link.
        #[test]
        fn without_rivals_transposing_commutes(order in Just((0..7_usize).collect::<Vec<_>>()).prop_shuffle(), kept in prop::collection::vec(0..3_u8, 7)) {
            let all: Vec<(usize, usize)> = order.into_iter().enumerate().collect();
            let pick = |kind: u8| all.iter().zip(&kept).filter(|&(_, &k)| k == kind || k == 2).map(|(&link, _)| link).collect::<Links>();
            let (a, b) = (pick(0), pick(1));
            for kind in Symmetrization::ALL {
                prop_assert_eq!(kind.join(&a.transposed(), &b.transposed()).transposed(), kind.join(&a, &b));
            }
        }

        /// Covered: after `final` every word that a direction links has a link.
        #[test]
        fn final_leaves_no_linked_word_without_a_link(a in links(), b in links()) {
            let joined = Growing::from(Symmetrization::GrowDiagFinal.join(&a, &b));
            let union = Growing::from(a.union(&b));
            prop_assert_eq!(joined.sources, union.sources);
            prop_assert_eq!(joined.targets, union.targets);
        }
    }
}
