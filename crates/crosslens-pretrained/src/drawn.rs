//! Weights that nobody trained: the control.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Numbers for a tensor, by its name: matrices and convolutions of variance `1/d_in`, scales of one, no biases.
pub(crate) fn draw(seed: u64, name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let d = match *shape {
        [] => return Vec::new(),
        [_] => return vec![if is_scale(name) { 1.0 } else { 0.0 }; count],
        // Vectors that stand alone, such as those of positions.
        [1, .., d] => d,
        [_, ref inputs @ ..] => inputs.iter().product(),
    };
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ hasher.finish());
    let size = 1.0 / (d as f32).sqrt();
    (0..count).map(|_| size * normal(&mut random)).collect()
}

/// Norms, by the names that families give them, and what scales a layer's results.
fn is_scale(name: &str) -> bool {
    let is_norm = ["norm", "Norm", ".ln_"].iter().any(|part| name.contains(part));
    is_norm && name.ends_with("weight") || name.contains(".lambda_")
}

fn normal(random: &mut impl Rng) -> f32 {
    StandardNormal.sample(random)
}
