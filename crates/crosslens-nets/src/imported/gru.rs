use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, product};

use super::linear::Linear;
use super::weights::Weights;
use crate::network::gru_reset_after_forward;

/// A GRU with the reset after the matrix product and a bias on either side of it:
///
/// ```text
/// r = σ(W_r x + b_r + U_r h + c_r)        z = σ(W_z x + b_z + U_z h + c_z)
/// n = tanh(W_n x + b_n + r·(U_n h + c_n))  h ← (1 − z)·n + z·h
/// ```
#[derive(Clone, Debug)]
pub(super) struct Gru {
    n: usize,
    /// Blocks `z, r, n`; the biases of the hidden side that no reset acts on are among these.
    gates_from_input: Linear,
    /// Blocks `z, r`.
    gates_from_hidden: Packed<f32>,
    candidate_from_hidden: Packed<f32>,
    candidate_bias: Vec<f32>,
}

impl Gru {
    /// The one whose tensors begin with `name`.
    pub(super) fn new(weights: &Weights, name: &str) -> Self {
        let tensor = |of: &str| update_first(weights.get(&format!("{name}.gates_from_{of}")));
        let (hidden, hidden_bias) = (tensor("hidden"), tensor("hidden_bias"));
        let n = hidden_bias.len() / 3;
        let mut bias = tensor("input_bias");
        bias[..2 * n].iter_mut().zip(&hidden_bias).for_each(|(input, hidden)| *input += hidden);
        let pack = |rows: &[f32]| {
            let mut packed = Packed::new();
            packed.pack(Matrix::new(rows, rows.len() / n, n).transposed());
            packed
        };
        Self {
            n,
            gates_from_input: Linear::new(&tensor("input"), &bias),
            gates_from_hidden: pack(&hidden[..2 * n * n]),
            candidate_from_hidden: pack(&hidden[2 * n * n..]),
            candidate_bias: hidden_bias[2 * n..].to_vec(),
        }
    }

    /// Units.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// What inputs give to the gates, `[row, 3n]`.
    pub(super) fn gates(&self, inputs: &[f32]) -> Vec<f32> {
        self.gates_from_input.apply(inputs)
    }

    /// The next states `[row, n]`, from what the inputs gave to the gates; those before are `[row, n]` too, or zero.
    pub(super) fn step(&self, mut gates: Vec<f32>, previous: Option<&[f32]>) -> Vec<f32> {
        let (n, rows) = (self.n, gates.len() / (3 * self.n));
        let mut inner = self.candidate_bias.repeat(rows);
        if let Some(previous) = previous {
            let previous = Matrix::new(previous, rows, n);
            product(MatrixMut::strided(&mut gates, rows, 2 * n, 3 * n), previous, &self.gates_from_hidden, Write::Add);
            product(MatrixMut::new(&mut inner, rows, n), previous, &self.candidate_from_hidden, Write::Add);
        }
        let mut hidden = vec![0.0; rows * n];
        gru_reset_after_forward(n, &mut gates, &inner, previous, &mut hidden);
        hidden
    }
}

/// Blocks `r, z, n` as `z, r, n`.
fn update_first(gates: &[f32]) -> Vec<f32> {
    let block = gates.len() / 3;
    [&gates[block..2 * block], &gates[..block], &gates[2 * block..]].concat()
}
