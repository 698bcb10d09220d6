//! Reads PNG, JPEG and WebP files, as Pillow does.

use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::Path;

use image::codecs::png::PngEncoder;
use image::metadata::Orientation;
use image::{
    ColorType, DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageError, ImageFormat, ImageReader, Limits,
    RgbImage,
};

use super::error::PictureError;
use super::jpeg::{self, Fault};

/// The longest side that is read.
const MAX_SIDE: u32 = 16_384;
/// The most pixels that are read: those of most cameras, and many more than any model looks at.
const MAX_PIXELS: u64 = 64_000_000;
/// The most memory a decoded picture may take: of four channels of a byte. Deeper ones may have fewer pixels.
const MAX_DECODED_BYTES: u64 = 4 * MAX_PIXELS;
/// Noise of the most pixels hardly takes more.
const MAX_FILE_BYTES: u64 = 200 << 20;

/// A picture in red, green and blue, `[height, width, 3]`, a byte each.
///
/// What `load_image(path)` of transformers gives, `Image.open(path).convert("RGB")` of Pillow turned upright: grey becomes three times the
/// same, palettes are looked up, inks (CMYK) become light. Transparency is dropped, not laid over a colour. Of 16 bits the high 8 are kept,
/// but grey of 16 bits is cut off at 255, as Pillow does. Of moving pictures the first frame is taken.
///
/// Reading takes, beside the file, 4 bytes a pixel of a PNG of 8 bits, 256 MB at most, and 6 where a picture is turned by a quarter: both
/// are measured. Formats that are decoded as a whole take more, which is not measured: by what their decoders allocate about 12 bytes a
/// pixel, 8 for the coefficients of a progressive JPEG of four inks, or three forms of a moving WebP.
///
/// The orientation that cameras note in EXIF is applied; notes that cannot be read say nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    height: usize,
    width: usize,
    rgb: Vec<u8>,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Picture {{ height: {}, width: {} }}", self.height, self.width)
    }
}

impl Picture {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is no PNG, JPEG or WebP picture, is damaged, ends early, or is larger than 16,384 pixels on a side or 64 million in all.
    pub fn open(path: &Path) -> Result<Self, PictureError> {
        let failed = |source| PictureError::Read { path: path.to_owned(), source };
        // Before it is opened: a pipe would wait for ever.
        let about = std::fs::metadata(path).map_err(failed)?;
        if !about.is_file() {
            return Err(failed(std::io::Error::other("it is not a file")));
        }
        if about.len() > MAX_FILE_BYTES {
            return Err(PictureError::FileTooLarge { name: path.display().to_string(), limit: MAX_FILE_BYTES });
        }
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::read(&bytes, &path.display().to_string())
    }

    /// Reads the bytes of a file; errors call it `name`.
    ///
    /// # Errors
    ///
    /// As [`Picture::open`].
    pub fn read(bytes: &[u8], name: &str) -> Result<Self, PictureError> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(PictureError::FileTooLarge { name: name.into(), limit: MAX_FILE_BYTES });
        }
        let format = format_of(bytes).map_err(|what| PictureError::NotAPicture { name: name.into(), what })?;
        if let Some((width, height)) = size_in_header(bytes, format, name)? {
            check_size(width, height, 0, name)?;
        }
        let refused = |error| refusal(error, name);
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(MAX_DECODED_BYTES);
        reader.limits(limits);
        let mut decoder = reader.into_decoder().map_err(refused)?;
        let ((width, height), colour) = (decoder.dimensions(), decoder.color_type());
        check_size(width, height, decoder.total_bytes(), name)?;

        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut decoded = vec![0; decoder.total_bytes() as usize];
        decoder.read_image(&mut decoded).map_err(refused)?;
        let rgb = rgb_of(decoded, colour).ok_or_else(|| PictureError::Damaged {
            name: name.into(),
            source: format!("its pixels are {colour:?}, which is not known here").into(),
        })?;
        Ok(Self { height: height as usize, width: width as usize, rgb }.upright(orientation))
    }

    /// Turned and mirrored as a camera notes.
    fn upright(self, orientation: Orientation) -> Self {
        if orientation == Orientation::NoTransforms {
            return self;
        }
        let pixels = RgbImage::from_raw(self.width as u32, self.height as u32, self.rgb).expect("as many bytes as its sides say");
        let mut picture = DynamicImage::ImageRgb8(pixels);
        picture.apply_orientation(orientation);
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        Self { height, width, rgb: picture.into_rgb8().into_raw() }
    }

    /// A picture of bytes that are there already, `[height, width, 3]`.
    pub(super) fn of(height: usize, width: usize, rgb: Vec<u8>) -> Self {
        debug_assert_eq!(rgb.len(), height * width * 3);
        Self { height, width, rgb }
    }

    /// Pixels from top to bottom.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels from left to right.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Red, green and blue of every pixel, row by row: `[height, width, 3]`.
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The picture as a PNG file.
    #[must_use]
    pub fn to_png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        PngEncoder::new(&mut file)
            .write_image(&self.rgb, self.width as u32, self.height as u32, ExtendedColorType::Rgb8)
            .expect("a picture has pixels, as many as its sides say, and memory takes them");
        file
    }
}

/// One of the three formats that are read, or what the bytes are instead.
fn format_of(bytes: &[u8]) -> Result<ImageFormat, String> {
    match image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP)) => Ok(format),
        Ok(other) => Err(format!("is a picture in the format {other:?}")),
        Err(_) if bytes.is_empty() => Err("is empty".into()),
        Err(_) => Err("is no picture".into()),
    }
}

/// Width and height, as far as they are known without a decoder. The simple forms of WebP cannot say more than 16,384 of either.
fn size_in_header(bytes: &[u8], format: ImageFormat, name: &str) -> Result<Option<(u32, u32)>, PictureError> {
    match format {
        // A signature of 8 bytes, then length and name of the first chunk, which begins with the size.
        ImageFormat::Png => {
            let number = |at: usize| bytes.get(at..)?.first_chunk().map(|&four| u32::from_be_bytes(four));
            number(16).zip(number(20)).map(Some).ok_or_else(|| PictureError::Truncated { name: name.into() })
        }
        ImageFormat::Jpeg => match jpeg::walk(bytes) {
            Ok(size) => Ok(size.map(|(height, width)| (width, height))),
            Err(Fault::Truncated) => Err(PictureError::Truncated { name: name.into() }),
            Err(Fault::TooManyScans) => {
                Err(PictureError::Damaged { name: name.into(), source: "it asks for more than a hundred scans".into() })
            }
        },
        // The extended form has a canvas: both sides less one, of three bytes, the low one first.
        _ if bytes.get(12..16) == Some(b"VP8X") => {
            let number =
                |at: usize| bytes.get(at..)?.first_chunk().map(|&[low, middle, high]| u32::from_le_bytes([low, middle, high, 0]) + 1);
            number(24).zip(number(27)).map(Some).ok_or_else(|| PictureError::Truncated { name: name.into() })
        }
        _ => Ok(None),
    }
}

fn check_size(width: u32, height: u32, n_bytes: u64, name: &str) -> Result<(), PictureError> {
    let name = || name.to_owned();
    if width == 0 || height == 0 {
        return Err(PictureError::Empty { name: name(), width, height });
    }
    if width.max(height) > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS || n_bytes > MAX_DECODED_BYTES {
        let (side, pixels, bytes) = (MAX_SIDE, MAX_PIXELS, MAX_DECODED_BYTES);
        return Err(PictureError::TooLarge { name: name(), width, height, side, pixels, bytes });
    }
    Ok(())
}

fn refusal(error: ImageError, name: &str) -> PictureError {
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => PictureError::Truncated { name: name.into() },
        error => PictureError::Damaged { name: name.into(), source: error.into() },
    }
}

/// Red, green and blue of what a decoder gave; nothing if it is of a kind that none of the three formats has.
fn rgb_of(decoded: Vec<u8>, colour: ColorType) -> Option<Vec<u8>> {
    let high = |pair: &[u8]| (u16::from_ne_bytes([pair[0], pair[1]]) >> 8) as u8;
    let cut = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]).min(255) as u8;
    Some(match colour {
        ColorType::Rgb8 => decoded,
        ColorType::L8 => widened(&decoded, 1, |pixel| pixel[0]),
        ColorType::La8 => widened(&decoded, 2, |pixel| pixel[0]),
        ColorType::L16 => widened(&decoded, 2, cut),
        ColorType::Rgba8 => narrowed(decoded, 4, |pixel| [pixel[0], pixel[1], pixel[2]]),
        ColorType::La16 => narrowed(decoded, 4, |pixel| [high(pixel); 3]),
        ColorType::Rgb16 => narrowed(decoded, 6, |pixel| [high(pixel), high(&pixel[2..]), high(&pixel[4..])]),
        ColorType::Rgba16 => narrowed(decoded, 8, |pixel| [high(pixel), high(&pixel[2..]), high(&pixel[4..])]),
        _ => return None,
    })
}

/// Three times the grey of every pixel of `n` bytes, fewer than three.
fn widened(decoded: &[u8], n: usize, grey: impl Fn(&[u8]) -> u8) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(decoded.len() / n * 3);
    decoded.chunks_exact(n).for_each(|pixel| rgb.extend_from_slice(&[grey(pixel); 3]));
    rgb
}

/// The colour of every pixel of `n` bytes, at least three, in the place where they were.
fn narrowed(mut decoded: Vec<u8>, n: usize, colour: impl Fn(&[u8]) -> [u8; 3]) -> Vec<u8> {
    let n_pixels = decoded.len() / n;
    for pixel in 0..n_pixels {
        let rgb = colour(&decoded[pixel * n..][..n]);
        decoded[3 * pixel..][..3].copy_from_slice(&rgb);
    }
    decoded.truncate(3 * n_pixels);
    decoded.shrink_to_fit();
    decoded
}
