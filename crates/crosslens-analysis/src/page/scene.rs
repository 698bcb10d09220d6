//! What a page says of a sound or a picture: JSON in which files are `data:` addresses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::explain::{CodeExamples, Samples, Scene, Spectrum, png_size};

/// A sentence's scene; `null` where it has none, or one that is not of `n_source` steps and `n_rows` rows.
pub(super) fn scene_json(scene: Option<&Scene>, n_source: usize, n_rows: usize) -> Value {
    match scene.filter(|scene| scene.check(n_source, n_rows).is_ok()) {
        None => Value::Null,
        Some(Scene::Sound { seconds_per_step, n_steps, spectrum, wave, words, path }) => json!({
            "kind": "sound",
            "seconds_per_step": seconds_per_step,
            "n_steps": n_steps,
            "spectrum": spectrum_json(spectrum),
            "wave": wave.as_ref().map(|wave| address("audio/wav", wave)),
            "words": words,
            "path": path,
        }),
        Some(Scene::Picture { png, n_special, rows, columns }) => {
            let (width, height) = png_size(png).unwrap_or_default();
            json!({
                "kind": "picture",
                "png": address("image/png", png),
                "width": width,
                "height": height,
                "n_special": n_special,
                "rows": rows,
                "columns": columns,
            })
        }
    }
}

fn spectrum_json(spectrum: &Spectrum) -> Value {
    json!({
        "seconds_per_frame": spectrum.seconds_per_frame,
        "n_bands": spectrum.n_bands,
        "levels": STANDARD.encode(&spectrum.levels),
    })
}

fn address(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}

/// Where codes of the source are found at their purest, by their names: `[{ "name", "examples": [{ "sample", "step" }] }]`.
pub fn codes_json(samples: &Samples) -> Value {
    let code = |code: &CodeExamples| json!({ "name": samples.source.name(code.code), "examples": code.examples });
    samples.codes.iter().map(code).collect()
}

/// Whether a page of these sentences plays sounds.
pub(super) fn has_sound(samples: &Samples) -> bool {
    samples.sentences.iter().any(|sample| matches!(sample.scene, Some(Scene::Sound { wave: Some(_), .. })))
}
