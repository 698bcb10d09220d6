//! First and second moments of states.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, transposed_product};

use crate::MergeError;

/// Most dimensions principal components are computed for: the moments take their square in memory, the components their cube in time.
pub const MAX_PCA_DIMENSIONS: usize = 2048;

/// Why there are no principal components.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PcaError {
    /// Too many dimensions.
    #[error("states have {d} dimensions, principal components are computed for up to {MAX_PCA_DIMENSIONS}")]
    TooWide {
        /// How many.
        d: usize,
    },
    /// No state.
    #[error("there are no states to take principal components of")]
    Empty,
    /// A state with an infinity or no number in it.
    #[error("there are states that are not finite numbers")]
    NotFinite,
    /// The eigenvalue iteration did not end.
    #[error("the eigenvalues of the covariance cannot be computed")]
    Diverged,
}

/// `N`, `Σ h` and `Σ hᵀh` over states, in `f64`: they add up over sentences, threads and machines.
///
/// The mean is taken off at the end, so means should not exceed deviations by more than some thousands.
#[derive(Clone, Debug)]
pub struct Moments {
    pub(super) d: usize,
    pub(super) count: u64,
    pub(super) sum: Vec<f64>,
    /// `[d, d]`.
    pub(super) products: Vec<f64>,
    rows: Vec<f64>,
    packed: Packed<f64>,
}

impl Moments {
    /// No state yet, of `d` dimensions.
    pub fn new(d: usize) -> Result<Self, PcaError> {
        if d > MAX_PCA_DIMENSIONS {
            return Err(PcaError::TooWide { d });
        }
        Ok(Self { d, count: 0, sum: vec![0.0; d], products: vec![0.0; d * d], rows: Vec::new(), packed: Packed::new() })
    }

    /// Dimensions of a state.
    pub fn d(&self) -> usize {
        self.d
    }

    /// States added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds states, `[state, d]`. Panics if that is no whole number of them.
    pub fn add(&mut self, states: &[f32]) {
        let (d, n) = (self.d, states.len() / self.d.max(1));
        assert_eq!(states.len(), n * d, "whole states");
        self.rows.clear();
        self.rows.extend(states.iter().map(|&x| f64::from(x)));
        for row in self.rows.chunks_exact(d.max(1)) {
            self.sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        let rows = Matrix::new(&self.rows, n, d);
        transposed_product(MatrixMut::new(&mut self.products, d, d), rows, rows, Write::Add, &mut self.packed);
        self.count += n as u64;
    }

    /// Adds what another one has summed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.d != other.d {
            return Err(MergeError { left: self.d, right: other.d });
        }
        self.count += other.count;
        self.sum.iter_mut().zip(&other.sum).for_each(|(sum, other)| *sum += other);
        self.products.iter_mut().zip(&other.products).for_each(|(sum, other)| *sum += other);
        Ok(())
    }
}
