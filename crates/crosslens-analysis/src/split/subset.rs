//! Some of the pieces of a score.

use std::fmt;

use super::{N_PARTS, N_TERMS};
use crate::Part;

/// A choice of the pieces a score is made of: of the nine terms of a bilinear score or of the six parts of an additive one, and of the
/// bias of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subset {
    /// Bit `3·query + key` for terms; bit `p` for parts, the query's first.
    pieces: u16,
    /// Whether the bias of positions counts.
    pub bias: bool,
}

impl Subset {
    /// The terms chosen by `keep`.
    pub fn terms(keep: impl Fn(Part, Part) -> bool) -> Self {
        let mut pieces = 0;
        for query in Part::ALL {
            for key in Part::ALL {
                pieces |= u16::from(keep(query, key)) << (3 * query as usize + key as usize);
            }
        }
        Self { pieces, bias: false }
    }

    /// The parts of query and key chosen by `keep`, for additive maps.
    pub fn parts(keep: impl Fn(Part) -> bool) -> Self {
        let mut pieces = 0;
        for part in Part::ALL {
            pieces |= (u16::from(keep(part)) << part as usize) | (u16::from(keep(part)) << (3 + part as usize));
        }
        Self { pieces, bias: false }
    }

    /// Every piece, and the bias.
    pub fn all(is_additive: bool) -> Self {
        Self { pieces: if is_additive { (1 << N_PARTS) - 1 } else { (1 << N_TERMS) - 1 }, bias: true }
    }

    /// What both sides owe to the given parts alone.
    pub fn made_of(parts: &[Part], is_additive: bool) -> Self {
        if is_additive {
            Self::parts(|part| parts.contains(&part))
        } else {
            Self::terms(|query, key| parts.contains(&query) && parts.contains(&key))
        }
    }

    /// Everything but what both sides owe to their steps alone.
    pub fn without_temporal(is_additive: bool) -> Self {
        if is_additive {
            Self::parts(|part| part != Part::Temporal)
        } else {
            Self::terms(|query, key| (query, key) != (Part::Temporal, Part::Temporal))
        }
    }

    /// The same with the bias of positions.
    #[must_use]
    pub fn with_bias(self) -> Self {
        Self { bias: true, ..self }
    }

    /// Whether a piece is chosen.
    pub fn holds(self, piece: usize) -> bool {
        self.pieces >> piece & 1 == 1
    }

    /// From a bit mask: for terms `3·query + key`, for parts the query's three and the key's.
    pub fn from_mask(pieces: u16, bias: bool) -> Self {
        Self { pieces, bias }
    }
}

impl fmt::Display for Subset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#b}{}", self.pieces, if self.bias { "+bias" } else { "" })
    }
}
