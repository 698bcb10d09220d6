//! The program as a user runs it.

mod attending;
mod common;
mod explain;
mod figures;
mod importing;
mod pretrained;
mod recordings;
mod refusals;
mod report;
mod reproducing;
mod runs;
#[path = "../../../crosslens-analysis/tests/explain/schema.rs"]
mod schema;
mod serve;
mod sums;
mod transformer;
mod translating;
