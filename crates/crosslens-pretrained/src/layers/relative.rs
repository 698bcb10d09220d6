//! T5's bias of distances: near ones each have their own, far ones share in widening buckets.

use crosslens_analysis::{PositionBias, RelativeBias};

/// How distances fall into buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    pub(crate) count: usize,
    /// Beyond it all distances share the last bucket.
    pub(crate) max_distance: usize,
    /// Whether keys after the query count too; in a decoder they are not seen.
    pub(crate) both_ways: bool,
}

impl Buckets {
    /// The bucket of `key − query`.
    pub(crate) fn of(self, distance: i64) -> usize {
        let mut count = self.count;
        let mut first = 0;
        let distance = if self.both_ways {
            count /= 2;
            if distance > 0 {
                first = count;
            }
            distance.unsigned_abs() as usize
        } else {
            distance.min(0).unsigned_abs() as usize
        };
        let exact = count / 2;
        if distance < exact {
            return first + distance;
        }
        // In single precision, as the models are trained, so that the borders of the buckets are the same.
        let log = (distance as f32 / exact as f32).ln() / (self.max_distance as f64 / exact as f64).ln() as f32;
        let far = exact + (log * (count - exact) as f32) as usize;
        first + far.min(count - 1)
    }
}

/// The bias of each head by distance, from the tensor `[bucket, head]`.
pub(crate) fn biases(buckets: Buckets, values: &[f32], n_heads: usize) -> Vec<PositionBias> {
    // One step beyond the largest distance everything is in the last bucket.
    let reach = buckets.max_distance as i64 + 1;
    let of_head = |head| RelativeBias {
        lowest: -reach,
        values: (-reach..=reach).map(|distance| values[buckets.of(distance) * n_heads + head]).collect(),
    };
    (0..n_heads).map(|head| of_head(head).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `T5Attention._relative_position_bucket` of transformers 5.22.
    #[test]
    fn buckets_are_those_of_t5() {
        let encoder = Buckets { count: 32, max_distance: 128, both_ways: true };
        let found: Vec<_> = [-200, -128, -64, -16, -9, -8, -7, -1, 0, 1, 7, 8, 20, 127, 500].map(|d| encoder.of(d)).to_vec();
        assert_eq!(found, [15, 15, 14, 10, 8, 8, 7, 1, 0, 17, 23, 24, 26, 31, 31]);
        let decoder = Buckets { both_ways: false, ..encoder };
        let found: Vec<_> = [5, 0, -1, -15, -16, -17, -40, -100, -127, -300].map(|d| decoder.of(d)).to_vec();
        assert_eq!(found, [0, 0, 1, 15, 16, 16, 23, 30, 31, 31]);
    }
}
