//! The program as a user runs it.

mod attending;
mod common;
mod recordings;
mod refusals;
mod runs;
mod sums;
