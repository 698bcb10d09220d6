//! How good translations are: BLEU and chrF as sacreBLEU 2 computes them.
//!
//! Both count over a corpus and score the counts, so tallies of shards add up. References may be several, and their number may vary from
//! sentence to sentence. `tests/golden/make_quality.py` holds them against sacreBLEU.
//!
//! ```
//! use crosslens_analysis::quality::{Bleu, Chrf};
//!
//! let (mut bleu, mut chrf) = (Bleu::default().tally(), Chrf::default().tally());
//! for (written, references) in [("Le chat dort sur le tapis.", ["Le chat dort sur le tapis.", "La chatte dort sur le tapis."])] {
//!     bleu.add(written, &references)?;
//!     chrf.add(written, &references)?;
//! }
//! assert!((bleu.score().score - 100.0).abs() < 1e-9);
//! assert!((chrf.score() - 100.0).abs() < 1e-9);
//! assert!(bleu.signature().starts_with("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|"));
//! # Ok::<(), crosslens_analysis::quality::NoReference>(())
//! ```

mod bleu;
mod chrf;
mod ngrams;
mod tokens;

pub use bleu::{Bleu, BleuScore, BleuTally};
pub use chrf::{Chrf, ChrfTally};
pub use tokens::BleuTokens;

/// A translation that there is nothing to hold against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sentence {sentence} has no reference; give at least one for every sentence")]
pub struct NoReference {
    /// Its place among those that were added, from 0.
    pub sentence: u64,
}

/// How many references the sentences had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum References {
    #[default]
    Unknown,
    Always(usize),
    Varying,
}

impl References {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (one, other) if one == other => one,
            _ => Self::Varying,
        }
    }
}

impl std::fmt::Display for References {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => out.write_str("0"),
            Self::Always(count) => write!(out, "{count}"),
            Self::Varying => out.write_str("var"),
        }
    }
}

/// The part of a signature that says which program computed a score.
fn version() -> String {
    format!("version:crosslens-{}", env!("CARGO_PKG_VERSION"))
}
