//! Splits every score of a site into terms that add up to it.

mod additive;
mod breakdown;
pub(crate) mod known;
mod mapped;
mod subset;

pub use breakdown::{Breakdown, SiteSplit, SplitError};
pub use subset::Subset;

/// The pieces of a bilinear score: three parts of the query by three of the key.
pub const N_TERMS: usize = 9;
/// The pieces of an additive score: three parts of the query, then three of the key.
pub const N_PARTS: usize = 6;
