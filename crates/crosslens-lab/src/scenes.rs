//! What a page shows of sounds and pictures: the sound with its spectrum and its alignment, the picture with its patches.

use std::path::Path;

use crosslens_analysis::explain::{CodeExample, CodeExamples, Sample, Samples, Scene, SceneWord, Spectrum};
use crosslens_analysis::timing::{AttentionShape, TokenTimes, TokenTiming, token_times};
use crosslens_analysis::{SiteKind, Token};
use crosslens_pretrained::audio::{HOP, LogMel, SAMPLE_RATE, SoundFile, Windows};
use crosslens_pretrained::picture::{Picture, Processor};
use crosslens_pretrained::speech::AlignmentHeads;
use crosslens_pretrained::{Grid, PretrainedError};

use crate::signals::{Organ, Place, Senses, SignalError};
use crate::{ImportedSentences, PretrainedModel, PretrainedModelError};

/// Steps shown for each code.
const EXAMPLES: usize = 4;
/// Samples of a sound for one step of the encoder.
const STEP: usize = 2 * HOP;

impl PretrainedModel {
    /// Adds to every sentence that is a sound or a picture what it sounds or looks like, and to codes what they stand for.
    pub(crate) fn stage(&self, sentences: &ImportedSentences, samples: &mut Samples) -> Result<(), PretrainedModelError> {
        let Some(senses) = self.senses() else { return Ok(()) };
        for sample in &mut samples.sentences {
            let Some(file) = sentences.file(sample.sentence.number) else { continue };
            sample.scene = self.scene(file, sample)?;
        }
        samples.codes = codes(senses, samples);
        Ok(())
    }

    /// What the file of one sentence sounds or looks like; nothing of a model that reads no files.
    pub(crate) fn scene(&self, file: &Path, sample: &Sample) -> Result<Option<Scene>, PretrainedModelError> {
        match self.senses().map(Senses::organ) {
            None => Ok(None),
            Some(Organ::Ears(ears)) => self.heard(ears, file, sample).map(Some),
            Some(Organ::Eyes(eyes)) => self.seen(eyes, file).map(Some),
        }
    }

    fn heard(&self, ears: &LogMel, file: &Path, sample: &Sample) -> Result<Scene, PretrainedModelError> {
        let unreadable = |error| PretrainedModelError::from(SignalError::Sound(error));
        let mut windows = Windows::over(SoundFile::open(file).map_err(unreadable)?);
        let window = windows.window().map_err(unreadable)?.ok_or_else(|| SignalError::Silent { path: file.to_owned() })?;
        let n_steps = window.n_real.div_ceil(STEP);
        let mels = ears.of(window.samples);
        let n_frames = window.n_real.div_ceil(HOP);
        let seconds = |samples: usize| samples as f64 / f64::from(SAMPLE_RATE);
        let times = self.times(sample, n_steps);
        let path = times
            .as_ref()
            .map_or_else(Vec::new, |times| times.path.cells.iter().map(|cell| (cell.row as u32, cell.column as u32)).collect());
        Ok(Scene::Sound {
            seconds_per_step: seconds(STEP),
            n_steps,
            spectrum: Spectrum::of(&mels[..n_frames * ears.n_mels()], ears.n_mels(), seconds(HOP)),
            wave: Some(wave(&window.samples[..window.n_real])),
            words: times.map_or_else(Vec::new, |times| self.words(&sample.sentence.predicted, &times.starts(), seconds(window.n_real))),
            path,
        })
    }

    fn seen(&self, eyes: &Processor, file: &Path) -> Result<Scene, PretrainedModelError> {
        let picture = Picture::open(file).and_then(|picture| eyes.seen(&picture)).map_err(SignalError::Picture)?;
        let Some(Grid { special, rows, columns, .. }) = self.model().grid() else {
            return Err(PretrainedError::NotASignal { model: self.model().folder().to_owned() }.into());
        };
        Ok(Scene::Picture { png: picture.to_png(), n_special: special, rows, columns })
    }

    /// When each row was said, by the heads that follow the sound; nothing where not all heads are shown.
    fn times(&self, sample: &Sample, n_real: usize) -> Option<TokenTimes> {
        let follows = AlignmentHeads::of(self.model()).ok()?.heads;
        if sample.attention.len() != self.description().sites.len() {
            return None;
        }
        let sites = self.description().sites.iter().enumerate();
        let sites = sites.filter(|(_, site)| site.kind == SiteKind::Cross && follows.contains(&(site.layer, site.head)));
        let heads: Vec<&[f32]> = sites.map(|(number, _)| sample.attention[number].as_slice()).collect();
        let (n_tokens, n_frames) = *sample.shapes.first()?;
        token_times(&heads, AttentionShape { n_tokens, n_frames, n_real }, &TokenTiming::default()).ok()
    }

    /// Words of what was written, row by row, with their times.
    fn words(&self, written: &[Token], starts: &[f64], end: f64) -> Vec<SceneWord> {
        let Some(words) = self.target_words(written) else { return Vec::new() };
        let rows = (0..words.len().min(starts.len())).filter(|&row| words[row].is_some() && self.is_text(written[row]));
        let rows: Vec<usize> = rows.collect();
        let of_word = |rows: &[usize]| {
            let (first_row, last_row) = (*rows.first()?, *rows.last()?);
            let text = self.decode(&written[first_row..=last_row]).ok()?.trim().to_owned();
            let start = starts[first_row].min(end);
            let end = starts.get(last_row + 1).copied().unwrap_or(end).clamp(start, end);
            Some(SceneWord { text, start, end, first_row, last_row })
        };
        rows.chunk_by(|&a, &b| words[a] == words[b]).filter_map(of_word).collect()
    }
}

/// What each code stands for, as far as it is seen in the sentences that are shown.
fn codes(senses: &Senses, samples: &Samples) -> Vec<CodeExamples> {
    let place = |place: &Place| {
        let sample = samples.sentences.iter().position(|sample| sample.sentence.number == place.source as u64)?;
        Some(CodeExample { sample, step: place.step })
    };
    let of_code =
        |(code, examples): (usize, Vec<Place>)| CodeExamples { code: code as Token, examples: examples.iter().filter_map(place).collect() };
    senses.examples(EXAMPLES).into_iter().enumerate().map(of_code).filter(|code| !code.examples.is_empty()).collect()
}

/// A WAV file of 16 kHz, one channel, 16 bit.
fn wave(samples: &[f32]) -> Vec<u8> {
    let n_bytes = 2 * samples.len() as u32;
    let mut file = Vec::with_capacity(44 + n_bytes as usize);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + n_bytes).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    // PCM, one channel.
    file.extend_from_slice(&[1, 0, 1, 0]);
    file.extend_from_slice(&SAMPLE_RATE.to_le_bytes());
    file.extend_from_slice(&(2 * SAMPLE_RATE).to_le_bytes());
    // Bytes and bits of a sample.
    file.extend_from_slice(&[2, 0, 16, 0]);
    file.extend_from_slice(b"data");
    file.extend_from_slice(&n_bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|&sample| ((sample.clamp(-1.0, 1.0) * 32767.0).round() as i16).to_le_bytes()));
    file
}
