//! Weights that nobody trained: the control.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Numbers for a tensor, by its name: matrices of variance `1/d_in`, norms that scale by one, no biases.
pub(crate) fn draw(seed: u64, name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let [.., d] = *shape else { return Vec::new() };
    if shape.len() == 1 {
        let is_scale = name.contains("norm") && name.ends_with("weight");
        return vec![if is_scale { 1.0 } else { 0.0 }; count];
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ hasher.finish());
    let size = 1.0 / (d as f32).sqrt();
    (0..count).map(|_| size * normal(&mut random)).collect()
}

fn normal(random: &mut impl Rng) -> f32 {
    StandardNormal.sample(random)
}
