//! Resizes pictures with Pillow's filters and rounding, to the same bytes.

use std::f64::consts::PI;
use std::ops::Range;

use super::read::Picture;

/// Bits behind the point of a weight: 8 of 32 are the value's, two are left for filters that overshoot.
const PRECISION: u32 = 32 - 8 - 2;

/// How the pixels around a place are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Nearest,
    Lanczos,
    Bilinear,
    Bicubic,
    Box,
    Hamming,
}

impl Filter {
    /// All, at the place of Pillow's number.
    pub(super) const ALL: [Self; 6] = [Self::Nearest, Self::Lanczos, Self::Bilinear, Self::Bicubic, Self::Box, Self::Hamming];

    /// How far it reaches to both sides, in pixels of the smaller picture.
    fn reach(self) -> f64 {
        match self {
            Self::Nearest | Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The weight of a pixel at a distance.
    fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) };
        match self {
            Self::Nearest | Self::Box => f64::from(u8::from(distance > -0.5 && distance <= 0.5)),
            Self::Bilinear => (1.0 - x).max(0.0),
            // Cubic convolution with a = −1/2, which is Catmull and Rom's.
            Self::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5,
            Self::Lanczos if (-3.0..3.0).contains(&distance) => sinc(distance) * sinc(distance / 3.0),
            // Pillow's two constants are of single precision.
            Self::Hamming if x < 1.0 => sinc(x) * (f64::from(0.54_f32) + f64::from(0.46_f32) * (x * PI).cos()),
            Self::Bicubic | Self::Lanczos | Self::Hamming => 0.0,
        }
    }
}

/// A picture of `height` × `width` pixels, as `Image.resize` of Pillow makes it: one direction first, rounded to bytes, then the other. A
/// direction whose size stays is left alone.
///
/// ```text
/// columns first   if the height shrinks, and by more than twice what the width does
/// rows first      otherwise
/// ```
/// That is Pillow from version 13 on, found by measuring it. Earlier ones always begin with rows; where these begin with columns, most bytes
/// are the same and the others differ by 1, by more only at hard edges under filters that overshoot.
pub(super) fn resize(picture: &Picture, height: usize, width: usize, filter: Filter) -> Picture {
    if filter == Filter::Nearest {
        return nearest(picture, height, width);
    }
    let across = |picture: &Picture| rows(picture, &Weights::new(picture.width(), width, filter));
    let down = |picture: &Picture| columns(picture, &Weights::new(picture.height(), height, filter));
    match (width != picture.width(), height != picture.height()) {
        (false, false) => picture.clone(),
        (true, false) => across(picture),
        (false, true) => down(picture),
        (true, true) if picture.height() > height && picture.height() + 2 * width > height + 2 * picture.width() => across(&down(picture)),
        (true, true) => down(&across(picture)),
    }
}

/// For every pixel of the result the pixels it is made of and what they weigh, as whole numbers over `2^PRECISION`.
struct Weights {
    spans: Vec<Range<usize>>,
    /// One after the other, as many as the spans are long.
    values: Vec<i32>,
}

impl Weights {
    /// ```text
    /// s      = size / n            centre of pixel i: c = (i + ½)·s
    /// w[i,x] ∝ filter((x + ½ − c) / max(s, 1)),  Σ_x w[i,x] = 1
    /// ```
    fn new(size: usize, n: usize, filter: Filter) -> Self {
        let scale = size as f64 / n as f64;
        let filter_scale = scale.max(1.0);
        let reach = filter.reach() * filter_scale;
        let (mut spans, mut values) = (Vec::with_capacity(n), Vec::new());
        for place in 0..n {
            let centre = (place as f64 + 0.5) * scale;
            // Conversion cuts towards zero, and negative numbers off.
            let span = (centre - reach + 0.5) as usize..((centre + reach + 0.5) as usize).min(size);
            let weight = |x: usize| filter.weight((x as f64 - centre + 0.5) * (1.0 / filter_scale));
            let total: f64 = span.clone().map(weight).sum();
            let share = |weight: f64| if total == 0.0 { weight } else { weight / total };
            values.extend(span.clone().map(|x| (share(weight(x)) * f64::from(1 << PRECISION)).round() as i32));
            spans.push(span);
        }
        Self { spans, values }
    }

    fn iter(&self) -> impl Iterator<Item = (&Range<usize>, &[i32])> {
        let mut rest = self.values.as_slice();
        self.spans.iter().map(move |span| {
            let (weights, others) = rest.split_at(span.len());
            rest = others;
            (span, weights)
        })
    }
}

/// Half of the last bit that is kept, so that cutting the others off rounds.
const HALF: i32 = 1 << (PRECISION - 1);

fn byte(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Every row made as long as there are weights.
fn rows(picture: &Picture, weights: &Weights) -> Picture {
    let width = weights.spans.len();
    let mut rgb = Vec::with_capacity(picture.height() * width * 3);
    for row in picture.rgb().chunks_exact(picture.width() * 3) {
        for (span, weights) in weights.iter() {
            let mut sums = [HALF; 3];
            for (pixel, weight) in row[span.start * 3..span.end * 3].chunks_exact(3).zip(weights) {
                sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += i32::from(value) * weight);
            }
            rgb.extend(sums.map(byte));
        }
    }
    Picture::of(picture.height(), width, rgb)
}

/// Every column made as long as there are weights.
fn columns(picture: &Picture, weights: &Weights) -> Picture {
    let n_values = picture.width() * 3;
    let mut rgb = Vec::with_capacity(weights.spans.len() * n_values);
    let mut sums = vec![HALF; n_values];
    for (span, weights) in weights.iter() {
        sums.fill(HALF);
        for (row, weight) in picture.rgb()[span.start * n_values..span.end * n_values].chunks_exact(n_values).zip(weights) {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += i32::from(value) * weight);
        }
        rgb.extend(sums.iter().map(|&sum| byte(sum)));
    }
    Picture::of(weights.spans.len(), picture.width(), rgb)
}

/// The pixel under the centre of each. Pillow adds the step up from pixel to pixel, and so do we: products round to others.
fn nearest(picture: &Picture, height: usize, width: usize) -> Picture {
    let places = |size: usize, n: usize| -> Vec<usize> {
        let step = size as f64 / n as f64;
        std::iter::successors(Some(0.0 + step * 0.5), |place| Some(place + step))
            .take(n)
            .map(|place| (place as usize).min(size - 1))
            .collect()
    };
    let columns = places(picture.width(), width);
    let row_of = |row: usize| &picture.rgb()[row * picture.width() * 3..][..picture.width() * 3];
    let rows = places(picture.height(), height).into_iter().map(row_of);
    let rgb = rows.flat_map(|row| columns.iter().flat_map(move |&column| &row[column * 3..][..3])).copied().collect();
    Picture::of(height, width, rgb)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 0 and 255 beside each other, made twice as long: centres at ¼, ¾, … of a pixel, so 0, 255·¼, 255·¾, 255.
    #[test]
    fn bilinear_mixes_by_distance() {
        let picture = Picture::of(1, 2, vec![0, 0, 0, 255, 255, 255]);
        let long = resize(&picture, 1, 4, Filter::Bilinear);
        assert_eq!(long.rgb().iter().step_by(3).copied().collect::<Vec<_>>(), [0, 64, 191, 255]);
    }

    #[test]
    fn the_same_size_is_the_same_picture() {
        let picture = Picture::of(2, 1, vec![1, 2, 3, 4, 5, 6]);
        for filter in Filter::ALL {
            assert_eq!(resize(&picture, 2, 1, filter), picture, "{filter:?}");
        }
    }

    proptest! {
        /// One colour stays that colour, up to the rounding of weights; hard edges overflow nothing.
        #[test]
        fn one_colour_stays_and_edges_do_no_harm(
            size in (1_usize..40, 1_usize..40), target in (1_usize..60, 1_usize..60), colour: [u8; 3], filter in 0_usize..6, black: u64,
        ) {
            let plain = Picture::of(size.0, size.1, colour.repeat(size.0 * size.1));
            let resized = resize(&plain, target.0, target.1, Filter::ALL[filter]);
            prop_assert_eq!((resized.height(), resized.width()), target);
            for pixel in resized.rgb().chunks_exact(3) {
                prop_assert!(pixel.iter().zip(colour).all(|(&value, wanted)| value == wanted), "{pixel:?} {colour:?}");
            }

            let edges = (0..size.0 * size.1 * 3).map(|at| if black >> (at % 61) & 1 == 0 { 0 } else { 255 }).collect();
            let resized = resize(&Picture::of(size.0, size.1, edges), target.0, target.1, Filter::ALL[filter]);
            prop_assert_eq!(resized.rgb().len(), target.0 * target.1 * 3);
        }
    }
}
