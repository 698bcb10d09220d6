//! The program as a user runs it.

mod attending;
mod captioning;
mod common;
mod explain;
mod figures;
mod importing;
mod languages;
mod numbered;
#[path = "../../../crosslens-pretrained/tests/sight/planted.rs"]
mod planted_sight;
#[path = "../../../crosslens-pretrained/tests/speech/planted.rs"]
#[expect(dead_code, reason = "some of it is for the tests beside it")]
mod planted_whisper;
mod pretrained;
mod published;
mod recordings;
mod refusals;
mod report;
mod reproducing;
mod runs;
#[path = "../../../crosslens-analysis/tests/explain/schema.rs"]
mod schema;
mod serve;
mod sums;
mod transcribing;
mod transformer;
mod translating;
