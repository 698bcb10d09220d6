//! The whole way from the atlas to a rebuilt attention without a pointer.

use super::chromium::Browser;
use super::pages::{many_heads, planted};

#[test]
fn a_head_is_found_opened_and_taken_apart_by_keyboard_alone() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = planted(folder.path(), &many_heads(20, 8), 3);
    browser.window(1280, 900, "light");
    browser.open(&page, "");
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.textContent"), "Skip to the picture");
    browser.press("Enter");
    assert_eq!(browser.text("document.activeElement.id"), "main");

    // Arrows walk the atlas: down a layer, two heads to the right.
    browser.tab_to("it.classList.contains('atlas-cell')");
    for key in ["ArrowDown", "ArrowRight", "ArrowRight"] {
        browser.press(key);
    }
    let words = browser.text("document.activeElement.getAttribute('aria-label')");
    assert!(words.starts_with("Cross-attention · layer 1 · head 2"), "{words}");
    browser.press("Enter");
    browser.wait("document.querySelector('h1')?.textContent === 'Cross-attention · layer 1 · head 2'");

    // In the matrix arrows go from cell to cell and each is said; Enter pins.
    browser.tab_to("it.classList.contains('heat-scroll')");
    for key in ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"] {
        browser.press(key);
    }
    let said = browser.text("document.querySelector('.matrix [role=status].hidden').textContent");
    assert!(said.starts_with("pinned: row 2 of 8") && said.contains("column 2 of 8"), "{said}");
    let weight = f64::from(explained.samples.sentences[0].attention[14][8 + 1]);
    assert!((browser.number("document.getElementById('cell-weight').dataset.value") - weight).abs() < 1e-5);

    // Terms are buttons; the figures follow and are said.
    browser.tab_to("it.dataset.piece === '0'");
    browser.press(" ");
    assert_eq!(browser.text("document.activeElement.getAttribute('aria-pressed')"), "false");
    assert!(browser.number("tv.dataset.value") > 0.0);
    assert!(browser.text("said.textContent").starts_with("position × position off"));

    // On to the next sentence and to another view; the focus is not lost.
    browser.tab_to("it.dataset.view === 'components' || (it === document.body && false)");
    browser.press("Enter");
    browser.wait("document.querySelector('h1')?.textContent === 'Components'");
    assert_eq!(browser.text("document.activeElement.dataset.view"), "components");
    browser.tab_to("it.dataset.view === 'head'");
    browser.press("Enter");
    browser.wait("document.querySelector('h1')?.textContent === 'Cross-attention · layer 1 · head 2'");
    browser.tab_to("it.id === 'sample-next'");
    browser.press("Enter");
    browser.wait("document.querySelector('.samples select').value === '1' && document.activeElement.id === 'sample-next'");
    browser.was_quiet();
}

/// Everything that can be used has a name, and every view says in words what it shows.
#[test]
fn everything_has_a_name() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = planted(folder.path(), &many_heads(20, 8), 3);
    for view in ["atlas", "head", "components", "compare"] {
        browser.open(&page, &format!("#view={view}"));
        browser.settle();
        browser.names_everything(view);
    }
    browser.was_quiet();
}
