//! The networks: golden values, gradients, laws, recordings, runs that stop and go on, runs on text, and models of other programs.

mod broken_imports;
mod common;
mod fixed_points;
mod folders;
mod golden;
mod gradients;
mod imported;
mod laws;
mod probing;
mod recording;
mod rerunning;
mod resuming;
mod texts;
mod transformer;
