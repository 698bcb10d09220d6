//! Where each token's numbers stand.

use std::collections::HashMap;

use crate::Token;

/// The rows of tokens. Those of vocabularies as they are lie on pages, which are there only where tokens are: memory follows the tokens
/// seen, and a look is two steps instead of a hash.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TokenRows {
    pages: Vec<Option<Box<Page>>>,
    /// Tokens beyond the pages.
    others: HashMap<Token, usize>,
    len: usize,
}

/// Tokens of a page.
const PAGE_TOKENS: usize = 256;
/// Most pages there can be: more than a million tokens, and a table of 32 KiB.
const MAX_PAGES: usize = 4096;
/// Stands where there is no token.
const NONE: u32 = u32::MAX;

type Page = [u32; PAGE_TOKENS];

impl TokenRows {
    /// Tokens that have a row.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The row of a token.
    #[inline]
    pub(super) fn get(&self, token: Token) -> Option<usize> {
        let (page, place) = (token as usize / PAGE_TOKENS, token as usize % PAGE_TOKENS);
        if page >= MAX_PAGES {
            return self.others.get(&token).copied();
        }
        let row = self.pages.get(page)?.as_ref()?[place];
        (row != NONE).then_some(row as usize)
    }

    /// The row of a token; one never seen gets the next.
    pub(super) fn get_or_next(&mut self, token: Token) -> usize {
        if let Some(row) = self.get(token) {
            return row;
        }
        let row = self.len;
        self.len += 1;
        let (page, place) = (token as usize / PAGE_TOKENS, token as usize % PAGE_TOKENS);
        if page >= MAX_PAGES {
            self.others.insert(token, row);
            return row;
        }
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([NONE; PAGE_TOKENS]));
        page[place] = u32::try_from(row).expect("there are fewer rows than tokens, which are 32 bits");
        row
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAST_PAGED: Token = (MAX_PAGES * PAGE_TOKENS) as Token - 1;

    proptest! {
        #[test]
        fn rows_are_those_of_a_map(tokens in prop::collection::vec(prop_oneof![0u32..600, 70_000u32..70_010, LAST_PAGED - 3..=LAST_PAGED + 3], 0..80)) {
            let (mut rows, mut expected) = (TokenRows::default(), HashMap::new());
            for &token in &tokens {
                prop_assert_eq!(rows.get(token), expected.get(&token).copied());
                let next = expected.len();
                prop_assert_eq!(rows.get_or_next(token), *expected.entry(token).or_insert(next));
            }
            prop_assert_eq!(rows.len(), expected.len());
        }
    }

    #[test]
    fn the_last_token_takes_no_more_room_than_another() {
        let mut rows = TokenRows::default();
        assert_eq!((rows.get_or_next(Token::MAX), rows.get(Token::MAX), rows.get(Token::MAX - 1)), (0, Some(0), None));
        assert!(rows.pages.is_empty());
    }
}
