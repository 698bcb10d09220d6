//! What a page shows of sounds and pictures: the sound with its spectrum and its alignment, the picture with its patches.

use std::path::Path;

use crosslens_analysis::explain::{Samples, Scene, SceneWord, Spectrum};
use crosslens_analysis::timing::TokenTimes;
use crosslens_analysis::{Recorded, Signal, SiteKind, Token};
use crosslens_pretrained::audio::{HOP, LogMel, SAMPLE_RATE, SoundFile, Windows};
use crosslens_pretrained::speech::row_times;
use crosslens_pretrained::{Grid, PretrainedError};

use crate::eyes::Eyes;
use crate::signals::{Organ, Senses, SignalError};
use crate::{ImportedSentences, PretrainedModel, PretrainedModelError};

/// Steps shown for each code.
const EXAMPLES: usize = 4;
/// Samples of a sound for one step of the encoder.
const STEP: usize = 2 * HOP;

/// When the text of a sentence was said: the rows that write it, and their times.
struct Said {
    rows: Vec<usize>,
    times: TokenTimes,
}

impl PretrainedModel {
    /// Adds to every sentence that is a sound or a picture what it sounds or looks like, and to codes what they stand for.
    pub(crate) fn stage(&self, sentences: &ImportedSentences, samples: &mut Samples) -> Result<(), PretrainedModelError> {
        let Some(senses) = self.senses() else { return Ok(()) };
        for sample in &mut samples.sentences {
            let Some(file) = sentences.file(sample.sentence.number) else { continue };
            sample.scene = self.scene(file, &sample.sentence, &sample.attention)?;
        }
        let shown: Option<Vec<(&Signal, &[Token])>> =
            samples.sentences.iter().map(|sample| Some((sample.sentence.signal.as_ref()?, sample.sentence.source.as_slice()))).collect();
        samples.codes = senses.examples(self.subject(), &shown.unwrap_or_default(), EXAMPLES)?;
        Ok(())
    }

    /// What the file of one sentence sounds or looks like; nothing of a model that reads no files. `attention` is that of all sites.
    pub(crate) fn scene(&self, file: &Path, sentence: &Recorded, attention: &[Vec<f32>]) -> Result<Option<Scene>, PretrainedModelError> {
        match self.senses().map(Senses::organ) {
            None => Ok(None),
            Some(Organ::Ears(ears)) => self.heard(ears, file, sentence, attention).map(Some),
            Some(Organ::Eyes(eyes)) => self.seen(eyes, file).map(Some),
        }
    }

    fn heard(&self, ears: &LogMel, file: &Path, sentence: &Recorded, attention: &[Vec<f32>]) -> Result<Scene, PretrainedModelError> {
        let unreadable = |error| PretrainedModelError::from(SignalError::Sound(error));
        let mut windows = Windows::over(SoundFile::open(file).map_err(unreadable)?);
        let window = windows.window().map_err(unreadable)?.ok_or_else(|| SignalError::Silent { path: file.to_owned() })?;
        let n_steps = window.n_real.div_ceil(STEP);
        let mels = ears.of(window.samples);
        let n_frames = window.n_real.div_ceil(HOP);
        let seconds = |samples: usize| samples as f64 / f64::from(SAMPLE_RATE);
        let written = sentence.target.as_ref().unwrap_or(&sentence.predicted);
        let said = self.said(written, sentence.source.len(), attention, n_steps);
        let (mut words, mut path) = (Vec::new(), Vec::new());
        if let Some(said) = &said {
            words = self.words(written, said, seconds(window.n_real));
            path = said.times.path.cells.iter().map(|cell| (said.rows[cell.row] as u32, cell.column as u32)).collect();
        }
        Ok(Scene::Sound {
            seconds_per_step: seconds(STEP),
            n_steps,
            spectrum: Spectrum::of(&mels[..n_frames * ears.n_mels()], ears.n_mels(), seconds(HOP)),
            wave: Some(wave(&window.samples[..window.n_real])),
            words,
            path,
        })
    }

    fn seen(&self, eyes: &Eyes, file: &Path) -> Result<Scene, PretrainedModelError> {
        let picture = eyes.seen(file).map_err(SignalError::Sight)?;
        let Some(Grid { special, rows, columns, .. }) = self.model().grid() else {
            return Err(PretrainedError::NotASignal { model: self.model().folder().to_owned() }.into());
        };
        Ok(Scene::Picture { png: picture.to_png(), n_special: special, rows, columns })
    }

    /// When each row of text was said, by the heads that follow the sound, as `transcribe --words` finds it; nothing without text, or where
    /// the model's files name heads that it does not have. The row after the last says when that ended, where there is one.
    fn said(&self, written: &[Token], n_frames: usize, attention: &[Vec<f32>], n_real: usize) -> Option<Said> {
        let mut rows: Vec<usize> = (0..written.len()).filter(|&row| self.is_text(written[row])).collect();
        let &last = rows.last()?;
        rows.extend((last + 1 < written.len()).then_some(last + 1));
        let follows = &self.follows()?.heads;
        let sites = self.description().sites.iter().zip(attention);
        let followed = sites.filter(|(site, _)| site.kind == SiteKind::Cross && follows.contains(&(site.layer, site.head)));
        let heads: Vec<&Vec<f32>> = followed.map(|(_, weights)| weights).collect();
        row_times(&heads, n_frames, &rows, n_real).ok().map(|times| Said { rows, times })
    }

    /// Words of what was written, row by row, with their times.
    fn words(&self, written: &[Token], Said { rows, times }: &Said, end: f64) -> Vec<SceneWord> {
        let Some(grouped) = self.spoken_words(written) else { return Vec::new() };
        let starts = times.starts();
        let places: Vec<usize> = (0..rows.len()).filter(|&place| grouped.word_of[rows[place]].is_some()).collect();
        let of_word = |places: &[usize]| {
            let (first, last) = (*places.first()?, *places.last()?);
            let text = grouped.texts.get(grouped.word_of[rows[first]]?)?.clone();
            let start = starts[first].min(end);
            let end = starts.get(last + 1).copied().unwrap_or(end).clamp(start, end);
            Some(SceneWord { text, start, end, first_row: rows[first], last_row: rows[last] })
        };
        places.chunk_by(|&a, &b| grouped.word_of[rows[a]] == grouped.word_of[rows[b]]).filter_map(of_word).collect()
    }
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
