//! Explanations of corpora whose truth is known.

mod laws;
mod planted;
mod truth;
