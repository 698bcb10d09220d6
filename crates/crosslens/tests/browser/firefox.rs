//! The page in another browser: Firefox opens it from disk. It cannot be asked anything here, so what it paints is looked at.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// The size of a picture of a page, in bytes: the more there is to see, the more.
fn painted(program: &Path, folder: &Path, address: &str, name: &str) -> u64 {
    let (profile, picture) = (folder.join("profile"), folder.join(name));
    std::fs::create_dir_all(&profile).expect("a folder");
    let ended = Command::new(program)
        .args(["--headless", "--no-remote", "--window-size=1200,900", "--profile"])
        .arg(&profile)
        .arg("--screenshot")
        .arg(&picture)
        .arg(address)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("Firefox starts");
    assert!(ended.success(), "{ended}");
    std::fs::metadata(&picture).expect("a picture").len()
}

#[test]
fn firefox_shows_the_page_from_disk() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = planted(folder.path(), &many_heads(20, 11), 3);
    let address = |page: &Path, place: &str| format!("file://{}{place}", page.display());
    let look = |address: &str, name: &str| painted(&program, folder.path(), address, name);
    // The same page without its data and its script: a title and no more.
    let mute = folder.path().join("mute.html");
    let text = std::fs::read_to_string(&page).expect("a page");
    let body = text.find("<script").expect("a script");
    std::fs::write(&mute, &text[..body]).expect("writable");
    let nothing = look(&address(&mute, ""), "mute.png");
    for view in ["atlas", "head"] {
        let seen = look(&address(&page, &format!("#view={view}")), &format!("{view}.png"));
        assert!(seen > 2 * nothing, "{view}: {seen} bytes, {nothing} without anything to see");
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&kept).expect("a folder");
        std::fs::copy(folder.path().join(format!("{view}.png")), kept.join(format!("firefox-{view}.png"))).expect("a copy");
    }
}
