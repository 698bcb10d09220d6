//! The page in a real browser: headless Chromium opens it from disk and from a server.
//!
//! Without Chromium the tests fail and say how to get it; with `CROSSLENS_NO_BROWSER=1` they are skipped and say so.

mod atlas;
mod chromium;
mod claims;
#[path = "../program/common.rs"]
#[expect(dead_code, reason = "shared with the tests of the program")]
mod common;
mod compare;
mod components;
mod firefox;
mod heads;
mod keyboard;
mod lines;
mod looks;
mod notebook;
#[path = "../program/numbered.rs"]
mod numbered;
mod pages;
mod planted;
#[path = "../../../crosslens-pretrained/tests/sight/planted.rs"]
mod planted_sight;
#[path = "../../../crosslens-pretrained/tests/speech/planted.rs"]
#[expect(dead_code, reason = "some of it is for the tests beside it")]
mod planted_whisper;
mod scenes;
mod serving;
mod speed;
mod training;
