//! Captions: a tiny model of random weights looks at generated pictures.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
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

/// 16 × 24 pixels are as many as 24 × 16, and other patches.
#[test]
fn pictures_of_another_shape_are_refused_wherever_they_are_read() {
    let folder = folder();
    add(folder.path(), "vit-trocr", [24, 16], &tokenizer());
    std::fs::write(folder.path().join("list.tsv"), "one.png\ntwo.png\n").expect("writable");
    for arguments in [
        &["caption", "vit-trocr", "one.png"][..],
        &["attend", "vit-trocr", "--source", "one.png", "-o", "x.json"],
        &["explain", "vit-trocr", "--source", "one.png"],
        &["explain", "vit-trocr", "--corpus", "list.tsv"],
        &["heads", "vit-trocr", "--corpus", "list.tsv"],
        &["report", "vit-trocr", "--corpus", "list.tsv", "-o", "page.html"],
    ] {
        let shown = seen(folder.path(), arguments);
        assert!(shown.starts_with("exit 1"), "{arguments:?}: {shown}");
        assert!(shown.contains("makes pictures of 16 × 24 pixels; its model reads 24 × 16"), "{arguments:?}: {shown}");
    }
}

#[test]
fn a_picture_that_cannot_be_read_takes_nothing_from_the_others() {
    let folder = folder();
    std::fs::write(folder.path().join("text.png"), "no picture at all").expect("a text");
    let output = run(folder.path(), &["caption", "sees", "one.png", "text.png", "two.png", "--max-tokens", "8", "--explain", "page.html"]);
    let (told, noted) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{noted}");
    assert_eq!(told.lines().filter_map(|line| line.split('\t').next()).collect::<Vec<_>>(), ["one.png", "two.png"]);
    assert!(noted.contains("error: `text.png`") && noted.contains("error: 1 of 3 files could not be read"), "{noted}");
    assert_eq!(page_report(&folder.path().join("page.html"))["samples"].as_array().map(Vec::len), Some(2));
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

/// Lets the planted model see how bright a patch is: the mean of its pixels, in the last dimension, which no place and no token has.
fn open_its_eyes(folder: &Path) {
    const PROJECTION: &str = "encoder.embeddings.patch_embeddings.projection.weight";
    let bytes = std::fs::read(folder.join("model.safetensors")).expect("a model");
    let tensors = SafeTensors::deserialize(&bytes).expect("tensors");
    let projection = tensors.tensor(PROJECTION).expect("a projection");
    let shape = projection.shape().to_vec();
    let mut numbers = projection.data().to_vec();
    let n_pixels: usize = shape[1..].iter().product();
    let rows = numbers.as_chunks_mut::<4>().0;
    let last = rows.len() - n_pixels;
    rows[last..].fill((1.0 / n_pixels as f32).to_le_bytes());
    let seeing = TensorView::new(Dtype::F32, shape, &numbers).expect("a tensor");
    let views = tensors.tensors().into_iter().map(|(name, view)| if name == PROJECTION { (name, seeing.clone()) } else { (name, view) });
    let written = safetensors::serialize(views, None).expect("tensors");
    std::fs::write(folder.join("model.safetensors"), written).expect("writable");
}

/// Patches are black or white; in half of the pictures the upper two rows of them are white, in the others the lower two.
#[test]
fn codes_tell_black_patches_from_white_ones() {
    let folder = planted();
    let at = |name: &str| folder.path().join(name);
    open_its_eyes(&at("planted"));
    let n_pixels = (8 * COLUMNS, 8 * ROWS);
    for (number, name) in ["a.png", "b.png", "c.png", "d.png"].iter().enumerate() {
        let level = |row: usize| if (row < n_pixels.1 / 2) == (number % 2 == 0) { 255 } else { 0 };
        let pixels: Vec<u8> = (0..n_pixels.1).flat_map(|row| vec![level(row); 3 * n_pixels.0]).collect();
        let file = std::fs::File::create(at("pictures").join(name)).expect("a file");
        let mut encoder = png::Encoder::new(file, n_pixels.0 as u32, n_pixels.1 as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().expect("a header").write_image_data(&pixels).expect("a picture");
    }
    let explain = ["explain", "planted", "--corpus", "pictures", "--codes", "2", "--no-held-out", "--causal", "0", "--save", "report.json"];
    succeed(folder.path(), &explain);
    let report: Value = serde_json::from_slice(&std::fs::read(at("report.json")).expect("a report")).expect("JSON");
    assert_eq!(report["corpus"]["codes"], json!({ "of": "patches", "asked": 2, "found": 2, "seed": 0 }));
    let is_white = |sample: usize, step: usize| ((step - 1) / COLUMNS < ROWS / 2) == (sample.is_multiple_of(2));

    let file = std::fs::read(at("report.samples.safetensors")).expect("sentences");
    let samples = SafeTensors::deserialize(&file).expect("arrays");
    let codes = |sample: usize| {
        let codes = samples.tensor(&format!("samples.{sample}.source")).expect("codes");
        codes.data().as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect::<Vec<_>>()
    };
    let (white, black) = (codes(0)[1], codes(0)[STEPS - 1]);
    assert_ne!(white, black);
    for sample in 0..2 {
        let expected: Vec<u32> = (1..STEPS).map(|step| if is_white(sample, step) { white } else { black }).collect();
        assert_eq!(codes(sample)[1..], expected, "picture {sample}");
    }
    let (_, header) = SafeTensors::read_metadata(&file).expect("a header");
    let said = header.metadata().as_ref().and_then(|said| said.get("codes")).expect("what codes stand for");
    let stand_for: Vec<Value> = serde_json::from_str(said).expect("JSON");
    assert_eq!(stand_for.len(), 2, "{said}");
    for code in &stand_for {
        let examples = code["examples"].as_array().expect("examples");
        assert_eq!(examples.len(), 4, "{said}");
        for example in examples {
            let [sample, step] = ["sample", "step"].map(|field| example[field].as_u64().expect("a number") as usize);
            assert_eq!(code["code"], if is_white(sample, step) { white } else { black }, "{said}");
        }
    }
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
