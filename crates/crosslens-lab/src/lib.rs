//! What the program, the server and the Python package share: recipes by name, models by path, their recordings, sums and explanation.

mod aligner;
mod aligning;
mod attending;
mod beginning;
mod captioning;
mod cost;
pub mod demo;
mod explaining;
mod eyes;
mod fitting;
mod imported;
mod in_words;
mod judging;
mod listed;
mod live;
mod model;
mod pretrained;
pub mod recipes;
mod recorder;
mod recording;
pub mod reproduce;
mod scenes;
mod showing;
mod signals;
mod transcribing;
mod translating;

pub use aligner::{Aligner, SourceAndTarget};
pub use aligning::{AlignError, AlignHeads, AlignOptions, Aligned, AlignedSentence, RatedHead, TokenWeights};
pub use attending::{AttendError, AttendOptions, Sentence};
pub use beginning::{CorpusWishes, FolderTaken, MissingPart, check_parts, folder_of_new_run};
pub use captioning::{CaptionError, Captioner};
pub use explaining::{ONE_ALONE, SentenceFileError, Sentences, explain_recording};
pub use eyes::SightError;
pub use fitting::{Shard, fit_recording};
pub use imported::{Attention, ImportedModel, ImportedSentences, SentencesError};
pub use in_words::in_words;
pub use judging::TextQuality;
pub use listed::ListedError;
pub use live::{Answer, Asked, Feeds, FileKind, LiveError, LiveModel, Rerun, Spelled, Taken, WordsOf};
pub use model::{OpenError, Opened, TrainedModel};
pub use pretrained::{Choices, LanguageChoice, PretrainedModel, PretrainedModelError, Translation};
pub use recorder::{RecordedTrainError, train as train_recorded};
pub use recording::{RecordOptions, RecordRunError};
pub use showing::{ImportedOptions, ShowError, ShowOptions, Shown, curves, run_of_report};
pub use signals::{DEFAULT_CODES, SignalError};
pub use transcribing::{HeardSoFar, SpeechModel, Transcription};
pub use translating::{MAX_ATTENTION_BYTES, MAX_SOURCE_TOKENS, WriteError, Writing, Written, save_attention};

pub use crosslens_analysis as analysis;
pub use crosslens_nets::{Subject, network, search, tasks, text, train};
pub use crosslens_pretrained::{
    Decoding, Device, DeviceError, EarlyStopping, PretrainedError, Sampling, Subject as PretrainedSubject, speech,
};
