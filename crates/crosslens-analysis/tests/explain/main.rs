//! Explanations of corpora whose truth is known.

mod chosen;
mod diagonal;
mod edges;
mod figures;
mod laws;
mod planted;
mod published;
mod saved;
mod schema;
mod streamed;
mod truth;
