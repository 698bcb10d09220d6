//! Which sentences a pass went over.

use serde::{Deserialize, Serialize};

use super::bootstrap::mix;
use crate::{Recorded, Token};

/// How many sentences, and the total of digests of their numbers and tokens: the same for the same sentences, in whatever parts and order
/// they are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) n: u64,
    digests: u64,
}

impl Seen {
    pub(super) fn add(&mut self, sentence: &Recorded) {
        let then = |digest: u64, tokens: &[Token]| {
            tokens.iter().fold(mix(digest ^ tokens.len() as u64), |digest, &token| mix(digest ^ u64::from(token)))
        };
        let digests = then(then(mix(sentence.number), &sentence.source), &sentence.fed);
        self.merge(&Self { n: 1, digests });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        *self = Self { n: self.n.wrapping_add(other.n), digests: self.digests.wrapping_add(other.digests) };
    }
}
