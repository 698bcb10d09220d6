//! The page as notebooks show it: in a frame that may run scripts and hand out files, and nothing else.

use super::chromium::Browser;
use super::pages::one_head;

/// What writes the frame.
const PACKAGE: &str = include_str!("../../../crosslens-py/python/crosslens/_explanation.py");
const STYLE: &str = "width: 100%; height: 720px; border: 1px solid #ccc";

/// A notebook with the frame in it, as the Python package writes it.
fn framed(page: &str) -> String {
    let markup = |page: &str, style: &str| {
        format!("<iframe srcdoc=\"{page}\" sandbox=\"allow-scripts allow-downloads\" style=\"{style}\" title=\"Crosslens\"></iframe>")
    };
    let is_the_package_s = PACKAGE.contains(&markup("{page}", "{style}")) && PACKAGE.contains(&format!("style = \"{STYLE}\""));
    assert!(is_the_package_s, "the package writes another frame than this test opens");
    let text = page.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#x27;");
    let head = "<!doctype html><meta charset=\"utf-8\"><title>notebook</title><link rel=\"icon\" href=\"data:,\">";
    format!("{head}{}", markup(&text, STYLE))
}

#[test]
fn a_notebook_shows_the_page_in_its_frame() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = one_head(folder.path(), (7, 6), 2);
    let notebook = folder.path().join("notebook.html");
    let text = std::fs::read_to_string(page).expect("a page");
    std::fs::write(&notebook, framed(&text)).expect("writable");
    browser.window(1280, 900, "light");
    browser.call("Page.navigate", serde_json::json!({ "url": format!("file://{}", notebook.display()) }));
    browser.wait("location.href.startsWith('file:') && document.readyState === 'complete'");
    browser.enter_frame();
    browser.wait("document.documentElement?.dataset.ready !== undefined");
    assert_eq!(browser.text("document.querySelector('h1').textContent"), "Cross-attention · layer 0 · head 0");
    browser.wait("document.querySelector('.matrix canvas').width > 50");
    // A link within the page changes the view and leads nowhere else; what is shown is kept without an address.
    browser.eval("document.querySelector('[data-view=components]').click()");
    browser.wait("document.querySelector('h1').textContent === 'Components'");
    browser.eval("document.querySelector('[data-view=head]').click()");
    browser.wait("document.querySelector('.samples select') !== null");
    browser.eval("document.getElementById('sample-next').click()");
    browser.wait("document.querySelector('.samples select')?.value === '1'");
    let first = explained.samples.source.name(explained.samples.sentences[1].sentence.source[0]).trim_start_matches('▁').to_owned();
    browser.wait(&format!("document.querySelector('.sentence')?.textContent.includes('{first}')"));
    browser.was_quiet();
}
