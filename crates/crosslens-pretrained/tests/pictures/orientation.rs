//! Pictures of cameras that were held another way, as they note in EXIF.

use crosslens_pretrained::picture::Picture;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

/// A JPEG of 32 × 16 pixels, red on the left and blue on the right, with a note on its orientation.
fn jpeg(orientation: u16) -> Vec<u8> {
    let pixels: Vec<u8> = (0..32 * 16).flat_map(|pixel| if pixel % 32 < 16 { [255, 0, 0] } else { [0, 0, 255] }).collect();
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, 95).write_image(&pixels, 32, 16, ExtendedColorType::Rgb8).expect("a picture");
    noted(&file, orientation)
}

/// A JPEG with a note on its orientation.
pub(crate) fn noted(file: &[u8], orientation: u16) -> Vec<u8> {
    // One entry of one number of two bytes: tag 0x112; no further directory.
    let entry = [&1u16.to_le_bytes()[..], &0x112u16.to_le_bytes(), &3u16.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let entry = [&entry[..], &orientation.to_le_bytes(), &[0; 6]].concat();
    let note = [&b"Exif\0\0II*\0"[..], &8u32.to_le_bytes(), &entry].concat();
    let length = u16::try_from(note.len() + 2).expect("short").to_be_bytes();
    [&file[..2], &[0xff, 0xe1], &length, &note, &file[2..]].concat()
}

/// Whether a pixel is red rather than blue.
fn is_red(picture: &Picture, row: usize, column: usize) -> bool {
    let pixel = &picture.rgb()[3 * (row * picture.width() + column)..][..3];
    pixel[0] > pixel[2]
}

/// The sides, and what stands at the top on the left and at the bottom on the right.
#[test]
fn pictures_are_turned_upright() {
    for (orientation, height, width, first, last) in [
        (1, 16, 32, true, false),
        (2, 16, 32, false, true),
        (3, 16, 32, false, true),
        (6, 32, 16, true, false),
        (8, 32, 16, false, true),
        (0, 16, 32, true, false),
        (77, 16, 32, true, false),
    ] {
        let picture = Picture::read(&jpeg(orientation), "x.jpg").expect("a picture");
        assert_eq!((picture.height(), picture.width()), (height, width), "orientation {orientation}");
        let corners = (is_red(&picture, 1, 1), is_red(&picture, height - 2, width - 2));
        assert_eq!(corners, (first, last), "orientation {orientation}");
    }
}
