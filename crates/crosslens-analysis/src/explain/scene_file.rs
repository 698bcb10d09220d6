//! Scenes in `report.samples.safetensors`: the header says what they are, arrays hold their bytes.

use safetensors::tensor::Dtype as Kind;
use serde::{Deserialize, Serialize};

use super::load::SampleFile;
use super::scene::{CodeExamples, MAX_LEVELS, MAX_PICTURE_BYTES, MAX_WAVE_BYTES, Scene, SceneWord, Spectrum};
use super::{Sample, Samples};
use crate::storage::dtype::Dtype;
use crate::{Recorded, RecordingError};

/// What the header's `scenes` says of one sentence; bytes and path are arrays `samples.{i}.scene.…`.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Outline {
    /// With the arrays `spectrum` `[frame, band]`, `path` `[places, 2]` and, where the sound itself is there, `wave` `[bytes]`.
    Sound { seconds_per_step: f64, n_steps: usize, seconds_per_frame: f64, words: Vec<SceneWord> },
    /// With the array `png` `[bytes]`.
    Picture { n_special: usize, rows: usize, columns: usize },
}

fn outline(scene: &Scene) -> Outline {
    match scene {
        Scene::Sound { seconds_per_step, n_steps, spectrum, words, .. } => Outline::Sound {
            seconds_per_step: *seconds_per_step,
            n_steps: *n_steps,
            seconds_per_frame: spectrum.seconds_per_frame,
            words: words.clone(),
        },
        Scene::Picture { n_special, rows, columns, .. } => Outline::Picture { n_special: *n_special, rows: *rows, columns: *columns },
    }
}

fn name(sample: usize, what: &str) -> String {
    format!("samples.{sample}.scene.{what}")
}

/// Adds the arrays of all scenes.
pub(super) fn append(sentences: &[Sample], arrays: &mut Vec<(String, Kind, Vec<usize>, Vec<u8>)>) {
    for (number, sample) in sentences.iter().enumerate() {
        let mut bytes = |what: &str, shape: Vec<usize>, bytes: &[u8]| arrays.push((name(number, what), Kind::U8, shape, bytes.to_vec()));
        match &sample.scene {
            None => {}
            Some(Scene::Sound { spectrum, wave, path, .. }) => {
                let n_frames = spectrum.n_frames();
                bytes("spectrum", vec![n_frames, spectrum.n_bands], &spectrum.levels[..n_frames * spectrum.n_bands]);
                if let Some(wave) = wave {
                    bytes("wave", vec![wave.len()], wave);
                }
                let places = path.iter().flat_map(|&(row, step)| [row, step]).flat_map(u32::to_le_bytes).collect();
                arrays.push((name(number, "path"), Kind::U32, vec![path.len(), 2], places));
            }
            Some(Scene::Picture { png, .. }) => bytes("png", vec![png.len()], png),
        }
    }
}

/// What the header says of scenes and codes; nothing where there are none, so that files of text are as they ever were.
pub(super) fn metadata(samples: &Samples) -> Vec<(String, String)> {
    let mut said = Vec::new();
    let json = |value: serde_json::Result<String>| value.expect("numbers and text only");
    if samples.sentences.iter().any(|sample| sample.scene.is_some()) {
        let scenes: Vec<_> = samples.sentences.iter().map(|sample| sample.scene.as_ref().map(outline)).collect();
        said.push(("scenes".to_owned(), json(serde_json::to_string(&scenes))));
    }
    if !samples.codes.is_empty() {
        said.push(("codes".to_owned(), json(serde_json::to_string(&samples.codes))));
    }
    said
}

impl SampleFile {
    /// The scene of a sentence, which must be one of it.
    pub(super) fn scene(&self, number: usize, outline: Outline, sentence: &Recorded) -> Result<Scene, RecordingError> {
        let scene = match outline {
            Outline::Sound { seconds_per_step, n_steps, seconds_per_frame, words } => {
                let spectrum = name(number, "spectrum");
                let [_, n_bands] = self.arrays.shape(&spectrum, &[Dtype::U8])?;
                let levels = self.bytes(&spectrum, MAX_LEVELS)?;
                let spectrum = Spectrum { seconds_per_frame, n_bands: n_bands as usize, levels };
                let wave = name(number, "wave");
                let wave = if self.arrays.has(&wave) { Some(self.bytes(&wave, MAX_WAVE_BYTES)?) } else { None };
                Scene::Sound { seconds_per_step, n_steps, spectrum, wave, words, path: self.path(number)? }
            }
            Outline::Picture { n_special, rows, columns } => {
                Scene::Picture { png: self.bytes(&name(number, "png"), MAX_PICTURE_BYTES)?, n_special, rows, columns }
            }
        };
        scene
            .check(sentence.source.len(), sentence.fed.len())
            .map_err(|error| self.damaged(format!("the scene of sentence {number}: {error}")))?;
        Ok(scene)
    }

    fn path(&self, number: usize) -> Result<Vec<(u32, u32)>, RecordingError> {
        let path = name(number, "path");
        let [n_places, _] = self.arrays.shape(&path, &[Dtype::U32])?;
        self.arrays.expect(&path, &[Dtype::U32], [n_places, 2])?;
        let places: Vec<u32> = self.arrays.all(&path)?;
        Ok(places.chunks_exact(2).map(|place| (place[0], place[1])).collect())
    }

    /// An array of bytes, read only if it has no more than it may have.
    fn bytes(&self, name: &str, limit: usize) -> Result<Vec<u8>, RecordingError> {
        self.arrays.expect_dtype(name, &[Dtype::U8])?;
        let n_bytes = self.arrays.axes(name).into_iter().flatten().fold(1u64, |all, &axis| all.saturating_mul(axis));
        if n_bytes > limit as u64 {
            return Err(self.damaged(format!("`{name}` has {n_bytes} bytes, more than {limit}")));
        }
        self.arrays.all(name)
    }

    /// What codes stand for, as far as these sentences show it.
    pub(super) fn codes(&self, sentences: &[Sample]) -> Result<Vec<CodeExamples>, RecordingError> {
        let mut codes: Vec<CodeExamples> = self.json("codes")?;
        for code in &mut codes {
            code.examples.retain(|example| sentences.get(example.sample).is_some_and(|sample| example.step < sample.sentence.source.len()));
        }
        Ok(codes)
    }
}
