//! What Whisper hears: spectra on a scale of mels, in logarithms.

use std::path::Path;
use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};
use serde_json::Value;

use super::filters::{Filter, mel_filters};
use super::{HOP, SAMPLE_RATE, WINDOW};
use crate::PretrainedError;
use crate::fields::Fields;

/// Samples of a frame: 25 ms.
const FRAME: usize = 400;
/// Whisper has 80 or 128; beyond, triangles would catch no frequency.
const MOST_MELS: usize = 128;
/// What silence counts as.
const FLOOR: f64 = 1e-10;
/// How far below the loudest everything counts as equally silent, in powers of ten.
const DEPTH: f32 = 8.0;

/// Turns samples into log-mel spectra, as `WhisperFeatureExtractor` of transformers does.
///
/// ```text
/// P[t,f] = |Σ_k w[k] · x[160t + k − 200] · e^(−2πifk/400)|²      w[k] = (1 − cos(2πk/400))/2, x mirrored at its ends
/// L[t,m] = log10 max(1e-10, Σ_f filter[m,f] · P[t,f])
/// y[t,m] = (max(L[t,m], max L − 8) + 4)/4
/// ```
/// Frames are computed in double precision: below a loud tone single precision would leave its rounding where silence is.
#[derive(Clone)]
pub struct LogMel {
    n_mels: usize,
    filters: Vec<Filter>,
    /// `[400]`
    window: Vec<f64>,
    fft: Arc<dyn RealToComplex<f64>>,
}

impl std::fmt::Debug for LogMel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LogMel").field("n_mels", &self.n_mels).finish_non_exhaustive()
    }
}

impl LogMel {
    /// Spectra of so many mels, at least 1.
    fn new(n_mels: usize) -> Self {
        let window = (0..FRAME).map(|k| 0.5 - 0.5 * (std::f64::consts::TAU * k as f64 / FRAME as f64).cos()).collect();
        Self { n_mels, filters: mel_filters(n_mels, FRAME / 2 + 1), window, fft: RealFftPlanner::new().plan_fft_forward(FRAME) }
    }

    /// Reads what a model's folder says of its ears: `preprocessor_config.json`, or else the `feature_extractor` of
    /// `processor_config.json`. A missing file or field means what it means to transformers: 80 mels.
    pub fn read(folder: &Path) -> Result<Self, PretrainedError> {
        let fields = extractor_fields(folder)?;
        let kind = fields.text("feature_extractor_type", "WhisperFeatureExtractor")?;
        if kind != "WhisperFeatureExtractor" {
            return Err(fields.wrong("feature_extractor_type", format!("is `{kind}`; only WhisperFeatureExtractor is known here")));
        }
        let fixed = [
            ("sampling_rate", SAMPLE_RATE as usize),
            ("hop_length", HOP),
            ("n_fft", FRAME),
            ("chunk_length", WINDOW / SAMPLE_RATE as usize),
        ];
        for (field, known) in fixed {
            let found = fields.size(field, Some(known))?;
            if found != known {
                return Err(fields.wrong(field, format!("is {found}; models of speech are read with {known}, as every Whisper has it")));
            }
        }
        for field in ["dither", "padding_value"] {
            let found = fields.number(field, 0.0)?;
            if found != 0.0 {
                return Err(fields.wrong(field, format!("is {found}; set it to 0, as every Whisper has it")));
            }
        }
        let n_mels = fields.size("feature_size", Some(80))?;
        if n_mels > MOST_MELS {
            return Err(
                fields.wrong("feature_size", format!("is {n_mels}; at most {MOST_MELS} mels can be told apart, and Whisper has 80 or 128"))
            );
        }
        Ok(Self::new(n_mels))
    }

    /// How many mels a frame has.
    pub fn n_mels(&self) -> usize {
        self.n_mels
    }

    /// The spectra `[n_frames, n_mels]` of samples at 16 kHz, `n_frames = samples/160`: 3000 of a window.
    ///
    /// Fewer than 160 samples have none. Silence comes cheap: a frame of zeros is not transformed, its power being 0.
    pub fn of(&self, samples: &[f32]) -> Vec<f32> {
        let n_frames = samples.len() / HOP;
        let mut spectra = Vec::with_capacity(n_frames * self.n_mels);
        let mut frame = vec![0.0; FRAME];
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut power = vec![0.0; spectrum.len()];
        for t in 0..n_frames {
            if fill(&mut frame, samples, t * HOP) {
                spectra.extend(std::iter::repeat_n(FLOOR.log10() as f32, self.n_mels));
                continue;
            }
            frame.iter_mut().zip(&self.window).for_each(|(sample, weight)| *sample *= weight);
            self.fft.process_with_scratch(&mut frame, &mut spectrum, &mut scratch).expect("all were made for this transform");
            power.iter_mut().zip(&spectrum).for_each(|(power, value)| *power = value.norm_sqr());
            spectra.extend(self.filters.iter().map(|Filter { first, weights }| {
                let energy: f64 = weights.iter().zip(&power[*first..]).map(|(weight, power)| weight * power).sum();
                energy.max(FLOOR).log10() as f32
            }));
        }
        let loudest = spectra.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        spectra.iter_mut().for_each(|value| *value = (value.max(loudest - DEPTH) + 4.0) / 4.0);
        spectra
    }
}

/// Fills the frame around a sample and says whether it is silent throughout.
fn fill(frame: &mut [f64], samples: &[f32], middle: usize) -> bool {
    let inside = middle.checked_sub(FRAME / 2).and_then(|first| samples.get(first..first + FRAME));
    if let Some(inside) = inside {
        frame.iter_mut().zip(inside).for_each(|(place, &sample)| *place = f64::from(sample));
    } else {
        for (k, place) in frame.iter_mut().enumerate() {
            *place = f64::from(samples[mirrored(middle as isize + k as isize - (FRAME / 2) as isize, samples.len())]);
        }
    }
    frame.iter().all(|&sample| sample == 0.0)
}

/// An index beyond an end, mirrored at the sample there: `… 2 1 [0 1 2 … n−1] n−2 n−3 …`.
fn mirrored(index: isize, n: usize) -> usize {
    let period = 2 * (n - 1).max(1);
    let place = index.rem_euclid(period as isize) as usize;
    place.min(period - place).min(n - 1)
}

fn extractor_fields(folder: &Path) -> Result<Fields, PretrainedError> {
    let path = folder.join("preprocessor_config.json");
    if path.exists() {
        return Fields::read(&path);
    }
    let processor = folder.join("processor_config.json");
    if !processor.exists() {
        return Ok(Fields::none(&path));
    }
    let fields = Fields::read(&processor)?;
    match fields.get("feature_extractor") {
        None => Ok(Fields::none(&processor)),
        Some(Value::Object(values)) => Ok(Fields::of(&processor, values.clone())),
        Some(value) => Err(fields.wrong("feature_extractor", format!("is {value}; an object is meant"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{LogMel, mirrored};

    #[test]
    fn ends_are_mirrored_without_being_doubled() {
        let places: Vec<usize> = (-5..8).map(|index| mirrored(index, 3)).collect();
        assert_eq!(places, [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!(mirrored(-200, 1), 0);
    }

    /// Silence is −10 everywhere: (−10 + 4)/4.
    #[test]
    fn silence_is_flat() {
        assert!(LogMel::new(80).of(&[0.0; 1600]).iter().all(|&value| value == -1.5));
    }

    #[test]
    fn short_sounds_have_the_frames_that_begin_in_them() {
        let mel = LogMel::new(80);
        for (n_samples, n_frames) in [(0, 0), (1, 0), (159, 0), (160, 1), (201, 1), (320, 2), (480_000, 3000)] {
            let spectra = mel.of(&vec![0.1; n_samples]);
            assert_eq!(spectra.len(), n_frames * 80, "{n_samples} samples");
            assert!(spectra.iter().all(|value| value.is_finite()));
        }
    }
}
