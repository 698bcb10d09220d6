//! How states, components and readouts lie to each other: principal components, paths, angles, and probes of the model.
//!
//! Equations stand in `docs/math.md`.

mod cosines;
mod describe;
mod jacobi;
mod moments;
mod paths;
mod pca;
mod probes;
mod readout;
mod report;
mod subspace;

pub use cosines::{Resemblance, resemblances};
pub use moments::{MAX_PCA_DIMENSIONS, Moments, PcaError};
pub use paths::{Path, pearson};
pub use pca::Pca;
pub use readout::{Angles, Half, word_readouts};
pub use report::*;
pub use subspace::{inside_span, principal_angles};

pub(crate) use describe::{Residual, Seen, describe};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// 0 where either vector is zero.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { (dot(a, b) / norms).clamp(-1.0, 1.0) } else { 0.0 }
}

/// In degrees, by halves, so that angles near 0 and 180 keep their digits.
fn angle(a: &[f64], b: &[f64]) -> f64 {
    let (norm_a, norm_b) = (dot(a, a).sqrt(), dot(b, b).sqrt());
    let halves = a.iter().zip(b).map(|(a, b)| (a * norm_b - b * norm_a, a * norm_b + b * norm_a));
    let (apart, along) = halves.fold((0.0, 0.0), |(apart, along), (x, y)| (apart + x * x, along + y * y));
    2.0 * apart.sqrt().atan2(along.sqrt()).to_degrees()
}

fn to_f64(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

#[cfg(test)]
mod laws;
