//! What the program, the server and the Python package share: recipes by name, models by path, and their explanation.

mod explaining;
mod model;
pub mod recipes;

pub use explaining::{Sentences, explain_recording};
pub use model::{OpenError, Opened, TrainedModel};

pub use crosslens_analysis as analysis;
pub use crosslens_nets::{Subject, network, tasks, train};
