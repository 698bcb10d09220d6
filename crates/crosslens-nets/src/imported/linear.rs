use crosslens_analysis as analysis;
use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, product};

/// `x·Wᵀ + b` on rows.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    d_in: usize,
    map: Packed<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// `weights` are `[d_out, d_in]`, `bias` is `[d_out]`.
    pub(super) fn new(weights: &[f32], bias: &[f32]) -> Self {
        let (d_out, d_in) = (bias.len(), weights.len() / bias.len());
        let mut map = Packed::new();
        map.pack(Matrix::new(weights, d_out, d_in).transposed());
        Self { d_in, map, bias: bias.to_vec() }
    }

    /// Of rows `[row, d_in]` rows `[row, d_out]`.
    pub(super) fn apply(&self, inputs: &[f32]) -> Vec<f32> {
        let rows = inputs.len() / self.d_in;
        let mut outputs = self.bias.repeat(rows);
        let inputs = Matrix::new(inputs, rows, self.d_in);
        product(MatrixMut::new(&mut outputs, rows, self.bias.len()), inputs, &self.map, Write::Add);
        outputs
    }
}

/// The same map as an explanation wants it, `[d_in, d_out]`.
pub(super) fn described(weights: &[f32], bias: &[f32]) -> analysis::Linear {
    let (d_out, d_in) = (bias.len(), weights.len() / bias.len());
    let columns = (0..d_in).flat_map(|column| (0..d_out).map(move |row| weights[row * d_in + column]));
    analysis::Linear { d_in, d_out, weights: columns.collect(), bias: bias.to_vec() }
}
