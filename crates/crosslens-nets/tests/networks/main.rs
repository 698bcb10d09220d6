//! The networks: golden values, gradients, laws, recordings, and runs that stop and go on.

mod common;
mod fixed_points;
mod folders;
mod golden;
mod gradients;
mod laws;
mod probing;
mod recording;
mod rerunning;
mod resuming;
