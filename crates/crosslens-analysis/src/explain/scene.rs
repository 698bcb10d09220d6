//! What a sentence's source looks or sounds like, where it is no text.

use serde::{Deserialize, Serialize};

use crate::Token;

/// Largest sound of a scene: a window of 30 s, 16 kHz, mono, 16 bit has 960 kB.
pub const MAX_WAVE_BYTES: usize = 2 << 20;
/// Largest picture of a scene, compressed.
pub const MAX_PICTURE_BYTES: usize = 4 << 20;
/// Longest side of a picture, in pixels: what a few bytes unfold to in a browser.
pub const MAX_PICTURE_SIDE: u32 = 4096;
/// Most levels of a spectrum: 30 s in 3000 frames of 128 bands are 384,000.
pub const MAX_LEVELS: usize = 1 << 20;

/// What the source of one sentence looks or sounds like.
#[derive(Clone, Debug, PartialEq)]
pub enum Scene {
    /// A sound; step `k` of the source begins at `k · seconds_per_step`.
    Sound {
        /// Seconds from step to step.
        seconds_per_step: f64,
        /// Steps that are sound; those behind them are padding.
        n_steps: usize,
        /// How loud it is, by time and pitch.
        spectrum: Spectrum,
        /// The sound itself as a small WAV file.
        wave: Option<Vec<u8>>,
        /// When each word is said, where that is known.
        words: Vec<SceneWord>,
        /// The monotone alignment: target row and source step, from the first to the last.
        path: Vec<(u32, u32)>,
    },
    /// A picture; the first `n_special` steps are no patches, then come `rows × columns` patches, row by row.
    Picture {
        /// The picture as the model sees it, all patches and nothing beside them, as a PNG file.
        png: Vec<u8>,
        /// Steps before the patches.
        n_special: usize,
        /// Patches from top to bottom.
        rows: usize,
        /// Patches from left to right.
        columns: usize,
    },
}

/// How loud a sound is, by time and pitch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectrum {
    /// Seconds from frame to frame; the first begins with the sound.
    pub seconds_per_frame: f64,
    /// Bands of a frame, the lowest pitch first.
    pub n_bands: usize,
    /// `[frame, band]`, 0 the softest and 255 the loudest.
    pub levels: Vec<u8>,
}

impl Spectrum {
    /// Levels of numbers such as logarithms of energies, `[frame, band]`: the least becomes 0, the largest 255. What is not finite is silent.
    pub fn of(values: &[f32], n_bands: usize, seconds_per_frame: f64) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (least, most) = (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max));
        let range = most - least;
        let level = |&value: &f32| if range > 0.0 && value.is_finite() { ((value - least) / range * 255.0).round() as u8 } else { 0 };
        Self { seconds_per_frame, n_bands, levels: values.iter().map(level).collect() }
    }

    /// Frames it has.
    pub fn n_frames(&self) -> usize {
        self.levels.len() / self.n_bands.max(1)
    }
}

/// A word and when it is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SceneWord {
    /// The word.
    pub text: String,
    /// When it begins, in seconds.
    pub start: f64,
    /// When it ends, in seconds.
    pub end: f64,
    /// The first row of the decoder that writes it.
    pub first_row: usize,
    /// The last one.
    pub last_row: usize,
}

/// Where a code of the source, which has no name that says anything, is found at its purest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeExamples {
    /// The code, a token of the source.
    pub code: Token,
    /// The frames or patches nearest to it, nearest first.
    pub examples: Vec<CodeExample>,
}

/// One frame or patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeExample {
    /// The sentence, by its place in the report.
    pub sample: usize,
    /// The step of its source.
    pub step: usize,
}

/// Why a scene does not belong to a sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// A number of seconds that is no length.
    #[error("{what} must be a number of seconds above 0, not {found}")]
    Seconds {
        /// Which one.
        what: &'static str,
        /// What it is.
        found: f64,
    },
    /// More steps than the source has.
    #[error("{n_steps} steps of sound are more than the {n_source} of the source")]
    Steps {
        /// Steps said to be sound.
        n_steps: usize,
        /// Steps of the source.
        n_source: usize,
    },
    /// Patches that are not those of the source.
    #[error("{n_special} special steps and {rows} × {columns} patches are not the {n_source} steps of the source")]
    Patches {
        /// Steps before the patches.
        n_special: usize,
        /// From top to bottom.
        rows: usize,
        /// From left to right.
        columns: usize,
        /// Steps of the source.
        n_source: usize,
    },
    /// Levels that are no whole frames.
    #[error("a spectrum of {n_levels} levels has no whole frames of {n_bands} bands")]
    Frames {
        /// Levels.
        n_levels: usize,
        /// Bands of a frame.
        n_bands: usize,
    },
    /// More than a page should hold.
    #[error("{what} of {found} is larger than {limit}; make it smaller")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The largest that is taken.
        limit: usize,
    },
    /// Bytes that are no file of their kind.
    #[error("{what} is no {kind} file")]
    NoFile {
        /// What.
        what: &'static str,
        /// What it should be.
        kind: &'static str,
    },
    /// A word that lies nowhere.
    #[error(
        "word {word} runs from {start} s to {end} s in rows {first_row} to {last_row}, which is not within the {n_rows} rows of the sentence"
    )]
    Word {
        /// Its number.
        word: usize,
        /// When it begins.
        start: f64,
        /// When it ends.
        end: f64,
        /// Where it begins.
        first_row: usize,
        /// Where it ends.
        last_row: usize,
        /// Rows of the sentence.
        n_rows: usize,
    },
    /// A step of the alignment that lies nowhere.
    #[error("the path goes through row {row} and step {step}, outside of {n_rows} rows and {n_source} steps")]
    Path {
        /// Its row.
        row: u32,
        /// Its step.
        step: u32,
        /// Rows of the sentence.
        n_rows: usize,
        /// Steps of the source.
        n_source: usize,
    },
}

impl Scene {
    /// Whether it is one of a sentence with `n_source` steps of the source and `n_rows` of the decoder.
    pub fn check(&self, n_source: usize, n_rows: usize) -> Result<(), SceneError> {
        match self {
            Self::Sound { seconds_per_step, n_steps, spectrum, wave, words, path } => {
                is_length("`seconds_per_step`", *seconds_per_step)?;
                if *n_steps > n_source {
                    return Err(SceneError::Steps { n_steps: *n_steps, n_source });
                }
                spectrum.check()?;
                if let Some(wave) = wave {
                    check_wave(wave)?;
                }
                for (word, &SceneWord { start, end, first_row, last_row, .. }) in words.iter().enumerate() {
                    let is_time = start.is_finite() && end.is_finite() && 0.0 <= start && start <= end;
                    if !is_time || first_row > last_row || last_row >= n_rows {
                        return Err(SceneError::Word { word, start, end, first_row, last_row, n_rows });
                    }
                }
                let outside = path.iter().find(|&&(row, step)| row as usize >= n_rows || step as usize >= n_source);
                outside.map_or(Ok(()), |&(row, step)| Err(SceneError::Path { row, step, n_rows, n_source }))
            }
            Self::Picture { png, n_special, rows, columns } => {
                let n_steps = rows.checked_mul(*columns).filter(|&n| n > 0).and_then(|n| n.checked_add(*n_special));
                if n_steps != Some(n_source) {
                    return Err(SceneError::Patches { n_special: *n_special, rows: *rows, columns: *columns, n_source });
                }
                check_picture(png)
            }
        }
    }
}

impl Spectrum {
    fn check(&self) -> Result<(), SceneError> {
        let n_levels = self.levels.len();
        if n_levels > MAX_LEVELS {
            return Err(SceneError::TooLarge { what: "a spectrum", found: n_levels, limit: MAX_LEVELS });
        }
        if n_levels > 0 && (self.n_bands == 0 || !n_levels.is_multiple_of(self.n_bands)) {
            return Err(SceneError::Frames { n_levels, n_bands: self.n_bands });
        }
        if n_levels == 0 { Ok(()) } else { is_length("`seconds_per_frame`", self.seconds_per_frame) }
    }
}

fn is_length(what: &'static str, found: f64) -> Result<(), SceneError> {
    if found.is_finite() && found > 0.0 { Ok(()) } else { Err(SceneError::Seconds { what, found }) }
}

fn check_wave(wave: &[u8]) -> Result<(), SceneError> {
    if wave.len() > MAX_WAVE_BYTES {
        return Err(SceneError::TooLarge { what: "a sound", found: wave.len(), limit: MAX_WAVE_BYTES });
    }
    let is_wave = wave.starts_with(b"RIFF") && wave.get(8..12) == Some(b"WAVE");
    if is_wave { Ok(()) } else { Err(SceneError::NoFile { what: "the sound", kind: "WAV" }) }
}

fn check_picture(png: &[u8]) -> Result<(), SceneError> {
    if png.len() > MAX_PICTURE_BYTES {
        return Err(SceneError::TooLarge { what: "a picture", found: png.len(), limit: MAX_PICTURE_BYTES });
    }
    let (width, height) = png_size(png).ok_or(SceneError::NoFile { what: "the picture", kind: "PNG" })?;
    let longest = width.max(height);
    if longest > MAX_PICTURE_SIDE {
        return Err(SceneError::TooLarge { what: "a picture's side", found: longest as usize, limit: MAX_PICTURE_SIDE as usize });
    }
    Ok(())
}

/// A picture's width and height stand in its first chunk: eight bytes of signature, four of length, `IHDR`, then they.
pub(crate) fn png_size(png: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| png.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes).filter(|&side| side > 0);
    let is_picture = png.starts_with(b"\x89PNG\r\n\x1a\n") && png.get(12..16) == Some(b"IHDR");
    if is_picture { Some((side(16)?, side(20)?)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes()].concat()
    }

    fn picture(png: Vec<u8>) -> Scene {
        Scene::Picture { png, n_special: 1, rows: 2, columns: 3 }
    }

    fn sound(change: impl FnOnce(&mut f64, &mut Spectrum, &mut Vec<SceneWord>, &mut Vec<(u32, u32)>)) -> Scene {
        let mut seconds = 0.02;
        let mut spectrum = Spectrum { seconds_per_frame: 0.01, n_bands: 2, levels: vec![0, 9, 9, 0] };
        let mut words = vec![SceneWord { text: "cat".into(), start: 0.0, end: 0.05, first_row: 0, last_row: 1 }];
        let mut path = vec![(0, 0), (1, 2)];
        change(&mut seconds, &mut spectrum, &mut words, &mut path);
        let wave = Some(b"RIFF\0\0\0\0WAVEfmt ".to_vec());
        Scene::Sound { seconds_per_step: seconds, n_steps: 3, spectrum, wave, words, path }
    }

    #[test]
    fn scenes_fit_their_sentence_or_are_refused() {
        assert_eq!(picture(png(30, 20)).check(7, 2), Ok(()));
        assert!(matches!(picture(png(30, 20)).check(8, 2), Err(SceneError::Patches { n_source: 8, .. })));
        assert!(matches!(picture(b"GIF89a".to_vec()).check(7, 2), Err(SceneError::NoFile { kind: "PNG", .. })));
        assert!(matches!(picture(png(30, 1 << 20)).check(7, 2), Err(SceneError::TooLarge { what: "a picture's side", .. })));
        let all = Scene::Picture { png: png(1, 1), n_special: 1, rows: usize::MAX, columns: 2 };
        assert!(matches!(all.check(7, 2), Err(SceneError::Patches { .. })));
        assert_eq!(sound(|_, _, _, _| ()).check(5, 2), Ok(()));
        assert!(matches!(sound(|_, _, _, _| ()).check(2, 2), Err(SceneError::Steps { n_steps: 3, .. })));
        assert!(matches!(sound(|seconds, _, _, _| *seconds = f64::NAN).check(5, 2), Err(SceneError::Seconds { .. })));
        assert!(matches!(sound(|_, spectrum, _, _| spectrum.n_bands = 3).check(5, 2), Err(SceneError::Frames { .. })));
        assert!(matches!(sound(|_, spectrum, _, _| spectrum.seconds_per_frame = 0.0).check(5, 2), Err(SceneError::Seconds { .. })));
        assert!(matches!(sound(|_, _, words, _| words[0].last_row = 2).check(5, 2), Err(SceneError::Word { word: 0, .. })));
        assert!(matches!(sound(|_, _, words, _| words[0].end = -1.0).check(5, 2), Err(SceneError::Word { .. })));
        assert!(matches!(sound(|_, _, _, path| path.push((1, 5))).check(5, 2), Err(SceneError::Path { step: 5, .. })));
    }

    #[test]
    fn pictures_and_spectra_beyond_the_limits_are_refused() {
        let mut large = png(30, 20);
        large.resize(MAX_PICTURE_BYTES, 0);
        assert_eq!(picture(large.clone()).check(7, 2), Ok(()));
        large.push(0);
        let message = picture(large).check(7, 2).expect_err("one byte too many").to_string();
        assert_eq!(message, "a picture of 4194305 is larger than 4194304; make it smaller");
        let levels = |n: usize| sound(|_, spectrum, _, _| spectrum.levels = vec![0; n]).check(5, 2);
        assert_eq!(levels(MAX_LEVELS), Ok(()));
        assert!(matches!(levels(MAX_LEVELS + 2), Err(SceneError::TooLarge { what: "a spectrum", limit: MAX_LEVELS, .. })));
    }

    #[test]
    fn thirty_seconds_of_sound_are_allowed_and_minutes_are_not() {
        let wave = |n_bytes: usize| [&b"RIFF\0\0\0\0WAVE"[..], &vec![0; n_bytes]].concat();
        assert_eq!(check_wave(&wave(44 + 30 * 16_000 * 2)), Ok(()));
        assert!(matches!(check_wave(&wave(120 * 16_000 * 2)), Err(SceneError::TooLarge { .. })));
    }

    #[test]
    fn levels_run_from_the_softest_to_the_loudest() {
        let spectrum = Spectrum::of(&[-4.0, -2.0, 0.0, f32::NEG_INFINITY, f32::NAN, -4.0], 2, 0.01);
        assert_eq!((spectrum.levels.as_slice(), spectrum.n_frames()), (&[0, 128, 255, 0, 0, 0][..], 3));
        assert_eq!(Spectrum::of(&[1.0, 1.0], 2, 0.01).levels, [0, 0], "no range, no level");
    }
}
