//! The same figure as PDF and PNG.
//!
//! Latin, Greek and Cyrillic text is set in Noto Sans, which comes along; other scripts are looked for among the system's fonts, and what
//! no font has is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, ID, Query, Style as FontStyle, Weight};
use resvg::usvg::{self, FallbackSelectionFn, FontResolver, roxmltree};
use unicode_script::UnicodeScript;

use super::Figure;

/// Dots per inch of a PNG file.
pub const DPIS: std::ops::RangeInclusive<u32> = 30..=2400;
/// What one unit of SVG is.
const SVG_DPI: f32 = 96.0;
/// Most dots of a PNG file: 400 MB while it is made.
const MAX_DOTS: u64 = 100_000_000;
/// Characters named in a warning.
const MAX_NAMED: usize = 8;

/// Why a figure has no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// More dots than are made.
    #[error("{width} × {height} dots are too many, at most {MAX_DOTS} are made")]
    TooManyDots {
        /// Dots along.
        width: u64,
        /// Dots down.
        height: u64,
    },
    /// Dots per inch beyond what is made.
    #[error("{0} dots per inch cannot be made: {from} to {to} can", from = DPIS.start(), to = DPIS.end())]
    Dpi(u32),
    /// The figure is no proper SVG, which is an error of ours.
    #[error("the figure cannot be read back: {0}")]
    Svg(String),
    /// The encoder failed.
    #[error("the picture cannot be encoded: {0}")]
    Encode(String),
}

/// The bytes of a file, and what is missing in it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file.
    pub bytes: Vec<u8>,
    /// Characters that no font has, by script; they are drawn as boxes.
    pub missing: Missing,
}

/// Characters that no font has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    by_script: BTreeMap<&'static str, BTreeSet<char>>,
}

impl Missing {
    /// Whether every character has a font.
    pub fn is_empty(&self) -> bool {
        self.by_script.is_empty()
    }

    /// The scripts with some of their characters: `Han (你 U+4F60, 好 U+597D), Thai (ก U+0E01)`.
    pub fn text(&self) -> String {
        let named = |(script, characters): (&&str, &BTreeSet<char>)| {
            let some = characters.iter().take(MAX_NAMED).map(|&character| format!("{character} U+{:04X}", u32::from(character)));
            let more = if characters.len() > MAX_NAMED { ", …" } else { "" };
            format!("{script} ({}{more})", some.collect::<Vec<_>>().join(", "))
        };
        self.by_script.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

/// A figure read back, with its fonts.
struct Read {
    tree: usvg::Tree,
    missing: Missing,
}

impl Figure {
    /// The figure as PDF: lines are lines and text is text.
    pub fn to_pdf(&self) -> Result<Picture, PictureError> {
        let read = self.read()?;
        let options = svg2pdf::ConversionOptions { compress: true, embed_text: true, ..Default::default() };
        let bytes = svg2pdf::to_pdf(&read.tree, options, svg2pdf::PageOptions { dpi: SVG_DPI })
            .map_err(|error| PictureError::Encode(error.to_string()))?;
        Ok(Picture { bytes, missing: read.missing })
    }

    /// The figure as PNG, which says how large it is on paper.
    pub fn to_png(&self, dpi: u32) -> Result<Picture, PictureError> {
        if !DPIS.contains(&dpi) {
            return Err(PictureError::Dpi(dpi));
        }
        let dots = |mm: f64| (mm / 25.4 * f64::from(dpi)).round().max(1.0) as u64;
        let (width, height) = (dots(self.width_mm), dots(self.height_mm));
        let too_many = || PictureError::TooManyDots { width, height };
        if width.saturating_mul(height) > MAX_DOTS {
            return Err(too_many());
        }
        let mut dots = Pixmap::new(width as u32, height as u32).ok_or_else(too_many)?;
        let read = self.read()?;
        // Stretched by less than a dot, so that the paper reaches every edge.
        let size = read.tree.size();
        let stretch = Transform::from_scale(width as f32 / size.width(), height as f32 / size.height());
        resvg::render(&read.tree, stretch, &mut dots.as_mut());
        Ok(Picture { bytes: encoded(&dots, dpi).map_err(|error| PictureError::Encode(error.to_string()))?, missing: read.missing })
    }

    fn read(&self) -> Result<Read, PictureError> {
        let (fonts, missing) = fonts_for(&self.svg, Database::load_system_fonts)?;
        let options = usvg::Options {
            dpi: SVG_DPI,
            font_family: "Noto Sans".into(),
            fontdb: Arc::new(fonts),
            font_resolver: FontResolver { select_font: FontResolver::default_font_selector(), select_fallback: fallback() },
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&self.svg, &options).map_err(|error| PictureError::Svg(error.to_string()))?;
        Ok(Read { tree, missing })
    }
}

/// Dots without their alpha, which is 1 everywhere: a figure stands on its paper.
fn encoded(dots: &Pixmap, dpi: u32) -> Result<Vec<u8>, png::EncodingError> {
    let rgb: Vec<u8> = dots.data().chunks_exact(4).flat_map(|dot| [dot[0], dot[1], dot[2]]).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, dots.width(), dots.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Best);
    let per_metre = (f64::from(dpi) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(bytes)
}

/// The fonts a figure needs, and what they lack. More, those of the system, are loaded only where the one that comes along does not do.
fn fonts_for(svg: &str, load_more: impl FnOnce(&mut Database)) -> Result<(Database, Missing), PictureError> {
    let document = roxmltree::Document::parse(svg).map_err(|error| PictureError::Svg(error.to_string()))?;
    let texts = document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text());
    let mut wanted: BTreeSet<char> = texts.flat_map(str::chars).filter(|&character| is_drawn(character)).collect();
    let mut fonts = Database::new();
    fonts.load_font_data(ttf_noto_sans::REGULAR.to_vec());
    fonts.load_font_data(ttf_noto_sans::BOLD.to_vec());
    for family in [Database::set_sans_serif_family, Database::set_serif_family, Database::set_monospace_family] {
        family(&mut fonts, "Noto Sans");
    }
    let own = fonts.query(&Query { families: &[Family::Name("Noto Sans")], ..Query::default() });
    if let Some(own) = own {
        take_known(&fonts, own, &mut wanted);
    }
    if !wanted.is_empty() {
        load_more(&mut fonts);
        let faces: Vec<ID> = fonts.faces().map(|face| face.id).collect();
        for face in faces {
            take_known(&fonts, face, &mut wanted);
        }
    }
    let mut missing = Missing::default();
    for character in wanted {
        missing.by_script.entry(character.script().full_name()).or_default().insert(character);
    }
    Ok((fonts, missing))
}

/// Whether a character has a shape of its own.
fn is_drawn(character: char) -> bool {
    !(character.is_whitespace() || character.is_control() || matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}'))
}

/// Takes off what a face has.
fn take_known(fonts: &Database, face: ID, wanted: &mut BTreeSet<char>) {
    fonts.with_face_data(face, |data, index| {
        if let Ok(face) = ttf_parser::Face::parse(data, index) {
            wanted.retain(|&character| face.glyph_index(character).is_none());
        }
    });
}

fn has(fonts: &Database, face: ID, character: char) -> bool {
    fonts
        .with_face_data(face, |data, index| {
            ttf_parser::Face::parse(data, index).ok().and_then(|face| face.glyph_index(character)).is_some()
        })
        .unwrap_or(false)
}

/// Picks the face with a character that is most like text in a sans serif: upright, of regular weight, neither serif nor monospaced.
fn fallback() -> FallbackSelectionFn<'static> {
    Box::new(|character, used, fonts| {
        let mut faces: Vec<_> = fonts.faces().filter(|face| !used.contains(&face.id)).collect();
        faces.sort_by_key(|face| {
            let named = face.families.first().map_or("", |(name, _)| name.as_str());
            let strange =
                usize::from(face.style != FontStyle::Normal) + usize::from(face.monospaced) + usize::from(named.contains("Serif"));
            (strange, face.weight.0.abs_diff(Weight::NORMAL.0), face.post_script_name.clone())
        });
        faces.iter().find(|face| has(fonts, face.id, character)).map(|face| face.id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_characters_are_named_by_script() {
        let mut missing = Missing::default();
        for character in "好你ก".chars() {
            missing.by_script.entry(character.script().full_name()).or_default().insert(character);
        }
        assert_eq!(missing.text(), "Han (你 U+4F60, 好 U+597D), Thai (ก U+0E01)");
    }

    #[test]
    fn what_the_figures_own_words_need_comes_along() {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg'><text>Self-attention × − … – μ ß ж % (0.5)</text></svg>";
        let (fonts, missing) = fonts_for(svg, |_| panic!("no font of the system is read")).expect("fonts");
        assert!(missing.is_empty());
        assert_eq!(fonts.faces().count(), 2);
    }

    /// As on a system without any font: each character is named once, with its script; marks and blanks have no shape of their own.
    #[test]
    fn scripts_that_no_font_has_are_named() {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg'><text>你好 a</text><text>שלום</text><text>سلام\u{200d} 好</text></svg>";
        let (_, missing) = fonts_for(svg, |_| ()).expect("fonts");
        assert_eq!(
            missing.text(),
            "Arabic (ا U+0627, س U+0633, ل U+0644, م U+0645), Han (你 U+4F60, 好 U+597D), \
             Hebrew (ו U+05D5, ל U+05DC, ם U+05DD, ש U+05E9)"
        );
    }
}
