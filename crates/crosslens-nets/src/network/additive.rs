//! Bahdanau's score, `v·tanh(q + k)`, of projected queries and keys.

use crosslens_kernels::{Matrix, MatrixMut, Real, vectorised};

/// Sums kept apart so that the loop vectorises in a fixed order.
const PARTIAL_SUMS: usize = 8;

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

#[inline(always)]
fn score_of<F: Real>(query: &[F], key: &[F], vector: &[F]) -> F {
    let mut sums = [F::ZERO; PARTIAL_SUMS];
    let (queries, query_rest) = query.as_chunks::<PARTIAL_SUMS>();
    let (keys, key_rest) = key.as_chunks::<PARTIAL_SUMS>();
    let (vectors, vector_rest) = vector.as_chunks::<PARTIAL_SUMS>();
    for ((query, key), vector) in queries.iter().zip(keys).zip(vectors) {
        for d in 0..PARTIAL_SUMS {
            sums[d] += vector[d] * (query[d] + key[d]).tanh_fast();
        }
    }
    for (d, sum) in sums.iter_mut().enumerate().take(query_rest.len()) {
        *sum += vector_rest[d] * (query_rest[d] + key_rest[d]).tanh_fast();
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
                    let d_key = d_key.row_mut(j);
                    let (query, key) = (queries.row(i), keys.row(j));
                    for (((d_query, d_key), d_vector), ((&query, &key), &vector)) in
                        d_query.iter_mut().zip(d_key).zip(&mut *d_vector).zip(query.iter().zip(key).zip(vector))
                    {
                        let squashed = (query + key).tanh_fast();
                        *d_vector += d_score * squashed;
                        let d_sum = d_score * vector * (F::ONE - squashed * squashed);
                        *d_query += d_sum;
                        *d_key += d_sum;
                    }
                }
            }
        },
    );
}
