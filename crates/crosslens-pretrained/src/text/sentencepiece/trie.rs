//! Finds the pieces that a text begins with.

use super::error::ModelError;

const NONE: u32 = u32::MAX;

/// A prefix tree over bytes. The children of a node lie side by side, in the order of their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    /// Children of node `n`: `first_child[n] .. first_child[n + 1]`.
    first_child: Vec<u32>,
    /// The byte that leads to a node.
    byte: Vec<u8>,
    /// The id of the text that ends at a node.
    id: Vec<u32>,
}

/// A walk from the root along the bytes of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    trie: &'a Trie,
    node: usize,
}

impl Default for Trie {
    /// The tree of no text: a root without children.
    fn default() -> Self {
        Self { first_child: vec![1, 1], byte: vec![0], id: vec![NONE] }
    }
}

impl Trie {
    /// The tree of texts with their ids. Takes time in proportion to the bytes of all texts, and refuses a text that is there twice.
    pub(crate) fn new(mut texts: Vec<(&str, u32)>) -> Result<Self, ModelError> {
        texts.sort_unstable();
        if let Some(pair) = texts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ModelError::Twice { text: pair[0].0.to_owned() });
        }

        // Level by level: a node is the range of texts that share its path, whose length is `depth`.
        let (mut first_child, mut byte, mut id) = (Vec::new(), vec![0], Vec::new());
        let mut level = vec![(0, texts.len())];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (start, end) in level {
                let ends_here = texts[start..end].first().filter(|(text, _)| text.len() == depth);
                id.push(ends_here.map_or(NONE, |&(_, id)| id));
                first_child.push(byte.len() as u32);
                let mut from = start + usize::from(ends_here.is_some());
                while from < end {
                    let label = texts[from].0.as_bytes()[depth];
                    let n_texts = texts[from..end].iter().take_while(|(text, _)| text.as_bytes()[depth] == label).count();
                    byte.push(label);
                    next.push((from, from + n_texts));
                    from += n_texts;
                }
            }
            level = next;
            depth += 1;
        }
        first_child.push(byte.len() as u32);
        Ok(Self { first_child, byte, id })
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk { trie: self, node: 0 }
    }

    /// The id of exactly this text.
    pub(crate) fn get(&self, text: &str) -> Option<u32> {
        let mut walk = self.walk();
        text.bytes().all(|byte| walk.step(byte)).then(|| walk.id()).flatten()
    }

    /// The length in bytes of the longest text of the tree that `text` begins with, and its id.
    pub(crate) fn longest_prefix(&self, text: &[u8]) -> Option<(usize, u32)> {
        let mut walk = self.walk();
        let mut longest = None;
        for (place, &byte) in text.iter().enumerate() {
            if !walk.step(byte) {
                break;
            }
            longest = walk.id().map(|id| (place + 1, id)).or(longest);
        }
        longest
    }
}

impl Walk<'_> {
    /// Goes on by one byte if some text does.
    pub(crate) fn step(&mut self, byte: u8) -> bool {
        let children = self.trie.first_child[self.node] as usize..self.trie.first_child[self.node + 1] as usize;
        let found = self.trie.byte[children.clone()].binary_search(&byte);
        found.inspect(|&place| self.node = children.start + place).is_ok()
    }

    /// The id of the text that ends here.
    pub(crate) fn id(&self) -> Option<u32> {
        Some(self.trie.id[self.node]).filter(|&id| id != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_their_prefixes() {
        let trie = Trie::new(vec![("ab", 7), ("a", 3), ("abcd", 1), ("é", 2)]).expect("a tree");
        assert_eq!(trie.longest_prefix(b"abcx"), Some((2, 7)));
        assert_eq!(trie.longest_prefix(b"b"), None);
        assert_eq!((trie.get("abcd"), trie.get("abc"), trie.get("é"), trie.get("")), (Some(1), None, Some(2), None));
    }

    #[test]
    fn an_empty_tree_finds_nothing() {
        for empty in [Trie::default(), Trie::new(Vec::new()).expect("a tree")] {
            assert_eq!((empty.longest_prefix(b"a"), empty.get("a")), (None, None));
        }
    }

    #[test]
    fn a_text_that_is_there_twice_is_refused() {
        let error = Trie::new(vec![("a", 0), ("b", 1), ("a", 2)]).expect_err("twice");
        assert_eq!(error, ModelError::Twice { text: "a".into() });
    }
}
