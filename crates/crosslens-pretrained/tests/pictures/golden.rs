//! What Pillow and transformers make of the same files; `tests/golden/make_pictures.py` says how it came about.

use crosslens_pretrained::picture::Picture;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::fixtures::{bytes, folder, names, processor, processor_in};

/// By how much pixels of a JPEG file may differ: decoders round as they like. Measured with zune-jpeg 0.5.15 against the libjpeg-turbo of
/// Pillow 13.0.0. All other files, lossy WebP among them, are read to the same bytes.
const JPEG: [(&str, u8); 7] = [
    ("photo.jpg", 2),
    ("photo-420.jpg", 3),
    ("photo-422.jpg", 2),
    ("photo-progressive.jpg", 3),
    ("photo-grey.jpg", 1),
    ("inks.jpg", 1),
    ("turned.jpg", 3),
];

fn open(name: &str) -> Picture {
    Picture::open(&folder().join(name)).expect("a golden picture")
}

fn largest_difference(ours: &[u8], theirs: &[u8]) -> u8 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(&ours, &theirs)| ours.abs_diff(theirs)).max().unwrap_or(0)
}

#[test]
fn every_file_is_read_as_pillow_reads_it() {
    let file = bytes("golden.safetensors");
    let golden = SafeTensors::deserialize(&file).expect("golden values");
    let mut failures = Vec::new();
    // Its pixels are not kept; what it is resized to is.
    for name in names().iter().filter(|name| *name != "strokes.png") {
        let (picture, theirs) = (open(name), golden.tensor(&format!("rgb.{name}")).expect("pixels"));
        assert_eq!(theirs.dtype(), Dtype::U8);
        assert_eq!([picture.height(), picture.width(), 3], theirs.shape(), "{name}");
        let (found, allowed) = (largest_difference(picture.rgb(), theirs.data()), JPEG.iter().find(|(jpeg, _)| jpeg == name));
        if found > allowed.map_or(0, |&(_, allowed)| allowed) {
            failures.push(format!("{name} differs by {found}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn resizing_gives_the_bytes_of_pillow() {
    let file = bytes("golden.safetensors");
    let golden = SafeTensors::deserialize(&file).expect("golden values");
    let (mut n, mut failures) = (0, Vec::new());
    for (key, theirs) in golden.iter() {
        let Some((name, filter)) = key.strip_prefix("resize.").and_then(|key| key.split_once(".png.")) else { continue };
        let filter: u32 = filter.split('.').next().expect("a filter").parse().expect("a number");
        let size = json!({"height": theirs.shape()[0], "width": theirs.shape()[1]});
        let processor =
            processor(&json!({"image_processor_type": "ViTImageProcessor", "resample": filter, "size": size})).expect("settings");
        let seen = processor.seen(&open(&format!("{name}.png"))).expect("a small picture");
        assert_eq!([seen.height(), seen.width(), 3], theirs.shape(), "{key}");
        let differing = seen.rgb().iter().zip(theirs.data()).filter(|(ours, theirs)| ours != theirs).count();
        if differing > 0 {
            failures.push(format!("{key}: {differing} bytes, by up to {}", largest_difference(seen.rgb(), theirs.data())));
        }
        n += 1;
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(n, 6 * 9, "six filters, nine sizes");
}

/// The same operations in the same order and precision: no bit is lost, where 1e-4 would do.
#[test]
fn processors_give_the_pixels_of_transformers() {
    let file = bytes("golden.safetensors");
    let golden = SafeTensors::deserialize(&file).expect("golden values");
    let (_, metadata) = SafeTensors::read_metadata(&file).expect("metadata");
    let cases = metadata.metadata().as_ref().and_then(|entries| entries.get("cases")).expect("cases");
    let cases: serde_json::Map<String, Value> = serde_json::from_str(cases).expect("JSON");
    assert_eq!(cases.len(), 26);
    for (name, case) in &cases {
        let text = |field: &str| case[field].as_str().expect("a name");
        let processor = processor_in(text("file"), &case["config"].to_string()).expect("settings");
        let pixels = processor.apply(&open(text("picture"))).expect("a small picture");
        let theirs = golden.tensor(&format!("pixels.{name}")).expect("pixels");
        assert_eq!(theirs.dtype(), Dtype::F32);
        assert_eq!([3, pixels.height, pixels.width], theirs.shape(), "{name}");
        let theirs = theirs.data().chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")));
        let worst = pixels.values.iter().zip(theirs).map(|(ours, theirs)| (ours - theirs).abs()).fold(0.0, f32::max);
        assert_eq!(worst, 0.0, "{name}");
    }
}

#[test]
fn what_is_seen_can_be_shown() {
    let processor = processor(&json!({"image_processor_type": "DeiTImageProcessor", "size": 40, "crop_size": 33})).expect("settings");
    let (picture, pixels) = (open("noise.png"), processor.apply(&open("noise.png")).expect("a small picture"));
    let seen = processor.seen(&picture).expect("a small picture");
    assert_eq!((seen.height(), seen.width()), (33, 33));
    assert_eq!((pixels.height, pixels.width), (33, 33));
    assert_eq!(Picture::read(&seen.to_png(), "seen").expect("a PNG"), seen);
    assert_eq!(Picture::read(&picture.to_png(), "picture").expect("a PNG"), picture);
}
