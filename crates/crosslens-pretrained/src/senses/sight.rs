//! How encoders of pictures begin: patches of pixels, each mapped to a vector.

use super::Sense;
use crate::PretrainedError;
use crate::layers::{Linear, Pace};
use crate::weights::Weights;

/// The steps of an encoder of pictures: first those that stand for no place, then the patches, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Steps before the patches.
    pub special: usize,
    /// Patches from top to bottom.
    pub rows: usize,
    /// Patches from left to right.
    pub columns: usize,
    /// Pixels of a picture from top to bottom; those after the last row of patches belong to none.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
}

/// The sizes of pictures and patches, `[height, width]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) n_channels: usize,
    pub(crate) picture: [usize; 2],
    pub(crate) patch: [usize; 2],
}

impl Frame {
    /// Rows and columns of patches; what is left at the edges belongs to none.
    pub(crate) fn cut(self) -> [usize; 2] {
        [self.picture[0] / self.patch[0], self.picture[1] / self.patch[1]]
    }
}

/// Patches that do not overlap, through one linear map of their pixels: a convolution whose kernel is as large as its stride.
pub(crate) struct Sight {
    map: Linear,
    frame: Frame,
    /// Vectors before the patches, `[special, d]`.
    special: Vec<f32>,
}

impl Sight {
    /// Reads the convolution `name` of `d` outputs; `special` are the vectors before the patches, `[special, d]`.
    pub(crate) fn read(weights: &mut Weights, name: &str, frame: Frame, special: Vec<f32>, d: usize) -> Result<Self, PretrainedError> {
        let Frame { n_channels, patch: [height, width], .. } = frame;
        let matrix = weights.read(&format!("{name}.weight"), &[d, n_channels, height, width])?;
        let bias = weights.read(&format!("{name}.bias"), &[d])?;
        Ok(Self { map: Linear::of(&matrix, Some(bias), n_channels * height * width, d, &weights.place), frame, special })
    }

    /// The pixels of each patch, `[patch, channel · row · column]`.
    fn patches(&self, pixels: &[f32]) -> Vec<f32> {
        let Frame { n_channels, picture: [n_rows, n_columns], patch: [height, width] } = self.frame;
        let [rows, columns] = self.frame.cut();
        let mut patches = Vec::with_capacity(rows * columns * self.map.d_in());
        for row in 0..rows {
            for column in 0..columns {
                let lines = (0..n_channels).flat_map(|channel| (0..height).map(move |line| channel * n_rows + row * height + line));
                lines.for_each(|line| patches.extend_from_slice(&pixels[line * n_columns + column * width..][..width]));
            }
        }
        patches
    }
}

impl Sense for Sight {
    fn d(&self) -> usize {
        self.map.d_out()
    }

    fn n_steps(&self, n_values: usize) -> Option<usize> {
        let Frame { n_channels, picture: [height, width], .. } = self.frame;
        let [rows, columns] = self.frame.cut();
        (n_values == n_channels * height * width).then(|| self.special.len() / self.d() + rows * columns)
    }

    fn expects(&self) -> String {
        let Frame { n_channels, picture: [height, width], .. } = self.frame;
        format!("pictures of {width} × {height} pixels with {n_channels} channels")
    }

    /// `values` are `[channel, row, column]`.
    fn rows(&self, values: &[f32]) -> Vec<f32> {
        let (mut rows, mut mapped) = (self.special.clone(), Vec::new());
        self.map.apply(&self.patches(values), Pace::Sentences, &mut mapped);
        rows.append(&mut mapped);
        rows
    }

    fn grid(&self) -> Option<Grid> {
        let [rows, columns] = self.frame.cut();
        let [height, width] = self.frame.picture;
        Some(Grid { special: self.special.len() / self.d(), rows, columns, height, width })
    }
}
