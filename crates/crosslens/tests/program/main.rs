//! The program as a user runs it.

mod common;
mod refusals;
mod runs;
