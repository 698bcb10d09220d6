//! A model of pictures, planted so that its words and the patches it looks at are known, asked with pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslens_lab::ImportedOptions;
use serde_json::{Value, json};

use super::Running;
use super::planted_sight::{COLUMNS, NAMED, ROWS, STEPS, plant, step};
use crate::Limits;

/// White, 50 × 40 pixels, grey: `PIL.Image.new("L", (50, 40), 255)`.
const WHITE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAADIAAAAoCAAAAACZGfaQAAAAIElEQVR42mP8z0AqYGIY1TKqZVTLqJZRLaNaRrUMSS0ANkgBTxD0LUoAAAAASUVORK5CYII=";
/// Grey, 65535 × 65535 pixels, as its header says: four gigabytes in some eighty bytes.
const BOMB: &str = "iVBORw0KGgoAAAANSUhEUgAA//8AAP//CAAAAACTboaMAAAAC0lEQVR4nGNggAAAAAgAAbdYc5UAAAAASUVORK5CYII=";

#[test]
fn a_picture_that_is_sent_is_explained_where_the_model_looked() {
    let folder = tempfile::tempdir().expect("a folder");
    let pictures = folder.path().join("pictures");
    std::fs::create_dir(&pictures).expect("a folder");
    plant(folder.path());
    for name in ["a.png", "b.png"] {
        std::fs::write(pictures.join(name), STANDARD.decode(WHITE).expect("base64")).expect("a picture");
    }
    let imported = ImportedOptions { corpus: Some(pictures), causal: 1, ..ImportedOptions::default() };
    let server = Running::with(&[folder.path().into()], imported, "127.0.0.1", Limits::default());
    assert_eq!(server.get("/api/models/0").json()["asks"]["files"], "picture");

    let ask = |sentence: Value| server.post("/api/models/0/explain", &json!({ "sentence": sentence, "sites": [0] }));
    let answer = ask(json!({ "file": WHITE })).json();
    let scene = &answer["sample"]["scene"];
    assert_eq!((&scene["kind"], &scene["rows"], &scene["columns"]), (&json!("picture"), &json!(ROWS), &json!(COLUMNS)));
    assert!(scene["png"].as_str().is_some_and(|png| png.starts_with("data:image/png;base64,")), "{scene}");
    assert_eq!(answer["sample"]["predicted"], json!(["red", "bus", "</s>"]));
    let weights = answer["sites"][0]["attention"].as_array().expect("weights");
    for (row, (word, patch)) in NAMED.iter().enumerate() {
        let weight = weights[row * STEPS + step(*patch)].as_f64().expect("a weight");
        assert!(weight > 0.99, "{word}: {weight}");
    }

    for (sent, part) in [
        (STANDARD.encode("no picture at all"), "PNG, JPEG and WebP pictures are read"),
        (STANDARD.encode("no picture at all"), "the file that was sent"),
        (WHITE[..WHITE.len() / 8 * 4].to_owned(), "copy it anew"),
        (BOMB.to_owned(), "65535 × 65535"),
    ] {
        let answer = ask(json!({ "file": sent }));
        assert!(answer.status == 422 && answer.error().contains(part), "{part}: {answer:?}");
    }
}
