//! What must hold for any states.

use proptest::prelude::*;

use super::*;

const D: usize = 3;

fn moments(states: &[f32]) -> Moments {
    let mut moments = Moments::new(D).expect("three dimensions are few");
    states.chunks(D * 2).for_each(|states| moments.add(states));
    moments
}

fn states() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-4i8..5, D..40 * D).prop_map(|numbers| numbers[..numbers.len() / D * D].iter().map(|&x| f32::from(x)).collect())
}

/// A turn in the plane of two axes.
fn turned(vector: &[f64], axes: [usize; 2], degrees: f64) -> Vec<f64> {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let mut turned = vector.to_vec();
    turned[axes[0]] = cos * vector[axes[0]] - sin * vector[axes[1]];
    turned[axes[1]] = sin * vector[axes[0]] + cos * vector[axes[1]];
    turned
}

fn rotated(vector: &[f64]) -> Vec<f64> {
    turned(&turned(vector, [0, 1], 31.0), [1, 2], -77.0)
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

/// Points t·(2, −1, 2) for t = −1, 0, 1 about (1, 1, 1): one axis, (2, −1, 2)/3, of variance 9·2/3 = 6.
#[test]
fn points_on_a_line_have_one_axis() {
    let points: Vec<f32> = [-1.0, 0.0, 1.0].iter().flat_map(|t| [1.0 + 2.0 * t, 1.0 - t, 1.0 + 2.0 * t]).collect();
    let pca = moments(&points).pca().expect("three states");
    assert!(close(pca.mean(), &[1.0, 1.0, 1.0]));
    assert!(close(&pca.axes()[0], &[2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0]), "{:?}", pca.axes());
    assert!(close(pca.variances(), &[6.0, 0.0, 0.0]));
    assert!(close(&pca.shares(10), &[1.0, 0.0, 0.0]));
    assert!((pca.participation_ratio() - 1.0).abs() < 1e-9);
    assert_eq!(pca.n_axes(0.95), 1);
    // (3, 0, 3) is one step of length 3 from the middle; the zero state lies at −(1,1,1)·(2,−1,2)/3 = −1.
    assert!((pca.place(&[3.0, 0.0, 3.0])[0] - 3.0).abs() < 1e-9);
    assert!((pca.place(&[0.0, 0.0, 0.0])[0] + 1.0).abs() < 1e-9);
}

/// ± the unit vectors: the covariance is 1/3 of the identity, so all three axes take part alike.
#[test]
fn an_isotropic_cloud_has_as_many_axes_as_dimensions() {
    let points: Vec<f32> = (0..6).flat_map(|i| (0..D).map(move |j| if i / 2 == j { 1.0 - 2.0 * (i % 2) as f32 } else { 0.0 })).collect();
    let pca = moments(&points).pca().expect("six states");
    assert!((pca.participation_ratio() - 3.0).abs() < 1e-12);
    assert!(close(&pca.shares(3), &[1.0 / 3.0; 3]));
    assert_eq!(pca.n_axes(0.95), 3);
}

#[test]
fn states_that_are_all_the_same_have_no_variance() {
    let pca = moments(&[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]).pca().expect("two states");
    assert_eq!((pca.shares(3), pca.participation_ratio(), pca.n_axes(0.95)), (vec![0.0; 3], 0.0, 0));
}

#[test]
fn what_cannot_be_done_has_a_name() {
    assert_eq!(Moments::new(2049).err(), Some(PcaError::TooWide { d: 2049 }));
    assert_eq!(moments(&[]).pca(), Err(PcaError::Empty));
    assert_eq!(moments(&[1.0, f32::NAN, 0.0]).pca(), Err(PcaError::NotFinite));
    assert_eq!(Pca::of(&[]), Err(PcaError::Empty));
    assert_eq!(Pca::of(&[vec![f64::INFINITY]]), Err(PcaError::NotFinite));
    assert!(moments(&[]).merge(&Moments::new(2).expect("two are few")).is_err());
}

proptest! {
    /// Bit for bit: sums of small whole numbers are exact in any order.
    #[test]
    fn merging_equals_one_pass(all in states(), cut in 0usize..40) {
        let cut = (cut * D).min(all.len());
        let mut merged = moments(&all[..cut]);
        merged.merge(&moments(&all[cut..])).expect("one width");
        let whole = moments(&all);
        prop_assert_eq!(merged.count(), whole.count());
        prop_assert_eq!(merged.pca(), whole.pca());
    }

    #[test]
    fn a_list_has_the_components_of_its_moments(all in states()) {
        let vectors: Vec<Vec<f64>> = all.chunks(D).map(to_f64).collect();
        let (listed, summed) = (Pca::of(&vectors).expect("a state"), moments(&all).pca().expect("a state"));
        let n = listed.variances().len();
        prop_assert!(close(listed.variances(), &summed.variances()[..n]));
        prop_assert!(summed.variances()[n..].iter().all(|variance| *variance < 1e-9));
        prop_assert!((listed.participation_ratio() - summed.participation_ratio()).abs() < 1e-6);
    }

    #[test]
    fn axes_are_orthonormal_and_show_their_largest_entry(all in states()) {
        let pca = moments(&all).pca().expect("a state");
        for (i, a) in pca.axes().iter().enumerate() {
            for (j, b) in pca.axes().iter().enumerate() {
                prop_assert!((dot(a, b) - f64::from(u8::from(i == j))).abs() < 1e-9);
            }
            let (highest, lowest) = a.iter().fold((0f64, 0f64), |(high, low), &x| (high.max(x), low.min(x)));
            prop_assert!(highest >= -lowest - 1e-8);
        }
    }

    #[test]
    fn rotating_the_space_changes_no_share_and_no_angle(all in states()) {
        let vectors: Vec<Vec<f64>> = all.chunks(D).map(to_f64).collect();
        let turned: Vec<Vec<f64>> = vectors.iter().map(|vector| rotated(vector)).collect();
        let (before, after) = (Pca::of(&vectors).expect("a state"), Pca::of(&turned).expect("a state"));
        // Along axes that do not exist there is no variance.
        let shares = |pca: &Pca| { let mut shares = pca.shares(D); shares.resize(D, 0.0); shares };
        prop_assert!(close(&shares(&before), &shares(&after)));
        let angles = |vectors: &[Vec<f64>]| Angles::between(&vectors[..vectors.len().min(5)]).table.concat();
        prop_assert!(angles(&vectors).iter().zip(angles(&turned)).all(|(a, b)| (a - b).abs() < 1e-5));
        let (a, b) = vectors.split_at(vectors.len() / 2);
        let (turned_a, turned_b) = turned.split_at(a.len());
        let (plain, moved) = (principal_angles(&a[..a.len().min(1)], &b[..b.len().min(2)]), principal_angles(&turned_a[..a.len().min(1)], &turned_b[..b.len().min(2)]));
        prop_assert!(plain.iter().zip(&moved).all(|(a, b)| (a - b).abs() < 1e-5));
        let paths = |a: &[Vec<f64>], b: &[Vec<f64>]| Path { states: a.to_vec() }.centred_cosine(&Path { states: b.to_vec() });
        prop_assert!((paths(a, b) - paths(turned_a, turned_b)).abs() < 1e-9);
    }
}
