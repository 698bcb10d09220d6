//! Word alignment: which source words a target word was made of.
//!
//! A [`SoftAlignment`] is attention, a row of weights for each target token. Its subwords are joined into words, its rows become [`Links`],
//! the links of two directions one set ([`Symmetrization`]), and that is held against [`Gold`] ([`AlignmentTally`]). Where there is no gold,
//! [`monotonicity`](SoftAlignment::monotonicity) and the best monotone path rate an alignment by itself; [`warp`] is the path through any
//! table of costs. Nothing here knows a model; the equations are in `docs/math.md`.
//!
//! ```
//! use crosslens_analysis::align::{AlignmentTally, Base, Symmetrization, read_gold, read_links};
//!
//! let forward = read_links("0-0 1-1 2-1", Base::Zero)?;
//! let backward = read_links("0-0 2-1 3-2", Base::Zero)?;
//! let gold = read_gold("1-1 3-2 4p3", Base::One)?;
//!
//! let links = Symmetrization::GrowDiagFinalAnd.join(&forward[0], &backward[0]);
//! assert_eq!(links.pharaoh(Base::Zero), "0-0 1-1 2-1 3-2");
//!
//! let mut tally = AlignmentTally::default();
//! tally.add(&links, &gold[0]);
//! assert_eq!(tally.precision(), Some(0.75));
//! assert_eq!(tally.recall(), Some(1.0));
//! # Ok::<(), crosslens_analysis::align::LinkError>(())
//! ```

mod gold;
mod link;
mod monotone;
mod pharaoh;
mod soft;
mod symmetrize;
mod tally;
mod text;
mod warp;
mod words;

pub use gold::{Gold, GoldPair, read_gold_pairs};
pub use link::{Link, Links};
pub use monotone::{MonotonePath, Monotonicity};
pub use pharaoh::{Base, LinkError, MAX_POSITION, read_gold, read_links};
pub use soft::{SoftAlignment, SoftAlignmentError};
pub use symmetrize::Symmetrization;
pub use tally::AlignmentTally;
pub use text::{SoftText, marian_line, nematus_block};
pub use warp::{WarpCell, WarpError, WarpPath, warp};
pub use words::{Marking, Row, WordError, WordOf};
