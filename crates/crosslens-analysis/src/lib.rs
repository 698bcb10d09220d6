//! Explains attention: what a model reads and writes ([`Pair`], [`Vocabulary`]), what was seen while it worked ([`Recorded`]), how its
//! states split into parts (components) and its scores into terms. It knows no network: a model is anything [`Recordable`].

mod outcome;
mod pair;
mod part;
mod recordable;
mod recorded;
mod recording;
mod site;
mod vocabulary;

pub use outcome::Outcome;
pub use pair::Pair;
pub use part::Part;
pub use recordable::{Answer, AttentionRow, Fed, Intervene, RecordError, Recordable, Untouched};
pub use recorded::{Consumed, Description, Readout, Recorded, Side, Stream, Words};
pub use recording::{Existing, Recording, RecordingError, RecordingWriter, SHARD_BYTES};
pub use site::{Linear, RelativeBias, ScoreMap, Site, SiteKind, Visible};
pub use vocabulary::{Token, Vocabulary, VocabularyError};
