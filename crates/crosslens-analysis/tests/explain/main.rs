//! Explanations of corpora whose truth is known.

mod edges;
mod laws;
mod planted;
mod published;
mod schema;
mod truth;
