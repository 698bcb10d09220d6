//! Affine maps of rows, their weights packed once.

use std::ops::Range;

use crosslens_kernels::{Matrix, MatrixMut, Packed, Write, add, product, product_of_many, unit_rows};

use super::Table;
use crate::PretrainedError;
use crate::device::{Held, Place};
use crate::weights::Weights;

/// Inputs that are multiplied before the next ones: as many rows of a panel as stay near.
const DEPTH: usize = 512;
/// Most rows that are multiplied in registers before the next ones, so that they and their results stay near while the weights pass by: as many as 9
/// of a product's tallest tiles hold.
const NEAR_ROWS: usize = 108;
/// Outputs that are packed from a table at a time.
const TABLE_ROWS: usize = 1024;

/// How rows come. It decides what multiplies them, so that no bit of a row depends on how many others there happen to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All those of some sentences: many, multiplied by the processor's matrix unit where there is one.
    Sentences,
    /// One for each hypothesis, again and again: few, so that reading the weights is what takes time.
    Steps,
}

/// `x·Wᵀ + b` with `W` `[d_out, d_in]`, as checkpoints keep it.
pub(crate) struct Linear {
    /// Where its numbers come from, and the first of its outputs there; nothing where they are made of others.
    origin: Option<(Origin, usize)>,
    /// `Wᵀ`, cut along the inputs; the last adds the bias. Results are added in order, so that no bit depends on the rows beside.
    blocks: Vec<Packed<f32>>,
    /// The same on a device, where products are made on one. Ours are kept for those that it refuses.
    held: Option<Held>,
    bias: Option<Vec<f32>>,
    d_in: usize,
    d_out: usize,
}

/// The tensors `name.weight` and `name.bias`, of which a map is all outputs or some.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: String,
    pub(crate) d_in: usize,
    /// Outputs of the tensors, of several maps together.
    pub(crate) d_out: usize,
    /// Whether the matrix is stored `[d_in, d_out]`, as GPT-2's are.
    pub(crate) turned: bool,
    pub(crate) has_bias: bool,
}

impl Origin {
    /// The rows `outputs` of `W`, `[outputs, d_in]`.
    fn matrix(&self, weights: &mut Weights, outputs: Range<usize>) -> Result<Vec<f32>, PretrainedError> {
        let name = format!("{}.weight", self.name);
        let mut matrix = if self.turned {
            weights.read_turned(&name, [self.d_out, self.d_in])?
        } else {
            weights.read(&name, &[self.d_out, self.d_in])?
        };
        matrix.truncate(outputs.end * self.d_in);
        matrix.drain(..outputs.start * self.d_in);
        Ok(matrix)
    }

    /// The map that writes the outputs `outputs`.
    pub(crate) fn map(&self, weights: &mut Weights, outputs: Range<usize>) -> Result<Linear, PretrainedError> {
        let matrix = self.matrix(weights, outputs.clone())?;
        let bias = if self.has_bias { Some(weights.read(&format!("{}.bias", self.name), &[self.d_out])?) } else { None };
        let bias = bias.map(|bias| bias[outputs.clone()].to_vec());
        let plain = Linear::of(&matrix, bias, self.d_in, outputs.len(), &weights.place);
        Ok(Linear { origin: Some((self.clone(), outputs.start)), ..plain })
    }
}

impl Linear {
    /// Reads `name.weight`, and `name.bias` where there is to be one.
    pub(crate) fn read(weights: &mut Weights, name: &str, d_in: usize, d_out: usize, has_bias: bool) -> Result<Self, PretrainedError> {
        Origin { name: name.to_owned(), d_in, d_out, turned: false, has_bias }.map(weights, 0..d_out)
    }

    /// Its outputs in so many equal parts, one a head, for whoever explains them; its numbers are read anew, once for all.
    pub(crate) fn parts(&self, weights: &mut Weights, n_parts: usize) -> Result<Vec<crosslens_analysis::Linear>, PretrainedError> {
        let (origin, first) = self.origin.as_ref().expect("maps that are explained come from a tensor");
        let matrix = origin.matrix(weights, *first..first + self.d_out)?;
        let d_part = self.d_out / n_parts;
        let part = |number: usize| {
            let outputs = number * d_part..(number + 1) * d_part;
            let turned = (0..self.d_in).flat_map(|input| outputs.clone().map(move |output| output * self.d_in + input));
            let bias = self.bias.as_ref().map_or_else(Vec::new, |bias| bias[outputs.clone()].to_vec());
            crosslens_analysis::Linear { d_in: self.d_in, d_out: d_part, weights: turned.map(|place| matrix[place]).collect(), bias }
        };
        Ok((0..n_parts).map(part).collect())
    }

    /// From `W` `[d_out, d_in]`, kept at a place too where that has room.
    pub(crate) fn of(matrix: &[f32], bias: Option<Vec<f32>>, d_in: usize, d_out: usize, place: &Place) -> Self {
        Self { held: place.hold(matrix, d_in, d_out), ..Self::packed(matrix, bias, d_in, d_out) }
    }

    fn packed(matrix: &[f32], bias: Option<Vec<f32>>, d_in: usize, d_out: usize) -> Self {
        let turned = Matrix::new(matrix, d_out, d_in).transposed();
        let pack = |from: usize| {
            let mut packed = Packed::new();
            packed.pack(turned.row_range(from, (from + DEPTH).min(d_in)));
            if let Some(bias) = bias.as_ref().filter(|_| from + DEPTH >= d_in) {
                packed.add_bias(bias);
            }
            packed
        };
        Self { origin: None, blocks: (0..d_in).step_by(DEPTH).map(pack).collect(), held: None, bias, d_in, d_out }
    }

    pub(crate) fn d_in(&self) -> usize {
        self.d_in
    }

    pub(crate) fn d_out(&self) -> usize {
        self.d_out
    }

    /// `[rows, d_in]` to `[rows, d_out]`, in place of what stood in `result`.
    pub(crate) fn apply(&self, rows: &[f32], pace: Pace, result: &mut Vec<f32>) {
        let n_rows = rows.len() / self.d_in;
        result.resize(n_rows * self.d_out, 0.0);
        if self.held.as_ref().is_some_and(|held| held.multiply(rows, result)) {
            if let Some(bias) = &self.bias {
                result.chunks_exact_mut(self.d_out).for_each(|row| add(row, bias));
            }
            return;
        }
        let n_near = rows_at_a_time(n_rows, NEAR_ROWS);
        let near = rows.chunks(n_near * self.d_in).zip(result.chunks_mut(n_near * self.d_out));
        for (rows, result) in near {
            let n_rows = rows.len() / self.d_in;
            let left = Matrix::new(rows, n_rows, self.d_in);
            let mut write = Write::Over;
            for (number, block) in self.blocks.iter().enumerate() {
                let from = number * DEPTH;
                let (result, left) = (MatrixMut::new(result, n_rows, self.d_out), left.column_range(from, from + block.rows()));
                match pace {
                    Pace::Sentences => product_of_many(result, left, block, write),
                    Pace::Steps => product(result, left, block, write),
                }
                write = Write::Add;
            }
        }
    }
}

/// How many rows to take at a time, at most `most`, so that it is about as many each time: a few at the end would read all weights for
/// themselves.
pub(crate) fn evenly(n_rows: usize, most: usize) -> usize {
    n_rows.div_ceil(n_rows.div_ceil(most).max(1)).max(1)
}

/// How many rows to send through maps before the next ones: as many as the matrix unit takes, or without it about `most`.
pub(crate) fn rows_at_a_time(n_rows: usize, most: usize) -> usize {
    unit_rows().unwrap_or_else(|| evenly(n_rows, most))
}

/// Logits of all words: a table read as a matrix, packed in slices.
pub(crate) struct Head {
    slices: Vec<Linear>,
    bias: Option<Vec<f32>>,
    scale: f32,
    n_words: usize,
}

impl Head {
    /// `logits = scale · x·Tableᵀ + bias`.
    pub(crate) fn of(table: &Table, bias: Option<Vec<f32>>, scale: f32, place: &Place) -> Self {
        let slice = |from: usize| {
            let to = (from + TABLE_ROWS).min(table.rows());
            let mut rows = Vec::with_capacity((to - from) * table.d());
            table.append(from, to, &mut rows);
            Linear::of(&rows, None, table.d(), to - from, place)
        };
        let slices = (0..table.rows()).step_by(TABLE_ROWS).map(slice).collect();
        Self { slices, bias, scale, n_words: table.rows() }
    }

    /// `[rows, d]` to logits `[rows, words]`.
    pub(crate) fn apply(&self, rows: &[f32], pace: Pace) -> Vec<f32> {
        let d = self.slices.first().map_or(1, Linear::d_in);
        let n_rows = rows.len() / d;
        let mut logits = vec![0.0; n_rows * self.n_words];
        let mut part = Vec::new();
        for (number, slice) in self.slices.iter().enumerate() {
            slice.apply(rows, pace, &mut part);
            for (row, part) in logits.chunks_exact_mut(self.n_words).zip(part.chunks_exact(slice.d_out)) {
                row[number * TABLE_ROWS..][..slice.d_out].copy_from_slice(part);
            }
        }
        for row in logits.chunks_exact_mut(self.n_words) {
            if self.scale != 1.0 {
                row.iter_mut().for_each(|logit| *logit *= self.scale);
            }
            if let Some(bias) = &self.bias {
                add(row, bias);
            }
        }
        logits
    }
}

#[cfg(all(test, feature = "candle"))]
mod tests {
    use super::*;
    use crate::{Device, DeviceKind};

    const D_IN: usize = 5;
    const D_OUT: usize = 3;

    fn matrix(scale: f32) -> Vec<f32> {
        (0..D_IN * D_OUT).map(|place| scale * (place as f32 - 6.0)).collect()
    }

    fn rows() -> Vec<f32> {
        (0..4 * D_IN).map(|place| (place % 7) as f32 - 3.0).collect()
    }

    fn applied(map: &Linear) -> Vec<f32> {
        let mut result = Vec::new();
        map.apply(&rows(), Pace::Sentences, &mut result);
        result
    }

    /// The device has other weights than we: theirs are seen in the result, with the bias behind them.
    #[test]
    fn products_are_made_where_the_weights_are_held() {
        let place = Place::open(&DeviceKind::Candle.into()).expect("candle's CPU");
        let bias = Some(vec![1.0, -2.0, 0.5]);
        let packed = Linear::packed(&matrix(1.0), bias.clone(), D_IN, D_OUT);
        let map = Linear { held: place.hold(&matrix(2.0), D_IN, D_OUT), ..packed };
        assert_eq!(applied(&map), applied(&Linear::packed(&matrix(2.0), bias, D_IN, D_OUT)));
        let mut none = vec![1.0];
        map.apply(&[], Pace::Sentences, &mut none);
        assert_eq!(none, [0.0; 0]);
    }

    /// The device holds weights of another width: of 20 numbers candle makes five rows of four, whose products are too many, and no rows of
    /// three, which it says itself.
    #[test]
    fn a_product_that_the_device_refuses_is_made_here_and_told() {
        for (width, told) in [(4, "15 numbers"), (3, "shape")] {
            let device = Device::from(DeviceKind::Candle);
            let place = Place::open(&device).expect("candle's CPU");
            let packed = Linear::packed(&matrix(1.0), None, D_IN, D_OUT);
            let expected = applied(&packed);
            let map = Linear { held: place.hold(&matrix(2.0)[..width * D_OUT], width, D_OUT), ..packed };
            assert_eq!(device.trouble(), None);
            assert_eq!(applied(&map), expected);
            assert!(device.trouble().is_some_and(|why| why.contains(told)), "{:?}", device.trouble());
        }
    }

    /// Fifteen numbers are no four by four: it is told, and nothing is held.
    #[test]
    fn weights_that_a_device_does_not_take_stay_here() {
        let device = Device::from(DeviceKind::Candle);
        let place = Place::open(&device).expect("candle's CPU");
        assert!(place.hold(&matrix(1.0), 4, 4).is_none());
        assert!(device.trouble().is_some(), "it is told");
    }

    /// As models are read: every map goes to the place of its weights.
    #[test]
    fn maps_are_held_where_they_are_read() {
        let place = Place::open(&DeviceKind::Candle.into()).expect("candle's CPU");
        assert!(Linear::of(&matrix(1.0), None, D_IN, D_OUT, &place).held.is_some());
        let cpu = Place::open(&DeviceKind::Cpu.into()).expect("the CPU");
        assert!(Linear::of(&matrix(1.0), None, D_IN, D_OUT, &cpu).held.is_none());
    }
}
