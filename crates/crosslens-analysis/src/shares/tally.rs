//! Sums over rows of attention from which every share is a ratio.

use crosslens_kernels::{Real, vectorised};
use serde::{Deserialize, Serialize};

use crate::split::{Breakdown, N_TERMS};

/// Sums over query rows. Every one of them adds up over rows, sentences and shards, and may be weighted, so that shares merge and can be
/// resampled.
///
/// With the pieces `p` of a score `s` (nine terms or six parts), a row's visible keys `k` and `K` of them with the highest scores:
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
    /// By piece; they add up to 1.
    pub absolute: Vec<f64>,
    /// By piece: `p / Σ |p|`.
    pub signed: Vec<f64>,
    /// By piece, each centred along the keys first.
    pub centred: Vec<f64>,
}

const ROWS: usize = 0;
const VARIANCE: usize = 1;
const FIRST: usize = 2;
/// Sums of one K beside those by piece: the rows of the centred shares.
const PER_TOP: usize = 1;

impl ShareTally {
    /// No row yet; `ks` are the K of the top-K shares.
    pub fn new(n_pieces: usize, ks: &[usize]) -> Self {
        // By piece: covariance, then three sums for each K; one more covariance for the bias of positions, three for the query's mean.
        let len = FIRST + n_pieces + 1 + 3 + ks.len() * (3 * n_pieces + PER_TOP);
        Self { n_pieces, ks: ks.to_vec(), sums: vec![0.0; len] }
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
        let n = self.n_pieces;
        let mut from = self.first_top();
        let mut shares = Vec::new();
        for &k in &self.ks {
            let mean = |start: usize, rows: f64| self.sums[start..start + n].iter().map(|sum| sum / rows.max(f64::MIN_POSITIVE)).collect();
            let rows = self.sums[ROWS];
            shares.push(TopShares {
                k,
                absolute: mean(from, rows),
                signed: mean(from + n, rows),
                centred: mean(from + 2 * n, self.sums[from + 3 * n]),
            });
            from += 3 * n + PER_TOP;
        }
        shares
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
        let mut means = [0.0; N_TERMS];
        let means = &mut means[..n];
        vectorised(
            #[inline(always)]
            || {
                let share = 1.0 / n_keys as f64;
                let mean = F::of(moments(score, score, F::ZERO).0.to_f64() * share);
                // Rounding leaves the deviations a small sum, which a large constant in a piece would blow up.
                let (sum, product) = moments(score, score, mean);
                let left_over = (sum.to_f64() - mean.to_f64() * n_keys as f64) * share;
                self.sums[VARIANCE] += product.to_f64() * share - sum.to_f64() * share * left_over;
                let mut add = |place: usize, piece: &[F]| {
                    let (sum, product) = moments(piece, score, mean);
                    let mean = sum.to_f64() * share;
                    self.sums[place] += product.to_f64() * share - mean * left_over;
                    mean
                };
                for (piece, mean) in means.iter_mut().enumerate() {
                    *mean = add(FIRST + piece, breakdown.piece(piece, query));
                }
                add(FIRST + n, breakdown.bias(query));
                for part in 0..3 {
                    add(FIRST + n + 1 + part, breakdown.mean_piece(part, query));
                }
            },
        );
        self.add_top(breakdown, query, score, means);
    }

    fn add_top<F: Real>(&mut self, breakdown: &Breakdown<F>, query: usize, score: &[F], means: &[f64]) {
        let n = self.n_pieces;
        let most = self.ks.iter().copied().max().unwrap_or(0).min(score.len());
        let places = highest(score, most);
        let mut from = self.first_top();
        for number in 0..self.ks.len() {
            let places = &places[..self.ks[number].min(places.len())];
            let share = 1.0 / places.len() as f64;
            // A single key has nothing to be centred against.
            let is_varied = score.len() > 1;
            self.sums[from + 3 * n] += f64::from(u8::from(is_varied));
            for &place in places {
                let value = |piece: usize| breakdown.piece(piece, query)[place].to_f64();
                let total: f64 = (0..n).map(|piece| value(piece).abs()).sum();
                let centred: f64 = means.iter().enumerate().map(|(piece, mean)| (value(piece) - mean).abs()).sum();
                let per_total = if total >= f64::MIN_POSITIVE { share / total } else { 0.0 };
                let per_centred = if is_varied && centred >= f64::MIN_POSITIVE { share / centred } else { 0.0 };
                for (piece, mean) in means.iter().enumerate() {
                    self.sums[from + piece] += value(piece).abs() * per_total;
                    self.sums[from + n + piece] += value(piece) * per_total;
                    self.sums[from + 2 * n + piece] += (value(piece) - mean).abs() * per_centred;
                }
            }
            from += 3 * n + PER_TOP;
        }
    }
}

/// Sums kept apart, so that loops vectorise in a fixed order.
const PARTIAL_SUMS: usize = 8;

/// `Σ p` and `Σ p·(s − mean)` over the places of `piece`, which may be none.
#[inline(always)]
fn moments<F: Real>(piece: &[F], score: &[F], mean: F) -> (F, F) {
    let (mut sums, mut products) = ([F::ZERO; PARTIAL_SUMS], [F::ZERO; PARTIAL_SUMS]);
    let ((blocks, rest), (score_blocks, score_rest)) = (piece.as_chunks::<PARTIAL_SUMS>(), score.as_chunks::<PARTIAL_SUMS>());
    for (piece, score) in blocks.iter().zip(score_blocks) {
        for i in 0..PARTIAL_SUMS {
            sums[i] += piece[i];
            products[i] += piece[i] * (score[i] - mean);
        }
    }
    for (i, (&piece, &score)) in rest.iter().zip(score_rest).enumerate() {
        sums[i] += piece;
        products[i] += piece * (score - mean);
    }
    (sums.into_iter().sum(), products.into_iter().sum())
}

/// The places of the `n` highest scores, highest first, the earlier among equals.
fn highest<F: Real>(score: &[F], n: usize) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::with_capacity(n + 1);
    for place in 0..score.len() {
        let rank = places.iter().position(|&other| score[place] > score[other]).unwrap_or(places.len());
        if rank < n {
            places.insert(rank, place);
            places.truncate(n);
        }
    }
    places
}
