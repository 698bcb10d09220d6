//! When each token was said, from attention of heads that follow the sound.

use super::TimingError;
use super::median::median_filter;
use crate::align::{WarpPath, warp};

/// Widest median, in frames.
pub(super) const MAX_MEDIAN_WIDTH: usize = 255;

/// How attention becomes times; the default is Whisper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenTiming {
    /// Seconds from a frame to the next: 0.02.
    pub seconds_a_frame: f64,
    /// Frames that a median is taken over, an odd number: 7.
    pub median_width: usize,
}

impl Default for TokenTiming {
    fn default() -> Self {
        Self { seconds_a_frame: 0.02, median_width: 7 }
    }
}

/// The sizes of each head's attention `[token, frame]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Rows.
    pub n_tokens: usize,
    /// Columns.
    pub n_frames: usize,
    /// Columns that hold sound; the others, of silence put after it, are cut off.
    pub n_real: usize,
}

/// When tokens were said.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenTimes {
    /// The frame in which each token begins; they never decrease.
    pub first_frames: Vec<usize>,
    /// The path through tokens (rows) and frames (columns) that says so.
    pub path: WarpPath,
    /// Seconds from a frame to the next.
    pub seconds_a_frame: f64,
}

impl TokenTimes {
    /// When each token begins, in seconds.
    pub fn starts(&self) -> Vec<f64> {
        self.first_frames.iter().map(|&frame| frame as f64 * self.seconds_a_frame).collect()
    }
}

/// Follows the sound along the tokens, as Whisper does:
///
/// ```text
/// z[h, t, f] = (a[h, t, f] − mean_t a[h, t, f]) / std_t a[h, t, f]        0 where a frame gets the same from all tokens
/// cost[t, f] = −mean_h median(z[h, t, f−3 … f+3])
/// start of t = the first frame that the cheapest monotone path of `cost` gives to t
/// ```
/// `heads` are rows `[token, frame]` each. Tokens that begin the text (start, language, task) are left out by the caller, and the end
/// token is best kept: it says when the last word ends. No token gives no times.
pub fn token_times<H: AsRef<[f32]>>(heads: &[H], shape: AttentionShape, how: &TokenTiming) -> Result<TokenTimes, TimingError> {
    check(heads, shape, how)?;
    let AttentionShape { n_tokens, n_frames, n_real } = shape;
    let mut cost = vec![0.0f32; n_tokens * n_real];
    let mut scaled = vec![0.0f32; n_tokens * n_real];
    let (mut padded, mut filtered) = (Vec::new(), vec![0.0f32; n_real]);
    for head in heads {
        for (from, to) in head.as_ref().chunks_exact(n_frames).zip(scaled.chunks_exact_mut(n_real)) {
            to.copy_from_slice(&from[..n_real]);
        }
        normalise(&mut scaled, n_tokens, n_real);
        for (row, costs) in scaled.chunks_exact(n_real).zip(cost.chunks_exact_mut(n_real)) {
            median_filter(row, how.median_width, &mut padded, &mut filtered);
            costs.iter_mut().zip(&filtered).for_each(|(cost, value)| *cost -= value / heads.len() as f32);
        }
    }
    // As many finite costs as cells: standardised values are at most √tokens.
    let path = warp(&cost, n_tokens, n_real).unwrap_or_default();
    Ok(TokenTimes { first_frames: path.first_columns(), path, seconds_a_frame: how.seconds_a_frame })
}

fn check<H: AsRef<[f32]>>(heads: &[H], shape: AttentionShape, how: &TokenTiming) -> Result<(), TimingError> {
    let AttentionShape { n_tokens, n_frames, n_real } = shape;
    if heads.is_empty() {
        return Err(TimingError::NoHead);
    }
    if how.median_width.is_multiple_of(2) || how.median_width > MAX_MEDIAN_WIDTH {
        return Err(TimingError::MedianWidth { width: how.median_width });
    }
    if !(how.seconds_a_frame > 0.0 && how.seconds_a_frame.is_finite()) {
        return Err(TimingError::FrameLength { seconds: how.seconds_a_frame });
    }
    if n_real == 0 || n_real > n_frames {
        return Err(TimingError::RealFrames { n_real, n_frames });
    }
    for (head, weights) in heads.iter().map(AsRef::as_ref).enumerate() {
        if n_tokens.checked_mul(n_frames) != Some(weights.len()) {
            return Err(TimingError::HeadShape { head, n_weights: weights.len(), n_tokens, n_frames });
        }
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(TimingError::Weight { head, token: at / n_frames, frame: at % n_frames, weight: weights[at] });
        }
    }
    Ok(())
}

/// Takes each frame's mean over tokens away and divides by its standard deviation. Sums are f64, so that no finite weight overflows.
fn normalise(weights: &mut [f32], n_tokens: usize, n_frames: usize) {
    let n = n_tokens as f64;
    let mut means = vec![0.0f64; n_frames];
    for row in weights.chunks_exact(n_frames) {
        means.iter_mut().zip(row).for_each(|(mean, &weight)| *mean += f64::from(weight) / n);
    }
    let mut variances = vec![0.0f64; n_frames];
    for row in weights.chunks_exact(n_frames) {
        let deviations = row.iter().zip(&means).map(|(&weight, mean)| f64::from(weight) - mean);
        variances.iter_mut().zip(deviations).for_each(|(variance, deviation)| *variance += deviation * deviation / n);
    }
    // Equal weights differ from their mean by its rounding; weights that differ, differ by far more.
    let scale = |(variance, mean): (&f64, &f64)| if *variance > 1e-20 * mean * mean { variance.sqrt().recip() } else { 0.0 };
    let scales: Vec<f64> = variances.iter().zip(&means).map(scale).collect();
    for row in weights.chunks_exact_mut(n_frames) {
        for ((weight, mean), scale) in row.iter_mut().zip(&means).zip(&scales) {
            *weight = ((f64::from(*weight) - mean) * scale) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: AttentionShape = AttentionShape { n_tokens: 4, n_frames: 60, n_real: 40 };

    /// Attention of tokens that look at ten frames each; what lies behind the sound draws all of them.
    fn planted() -> Vec<f32> {
        let weight = |token: usize, frame: usize| match frame {
            40.. => 0.5 - 0.1 * token as f32,
            _ if frame / 10 == token => 0.08,
            _ => 0.002,
        };
        (0..4).flat_map(|token| (0..60).map(move |frame| weight(token, frame))).collect()
    }

    #[test]
    fn planted_frames_are_found() {
        let times = token_times(&[planted(), planted()], SHAPE, &TokenTiming::default()).expect("fitting rows");
        assert_eq!(times.first_frames, [0, 10, 20, 30]);
        assert_eq!(times.starts(), [0.0, 0.2, 0.4, 0.6]);
        assert_eq!(times.path.cells.len(), 40);
    }

    /// A token alone gets the same as all tokens: nothing is known, and it begins with the sound.
    #[test]
    fn one_token_begins_with_the_sound() {
        let shape = AttentionShape { n_tokens: 1, ..SHAPE };
        let times = token_times(&[&planted()[..60]], shape, &TokenTiming::default()).expect("one row");
        assert_eq!(times.first_frames, [0]);
        let shape = AttentionShape { n_tokens: 0, ..SHAPE };
        assert!(token_times(&[&[]], shape, &TokenTiming::default()).expect("no row").first_frames.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let how = TokenTiming::default();
        let refused = |heads: &[Vec<f32>], shape, how: &TokenTiming| token_times(heads, shape, how).expect_err("refused").to_string();
        assert!(refused(&[], SHAPE, &how).starts_with("no alignment head"));
        assert!(refused(&[planted(), vec![0.0; 7]], SHAPE, &how).starts_with("head 1 has 7 weights; 4 tokens × 60 frames"));
        for n_real in [0, 61] {
            assert!(refused(&[planted()], AttentionShape { n_real, ..SHAPE }, &how).contains("real frames of 60"));
        }
        let mut broken = planted();
        broken[61] = f32::NAN;
        assert!(refused(&[broken], SHAPE, &how).starts_with("head 0 gives frame 1 the weight NaN for token 1"));
        for median_width in [0, 6, 257] {
            assert!(refused(&[planted()], SHAPE, &TokenTiming { median_width, ..how }).starts_with("a median over"));
        }
        for seconds_a_frame in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(&[planted()], SHAPE, &TokenTiming { seconds_a_frame, ..how }).starts_with("a frame of"));
        }
        let endless = AttentionShape { n_tokens: usize::MAX, n_frames: usize::MAX, n_real: 1 };
        assert!(refused(&[planted()], endless, &how).starts_with("head 0 has 240 weights"));
    }

    proptest! {
        #[test]
        fn any_finite_attention_has_times_that_do_not_go_back(
            weights in proptest::collection::vec(proptest::num::f32::NORMAL | proptest::num::f32::ZERO, 36), n_real in 1usize..=9
        ) {
            let shape = AttentionShape { n_tokens: 4, n_frames: 9, n_real };
            let times = token_times(&[weights], shape, &TokenTiming::default()).expect("finite weights");
            prop_assert_eq!(times.first_frames.len(), 4);
            prop_assert!(times.first_frames.is_sorted() && times.first_frames[3] < n_real);
        }
    }
}
