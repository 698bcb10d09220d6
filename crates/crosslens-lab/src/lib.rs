//! What the program, the server and the Python package share: recipes by name and models by path.

mod model;
pub mod recipes;

pub use model::{OpenError, TrainedModel};

pub use crosslens_nets::{Subject, network, tasks, train};
