//! One recurrent layer under a constant input, as a map of its state to the next, and that map's derivative; in `f64`.

use crosslens_analysis::Token;
use nalgebra::DMatrix;

use super::config::Cell;
use super::inputs::InputSpace;
use super::layer::Layer;
use super::{Body, Network};

/// A recurrent layer of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The encoder's layer of this number.
    Encoder(usize),
    /// The encoder's layer of this number that reads backwards.
    EncoderBackward(usize),
    /// The decoder's layer of this number. What attention feeds it is taken to be zero.
    Decoder(usize),
}

/// What the layer reads at every step. Positions are left out: they are not constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConstantInput<'a> {
    /// Nothing.
    Zero,
    /// A token of its side, the start token among the decoder's; first layers only.
    Token(Token),
    /// These numbers.
    Vector(&'a [f32]),
}

/// Why a layer has no such map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecurrenceError {
    /// No such layer.
    #[error("the network has no layer {place:?}")]
    NoLayer {
        /// What was asked for.
        place: Place,
    },
    /// An attention-only network or a Transformer.
    #[error("attention-only networks and Transformers have no recurrence")]
    NotRecurrent,
    /// A token the layer cannot read.
    #[error("token {token} is none of the {count} that the layer reads")]
    UnknownToken {
        /// The token.
        token: Token,
        /// How many there are; none for layers above the first.
        count: usize,
    },
    /// An input of another size.
    #[error("the input has {found} numbers, the layer reads {expected}")]
    InputSize {
        /// What was given.
        found: usize,
        /// What it reads.
        expected: usize,
    },
    /// Weights of another network.
    #[error("{found} weights are given, the network has {expected}")]
    WeightCount {
        /// What was given.
        found: usize,
        /// What it has.
        expected: usize,
    },
}

/// `F`, from a layer's state to the next under a constant input, by the equations of `docs/math.md`.
///
/// The state is `h`, `n` numbers; an LSTM's is `[h ; cell]`, `2n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrence {
    cell: Cell,
    n: usize,
    /// `x·gates_from_input + gates_bias`.
    gates: Vec<f64>,
    /// `gates_from_hidden`, `[n, gates]`.
    hidden: DMatrix<f64>,
    /// Of a GRU whose reset comes after the product, else empty.
    candidate_bias: Vec<f64>,
    initial: Option<Vec<f64>>,
}

impl Network {
    /// A layer's recurrence under a constant input.
    pub fn recurrence(&self, weights: &[f32], place: Place, input: ConstantInput<'_>) -> Result<Recurrence, RecurrenceError> {
        if weights.len() != self.layout.len() {
            return Err(RecurrenceError::WeightCount { found: weights.len(), expected: self.layout.len() });
        }
        let Body::Recurrent(network) = &self.body else { return Err(RecurrenceError::NotRecurrent) };
        let (layer, number, space) = match place {
            Place::Encoder(number) => (network.encoder.get(number).map(|layer| &layer.forward), number, &network.source_space),
            Place::EncoderBackward(number) => {
                (network.encoder.get(number).and_then(|layer| layer.backward.as_ref()), number, &network.source_space)
            }
            Place::Decoder(number) => (network.decoder.layers.get(number), number, &network.target_space),
        };
        let layer = layer.ok_or(RecurrenceError::NoLayer { place })?;
        let hidden = layer.gates_from_hidden.ok_or(RecurrenceError::NotRecurrent)?;
        let numbers = |id| weights[self.layout.range(id)].iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let mut gates = numbers(layer.gates_bias);
        let x = self.input_vector(layer, space, number, weights, input)?;
        let from_input = &weights[self.layout.range(layer.gates_from_input)];
        for (&x, row) in x.iter().zip(from_input.chunks_exact(layer.width())) {
            gates.iter_mut().zip(row).for_each(|(gate, &weight)| *gate += x * f64::from(weight));
        }
        let initial = layer.initial.map(|id| [numbers(id), layer.initial_cell.map_or_else(Vec::new, numbers)].concat());
        Ok(Recurrence {
            cell: layer.cell,
            n: layer.n,
            gates,
            hidden: DMatrix::from_row_slice(layer.n, layer.width(), &numbers(hidden)),
            candidate_bias: layer.candidate_bias.map_or_else(Vec::new, numbers),
            initial,
        })
    }

    fn input_vector(
        &self,
        layer: &Layer,
        space: &InputSpace,
        number: usize,
        weights: &[f32],
        input: ConstantInput<'_>,
    ) -> Result<Vec<f64>, RecurrenceError> {
        let d = self.layout.shape(layer.gates_from_input).0;
        let numbers = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect();
        match input {
            ConstantInput::Zero => Ok(vec![0.0; d]),
            ConstantInput::Vector(vector) if vector.len() == d => Ok(numbers(vector)),
            ConstantInput::Vector(vector) => Err(RecurrenceError::InputSize { found: vector.len(), expected: d }),
            ConstantInput::Token(token) => {
                let count = if number == 0 { space.n_tokens() } else { 0 };
                if token as usize >= count {
                    return Err(RecurrenceError::UnknownToken { token, count });
                }
                Ok(match space.embedding {
                    Some(id) => numbers(&weights[self.layout.range(id)][token as usize * d..][..d]),
                    None if token as usize == space.n_words => vec![1.0 / d as f64; d],
                    None => (0..d).map(|entry| f64::from(u8::from(entry == token as usize))).collect(),
                })
            }
        }
    }
}

impl Recurrence {
    /// Numbers of a state.
    pub fn d_state(&self) -> usize {
        self.n * if self.cell == Cell::Lstm { 2 } else { 1 }
    }

    /// The trained state before the first step; `None` for a decoder, which starts where the encoder ends.
    pub fn initial(&self) -> Option<&[f64]> {
        self.initial.as_deref()
    }

    /// `F(state)`. Panics if the state has another size.
    pub fn step(&self, state: &[f64]) -> Vec<f64> {
        self.activations(state).next
    }

    /// `J`, `[d_state, d_state]`: `J[i, j] = ∂F_i / ∂state_j`. Panics if the state has another size.
    pub fn jacobian(&self, state: &[f64]) -> DMatrix<f64> {
        let n = self.n;
        let Activations { gates, inner, next } = self.activations(state);
        let w = |i: usize, j: usize, block: usize| self.hidden[(j, block * n + i)];
        let gate = |i: usize, block: usize| gates[block * n + i];
        let slope = |sigmoid: f64| sigmoid * (1.0 - sigmoid);
        let blend = |i: usize, j: usize, d_candidate: f64| {
            let (u, c) = (gate(i, 0), gates[gates.len() - n + i]);
            let kept = if i == j { u } else { 0.0 };
            kept + (state[i] - c) * slope(u) * w(i, j, 0) + (1.0 - u) * (1.0 - c * c) * d_candidate
        };
        match self.cell {
            Cell::Vanilla => DMatrix::from_fn(n, n, |i, j| (1.0 - next[i] * next[i]) * w(i, j, 0)),
            Cell::Ugrnn => DMatrix::from_fn(n, n, |i, j| blend(i, j, w(i, j, 1))),
            Cell::Gru => {
                // ∂(r∘h)_k/∂h_j = δ_kj r_k + h_k r′_k W_r[j, k]
                let d_reset = DMatrix::from_fn(n, n, |j, k| {
                    let own = if j == k { gate(k, 1) } else { 0.0 };
                    own + state[k] * slope(gate(k, 1)) * self.hidden[(j, n + k)]
                });
                let d_candidate = d_reset * self.hidden.columns(2 * n, n);
                DMatrix::from_fn(n, n, |i, j| blend(i, j, d_candidate[(j, i)]))
            }
            Cell::GruResetAfter => {
                DMatrix::from_fn(n, n, |i, j| blend(i, j, gate(i, 1) * w(i, j, 2) + inner[i] * slope(gate(i, 1)) * w(i, j, 1)))
            }
            Cell::Lstm => {
                let mut jacobian = DMatrix::zeros(2 * n, 2 * n);
                for i in 0..n {
                    let (f, g, o, c) = (gate(i, 0), gate(i, 1), gate(i, 2), gate(i, 3));
                    let squashed = next[n + i].tanh();
                    let through = o * (1.0 - squashed * squashed);
                    for j in 0..n {
                        let d_cell = state[n + i] * slope(f) * w(i, j, 0) + c * slope(g) * w(i, j, 1) + g * (1.0 - c * c) * w(i, j, 3);
                        jacobian[(n + i, j)] = d_cell;
                        jacobian[(i, j)] = squashed * slope(o) * w(i, j, 2) + through * d_cell;
                    }
                    jacobian[(n + i, n + i)] = f;
                    jacobian[(i, n + i)] = through * f;
                }
                jacobian
            }
        }
    }

    fn activations(&self, state: &[f64]) -> Activations {
        assert_eq!(state.len(), self.d_state(), "numbers of a state");
        let (n, h) = (self.n, &state[..self.n]);
        let mut gates = self.gates.clone();
        let direct = if matches!(self.cell, Cell::Gru | Cell::GruResetAfter) { 2 * n } else { gates.len() };
        add_product(&mut gates[..direct], h, &self.hidden, 0);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut inner = Vec::new();
        let next = match self.cell {
            Cell::Vanilla => {
                gates.iter_mut().for_each(|gate| *gate = gate.tanh());
                gates.clone()
            }
            Cell::Ugrnn => {
                gates[..n].iter_mut().for_each(|gate| *gate = sigmoid(*gate));
                gates[n..].iter_mut().for_each(|gate| *gate = gate.tanh());
                (0..n).map(|i| gates[i] * h[i] + (1.0 - gates[i]) * gates[n + i]).collect()
            }
            Cell::Gru | Cell::GruResetAfter => {
                gates[..2 * n].iter_mut().for_each(|gate| *gate = sigmoid(*gate));
                if self.cell == Cell::Gru {
                    inner = (0..n).map(|i| gates[n + i] * h[i]).collect();
                    add_product(&mut gates[2 * n..], &inner, &self.hidden, 2 * n);
                } else {
                    inner = self.candidate_bias.clone();
                    add_product(&mut inner, h, &self.hidden, 2 * n);
                    (0..n).for_each(|i| gates[2 * n + i] += gates[n + i] * inner[i]);
                }
                gates[2 * n..].iter_mut().for_each(|gate| *gate = gate.tanh());
                (0..n).map(|i| gates[i] * h[i] + (1.0 - gates[i]) * gates[2 * n + i]).collect()
            }
            Cell::Lstm => {
                gates[..n].iter_mut().for_each(|forget| *forget += 1.0);
                gates[..3 * n].iter_mut().for_each(|gate| *gate = sigmoid(*gate));
                gates[3 * n..].iter_mut().for_each(|gate| *gate = gate.tanh());
                let cell: Vec<f64> = (0..n).map(|i| gates[i] * state[n + i] + gates[n + i] * gates[3 * n + i]).collect();
                let hidden = (0..n).map(|i| gates[2 * n + i] * cell[i].tanh());
                hidden.chain(cell.iter().copied()).collect()
            }
        };
        Activations { gates, inner, next }
    }
}

/// What a step computes.
struct Activations {
    /// By block.
    gates: Vec<f64>,
    /// A GRU's `σ(r)∘h` or `q`.
    inner: Vec<f64>,
    next: Vec<f64>,
}

/// `target += x·W[:, from..]`.
fn add_product(target: &mut [f64], x: &[f64], map: &DMatrix<f64>, from: usize) {
    for (column, target) in target.iter_mut().enumerate() {
        *target += map.column(from + column).iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>();
    }
}
