//! How Whisper's encoder begins: two convolutions over the frames of a log-mel spectrum.

use super::Sense;
use crate::PretrainedError;
use crate::layers::{Activation, Linear, Pace};
use crate::weights::Weights;

/// Frames that one vector of a convolution sees.
const WIDTH: usize = 3;

/// A convolution of width 3 along the steps, with one step of zeros before and after: a linear map of three steps side by side.
struct Convolution {
    map: Linear,
    d_in: usize,
    stride: usize,
}

impl Convolution {
    fn read(weights: &mut Weights, name: &str, d_in: usize, d_out: usize, stride: usize) -> Result<Self, PretrainedError> {
        let matrix = weights.read(&format!("{name}.weight"), &[d_out, d_in, WIDTH])?;
        let bias = weights.read(&format!("{name}.bias"), &[d_out])?;
        // From [out, in, tap] to [out, tap · in]: the taps are neighbouring rows of what is read.
        let mut by_tap = Vec::with_capacity(matrix.len());
        for output in matrix.chunks_exact(d_in * WIDTH) {
            (0..WIDTH).for_each(|tap| by_tap.extend((0..d_in).map(|input| output[input * WIDTH + tap])));
        }
        Ok(Self { map: Linear::of(&by_tap, Some(bias), d_in * WIDTH, d_out, &weights.place), d_in, stride })
    }

    fn n_steps(&self, n_frames: usize) -> usize {
        n_frames.div_ceil(self.stride)
    }

    /// `[frames, d_in]` to `[steps, d_out]`.
    fn apply(&self, frames: &[f32], result: &mut Vec<f32>) {
        let (d, n_frames) = (self.d_in, frames.len() / self.d_in);
        let mut padded = vec![0.0; (n_frames + 2) * d];
        padded[d..(n_frames + 1) * d].copy_from_slice(frames);
        let mut side_by_side = Vec::with_capacity(self.n_steps(n_frames) * WIDTH * d);
        for step in 0..self.n_steps(n_frames) {
            let first = step * self.stride * d;
            side_by_side.extend_from_slice(&padded[first..first + WIDTH * d]);
        }
        self.map.apply(&side_by_side, Pace::Sentences, result);
    }
}

/// Two convolutions with a nonlinear function after each; the second passes over every other step.
pub(crate) struct Hearing {
    first: Convolution,
    second: Convolution,
    activation: Activation,
    n_mels: usize,
    n_frames: usize,
}

impl Hearing {
    /// Reads `name.conv1` and `name.conv2`, which make `n_steps` vectors of a sound.
    pub(crate) fn read(
        weights: &mut Weights,
        name: &str,
        (n_mels, d, n_steps): (usize, usize, usize),
        activation: Activation,
    ) -> Result<Self, PretrainedError> {
        let first = Convolution::read(weights, &format!("{name}.conv1"), n_mels, d, 1)?;
        let second = Convolution::read(weights, &format!("{name}.conv2"), d, d, 2)?;
        Ok(Self { first, second, activation, n_mels, n_frames: 2 * n_steps })
    }
}

impl Sense for Hearing {
    fn d(&self) -> usize {
        self.second.map.d_out()
    }

    fn n_steps(&self, n_values: usize) -> Option<usize> {
        (n_values == self.n_frames * self.n_mels).then(|| self.second.n_steps(self.n_frames))
    }

    fn expects(&self) -> String {
        format!("{} frames of {} mels", self.n_frames, self.n_mels)
    }

    /// `values` are frames of mels, `[frames, mels]`.
    fn rows(&self, values: &[f32]) -> Vec<f32> {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        self.first.apply(values, &mut once);
        self.activation.apply(&mut once);
        self.second.apply(&once, &mut twice);
        self.activation.apply(&mut twice);
        twice
    }
}
