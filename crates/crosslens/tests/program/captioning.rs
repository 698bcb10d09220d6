//! Captions: a tiny model of random weights looks at generated pictures.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::common::{run, seen, shown, succeed};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-pretrained/tests/golden");
const TOKENS: usize = 48;

/// Whole words w3 to w47.
fn tokenizer() -> Value {
    let special = ["<s>", "<pad>", "</s>"];
    let name = |id: usize| special.get(id).map_or_else(|| format!("w{id}"), |name| (*name).to_owned());
    let vocabulary: Map<String, Value> = (0..TOKENS).map(|id| (name(id), json!(id))).collect();
    let added = special.iter().enumerate().map(|(id, name)| {
        json!({ "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true })
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<pad>" }
    })
}

/// A picture in which both colours and places differ.
fn picture(path: &Path, [width, height]: [u32; 2], tint: u32) {
    let pixel = |i: u32| [(i * 37 + tint) % 256, (i / width * 11) % 256, (i % width * 29 + 3 * tint) % 256].map(|level| level as u8);
    let pixels: Vec<u8> = (0..width * height).flat_map(pixel).collect();
    let mut encoder = png::Encoder::new(std::fs::File::create(path).expect("a file"), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().expect("a header").write_image_data(&pixels).expect("a picture");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for (model, from) in [("sees", "vision/vit-gpt2"), ("reads", "t5")] {
        std::fs::create_dir(at(model)).expect("a folder");
        for file in std::fs::read_dir(Path::new(GOLDEN).join(from)).expect("a model").flatten() {
            std::fs::copy(file.path(), at(model).join(file.file_name())).expect("a copy");
        }
    }
    let processor = json!({
        "image_processor_type": "ViTImageProcessor", "do_resize": true, "size": { "height": 24, "width": 24 }, "resample": 2,
        "do_rescale": true, "rescale_factor": 1.0 / 255.0, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]
    });
    std::fs::write(at("sees/preprocessor_config.json"), processor.to_string()).expect("a processor");
    std::fs::write(at("sees/tokenizer.json"), tokenizer().to_string()).expect("a tokenizer");
    picture(&at("one.png"), [40, 30], 0);
    picture(&at("two.png"), [24, 24], 90);
    folder
}

#[test]
fn pictures_get_captions_alone_and_together() {
    let folder = folder();
    let caption = |arguments: &[&str]| {
        let output = succeed(folder.path(), &[&["caption", "sees", "--max-tokens", "8"], arguments].concat());
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, two) = (caption(&["one.png"]), caption(&["two.png"]));
    assert_eq!((one.len(), two.len()), (1, 1));
    assert!(!one[0].is_empty() && one[0].split(' ').all(|word| word.starts_with('w')), "{one:?}");
    assert_eq!(caption(&["one.png", "two.png"]), [format!("one.png\t{}", one[0]), format!("two.png\t{}", two[0])]);

    let line: Value = serde_json::from_str(&caption(&["one.png", "--json"])[0]).expect("JSON");
    assert_eq!((&line["image"], &line["text"]), (&json!("one.png"), &json!(one[0])));
    let tokens: Vec<usize> = serde_json::from_value(line["tokens"].clone()).expect("tokens");
    let words: Vec<String> = tokens.iter().filter(|&&token| token > 2).map(|token| format!("w{token}")).collect();
    assert_eq!(words.join(" "), one[0]);
    assert!(line["score"].as_f64().expect("a score") < 0.0);
}

#[test]
fn what_cannot_be_captioned_says_why() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let whole = std::fs::read(at("one.png")).expect("a picture");
    std::fs::write(at("cut.png"), &whole[..whole.len() / 2]).expect("half a picture");
    std::fs::write(at("text.png"), "no picture at all").expect("a text");
    let refused = |arguments: &[&str], says: &[&str]| {
        let output = run(folder.path(), &[&["caption"], arguments].concat());
        let shown = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{shown}");
        says.iter().for_each(|says| assert!(shown.contains(says), "{says}: {shown}"));
    };
    refused(&["sees", "cut.png"], &["`cut.png`"]);
    refused(&["sees", "text.png"], &["`text.png`", "PNG, JPEG and WebP"]);
    refused(&["sees", "none.png"], &["cannot read `none.png`"]);
    refused(&["reads", "one.png"], &["is a t5, which reads no pictures", "crosslens translate reads"]);
    std::fs::remove_file(at("sees/tokenizer.json")).expect("it was there");
    refused(&["sees", "one.png"], &["has no tokenizer"]);
    assert!(seen(folder.path(), &["caption", "sees"]).starts_with("exit 2"));
}

#[test]
fn a_processor_of_another_model_is_refused() {
    let folder = folder();
    let path = folder.path().join("sees/preprocessor_config.json");
    let text = std::fs::read_to_string(&path).expect("a processor").replace("\"width\":24", "\"width\":32");
    std::fs::write(&path, text).expect("a processor");
    let shown = seen(folder.path(), &["caption", "sees", "one.png"]);
    assert!(shown.contains("makes pictures of 32 × 24 pixels; its model reads 24 × 24"), "{shown}");
}
