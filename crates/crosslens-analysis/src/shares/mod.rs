//! What each piece of a score contributes to where attention goes.

mod average;
mod offsets;
mod rebuilt;
mod tally;

pub use average::AverageAttention;
pub use offsets::{Diagonal, Offsets};
pub use rebuilt::{Closeness, ClosenessTally};
pub use tally::{ShareTally, TopShare, TopShares};

pub(crate) use rebuilt::{argmax, evenness, weights};
