//! The page in another browser: Firefox opens it from disk. It cannot be asked anything here, so what it paints is looked at.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crosslens_lab::analysis::Part;
use crosslens_lab::analysis::figure::colours::Colour;
use crosslens_lab::analysis::figure::{Colours, Theme};

use super::pages::{many_heads, planted};

/// The program, or `None`, which is said.
fn program() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let named = std::env::var_os("CROSSLENS_FIREFOX").map(PathBuf::from);
    let names = ["firefox-esr", "firefox"];
    let on_path = || names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file());
    let found = named.or_else(on_path).filter(|_| std::env::var_os("CROSSLENS_NO_BROWSER").is_none());
    if found.is_none() {
        let said = b"SKIPPED: no Firefox (Debian package `firefox-esr`, or CROSSLENS_FIREFOX=/path), so the page is not opened in it\n";
        std::io::stderr().write_all(said).ok();
    }
    found
}

/// What Firefox paints of a page: the bytes red, green, blue and opacity of each pixel.
fn painted(program: &Path, folder: &Path, address: &str, picture: &Path) -> Vec<[u8; 4]> {
    let profile = folder.join("profile");
    std::fs::create_dir_all(&profile).expect("a folder");
    let ended = Command::new(program)
        .args(["--headless", "--no-remote", "--window-size=1200,900", "--profile"])
        .arg(&profile)
        .arg("--screenshot")
        .arg(picture)
        .arg(address)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("Firefox starts");
    assert!(ended.success(), "{ended}");
    let file = BufReader::new(File::open(picture).expect("a picture"));
    let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
    assert_eq!(reader.output_color_type(), (png::ColorType::Rgba, png::BitDepth::Eight));
    let mut bytes = vec![0; reader.output_buffer_size()];
    reader.next_frame(&mut bytes).expect("pixels");
    bytes.chunks_exact(4).map(|pixel| [pixel[0], pixel[1], pixel[2], pixel[3]]).collect()
}

/// How many pixels have a colour, or one that nobody can tell from it.
fn n_of(pixels: &[[u8; 4]], colour: Colour) -> usize {
    let hex = colour.hex();
    let rgb = [1, 3, 5].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"));
    pixels.iter().filter(|pixel| pixel.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 3)).count()
}

#[test]
fn firefox_shows_the_page_from_disk() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = planted(folder.path(), &many_heads(20, 11), 3);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&kept).expect("a folder");
    let look = |view: &str| {
        let address = format!("file://{}#view={view}&theme=light", page.display());
        painted(&program, folder.path(), &address, &kept.join(format!("firefox-{view}.png")))
    };
    let colours = Colours::of(Theme::Light);
    // Discs of every part, or squares that say which is which: no page of an error has them.
    for (view, least) in [("atlas", 5000), ("head", 100)] {
        let pixels = look(view);
        let found = Part::ALL.map(|part| n_of(&pixels, colours.part(part)));
        assert!(found.iter().all(|&n| n >= least), "{view}: {found:?} pixels of the colours of the parts");
        if view == "head" {
            // The cell that the first step looks at most, in its colour.
            let sample = &explained.samples.sentences[0];
            let row = &sample.attention[0][..sample.shapes[0].1];
            let most = f64::from(row.iter().copied().fold(0.0, f32::max));
            assert!(most > 0.3, "colours are not stretched: {most}");
            let n = n_of(&pixels, colours.weight(most));
            assert!(n > 500, "{n} pixels of the largest weight of the first row, {most}");
        }
    }
}
