//! Singular values and right singular vectors of a few rows, by rotating the rows until they are orthogonal (one-sided Jacobi).
//!
//! Written out because `nalgebra`'s own decomposition returns wrong singular values for some matrices that lack full rank, as centred
//! rows always do (dimforge/nalgebra#1172).

use super::dot;

/// Rows whose cosine is below this are orthogonal.
const ORTHOGONAL: f64 = 1e-15;
/// Singular values below this share of the largest are rounding.
const NEGLIGIBLE: f64 = 1e-13;
/// Sweeps over all pairs; fewer than ten are usual.
const MAX_SWEEPS: usize = 60;

/// Non-zero singular values, descending, each with its right singular vector. Takes the square of the number of rows in time.
pub(super) fn right_singular(mut rows: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    for _ in 0..MAX_SWEEPS {
        let mut is_done = true;
        for j in 1..rows.len() {
            let (before, from) = rows.split_at_mut(j);
            let b = &mut from[0];
            for a in before {
                is_done &= orthogonalise(a, b);
            }
        }
        if is_done {
            break;
        }
    }
    let mut found: Vec<(f64, Vec<f64>)> = rows.into_iter().map(|row| (dot(&row, &row).sqrt(), row)).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let least = found.first().map_or(0.0, |(largest, _)| largest * NEGLIGIBLE);
    found.retain(|(value, _)| *value > least);
    found.iter_mut().for_each(|(value, row)| row.iter_mut().for_each(|x| *x /= *value));
    found
}

/// Turns two rows in their plane until they are orthogonal; says whether they were.
fn orthogonalise(a: &mut [f64], b: &mut [f64]) -> bool {
    let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
    if ab.abs() <= ORTHOGONAL * (aa * bb).sqrt() {
        return true;
    }
    let ratio = (bb - aa) / (2.0 * ab);
    let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = cosine * tangent;
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ones, 3 × 5: one singular value, √15, along (1, 1, 1, 1, 1)/√5.
    #[test]
    fn a_matrix_of_ones_has_one_singular_value() {
        let found = right_singular(vec![vec![1.0; 5]; 3]);
        assert_eq!(found.len(), 1);
        assert!((found[0].0 - 15f64.sqrt()).abs() < 1e-14, "{}", found[0].0);
        assert!(found[0].1.iter().all(|x| (x.abs() - 0.2f64.sqrt()).abs() < 1e-14));
    }

    /// [3 0; 4 5]: AᵀA = [25 20; 20 25], so σ² = 45 and 5, along (1, 1)/√2 and (1, −1)/√2.
    #[test]
    fn two_rows_by_hand() {
        let found = right_singular(vec![vec![3.0, 0.0], vec![4.0, 5.0]]);
        assert!((found[0].0 - 45f64.sqrt()).abs() < 1e-14 && (found[1].0 - 5f64.sqrt()).abs() < 1e-14, "{found:?}");
        assert!((found[0].1[0] - found[0].1[1]).abs() < 1e-14 && (found[1].1[0] + found[1].1[1]).abs() < 1e-14, "{found:?}");
    }

    #[test]
    fn nothing_has_no_singular_value() {
        assert!(right_singular(vec![vec![0.0; 3]; 2]).is_empty());
        assert!(right_singular(Vec::new()).is_empty());
    }
}
