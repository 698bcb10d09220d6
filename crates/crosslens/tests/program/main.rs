//! The program as a user runs it.

mod common;
mod explain;
mod refusals;
mod runs;
#[path = "../../../crosslens-analysis/tests/explain/schema.rs"]
mod schema;
