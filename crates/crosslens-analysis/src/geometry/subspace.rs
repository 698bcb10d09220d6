//! Angles between subspaces.

use super::dot;
use super::jacobi::right_singular;

/// A vector that keeps less than this share of its length once the others are taken off lies in their span.
const DEPENDENT: f64 = 1e-10;

/// An orthonormal basis of the vectors' span.
fn basis<'a>(vectors: impl IntoIterator<Item = &'a [f64]>) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for vector in vectors {
        let norm = dot(vector, vector).sqrt();
        let mut rest = vector.to_vec();
        // Once more: what rounding left of the first time is gone after the second.
        for _ in 0..2 {
            for axis in &basis {
                let along = dot(axis, &rest);
                rest.iter_mut().zip(axis).for_each(|(rest, axis)| *rest -= along * axis);
            }
        }
        let left = dot(&rest, &rest).sqrt();
        if left > DEPENDENT * norm {
            rest.iter_mut().for_each(|x| *x /= left);
            basis.push(rest);
        }
    }
    basis
}

/// The principal angles between the spans of two lists of vectors, in degrees, ascending; as many as the smaller span has dimensions.
///
/// ```text
/// cos θᵢ = singular values of U Vᵀ, sin θᵢ = those of V − V Uᵀ U        U, V orthonormal rows; V spans no more than U
/// ```
///
/// Each angle is taken from whichever of the two has digits left.
pub fn principal_angles(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<f64> {
    let (mut wide, mut narrow) = (basis(a.iter().map(Vec::as_slice)), basis(b.iter().map(Vec::as_slice)));
    if wide.len() < narrow.len() {
        std::mem::swap(&mut wide, &mut narrow);
    }
    if narrow.is_empty() {
        return Vec::new();
    }
    let along: Vec<Vec<f64>> = narrow.iter().map(|axis| wide.iter().map(|other| dot(axis, other)).collect()).collect();
    let apart = narrow.iter().zip(&along).map(|(axis, along)| {
        let mut rest = axis.clone();
        for (other, along) in wide.iter().zip(along) {
            rest.iter_mut().zip(other).for_each(|(rest, x)| *rest -= along * x);
        }
        rest
    });
    let apart = apart.collect();
    let n = narrow.len();
    let values = |rows: Vec<Vec<f64>>| {
        let mut values: Vec<f64> = right_singular(rows).into_iter().map(|(value, _)| value).collect();
        values.resize(n, 0.0);
        values
    };
    let (cosines, mut sines) = (values(along), values(apart));
    sines.reverse();
    let angle = |(cosine, sine): (f64, f64)| if cosine * cosine > 0.5 { sine.min(1.0).asin() } else { cosine.min(1.0).acos() };
    cosines.into_iter().zip(sines).map(angle).map(f64::to_degrees).collect()
}

/// The mean over vectors of the share of their squared length that lies in the span of all others; `None` for fewer than two.
///
/// It is 1 wherever the others span the whole space. A vector of no length is left out.
pub fn inside_span(vectors: &[Vec<f64>]) -> Option<f64> {
    let (mut total, mut counted) = (0.0, 0.0);
    for (number, vector) in vectors.iter().enumerate() {
        let squared = dot(vector, vector);
        if squared <= 0.0 {
            continue;
        }
        let others = basis(vectors.iter().enumerate().filter(|&(other, _)| other != number).map(|(_, vector)| vector.as_slice()));
        let inside: f64 = others.iter().map(|axis| dot(axis, vector).powi(2)).sum();
        total += (inside / squared).min(1.0);
        counted += 1.0;
    }
    (counted > 1.0).then(|| total / counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The planes xy and one that holds x and leans 30° from y towards z: 0° and 30°.
    #[test]
    fn planes_that_share_a_line_lean_by_their_angle() {
        let (sin, cos) = 30f64.to_radians().sin_cos();
        let (flat, leaning) = (vec![vec![1., 0., 0.], vec![1., 1., 0.]], vec![vec![2., cos, sin], vec![0., cos, sin]]);
        let angles = principal_angles(&flat, &leaning);
        assert!(angles[0].abs() < 1e-12 && (angles[1] - 30.0).abs() < 1e-12, "{angles:?}");
    }

    /// In four dimensions xy and zw have nothing in common; a line lies in its plane.
    #[test]
    fn orthogonal_planes_are_at_right_angles_and_spans_may_differ_in_size() {
        let unit = |axis: usize| (0..4).map(|i| f64::from(u8::from(i == axis))).collect::<Vec<f64>>();
        assert_eq!(principal_angles(&[unit(0), unit(1)], &[unit(2), unit(3)]), [90.0, 90.0]);
        assert_eq!(principal_angles(&[unit(0)], &[unit(0), unit(1)]), [0.0]);
        assert!(principal_angles(&[], &[unit(0)]).is_empty());
    }

    /// A tilt of 1e-9 radians: the cosine is 1 − 5e-19, which rounds to 1; the sine still tells.
    #[test]
    fn tiny_angles_keep_their_digits() {
        let angles = principal_angles(&[vec![1., 0.]], &[vec![1., 1e-9]]);
        assert!((angles[0].to_radians() / 1e-9 - 1.0).abs() < 1e-6, "{angles:?}");
    }

    /// (1,1,0) lies half in the span of (1,0,0); (1,0,0) half in that of (1,1,0): mean ½. A third in the same plane makes it 1.
    #[test]
    fn the_share_inside_the_span_of_the_others_is_of_squared_length() {
        let pair = vec![vec![1., 0., 0.], vec![1., 1., 0.]];
        assert!((inside_span(&pair).expect("two") - 0.5).abs() < 1e-15);
        let three = [pair, vec![vec![-3., 5., 0.]]].concat();
        assert!((inside_span(&three).expect("three") - 1.0).abs() < 1e-12);
        assert_eq!(inside_span(&three[..1]), None);
    }
}
