//! Bahdanau's score, `v·tanh(q + k)`, of projected queries and keys.

use crosslens_kernels::{Matrix, MatrixMut, Real, vectorised};

/// Sums kept apart so that the loop vectorises in a fixed order.
const PARTIAL_SUMS: usize = 8;
/// Dimensions whose hyperbolic tangents are computed at a time.
const BLOCK: usize = 128;

/// `scores[i, j] = Σ_d vector[d]·tanh(query[i, d] + key[j, d])`.
pub(super) fn scores<F: Real>(scores: &mut [F], queries: Matrix<'_, F>, keys: Matrix<'_, F>, vector: &[F]) {
    vectorised(
        #[inline(always)]
        || {
            for (i, scores) in scores.chunks_exact_mut(keys.rows()).enumerate() {
                for (j, score) in scores.iter_mut().enumerate() {
                    *score = score_of(queries.row(i), keys.row(j), vector);
                }
            }
        },
    );
}

/// The hyperbolic tangents go through a small buffer: a loop of its own for them vectorises, inside the sums it does not.
#[inline(always)]
fn score_of<F: Real>(query: &[F], key: &[F], vector: &[F]) -> F {
    let mut sums = [F::ZERO; PARTIAL_SUMS];
    let mut squashed = [F::ZERO; BLOCK];
    for ((query, key), vector) in query.chunks(BLOCK).zip(key.chunks(BLOCK)).zip(vector.chunks(BLOCK)) {
        for ((squashed, &query), &key) in squashed.iter_mut().zip(query).zip(key) {
            *squashed = (query + key).tanh_fast();
        }
        let squashed = &squashed[..vector.len()];
        for (squashed, vector) in squashed.chunks(PARTIAL_SUMS).zip(vector.chunks(PARTIAL_SUMS)) {
            for ((sum, &squashed), &vector) in sums.iter_mut().zip(squashed).zip(vector) {
                *sum += vector * squashed;
            }
        }
    }
    sums.into_iter().sum()
}

/// Where gradients go: `d_query` is replaced, the others are added to.
pub(super) struct Gradients<'a, F> {
    pub(super) d_query: MatrixMut<'a, F>,
    pub(super) d_key: MatrixMut<'a, F>,
    pub(super) d_vector: &'a mut [F],
}

/// Gradients of [`scores`]; the hyperbolic tangents are computed again rather than kept.
pub(super) fn backward<F: Real>(d_scores: &[F], queries: Matrix<'_, F>, keys: Matrix<'_, F>, vector: &[F], gradients: Gradients<'_, F>) {
    let Gradients { mut d_query, mut d_key, d_vector } = gradients;
    vectorised(
        #[inline(always)]
        || {
            for (i, d_scores) in d_scores.chunks_exact(keys.rows()).enumerate() {
                let d_query = d_query.row_mut(i);
                d_query.fill(F::ZERO);
                for (j, &d_score) in d_scores.iter().enumerate() {
                    unscore(d_score, queries.row(i), keys.row(j), vector, d_query, d_key.row_mut(j), d_vector);
                }
            }
        },
    );
}

#[inline(always)]
fn unscore<F: Real>(d_score: F, query: &[F], key: &[F], vector: &[F], d_query: &mut [F], d_key: &mut [F], d_vector: &mut [F]) {
    let mut squashed = [F::ZERO; BLOCK];
    for from in (0..query.len()).step_by(BLOCK) {
        let block = from..(from + BLOCK).min(query.len());
        let squashed = &mut squashed[..block.len()];
        for ((squashed, &query), &key) in squashed.iter_mut().zip(&query[block.clone()]).zip(&key[block.clone()]) {
            *squashed = (query + key).tanh_fast();
        }
        for (d_vector, &squashed) in d_vector[block.clone()].iter_mut().zip(&*squashed) {
            *d_vector += d_score * squashed;
        }
        for (squashed, &vector) in squashed.iter_mut().zip(&vector[block.clone()]) {
            *squashed = d_score * vector * (F::ONE - *squashed * *squashed);
        }
        for ((d_query, d_key), &d_sum) in d_query[block.clone()].iter_mut().zip(&mut d_key[block.clone()]).zip(&*squashed) {
            *d_query += d_sum;
            *d_key += d_sum;
        }
    }
}
