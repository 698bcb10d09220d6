//! Sums over rows of attention from which every share is a ratio.

use crosslens_kernels::{Real, moments, place_of_highest};
use serde::{Deserialize, Serialize};

use crate::split::{Breakdown, N_TERMS};

/// Sums over query rows. Every one of them adds up over rows, sentences and shards, and may be weighted, so that shares merge and can be
/// resampled.
///
/// With the pieces `p` of a score `s` (nine terms or six parts, and the bias of positions where there is one), a row's visible keys `k` and
/// `K` of them with the highest scores:
///
/// ```text
/// top-K            mean over rows and the K places of |p| / Σ_p |p|                        (the paper's)
/// top-K, centred   the same after taking from each piece its mean along k, which softmax ignores
/// centred          Σ_rows cov_k(p, s) / Σ_rows var_k(s)                                    (they add up to 1)
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareTally {
    n_pieces: usize,
    ks: Vec<usize>,
    sums: Vec<f64>,
}

/// Shares at the highest scores.
#[derive(Clone, Debug, PartialEq)]
pub struct TopShares {
    /// How many places of each row.
    pub k: usize,
    /// `|p| / Σ |p|`.
    pub absolute: TopShare,
    /// `p / Σ |p|`.
    pub signed: TopShare,
    /// `|p| / Σ |p|`, each piece centred along the keys first.
    pub centred: TopShare,
}

/// One kind of share at the highest scores. Absolute and centred ones add up to 1 with that of the bias.
#[derive(Clone, Debug, PartialEq)]
pub struct TopShare {
    /// By piece.
    pub pieces: Vec<f64>,
    /// Of the bias of positions; 0 where there is none.
    pub bias: f64,
}

const ROWS: usize = 0;
const VARIANCE: usize = 1;
const FIRST: usize = 2;
/// Sums of one K beside those by piece: the rows of the centred shares.
const PER_TOP: usize = 1;

impl ShareTally {
    /// No row yet; `ks` are the K of the top-K shares.
    pub fn new(n_pieces: usize, ks: &[usize]) -> Self {
        // By piece and for the bias of positions: covariance, then three sums for each K; three more covariances for the query's mean.
        let len = FIRST + n_pieces + 1 + 3 + ks.len() * (3 * (n_pieces + 1) + PER_TOP);
        Self { n_pieces, ks: ks.to_vec(), sums: vec![0.0; len] }
    }

    /// One that counts the same things and has no row yet.
    pub(crate) fn empty(&self) -> Self {
        Self::new(self.n_pieces, &self.ks)
    }

    /// Whether another one, perhaps read from elsewhere, counts the same things.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.n_pieces, &self.ks, self.sums.len()) == (other.n_pieces, &other.ks, other.sums.len())
    }

    /// Whether it has as many sums as it should, perhaps having been read from elsewhere.
    pub(crate) fn is_whole(&self) -> bool {
        self.n_pieces <= N_TERMS && self.ks.len() <= 3 && self.sums.len() == Self::new(self.n_pieces, &self.ks).sums.len()
    }

    /// Rows added.
    pub fn rows(&self) -> f64 {
        self.sums[ROWS]
    }

    /// Adds `weight` times what another one has summed. Panics unless both count the same things.
    pub fn add(&mut self, other: &Self, weight: f64) {
        assert_eq!((self.n_pieces, &self.ks), (other.n_pieces, &other.ks), "tallies of the same shares");
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += weight * other);
    }

    /// Centred shares by piece; 0 where no score varies.
    pub fn centred(&self) -> Vec<f64> {
        self.covariances()[..self.n_pieces].to_vec()
    }

    /// The centred share of the bias of positions.
    pub fn centred_bias(&self) -> f64 {
        self.covariances()[self.n_pieces]
    }

    /// How much of the centred shares of the query's temporal part comes from its mean: by part of the key; one number for six parts.
    ///
    /// With nine terms that is the same at every step: it makes a head salient, not positional.
    pub fn query_mean(&self) -> Vec<f64> {
        let n = if self.n_pieces == N_TERMS { 3 } else { 1 };
        self.covariances()[self.n_pieces + 1..][..n].to_vec()
    }

    /// Shares at the highest scores, for each K.
    pub fn top(&self) -> Vec<TopShares> {
        let n = self.n_pieces + 1;
        let of_ks = self.sums[self.first_top()..].chunks_exact(3 * n + PER_TOP);
        let of_k = |(&k, sums): (&usize, &[f64])| {
            let mean = |sums: &[f64], rows: f64| {
                let mut pieces: Vec<f64> = sums.iter().map(|sum| sum / rows.max(f64::MIN_POSITIVE)).collect();
                let bias = pieces.pop().unwrap_or(0.0);
                TopShare { pieces, bias }
            };
            let rows = self.sums[ROWS];
            let (absolute, signed, centred) = (mean(&sums[..n], rows), mean(&sums[n..2 * n], rows), mean(&sums[2 * n..3 * n], sums[3 * n]));
            TopShares { k, absolute, signed, centred }
        };
        self.ks.iter().zip(of_ks).map(of_k).collect()
    }

    fn covariances(&self) -> Vec<f64> {
        let variance = self.sums[VARIANCE];
        let sums = &self.sums[FIRST..self.first_top()];
        sums.iter().map(|sum| if variance > 0.0 { sum / variance } else { 0.0 }).collect()
    }

    fn first_top(&self) -> usize {
        FIRST + self.n_pieces + 4
    }

    /// Adds one row; `score` is the sum of all pieces and the bias over the visible keys.
    pub fn add_row<F: Real>(&mut self, breakdown: &Breakdown<F>, query: usize, score: &[F]) {
        let n_keys = score.len();
        if n_keys == 0 {
            return;
        }
        self.sums[ROWS] += 1.0;
        let n = self.n_pieces;
        let share = 1.0 / n_keys as f64;
        let mut of_score = [(F::ZERO, F::ZERO)];
        moments(|_| score, score, F::ZERO, &mut of_score);
        let mean = F::of(of_score[0].0.to_f64() * share);

        let (bias, n_means) = (breakdown.bias(query), if n == N_TERMS { 3 } else { 1 });
        let row = |number: usize| match number {
            0 => score,
            _ if number <= n => breakdown.piece(number - 1, query),
            _ if number <= n + n_means => breakdown.mean_piece(number - n - 1, query),
            _ => bias,
        };
        let mut all = [(F::ZERO, F::ZERO); 1 + N_TERMS + 3 + 1];
        let all = &mut all[..1 + n + n_means + usize::from(!bias.is_empty())];
        moments(row, score, mean, all);
        // Rounding leaves the deviations a small sum, which a large constant in a piece would blow up.
        let left_over = (all[0].0.to_f64() - mean.to_f64() * n_keys as f64) * share;
        let covariance = |(sum, product): (F, F)| product.to_f64() * share - sum.to_f64() * share * left_over;
        self.sums[VARIANCE] += covariance(all[0]);
        let mut means = [0.0; N_TERMS + 1];
        for (piece, &of_piece) in all[1..=n].iter().enumerate() {
            means[piece] = of_piece.0.to_f64() * share;
            self.sums[FIRST + piece] += covariance(of_piece);
        }
        for (part, &of_mean) in all[1 + n..][..n_means].iter().enumerate() {
            self.sums[FIRST + n + 1 + part] += covariance(of_mean);
        }
        if let Some(&of_bias) = all.get(1 + n + n_means) {
            means[n] = of_bias.0.to_f64() * share;
            self.sums[FIRST + n] += covariance(of_bias);
        }
        self.add_top(breakdown, query, score, &means[..=n]);
    }

    /// `means` of the pieces and of the bias along the keys.
    fn add_top<F: Real>(&mut self, breakdown: &Breakdown<F>, query: usize, score: &[F], means: &[f64]) {
        let (n_pieces, n) = (self.n_pieces, self.n_pieces + 1);
        let bias = breakdown.bias(query);
        let most = self.ks.iter().copied().max().unwrap_or(0).min(score.len());
        let (mut few, mut many) = ([0; FEW_PLACES], Vec::new());
        let places = if most <= FEW_PLACES {
            &mut few[..most]
        } else {
            many.resize(most, 0);
            &mut many[..]
        };
        highest(score, places);
        // A single key has nothing to be centred against.
        let is_varied = score.len() > 1;
        let mut from = self.first_top();
        for &k in &self.ks {
            let places = &places[..k.min(places.len())];
            let share = 1.0 / places.len() as f64;
            let (sums, rest) = self.sums[from..].split_at_mut(3 * n);
            rest[0] += f64::from(u8::from(is_varied));
            for &place in places {
                let (mut total, mut centred) = (0.0, 0.0);
                let mut values = [0.0; N_TERMS + 1];
                for (piece, value) in values[..n_pieces].iter_mut().enumerate() {
                    *value = breakdown.piece(piece, query)[place].to_f64();
                }
                values[n_pieces] = bias.get(place).map_or(0.0, |bias| bias.to_f64());
                for (value, mean) in values.iter().zip(means) {
                    total += value.abs();
                    centred += (value - mean).abs();
                }
                let per_total = if total >= f64::MIN_POSITIVE { share / total } else { 0.0 };
                let per_centred = if is_varied && centred >= f64::MIN_POSITIVE { share / centred } else { 0.0 };
                for (piece, (value, mean)) in values.iter().zip(means).enumerate() {
                    sums[piece] += value.abs() * per_total;
                    sums[n + piece] += value * per_total;
                    sums[2 * n + piece] += (value - mean).abs() * per_centred;
                }
            }
            from += 3 * n + PER_TOP;
        }
    }
}

/// Places of the highest scores that need no memory of their own.
const FEW_PLACES: usize = 8;

/// The places of the highest scores, as many as `places` has room for and at most as many as there are scores: highest first, the earlier
/// among equals.
fn highest<F: Real>(score: &[F], places: &mut [usize]) {
    if let [place] = places {
        *place = place_of_highest(score).unwrap_or(0);
        return;
    }
    let mut n_found = 0;
    for place in 0..score.len() {
        let rank = places[..n_found].iter().position(|&other| score[place] > score[other]).unwrap_or(n_found);
        if rank < places.len() {
            n_found = (n_found + 1).min(places.len());
            places.copy_within(rank..n_found - 1, rank + 1);
            places[rank] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_highest_are_the_first_of_a_sort(score in prop::collection::vec(-3i8..4, 1..40), k in 0usize..40) {
            let score: Vec<f32> = score.into_iter().map(f32::from).collect();
            let mut expected: Vec<usize> = (0..score.len()).collect();
            expected.sort_by(|&a, &b| score[b].total_cmp(&score[a]));
            let mut places = vec![0; k.min(score.len())];
            highest(&score, &mut places);
            prop_assert_eq!(&places[..], &expected[..places.len()]);
        }
    }
}
