//! Fixed points of recurrent layers, and what happens near them.
//!
//! ```text
//! q(h) = ½ ‖h − F(h)‖²                                    the speed, to be made zero
//! F(h* + ε) ≈ h* + J ε,   J = ∂F/∂h at h*,   J v = λ v     modes grow where |λ| > 1; those that decay do so in −1/ln|λ| steps
//! ```

use nalgebra::{Cholesky, DMatrix, DVector, Schur};

pub use crate::network::{ConstantInput, Place, Recurrence, RecurrenceError};

use crate::network::Network;

/// Most numbers a state may have: every iteration takes their cube in time.
pub const MAX_STATE: usize = 1024;

/// When to stop, and which points are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPointOptions {
    /// A state of at most this speed `q` is a fixed point.
    pub tolerance: f64,
    /// Iterations before a start is given up.
    pub max_iterations: usize,
    /// Points nearer than this are one.
    pub distance: f64,
}

impl Default for FixedPointOptions {
    fn default() -> Self {
        Self { tolerance: 1e-20, max_iterations: 300, distance: 1e-4 }
    }
}

/// Why no fixed points can be looked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FixedPointError {
    /// The layer has no such map.
    #[error(transparent)]
    Recurrence(#[from] RecurrenceError),
    /// A start of another size.
    #[error("start {start} has {found} numbers, a state has {expected}")]
    StartSize {
        /// Its place in the list.
        start: usize,
        /// What it has.
        found: usize,
        /// What a state has; an LSTM's also holds its cell.
        expected: usize,
    },
    /// Too many numbers.
    #[error("a state has {d_state} numbers, fixed points are looked for in up to {MAX_STATE}")]
    TooWide {
        /// How many.
        d_state: usize,
    },
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eigenvalue {
    /// Its real part.
    pub re: f64,
    /// Its imaginary part.
    pub im: f64,
}

impl Eigenvalue {
    /// `|λ|`.
    pub fn modulus(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// `−1/ln|λ|`: after so many steps a mode has decayed to 1/e; negative where it grows, infinite where it stays, 0 for `λ = 0`.
    pub fn time_constant(self) -> f64 {
        if self.modulus() == 1.0 { f64::INFINITY } else { -1.0 / self.modulus().ln() }
    }
}

/// A state the layer stays in, and the spectrum of its linearised dynamics there.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedPoint {
    /// The state.
    pub state: Vec<f64>,
    /// `q` there.
    pub speed: f64,
    /// Of `J`, the largest modulus first; empty where the iteration for them did not end.
    pub eigenvalues: Vec<Eigenvalue>,
    /// How many starts ended here.
    pub n_starts: usize,
}

impl FixedPoint {
    /// How many modes grow: 0 for a stable point.
    pub fn n_unstable(&self) -> usize {
        self.eigenvalues.iter().filter(|eigenvalue| eigenvalue.modulus() > 1.0).count()
    }
}

/// The fixed points of one layer under a constant input that can be reached from these starts, in the order they were first reached.
///
/// Starts are states of the layer, such as recorded ones. Each goes down the speed by the Levenberg-Marquardt method with the exact
/// derivative; those that do not reach the tolerance are dropped.
///
/// ```
/// use crosslens_nets::fixed_points::{ConstantInput, FixedPointOptions, Place, fixed_points};
/// use crosslens_nets::network::{Family, Network, NetworkConfig};
///
/// let network = Network::new(&NetworkConfig { hidden: 4, ..NetworkConfig::of(Family::Aed) }, 3, 3, 0)?;
/// let weights = network.draw_weights(0);
/// let found = fixed_points(&network, &weights, Place::Encoder(0), ConstantInput::Zero, &[vec![0.1; 4]], &FixedPointOptions::default())?;
/// assert!(found[0].speed <= 1e-20 && found[0].eigenvalues.len() == 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fixed_points(
    network: &Network,
    weights: &[f32],
    place: Place,
    input: ConstantInput<'_>,
    starts: &[Vec<f32>],
    options: &FixedPointOptions,
) -> Result<Vec<FixedPoint>, FixedPointError> {
    let recurrence = network.recurrence(weights, place, input)?;
    let expected = recurrence.d_state();
    if expected > MAX_STATE {
        return Err(FixedPointError::TooWide { d_state: expected });
    }
    if let Some(start) = starts.iter().position(|start| start.len() != expected) {
        return Err(FixedPointError::StartSize { start, found: starts[start].len(), expected });
    }
    let mut points: Vec<FixedPoint> = Vec::new();
    for start in starts {
        let Some((state, speed)) = descend(&recurrence, start, options) else { continue };
        match points.iter_mut().find(|point| distance(&point.state, &state) < options.distance) {
            Some(point) => {
                point.n_starts += 1;
                if speed < point.speed {
                    (point.state, point.speed) = (state, speed);
                }
            }
            None => points.push(FixedPoint { state, speed, eigenvalues: Vec::new(), n_starts: 1 }),
        }
    }
    for point in &mut points {
        point.eigenvalues = spectrum(recurrence.jacobian(&point.state));
    }
    Ok(points)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// `h − F(h)`.
fn residual(recurrence: &Recurrence, state: &DVector<f64>) -> DVector<f64> {
    state - DVector::from_vec(recurrence.step(state.as_slice()))
}

/// A state of at most the wanted speed and that speed, by steps `δ` with `(AᵀA + κ) δ = −Aᵀ(h − F(h))`, `A = 1 − J`.
fn descend(recurrence: &Recurrence, start: &[f32], options: &FixedPointOptions) -> Option<(Vec<f64>, f64)> {
    /// How much steps are damped at first, and the bounds of it.
    const DAMPING: (f64, f64, f64) = (1e-2, 1e-14, 1e8);
    let mut state = DVector::from_iterator(start.len(), start.iter().map(|&x| f64::from(x)));
    let mut rest = residual(recurrence, &state);
    let mut speed = 0.5 * rest.norm_squared();
    let mut damping = DAMPING.0;
    for _ in 0..options.max_iterations {
        if speed <= options.tolerance {
            break;
        }
        let map = DMatrix::identity(state.len(), state.len()) - recurrence.jacobian(state.as_slice());
        let (normal, downhill) = (map.tr_mul(&map), map.tr_mul(&rest));
        loop {
            let damped = &normal + DMatrix::from_diagonal_element(state.len(), state.len(), damping);
            let candidate = Cholesky::new(damped).map(|factor| &state - factor.solve(&downhill));
            let tried = candidate.map(|candidate| (residual(recurrence, &candidate), candidate));
            if let Some((tried_rest, candidate)) = tried
                && 0.5 * tried_rest.norm_squared() < speed
            {
                (state, rest) = (candidate, tried_rest);
                damping = (damping * 0.1).max(DAMPING.1);
                break;
            }
            damping *= 10.0;
            if damping > DAMPING.2 {
                // No step goes down any more: a slow point, or as slow as rounding allows.
                return None;
            }
        }
        speed = 0.5 * rest.norm_squared();
    }
    (speed <= options.tolerance).then(|| (state.as_slice().to_vec(), speed))
}

fn spectrum(jacobian: DMatrix<f64>) -> Vec<Eigenvalue> {
    /// Iterations an eigenvalue may take; a handful is usual.
    const MAX_ITERATIONS: usize = 100_000;
    let Some(schur) = Schur::try_new(jacobian, f64::EPSILON, MAX_ITERATIONS) else { return Vec::new() };
    let mut eigenvalues: Vec<Eigenvalue> =
        schur.complex_eigenvalues().iter().map(|eigenvalue| Eigenvalue { re: eigenvalue.re, im: eigenvalue.im }).collect();
    eigenvalues.sort_by(|a, b| b.modulus().total_cmp(&a.modulus()).then(b.re.total_cmp(&a.re)).then(b.im.total_cmp(&a.im)));
    eigenvalues
}
