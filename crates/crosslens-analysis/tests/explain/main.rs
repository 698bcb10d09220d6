//! Explanations of corpora whose truth is known.

mod laws;
mod planted;
mod published;
mod schema;
mod truth;
