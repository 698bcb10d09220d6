//! Links between source and target words.

use std::collections::BTreeSet;

/// A source word and a target word that belong together, each by its place in its sentence, from 0.
///
/// Links are ordered by their source word, then by their target word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The source word.
    pub source: usize,
    /// The target word.
    pub target: usize,
}

impl Link {
    /// The link seen from the other side.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { source: self.target, target: self.source }
    }
}

/// The links of one pair of sentences: a set, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(BTreeSet<Link>);

impl Links {
    /// How many links there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a link is among them.
    pub fn contains(&self, link: Link) -> bool {
        self.0.contains(&link)
    }

    /// Adds a link; says whether it is new.
    pub fn insert(&mut self, link: Link) -> bool {
        self.0.insert(link)
    }

    /// The links in order.
    pub fn iter(&self) -> impl Iterator<Item = Link> + '_ {
        self.0.iter().copied()
    }

    /// The links both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// The links of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// Whether all links are among the other ones.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// How many links both have.
    pub fn n_common(&self, other: &Self) -> usize {
        self.0.intersection(&other.0).count()
    }

    /// The same links with source and target exchanged: what an aligner of the other direction writes, in this one's terms.
    #[must_use]
    pub fn transposed(&self) -> Self {
        self.iter().map(Link::transposed).collect()
    }
}

impl FromIterator<Link> for Links {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Self {
        Self(links.into_iter().collect())
    }
}

/// From pairs `(source, target)`.
impl FromIterator<(usize, usize)> for Links {
    fn from_iter<I: IntoIterator<Item = (usize, usize)>>(links: I) -> Self {
        links.into_iter().map(|(source, target)| Link { source, target }).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Links among a few words, so that rows and columns are shared.
    pub(in crate::align) fn links() -> impl Strategy<Value = Links> {
        prop::collection::vec((0..6_usize, 0..6_usize), 0..14).prop_map(|links| links.into_iter().collect())
    }

    proptest! {
        #[test]
        fn transposing_twice_changes_nothing(a in links()) {
            prop_assert_eq!(a.transposed().transposed(), a);
        }

        #[test]
        fn common_links_are_counted_as_they_are_found(a in links(), b in links()) {
            prop_assert_eq!(a.n_common(&b), a.intersection(&b).len());
            prop_assert_eq!(a.len() + b.len(), a.union(&b).len() + a.n_common(&b));
        }
    }
}
