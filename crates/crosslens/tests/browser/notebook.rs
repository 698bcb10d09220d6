//! The page as notebooks show it: in a frame that may run scripts and hand out files, and nothing else.

use super::chromium::Browser;
use super::pages::one_head;

/// As the Python package writes it: `crosslens-py/python/crosslens/_explanation.py`.
fn framed(page: &str) -> String {
    let text = page.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>notebook</title><link rel=\"icon\" href=\"data:,\"><iframe srcdoc=\"{text}\" sandbox=\"allow-scripts allow-downloads\" style=\"width: 100%; height: 800px; border: 0\" title=\"Crosslens\"></iframe>"
    )
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
