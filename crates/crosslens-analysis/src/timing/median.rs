//! Medians along a row.

use crosslens_kernels::vectorised;

/// Medians that are computed side by side.
const LANES: usize = 32;

/// `out[f]` = the median of the `width` values around `row[f]`, the row mirrored at its ends without repeating them:
///
/// ```text
/// row a b c d …, width 5:   c b a b c | d …
/// ```
/// A row too short to be mirrored, of at most `width / 2` values, stays as it is. `width` is odd; values are numbers. `padded` is scratch.
pub(super) fn median_filter(row: &[f32], width: usize, padded: &mut Vec<f32>, out: &mut [f32]) {
    let half = width / 2;
    if row.len() <= half || half == 0 {
        out.copy_from_slice(row);
        return;
    }
    padded.clear();
    padded.extend(row[1..=half].iter().rev());
    padded.extend(row);
    padded.extend(row[row.len() - 1 - half..row.len() - 1].iter().rev());
    // The last lanes may look at what lies behind the row; nobody reads them.
    padded.resize(padded.len() + LANES, 0.0);

    let mut window = vec![[0.0f32; LANES]; width];
    for (number, medians) in out.chunks_mut(LANES).enumerate() {
        let here = &padded[number * LANES..];
        for (place, values) in window.iter_mut().enumerate() {
            values.copy_from_slice(&here[place..place + LANES]);
        }
        vectorised(
            #[inline(always)]
            || sort_upper_half(&mut window),
        );
        medians.copy_from_slice(&window[half][..medians.len()]);
    }
}

/// Lane by lane, lets the largest value rise to the last place, the next to the one before, down to the middle.
#[inline(always)]
fn sort_upper_half(window: &mut [[f32; LANES]]) {
    for last in (window.len() / 2..window.len()).rev() {
        for place in 0..last {
            let (below, above) = window.split_at_mut(place + 1);
            for (low, high) in below[place].iter_mut().zip(&mut above[0]) {
                (*low, *high) = (f32::min(*low, *high), f32::max(*low, *high));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filtered(row: &[f32], width: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; row.len()];
        median_filter(row, width, &mut Vec::new(), &mut out);
        out
    }

    /// Mirrored: 9 5 | 5 9 1 2 | 1; medians of (9 5 9), (5 9 1), (9 1 2), (1 2 1).
    #[test]
    fn ends_are_mirrored() {
        assert_eq!(filtered(&[5., 9., 1., 2.], 3), [9., 5., 2., 1.]);
    }

    #[test]
    fn short_rows_and_width_one_stay() {
        assert_eq!(filtered(&[3., 1., 2.], 7), [3., 1., 2.]);
        assert_eq!(filtered(&[3., 1., 2.], 1), [3., 1., 2.]);
        assert_eq!(filtered(&[], 7), [0.0; 0]);
        assert_eq!(filtered(&[3., 1., 2., 0.], 7).len(), 4, "the shortest row that is mirrored");
    }

    proptest! {
        #[test]
        fn medians_are_those_of_sorted_windows(row in proptest::collection::vec(-9.0f32..9.0, 0..100), half in 0usize..6) {
            let found = filtered(&row, 2 * half + 1);
            prop_assume!(row.len() > half);
            let mirrored = |at: isize| {
                let last = row.len() as isize - 1;
                row[(if at < 0 { -at } else if at > last { 2 * last - at } else { at }) as usize]
            };
            for (frame, &found) in found.iter().enumerate() {
                let mut window: Vec<f32> = (-(half as isize)..=half as isize).map(|by| mirrored(frame as isize + by)).collect();
                window.sort_by(f32::total_cmp);
                prop_assert_eq!(found, window[half]);
            }
        }
    }
}
