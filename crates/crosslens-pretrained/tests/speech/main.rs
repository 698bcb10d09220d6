//! Speech written down: long sounds, words at known seconds, and folders old and new.

mod beeps;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod planted;
mod shapes;
mod whisper;
