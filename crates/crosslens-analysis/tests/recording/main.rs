//! Recordings and sums on disk: what is written is read, and what is broken is refused.

mod allocation;
mod broken_dumps;
mod broken_recordings;
mod broken_stats;
mod corpus;
mod dumps;
mod fixtures;
mod parts;
mod round_trip;
mod stats;
mod writing;
