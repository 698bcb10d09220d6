//! Training: optimiser, schedule, the loop over batches, and the folder a run lives in.

mod beginning;
mod config;
mod folder;
mod kept;
mod optimizer;
mod schedule;
mod tensors;
mod trainer;

pub use config::{ConfigError, RunConfig, TrainingConfig};
pub use folder::{FolderError, Progress, RunFolder, Unknown, Vocabularies, parse_config, read_config};
pub use optimizer::{Moments, OptimizerConfig};
pub use schedule::Schedule;
pub use trainer::{Ending, Event, Metrics, Observer, Run, Samples, TrainError, Trained, Wish, evaluate};
