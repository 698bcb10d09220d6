//! What holds for codes of any rows.

use std::collections::BTreeMap;

use crosslens_kernels::Threads;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Codebook, CodesError};

fn threads(n: usize) -> Threads {
    Threads::new(n).expect("threads can be started")
}

/// Codes found in rows, whose labels are their numbers.
fn found(rows: &[f32], d: usize, k: usize, seed: u64) -> Codebook<usize> {
    let mut builder = Codebook::builder(d, k, seed).expect("a fitting size");
    builder.add(rows, |row| row).expect("finite rows");
    builder.finish(&threads(1)).expect("there are rows")
}

fn bits(codebook: &Codebook<usize>) -> Vec<u32> {
    let centres = (0..codebook.n_codes() as u32).flat_map(|code| codebook.centre(code).expect("it is there"));
    centres.map(f32::to_bits).collect()
}

/// 1,000 rows around each of twelve places that lie many deviations apart, far from 0; and the place of each.
fn blobs(d: usize, seed: u64) -> (Vec<f32>, Vec<usize>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // The sum of twelve uniform numbers is nearly normal, of variance 1.
    let mut normal = move || (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0;
    let centres: Vec<f32> = (0..12 * d).map(|_| 100.0 + 10.0 * normal()).collect();
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for number in 0..12_000 {
        let place = number * 7 % 12;
        rows.extend(centres[place * d..][..d].iter().map(|centre| centre + normal()));
        places.push(place);
    }
    (rows, places)
}

/// Whether two ways of grouping rows are the same but for names: a code for each place and a place for each code.
fn agree(codes: &[u32], places: &[usize]) -> bool {
    let mut named = BTreeMap::new();
    let one_place = codes.iter().zip(places).all(|(&code, &place)| *named.entry(code).or_insert(place) == place);
    let mut given: Vec<usize> = named.into_values().collect();
    given.sort_unstable();
    one_place && given.windows(2).all(|pair| pair[0] != pair[1])
}

#[test]
fn planted_groups_are_found() {
    for seed in 0..5 {
        let (rows, places) = blobs(20, seed);
        let codebook = found(&rows, 20, 12, seed);
        assert_eq!(codebook.n_codes(), 12);
        assert!(agree(&codebook.codes(&rows).expect("finite rows"), &places), "seed {seed}");
        for (code, rows) in codebook.nearest(3).iter().enumerate() {
            assert!(rows.len() == 3 && rows.is_sorted_by(|a, b| a.distance <= b.distance));
            let place = places[*rows[0].label];
            assert!(rows.iter().all(|row| places[*row.label] == place), "code {code} stands for one place");
        }
    }
}

/// Distances as they are defined, in f64.
#[test]
fn a_code_is_the_nearest_centre() {
    let (rows, _) = blobs(5, 3);
    let codebook = found(&rows, 5, 30, 3);
    let centres: Vec<Vec<f32>> = (0..codebook.n_codes() as u32).map(|code| codebook.centre(code).expect("it is there")).collect();
    let apart = |row: &[f32], centre: &[f32]| row.iter().zip(centre).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    for (row, code) in rows.chunks_exact(5).zip(codebook.codes(&rows).expect("finite rows")) {
        let least = centres.iter().map(|centre| apart(row, centre)).fold(f64::INFINITY, f64::min);
        assert!(apart(row, &centres[code as usize]) <= least + 1e-3, "f32 of rows near 100 has seven digits");
    }
    assert_eq!(codebook.centre(30), None);
}

#[test]
fn the_seed_decides_and_the_number_of_threads_does_not() {
    let (rows, _) = blobs(7, 1);
    let with = |seed, n_threads| {
        let mut builder = Codebook::builder(7, 40, seed).expect("a fitting size").sample_at_most(5000);
        builder.add(&rows, |row| row).expect("finite rows");
        builder.finish(&threads(n_threads)).expect("there are rows")
    };
    let one = with(5, 1);
    for other in [with(5, 1), with(5, 2), with(5, 3)] {
        assert_eq!(bits(&one), bits(&other));
        assert_eq!(one.nearest(9), other.nearest(9));
    }
    assert_ne!(bits(&one), bits(&with(6, 1)));
}

#[test]
fn how_rows_are_cut_changes_nothing_and_their_order_does() {
    let (rows, _) = blobs(3, 2);
    let cut = |pieces: &[&[f32]]| {
        let mut builder = Codebook::builder(3, 30, 5).expect("a fitting size").sample_at_most(2000);
        let mut n_before = 0;
        for piece in pieces {
            builder.add(piece, |row| n_before + row).expect("finite rows");
            n_before += piece.len() / 3;
        }
        assert_eq!(builder.n_seen(), 12_000);
        builder.finish(&threads(1)).expect("there are rows")
    };
    let (head, tail) = rows.split_at(3 * 4567);
    assert_eq!(bits(&cut(&[&rows])), bits(&cut(&[head, &[], tail])));
    assert_eq!(cut(&[&rows]).nearest(2), cut(&[head, tail]).nearest(2));
    assert_ne!(bits(&cut(&[head, tail])), bits(&cut(&[tail, head])));
}

/// Of 12,000 rows 2,000 are held: 1,000 of each half on average, with a deviation of √(2000/4 · 10/12) ≈ 20.
#[test]
fn early_and_late_rows_are_sampled_alike() {
    let (rows, _) = blobs(1, 4);
    let mut builder = Codebook::builder(1, 5, 9).expect("a fitting size").sample_at_most(2000);
    builder.add(&rows, |row| row).expect("finite rows");
    let codebook = builder.finish(&threads(1)).expect("there are rows");
    let labels: Vec<usize> = codebook.nearest(usize::MAX).iter().flatten().map(|row| *row.label).collect();
    let n_early = labels.iter().filter(|&&label| label < 6000).count();
    assert_eq!(labels.len(), 2000);
    assert!(n_early.abs_diff(1000) < 100, "{n_early} of the first half");
    let place = |label: usize| rows[label];
    let nearest = codebook.nearest(1);
    let codes = codebook.codes(&nearest.iter().map(|rows| place(*rows[0].label)).collect::<Vec<_>>()).expect("finite rows");
    assert_eq!(codes, [0, 1, 2, 3, 4], "labels stay with their rows");
}

#[test]
fn few_distinct_rows_have_a_code_each() {
    let rows: Vec<f32> = [1.0, 2.0, -7.0, 0.5, 3.0, 3.0].repeat(50);
    let codebook = found(&rows, 2, 9, 0);
    assert_eq!(codebook.n_codes(), 3);
    assert!(codebook.nearest(99).iter().all(|rows| rows.len() == 50));
    assert_eq!(found(&[4.0], 1, 9, 0).n_codes(), 1);
    assert_eq!(found(&[4.0; 64], 8, 3, 0).n_codes(), 1);
}

#[test]
fn what_cannot_be_grouped_is_refused() {
    let refused = |d, k| Codebook::<()>::builder(d, k, 0).expect_err("refused");
    assert!(matches!(refused(0, 3), CodesError::Width { d: 0, .. }));
    assert!(matches!(refused(usize::MAX, 3), CodesError::Width { .. }));
    assert!(matches!(refused(4, 0), CodesError::Codes { k: 0, most: 20_000 }));
    assert!(matches!(refused(4, usize::MAX), CodesError::Codes { .. }));
    assert_eq!(refused(1 << 20, 100).to_string(), "100 codes; ask for at least 1 and at most 64");

    let mut builder = Codebook::builder(2, 3, 0).expect("a fitting size");
    assert_eq!(builder.add(&[1.0; 3], |_| ()), Err(CodesError::Shape { n_values: 3, d: 2 }));
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2e15] {
        let error = builder.add(&[1.0, 1.0, 1.0, value], |_| ()).expect_err("no number");
        assert!(matches!(error, CodesError::Value { row: 1, place: 1, .. }), "{error}");
    }
    assert_eq!(builder.n_seen(), 0, "nothing of refused rows is added");
    assert!(matches!(builder.clone().finish(&threads(1)), Err(CodesError::NoRow)));
    builder.add(&[1.0; 4], |_| ()).expect("finite rows");
    let codebook = builder.finish(&threads(1)).expect("there are rows");
    assert!(codebook.codes(&[0.0]).is_err() && codebook.codes(&[0.0, f32::NAN]).is_err());
    assert_eq!(codebook.codes(&[]), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn any_rows_have_codes(
        values in proptest::collection::vec(prop_oneof![-1e15f32..=1e15, -1.0f32..1.0, Just(0.0), Just(3.0), Just(1e-40)], 1..120),
        d in 1usize..6, k in 1usize..12, seed: u64,
    ) {
        let rows = &values[..values.len() / d * d];
        prop_assume!(!rows.is_empty());
        let codebook = found(rows, d, k, seed);
        let n_codes = codebook.n_codes();
        prop_assert!(n_codes >= 1 && n_codes <= k.min(rows.len() / d));
        prop_assert!(codebook.codes(rows).expect("finite rows").iter().all(|&code| (code as usize) < n_codes));
        prop_assert!(codebook.nearest(1).iter().all(|rows| rows.len() == 1 && rows[0].distance.is_finite()));
    }
}
