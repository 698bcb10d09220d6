//! The most memory that reading a picture takes.

use std::io::Write as _;

use crosslens_pretrained::picture::Picture;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use crate::allocation::most_held;
use crate::broken_pictures::chunk;
use crate::orientation::noted;

/// What decoders keep beside the pixels.
const BESIDE: usize = 4 << 20;

/// A PNG of this kind of colour whose pixels are all 0.
fn black(width: usize, height: usize, colour: u8, n_channels: usize) -> Vec<u8> {
    let sides = [width, height].map(|side| (side as u32).to_be_bytes()).concat();
    let mut pixels = ZlibEncoder::new(Vec::new(), Compression::fast());
    let row = vec![0; 1 + width * n_channels];
    (0..height).for_each(|_| pixels.write_all(&row).expect("memory"));
    let pixels = pixels.finish().expect("memory");
    let header = [&sides[..], &[8, colour, 0, 0, 0]].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &header), &chunk(b"IDAT", &pixels), &chunk(b"IEND", b"")].concat()
}

/// Of 64 million pixels at most: red, green, blue and transparency, of which three bytes are kept in their place; and grey, which is
/// there beside its three bytes.
#[test]
fn pictures_near_the_limit_take_four_bytes_a_pixel() {
    let (width, height) = (8_000, 7_990);
    for (colour, n_channels) in [(6, 4), (0, 1)] {
        let file = black(width, height, colour, n_channels);
        let (picture, most) = most_held(|| Picture::read(&file, "x.png").expect("a picture"));
        assert_eq!((picture.width(), picture.height(), picture.rgb().len()), (width, height, 3 * width * height));
        assert!(most < 4 * width * height + BESIDE, "{most} bytes, {n_channels} channels");
    }
}

/// What is turned by a quarter is there twice for a while.
#[test]
fn turned_pictures_take_six_bytes_a_pixel() {
    let (width, height) = (2_000, 1_500);
    let mut file = Vec::new();
    let pixels = vec![90; 3 * width * height];
    JpegEncoder::new_with_quality(&mut file, 90)
        .write_image(&pixels, width as u32, height as u32, ExtendedColorType::Rgb8)
        .expect("a picture");
    let file = noted(&file, 6);
    let (picture, most) = most_held(|| Picture::read(&file, "x.jpg").expect("a picture"));
    assert_eq!((picture.width(), picture.height()), (height, width));
    assert!(most < 6 * width * height + BESIDE, "{most} bytes");
}
