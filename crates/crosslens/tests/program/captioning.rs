//! Captions: a tiny model of random weights looks at generated pictures.

use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use super::common::{page_report, run, seen, shown, succeed};
use super::planted_sight::{COLUMNS, NAMED, ROWS, STEPS, plant, step};

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

/// Folders with the model that was built by hand, and four pictures.
fn planted() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["planted", "pictures"] {
        std::fs::create_dir(at(name)).expect("a folder");
    }
    plant(&at("planted"));
    for (number, name) in ["a.png", "b.png", "c.png", "d.png"].iter().enumerate() {
        picture(&at("pictures").join(name), [40, 32], 60 * number as u32);
    }
    folder
}

/// The step that a row of attention looks at most.
fn most(row: &[f64]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("weights")
}

/// In what `attend` writes, in the sentences beside a report, and in a page, each word looks at its patch.
#[test]
fn planted_patches_are_found_where_they_were_planted() {
    let folder = planted();
    let caption = succeed(folder.path(), &["caption", "planted", "pictures/a.png", "--explain", "page.html"]);
    assert_eq!(String::from_utf8_lossy(&caption.stdout), "red bus\n");
    let page = page_report(&folder.path().join("page.html"));
    let (sample, corpus) = (&page["samples"][0], &page["report"]["corpus"]);
    assert_eq!(sample["predicted"], json!(["red", "bus", "</s>"]));
    let scene = &sample["scene"];
    assert_eq!((&scene["rows"], &scene["columns"], &scene["n_special"]), (&json!(ROWS), &json!(COLUMNS), &json!(1)));
    // All patches are alike to a model that sees nothing: one code.
    assert_eq!(corpus["codes"], json!({ "of": "patches", "asked": 64, "found": 1, "seed": 0 }));

    succeed(folder.path(), &["attend", "planted", "--source", "pictures/a.png", "-o", "x.json"]);
    let attended: Value = serde_json::from_slice(&std::fs::read(folder.path().join("x.json")).expect("a file")).expect("JSON");
    succeed(folder.path(), &["explain", "planted", "--corpus", "pictures", "--causal", "2", "--save", "report.json"]);
    let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).expect("a report")).expect("JSON");
    assert_eq!((&report["sites"][0]["kind"], report["sites"].as_array().map(Vec::len)), (&json!("cross"), Some(2)));
    let samples = std::fs::read(folder.path().join("report.samples.safetensors")).expect("sentences");
    let samples = SafeTensors::deserialize(&samples).expect("arrays");
    let array = samples.tensor("samples.0.sites.0.attention").expect("attention");
    assert_eq!(array.shape(), [3, STEPS]);
    let saved: Vec<f64> = array.data().as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
    for (row, (word, patch)) in NAMED.iter().enumerate() {
        let told: Vec<f64> = serde_json::from_value(attended["cross_attentions.0"][0][row].clone()).expect("a row");
        assert_eq!((most(&told), most(&saved[row * STEPS..][..STEPS])), (step(*patch), step(*patch)), "{word}");
    }
    assert!(seen(folder.path(), &["explain", "planted", "--source", "pictures/none.png"]).contains("pictures/none.png"));
}

#[test]
fn heads_of_pictures_are_listed_and_compared() {
    let folder = planted();
    let heads = ["heads", "planted", "--corpus", "pictures", "--causal-samples", "2", "--bootstrap", "0", "--json"];
    let heads: Value = serde_json::from_slice(&succeed(folder.path(), &heads).stdout).expect("JSON");
    assert_eq!(heads["heads"].as_array().map(Vec::len), Some(2), "{heads}");
    // Three channels of 32 × 40 numbers of four bytes, four pictures.
    assert_eq!(heads["memory"]["parts"]["sources"], 4 * 4 * 3 * 32 * 40);
    let noted = shown(&succeed(folder.path(), &["heads", "planted", "--corpus", "pictures", "--causal-samples", "0", "--bootstrap", "0"]));
    assert!(noted.contains("of which 62 kB are the files themselves"), "{noted}");
    let compared = ["compare", "planted", "planted", "--corpus", "pictures"];
    let compared = String::from_utf8_lossy(&succeed(folder.path(), &compared).stdout).into_owned();
    assert!(compared.contains("0 of 2 heads changed their label"), "{compared}");
}

/// Puts a model of transformers' with random weights into the folder; its tokens are named here.
fn add(folder: &Path, model: &str, size: [usize; 2], tokenizer: &Value) {
    let at = folder.join(model);
    std::fs::create_dir(&at).expect("a folder");
    for name in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(Path::new(GOLDEN).join("vision").join(model).join(name), at.join(name)).expect("a copy");
    }
    let text = std::fs::read_to_string(folder.join("sees/preprocessor_config.json")).expect("a processor");
    let mut processor: Value = serde_json::from_str(&text).expect("JSON");
    processor["size"] = json!({ "height": size[0], "width": size[1] });
    std::fs::write(at.join("preprocessor_config.json"), processor.to_string()).expect("a processor");
    std::fs::write(at.join("tokenizer.json"), tokenizer.to_string()).expect("a tokenizer");
}

/// BERT's tokenizer begins a text with `[CLS]`, here `<pad>`; BLIP's decoder reads its own start token there, and TrOCR's before it.
#[test]
fn a_given_caption_follows_the_start_token_of_blip() {
    let folder = folder();
    let mut tokenizer = tokenizer();
    let special = |name: &str, id: usize| json!({ "id": name, "ids": [id], "tokens": [name] });
    let piece = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing", "single": [piece("<pad>"), text, piece("</s>")], "pair": [piece("<pad>"), text, piece("</s>")],
        "special_tokens": { "<pad>": special("<pad>", 1), "</s>": special("</s>", 2) }
    });
    for (model, size, fed) in [("blip", [24, 24], json!(["<s>", "w5", "w6"])), ("vit-trocr", [16, 24], json!(["<s>", "<pad>", "w5", "w6"]))]
    {
        add(folder.path(), model, size, &tokenizer);
        succeed(folder.path(), &["attend", model, "--source", "one.png", "--target", "w5 w6", "-o", "x.json"]);
        let attended: Value = serde_json::from_slice(&std::fs::read(folder.path().join("x.json")).expect("a file")).expect("JSON");
        assert_eq!(attended["fed"], fed, "{model}");
    }
}

#[test]
fn models_that_read_lines_and_write_captions_do_so() {
    let folder = folder();
    for (model, size) in [("vit-trocr", [16, 24]), ("blip", [24, 24])] {
        add(folder.path(), model, size, &tokenizer());
        let line = succeed(folder.path(), &["caption", model, "one.png", "--max-tokens", "6", "--json", "--explain", "page.html"]);
        let line: Value = serde_json::from_slice(&line.stdout).expect("JSON");
        let tokens: Vec<usize> = serde_json::from_value(line["tokens"].clone()).expect("tokens");
        let words: Vec<String> = tokens.iter().filter(|&&token| token > 2).map(|token| format!("w{token}")).collect();
        assert_eq!(line["text"], words.join(" "), "{model}");
        let page = page_report(&folder.path().join("page.html"));
        assert_eq!(page["samples"][0]["predicted"].as_array().map(Vec::len), Some(tokens.len()), "{model}: the page has what was printed");
    }
}
