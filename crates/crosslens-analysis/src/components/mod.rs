//! Splits every state into what its step, its token and neither explains.
//!
//! ```text
//! h = μ[t] + χ[w] + Δ        t the step, w the last token consumed there
//! ```
//!
//! Everything the estimators need is four sums over all states ([`Sums`]): they add up over sentences, threads, processes and machines.
//! [`Sums::fit`] turns them into [`Components`]; [`Sums::variance`] says how much each part explains.

mod fit;
mod graph;
mod rows;
mod solve;
mod sums;
mod variance;
mod word_variance;

pub use fit::{Components, Estimator, Fit, FitError, Shrinkage};
pub use graph::Connections;
pub(crate) use graph::FEW;
pub use solve::MAX_STEPS;
pub(crate) use sums::TokenSum;
pub use sums::{MergeError, Sums};
pub use variance::Variance;
pub use word_variance::{WordSpread, WordVariance};

#[cfg(test)]
mod laws;
