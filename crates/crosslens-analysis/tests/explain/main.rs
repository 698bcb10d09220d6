//! Explanations of corpora whose truth is known.

mod edges;
mod figures;
mod laws;
mod planted;
mod published;
mod schema;
mod truth;
