//! Explains attention: what a model reads and writes ([`Pair`], [`Vocabulary`]), what was seen while it worked ([`Recorded`]), how its
//! states split into parts ([`Components`]) and its scores into terms. It knows no network: a model is anything [`Recordable`].

pub mod align;
mod attend;
pub mod codes;
mod components;
pub mod corpus;
pub mod explain;
pub mod figure;
pub mod geometry;
pub mod heads;
mod outcome;
pub mod page;
mod pair;
mod part;
pub mod quality;
mod recordable;
mod recorded;
mod recording;
pub mod report;
mod shares;
mod site;
mod split;
mod stats;
mod storage;
pub mod timeline;
pub mod timing;
pub mod tsv;
mod vocabulary;

pub use attend::{AttendFormat, AttendSaveError, Attended, NamedArray, Wishes};
pub use components::{
    Components, Connections, Estimator, Fit, FitError, MAX_STEPS, MergeError, Shrinkage, Sums, Variance, WordSpread, WordVariance,
};
pub use outcome::Outcome;
pub use pair::{Pair, Signal};
pub use part::Part;
pub use recordable::{Answer, AttentionRow, Fed, Intervene, Probe, RecordError, Recordable, Untouched};
pub use recorded::{Consumed, Description, Readout, Recorded, Side, Stream, Words};
pub use recording::{Existing, Recording, RecordingError, RecordingWriter, SHARD_BYTES, is_recording};
pub use shares::{AverageAttention, Closeness, ClosenessTally, Diagonal, Offsets, ShareTally, TopShare, TopShares};
pub use site::{GridBias, Linear, PositionBias, RelativeBias, ScoreMap, Site, SiteKind, Visible};
pub use split::{Breakdown, N_PARTS, N_TERMS, SiteSplit, SplitError, Subset};
pub use stats::{MAX_STATES, Mismatch, Stats, StatsError, StreamSums};
pub use storage::files::{StagedFile, is_temporary_file, replace_file};
pub use storage::tensors::TensorFile;
pub use vocabulary::{Token, Vocabulary, VocabularyError};
