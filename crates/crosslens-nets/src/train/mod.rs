//! Training: optimiser, schedule, and the loop over batches.

mod optimizer;

pub use optimizer::{Moments, OptimizerConfig};
