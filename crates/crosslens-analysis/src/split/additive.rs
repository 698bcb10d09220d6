//! Six parts of an additive score.

use crosslens_kernels::{Real, vectorised};

/// Below this `tanh(A)/A` is 1 to `f32`'s last digit, and to `f64`'s with the next term of its series.
const SMALL: f64 = 1e-4;
const BLOCK: usize = 64;

/// For one query and one key: part `p` gets `Σ_i v_i a_pi tanh(A_i)/A_i`, `A` the sum of all parts `a_p`; the path from 0 to `A` is straight,
/// so the parts add up to the score `Σ_i v_i tanh(A_i)` exactly.
///
/// The last number is what `mean`, a piece of the query's temporal part, gets of that part: the attribution is linear in each.
pub(super) fn attribute<F: Real>(query: [&[F]; 3], key: [&[F]; 3], mean: &[F], vector: &[F]) -> [F; 7] {
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [F::ZERO; 7];
            let mut weights = [F::ZERO; BLOCK];
            for from in (0..vector.len()).step_by(BLOCK) {
                let block = from..(from + BLOCK).min(vector.len());
                let weights = &mut weights[..block.len()];
                for (weight, i) in weights.iter_mut().zip(block.clone()) {
                    *weight = query[0][i] + query[1][i] + query[2][i] + key[0][i] + key[1][i] + key[2][i];
                }
                for (weight, &v) in weights.iter_mut().zip(&vector[block.clone()]) {
                    *weight = v * slope(*weight);
                }
                for (sum, part) in sums.iter_mut().zip(query.iter().chain(&key).chain([&mean])) {
                    let mut total = F::ZERO;
                    for (&weight, &a) in weights.iter().zip(&part[block.clone()]) {
                        total += weight * a;
                    }
                    *sum += total;
                }
            }
            sums
        },
    )
}

/// `tanh(x)/x`.
#[inline(always)]
fn slope<F: Real>(x: F) -> F {
    if x.to_f64().abs() < SMALL { F::ONE - x * x * F::of(1.0 / 3.0) } else { x.tanh_fast() / x }
}
