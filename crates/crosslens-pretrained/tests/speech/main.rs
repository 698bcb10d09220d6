//! Speech written down: long sounds, words at known seconds, and folders old and new.

mod beeps;
mod planted;
mod shapes;
mod whisper;
