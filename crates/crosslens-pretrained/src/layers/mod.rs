//! What these models are made of. Rows of all sentences of a batch lie one after the other, without padding: `[rows, d]`.

mod activation;
mod attention;
mod linear;
mod norm;
mod positions;
mod relative;
mod table;

pub(crate) use activation::Activation;
pub(crate) use attention::{At, Attention, Keys, Need, Question, Scratch, Spans, Unwatched, Watch};
pub(crate) use linear::{Head, Linear, Origin, Pace, evenly, rows_at_a_time};
pub(crate) use norm::Norm;
pub(crate) use positions::Positions;
pub(crate) use relative::{Buckets, biases};
pub(crate) use table::Table;
