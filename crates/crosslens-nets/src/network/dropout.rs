//! Masks that set a share of a layer's input to zero while training.

use crosslens_kernels::Real;
use rand::RngExt;

use super::packing::Packing;
use crate::random::generator;

/// Which step of which run a mask belongs to, so that it depends neither on threads nor on shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dropout {
    pub(crate) probability: f64,
    pub(crate) seed: u64,
}

/// The place a mask acts on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    EncoderInput(usize),
    DecoderInput(usize),
    Readout,
}

impl Dropout {
    /// Factors `[row, width]`, 0 or `1/(1 − p)`, in step-major or sentence-major order; drawn sentence by sentence.
    ///
    /// `first_sentence` is the number in the batch of the shard's first sentence.
    pub(crate) fn mask<F: Real>(self, mask: &mut Vec<F>, packing: &Packing, width: usize, site: Site, first_sentence: usize, order: Order) {
        mask.resize(packing.n_rows() * width, F::ZERO);
        let site = match site {
            Site::EncoderInput(layer) => 2 * layer as u64,
            Site::DecoderInput(layer) => 2 * layer as u64 + 1,
            Site::Readout => u64::MAX,
        };
        let kept = F::of(1.0 / (1.0 - self.probability));
        for sentence in 0..packing.n_sentences() {
            let mut rng = generator(&[self.seed, site, (first_sentence + sentence) as u64]);
            for step in 0..packing.lengths[sentence] {
                let row = match order {
                    Order::Sentence => packing.sentence_rows(sentence).start + step,
                    Order::Step => packing.rows(step).start + packing.ranks[sentence],
                };
                for factor in &mut mask[row * width..][..width] {
                    *factor = if rng.random::<f64>() < self.probability { F::ZERO } else { kept };
                }
            }
        }
    }
}

/// The order of the rows a mask is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Step,
    Sentence,
}

/// `rows ∘= mask`.
pub(crate) fn apply<F: Real>(rows: &mut [F], mask: &[F]) {
    for (row, &factor) in rows.iter_mut().zip(mask) {
        *row *= factor;
    }
}
