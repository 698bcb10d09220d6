//! One test for each way a picture can be broken, or too much.

use std::io::Write as _;

use crosslens_pretrained::picture::{Picture, PictureError};
use flate2::Crc;
use flate2::write::ZlibEncoder;

use crate::allocation::most_held;
use crate::fixtures::{bytes, chain, folder, names};

/// Refused in words that hold these, and the file's name.
fn refused(bytes: &[u8], words: &[&str]) -> PictureError {
    let (result, most) = most_held(|| Picture::read(bytes, "some/file"));
    let error = result.expect_err("a broken picture");
    for word in ["`some/file`"].iter().chain(words) {
        assert!(chain(&error).contains(word), "`{word}` is not in `{}`", chain(&error));
    }
    assert!(most < 4 << 20, "{most} bytes for `{error}`");
    error
}

pub(crate) fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut sum = Crc::new();
    sum.update(name);
    sum.update(content);
    [&(content.len() as u32).to_be_bytes(), name, content, &sum.sum().to_be_bytes()].concat()
}

/// A PNG file of this size, depth and kind of colour, which holds nothing but the beginning of its first row.
fn png(width: u32, height: u32, depth: u8, colour: u8) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, 0]].concat();
    let mut pixels = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    pixels.write_all(&[0; 64]).expect("memory");
    let pixels = pixels.finish().expect("memory");
    [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &header), &chunk(b"IDAT", &pixels), &chunk(b"IEND", b"")].concat()
}

/// `photo.jpg` with another size in its header.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut file = bytes("photo.jpg");
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("a frame");
    file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    file[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    file
}

/// A WebP file that says it is so large, and holds no picture of that size.
fn webp(width: u32, height: u32) -> Vec<u8> {
    let canvas = [&[0; 4][..], &(width - 1).to_le_bytes()[..3], &(height - 1).to_le_bytes()[..3]].concat();
    let inner = bytes("lossy.webp")[12..].to_vec();
    let content = [&b"WEBPVP8X"[..], &10_u32.to_le_bytes(), &canvas, &inner].concat();
    [&b"RIFF"[..], &(content.len() as u32).to_le_bytes(), &content].concat()
}

#[test]
fn file_that_is_not_there() {
    let error = Picture::open(&folder().join("absent.png")).expect_err("no file");
    assert!(matches!(error, PictureError::Read { .. }) && chain(&error).contains("absent.png"), "{error}");
}

#[test]
fn file_that_is_a_folder() {
    let error = Picture::open(&folder()).expect_err("no file");
    assert!(chain(&error).contains("it is not a file"), "{error}");
}

#[test]
fn file_of_a_gigabyte() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.png");
    std::fs::write(&path, bytes("dot.png")).expect("a file");
    std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    let (result, most) = most_held(|| Picture::open(&path));
    let error = result.expect_err("too large");
    assert!(matches!(error, PictureError::FileTooLarge { .. }) && error.to_string().contains("large.png"), "{error}");
    assert!(most < 1 << 20, "{most}");
}

#[test]
fn what_is_no_picture() {
    refused(b"", &["is empty", "PNG, JPEG and WebP"]);
    refused(b"\x89PN", &["is no picture", "PNG, JPEG and WebP"]);
    refused("not a picture, but a letter".as_bytes(), &["is no picture", "PNG, JPEG and WebP"]);
    refused(b"GIF89a\x01\0\x01\0\0\0\0;", &["is a picture in the format Gif", "PNG, JPEG and WebP"]);
    refused(b"RIFF\x10\0\0\0WAVEfmt ", &["PNG, JPEG and WebP"]);
}

#[test]
fn decompression_bombs() {
    for (width, height) in [(16_385, 1), (1, 16_385), (8_001, 8_000), (1 << 31, 1 << 31), (u32::MAX, u32::MAX), (65_535, 65_535)] {
        let error = refused(&png(width, height, 8, 2), &[&format!("{width} × {height}"), "make it smaller"]);
        assert!(matches!(error, PictureError::TooLarge { .. }), "{error}");
    }
    refused(&jpeg(65_535, 65_535), &["65535 × 65535", "make it smaller"]);
    refused(&jpeg(16_385, 9), &["16385 × 9", "make it smaller"]);
    refused(&webp(1 << 24, 1 << 24), &["16777216 × 16777216", "make it smaller"]);
    refused(&webp(16_385, 1), &["16385 × 1", "make it smaller"]);
}

/// 64 million pixels of 8 bytes: few enough, but too deep.
#[test]
fn deep_pictures_may_have_fewer_pixels() {
    refused(&png(8_000, 8_000, 16, 6), &["8000 × 8000", "256000000 bytes"]);
}

#[test]
fn pictures_without_a_pixel() {
    for (width, height) in [(0, 0), (0, 5), (5, 0)] {
        let error = refused(&png(width, height, 8, 2), &[&format!("{width} × {height}")]);
        assert!(matches!(error, PictureError::Empty { .. }), "{error}");
    }
    refused(&jpeg(0, 0), &["0 × 0"]);
    refused(&jpeg(5, 0), &["5 × 0"]);
}

#[test]
fn pictures_that_lack_pixels() {
    refused(&png(300, 300, 8, 2), &[]);
    let depths = [(3, 2), (8, 1), (16, 3), (0, 0)];
    depths.iter().for_each(|&(depth, colour)| drop(refused(&png(4, 4, depth, colour), &[])));
}

/// Every file, cut at many places, down to its last quarter. (The last bytes of a PNG or a WebP hold no pixels.)
#[test]
fn files_that_end_early() {
    for name in names() {
        let file = bytes(&name);
        let n_needed = if name.ends_with(".jpg") { file.len() } else { file.len() * 3 / 4 };
        for n_bytes in (0..n_needed).rev().step_by(file.len().div_ceil(60)) {
            let result = Picture::read(&file[..n_bytes], &name);
            let error = result.err().unwrap_or_else(|| panic!("{name} is read from {n_bytes} of {} bytes", file.len()));
            assert!(error.to_string().contains(&name), "{error}");
        }
    }
}

#[test]
fn a_png_whose_bytes_were_changed() {
    let mut file = bytes("noise.png");
    let middle = file.len() / 2;
    file[middle] ^= 0x55;
    let error = refused(&file, &["damaged"]);
    assert!(matches!(error, PictureError::Damaged { .. }), "{error}");
}

#[test]
fn a_jpeg_of_ever_more_scans() {
    let file = bytes("photo-progressive.jpg");
    let scan = file.windows(2).rposition(|pair| pair == [0xff, 0xda]).expect("a scan");
    let (before, last) = (&file[..file.len() - 2], &file[scan..file.len() - 2]);
    refused(&[before, &last.repeat(100), &[0xff, 0xd9]].concat(), &["more than a hundred scans"]);
}
