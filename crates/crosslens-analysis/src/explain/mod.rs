//! Explains a model's attention over a corpus: components, then terms and shares, then the causal checks.

mod answered;
mod batch;
mod bootstrap;
mod causal;
mod chosen;
mod claim;
mod conclude;
mod corpus;
mod load;
mod measure;
mod memory;
mod no_sentence;
mod options;
mod passes;
mod ready;
mod samples;
mod save;
mod scene;
mod scene_file;
mod seen;
mod shares_file;
mod streamed;
mod verdict;

pub use batch::batch_size;
pub use chosen::Chosen;
pub use corpus::{Corpus, CorpusError, EveryNth, First, Live};
pub(crate) use load::{SampleFile, beside, n_pieces, shape, sides};
pub use memory::{Extent, Memory, SideExtent};
pub use options::{ExplainError, HEADS_ANSWERED, Options, Phase, Progress, Rank, Rerun, Stop};
pub use passes::{Explained, FirstTotals, MAX_CELLS, SAMPLE_BYTES, SecondTotals, Totals, explain};
pub(crate) use passes::{Wanted, batches, read};
pub use ready::Ready;
pub use samples::{Sample, Samples, TokenNames};
pub use save::SaveError;
pub(crate) use scene::png_size;
pub use scene::{
    CodeExample, CodeExamples, MAX_LEVELS, MAX_PICTURE_BYTES, MAX_PICTURE_SIDE, MAX_WAVE_BYTES, Scene, SceneError, SceneWord, Spectrum,
};
pub use shares_file::SharesError;
pub use streamed::{OWN_AVERAGES, Streamed, TotalsError};
