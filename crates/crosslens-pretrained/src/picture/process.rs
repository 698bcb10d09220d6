//! What is done to a picture before a model sees it.

use std::path::Path;

use super::error::PictureError;
use super::read::Picture;
use super::resize::{Filter, resize};
use super::settings;
use crate::PretrainedError;

/// The most pixels a model is shown, resized and not yet cut: sixteen times what the largest known models look at.
const MAX_SEEN_PIXELS: usize = 1 << 24;

/// What a model does to every picture, as its folder says.
///
/// ```text
/// seen   = centre crop(resize(picture))                       bytes, each step as Pillow and NumPy do it
/// x      = value · rescale factor                             in f64, rounded to f32
/// pixel  = (x − mean[channel]) / deviation[channel]           in f32
/// ```
/// Steps that the folder turns off are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    pub(super) resize: Option<(Target, Filter)>,
    /// Height and width.
    pub(super) crop: Option<(usize, usize)>,
    pub(super) rescale: Option<f64>,
    pub(super) normalise: Option<Normalisation>,
}

/// The size that a picture is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// This size, whatever the picture's shape.
    Exactly { height: usize, width: usize },
    /// The shorter side becomes this long, the other as long as the shape asks for, cut off to a whole number.
    ShortestEdge(usize),
}

/// By channel, what is taken away and what the rest is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normalisation {
    pub(super) mean: [f32; 3],
    pub(super) deviation: [f32; 3],
}

/// A picture as numbers: what a model reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    /// `[3, height, width]`: all of red first.
    pub values: Vec<f32>,
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
}

impl Processor {
    /// Reads `processor_config.json` if that holds an image processor, otherwise `preprocessor_config.json`, of a model's folder.
    ///
    /// # Errors
    ///
    /// If there is none, or one of a kind or with a step that is not known here.
    pub fn read(folder: &Path) -> Result<Self, PretrainedError> {
        settings::read(folder)
    }

    /// The picture as the model reads it.
    ///
    /// # Errors
    ///
    /// If a long and narrow picture would become too large.
    pub fn apply(&self, picture: &Picture) -> Result<Pixels, PictureError> {
        let seen = self.seen(picture)?;
        let mut values = Vec::with_capacity(seen.rgb().len());
        for channel in 0..3 {
            let levels: Vec<f32> = (0..=255).map(|level| self.value(level, channel)).collect();
            values.extend(seen.rgb().iter().skip(channel).step_by(3).map(|&level| levels[usize::from(level)]));
        }
        Ok(Pixels { values, height: seen.height(), width: seen.width() })
    }

    /// The picture that the model sees, before its values are scaled: resized and cut.
    ///
    /// # Errors
    ///
    /// As [`Processor::apply`].
    pub fn seen(&self, picture: &Picture) -> Result<Picture, PictureError> {
        let (height, width) = match self.resize {
            None => (picture.height(), picture.width()),
            Some((Target::Exactly { height, width }, _)) => (height, width),
            Some((Target::ShortestEdge(edge), _)) => with_shortest_edge(picture, edge),
        };
        if height.saturating_mul(width) > MAX_SEEN_PIXELS {
            return Err(PictureError::SeenTooLarge {
                width: picture.width(),
                height: picture.height(),
                seen_width: width,
                seen_height: height,
                limit: MAX_SEEN_PIXELS,
            });
        }
        let resized = match self.resize {
            None => picture.clone(),
            Some((_, filter)) => resize(picture, height, width, filter),
        };
        Ok(match self.crop {
            None => resized,
            Some((height, width)) => centre(&resized, height, width),
        })
    }

    fn value(&self, level: u8, channel: usize) -> f32 {
        let value = self.rescale.map_or(f32::from(level), |factor| (f64::from(level) * factor) as f32);
        self.normalise.map_or(value, |by| (value - by.mean[channel]) / by.deviation[channel])
    }
}

/// Height and width when the shorter side is `edge` long.
fn with_shortest_edge(picture: &Picture, edge: usize) -> (usize, usize) {
    let (height, width) = (picture.height(), picture.width());
    let longest = |long: usize, short: usize| ((edge * long) as f64 / short as f64) as usize;
    if width <= height { (longest(height, width), edge) } else { (edge, longest(width, height)) }
}

/// The middle of a picture; black around it where it is too small.
fn centre(picture: &Picture, height: usize, width: usize) -> Picture {
    let (rows, columns) = (Window::new(picture.height(), height), Window::new(picture.width(), width));
    let mut rgb = vec![0; height * width * 3];
    for row in 0..rows.n {
        let from = ((rows.from + row) * picture.width() + columns.from) * 3;
        let to = ((rows.to + row) * width + columns.to) * 3;
        rgb[to..to + columns.n * 3].copy_from_slice(&picture.rgb()[from..from + columns.n * 3]);
    }
    Picture::of(height, width, rgb)
}

/// What a cut to `wanted` pixels takes from a side of `size`: `n` pixels beginning at `from`, which come to lie at `to`.
struct Window {
    from: usize,
    to: usize,
    n: usize,
}

impl Window {
    /// Of an odd number of pixels to cut the one more goes at the end, of one to fill it goes at the beginning, as transformers has it.
    fn new(size: usize, wanted: usize) -> Self {
        Self { from: size.saturating_sub(wanted) / 2, to: wanted.saturating_sub(size).div_ceil(2), n: size.min(wanted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[u8]) -> Picture {
        Picture::of(1, values.len(), values.iter().flat_map(|&value| [value; 3]).collect())
    }

    fn reds(picture: &Picture) -> Vec<u8> {
        picture.rgb().iter().step_by(3).copied().collect()
    }

    #[test]
    fn the_middle_is_cut_out_or_filled_up() {
        assert_eq!(reds(&centre(&row(&[1, 2, 3, 4]), 1, 2)), [2, 3]);
        assert_eq!(reds(&centre(&row(&[1, 2, 3, 4, 5]), 1, 2)), [2, 3]);
        assert_eq!(reds(&centre(&row(&[1, 2]), 1, 5)), [0, 0, 1, 2, 0]);
        assert_eq!(reds(&centre(&row(&[1, 2]), 2, 1)), [0, 1]);
    }

    /// 20 · 7 / 3 = 46.67, of which 46 are left.
    #[test]
    fn the_longer_side_is_cut_off_to_a_whole_number() {
        let picture = Picture::of(7, 3, vec![0; 63]);
        assert_eq!(with_shortest_edge(&picture, 20), (46, 20));
        assert_eq!(with_shortest_edge(&Picture::of(3, 7, vec![0; 63]), 20), (20, 46));
    }

    #[test]
    fn a_needle_is_refused_before_it_grows() {
        let target = Some((Target::ShortestEdge(4096), Filter::Bicubic));
        let processor = Processor { resize: target, crop: Some((8, 8)), rescale: None, normalise: None };
        let error = processor.apply(&row(&[0; 4000])).expect_err("4096 × 16,384,000 pixels");
        assert!(error.to_string().contains("becomes 16384000 × 4096"), "{error}");
    }
}
