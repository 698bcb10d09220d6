//! Every view in windows of every size, light and dark; pictures are left for people in `target/tmp/screenshots`.

use std::path::{Path, PathBuf};

use crosslens_lab::Shown;
use crosslens_lab::analysis::explain::Explained;
use crosslens_lab::analysis::figure::{Colours, Theme};
use crosslens_lab::analysis::page::Page;
use serde_json::json;

use super::chromium::Browser;
use super::pages::{many_heads, planted, with_timeline};
use super::planted::{Plan, Planted, pieces_of_words};

const VIEWS: [&str; 5] = ["atlas", "head", "components", "training", "compare"];

#[test]
fn no_view_scrolls_sideways_from_320_pixels_to_4k() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (heads, _) = planted(folder.path(), &many_heads(40, 11), 3);
    let (trained, _) = with_timeline(folder.path());
    for (name, page) in [("heads", heads), ("trained", trained)] {
        for (size, width, height) in [("narrow", 320, 900), ("wide", 1440, 1000), ("4k", 3840, 2160)] {
            for scheme in ["light", "dark"] {
                browser.window(width, height, scheme);
                for view in VIEWS {
                    browser.open(&page, &format!("#view={view}"));
                    browser.settle();
                    let (used, room) = (browser.number("document.documentElement.scrollWidth"), browser.number("innerWidth"));
                    assert!(used <= room, "{name}, {view} at {width} pixels is {used} wide");
                    browser.picture(&format!("{name}-{view}-{size}-{scheme}"));
                    if name == "trained" {
                        is_legible(&mut browser, view, width);
                    }
                }
            }
        }
    }
    browser.was_quiet();
}

/// Keeps the sizes of what is written on a canvas, and lets the components be drawn anew.
const WRITE_AGAIN: &str = "(() => { window.sizes = []; const write = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (...all) { window.sizes.push(parseFloat(this.font)); return write.apply(this, all); }; document.querySelector('.cloud canvas').dispatchEvent(new KeyboardEvent('keydown', { key: '+' })); })()";

/// Sizes of the letters of charts, as they are seen.
const CHART_LETTERS: &str = "[...document.querySelectorAll('.chart text')].map((it) => parseFloat(getComputedStyle(it).fontSize) * it.ownerSVGElement.getBoundingClientRect().width / it.ownerSVGElement.viewBox.baseVal.width)";

/// How many ticks of the time axis stand on the one before them.
const TICKS_ON_TICKS: &str = "[...document.querySelectorAll('.chart')].flatMap((chart) => { const boxes = [...chart.querySelectorAll('.tick')].map((it) => it.getBoundingClientRect()); return boxes.filter((box, place) => place && box.left < boxes[place - 1].right); }).length";

/// Letters in pictures are nearly as large as those around them, on a phone and on a wall.
fn is_legible(browser: &mut Browser, view: &str, width: u32) {
    let letters = match view {
        "training" => CHART_LETTERS,
        "components" => {
            browser.eval(WRITE_AGAIN);
            browser.settle();
            "window.sizes"
        }
        _ => return,
    };
    let sizes: Vec<f64> = serde_json::from_value(browser.eval(letters)).expect("sizes");
    let page = browser.number("parseFloat(getComputedStyle(document.body).fontSize)");
    assert!(sizes.len() > 3 && sizes.iter().all(|size| (0.75..=1.01).contains(&(size / page))), "{view} at {width}: {sizes:?} of {page}");
    assert_eq!(browser.eval(TICKS_ON_TICKS), 0, "{view} at {width}");
    if view == "components" {
        // A token's mark is a square of eight fifteenths of a letter.
        let side = format!("{:.2}", page * 8.0 / 15.0);
        let side = side.trim_end_matches('0').trim_end_matches('.');
        let figure = String::from_utf8(browser.download("", "SVG")).expect("text");
        assert!(figure.contains(&format!("h{side}v{side}h-{side}z")), "no mark of {side} at {width}");
    }
}

/// A window made smaller while the page is open: the matrix follows.
#[test]
fn the_matrix_follows_the_window() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 20, lengths: (30, 30), names: pieces_of_words() };
    let (page, _) = planted(folder.path(), &plan, 2);
    browser.window(1600, 1000, "light");
    browser.open(&page, "#view=head");
    let wide = browser.number("document.querySelector('.matrix canvas').clientWidth");
    browser.window(400, 1000, "light");
    browser.wait(&format!("document.querySelector('.matrix canvas').clientWidth < {wide} / 2"));
    assert!(browser.number("document.documentElement.scrollWidth") <= 400.0);
    browser.was_quiet();
}

/// A page of one sentence of 2,000 source and 500 target tokens.
fn long(folder: &Path) -> (PathBuf, Explained) {
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 1, lengths: (2000, 500), names: pieces_of_words() };
    let mut corpus = Planted::of(&plan);
    corpus.keep_sites(1);
    let shown = Shown { name: "long".into(), explained: corpus.explain(1), training: Vec::new(), timeline: None };
    let page = folder.join("long.html");
    shown.on(Page::new()).write(&page).expect("writable");
    (page, shown.explained)
}

/// A million cells are a picture within the figure, pixel by pixel: as shapes they would be 95 MB of text.
#[test]
fn the_figure_of_a_long_sentence_is_small() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = long(folder.path());
    browser.window(1440, 1000, "light");
    browser.open(&page, "#view=head");
    let figure = String::from_utf8(browser.download(".matrix", "SVG")).expect("text");
    assert!(figure.len() < 4_000_000, "{} bytes", figure.len());
    let text = serde_json::to_string(&figure).expect("text");
    let found = browser.eval(&format!(
        "(async () => {{ const figure = new DOMParser().parseFromString({text}, 'image/svg+xml'); const cells = figure.querySelector('image'); \
         const picture = new Image(); picture.src = cells.getAttribute('href'); await picture.decode(); \
         const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [picture.width, picture.height]; \
         const pen = canvas.getContext('2d', {{ willReadFrequently: true }}); pen.drawImage(picture, 0, 0); const at = (x, y) => [...pen.getImageData(x, y, 1, 1).data.slice(0, 3)]; \
         return {{ whole: figure.querySelector('parsererror') === null, size: [picture.width, picture.height], \
         wide: cells.getAttribute('width') / cells.getAttribute('height'), corners: [at(0, 0), at(1999, 499)] }}; }})()"
    ));
    assert_eq!((&found["whole"], &found["size"], &found["wide"]), (&json!(true), &json!([2000, 500]), &json!(4)));
    let weights = &explained.samples.sentences[0].attention[0];
    let largest = weights.iter().copied().fold(0.0, f32::max);
    // Colours are stretched where all weights are small.
    let scale = f64::from(if largest < 0.3 { largest } else { 1.0 });
    for (corner, (row, column)) in [(0, 0), (499, 1999)].into_iter().enumerate() {
        let hex = Colours::of(Theme::Light).weight(f64::from(weights[row * 2000 + column]) / scale).hex();
        let expected = [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")));
        let seen: [f64; 3] = serde_json::from_value(found["corners"][corner].clone()).expect("a colour");
        assert!(seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 6.0), "cell {row},{column}: {seen:?}, not {expected:?}");
    }
    assert!(browser.download(".matrix", "PNG").starts_with(b"\x89PNG"));
    browser.was_quiet();
}

/// What one sees is what another sees who is sent the address: the colours, and how far the matrix is scrolled.
#[test]
fn the_address_holds_the_colours_and_the_place_in_the_matrix() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = long(folder.path());
    browser.window(1440, 1000, "light");
    browser.open(&page, "#view=head");
    let paper = |browser: &mut Browser| browser.text("getComputedStyle(document.body).backgroundColor");
    let light = paper(&mut browser);
    assert_eq!(browser.text("theme.getAttribute('aria-label')"), "dark colours");
    browser.eval("theme.click()");
    browser.wait("location.hash.includes('theme=dark')");
    browser.settle();
    let dark = paper(&mut browser);
    assert_ne!(light, dark);
    assert_eq!(browser.text("theme.getAttribute('aria-label')"), "light colours");

    let scroll = "document.querySelector('.matrix .heat-scroll')";
    let place = |browser: &mut Browser| browser.eval(&format!("[{scroll}.scrollLeft, {scroll}.scrollTop].map(Math.round)"));
    browser.eval(&format!("{scroll}.scrollTo(300 * {scroll}.dataset.cell, 120 * {scroll}.dataset.high)"));
    browser.wait("location.hash.includes('at=120%2C300')");
    let (seen, address) = (place(&mut browser), browser.text("location.hash"));
    browser.open(&page, &address);
    assert_eq!((place(&mut browser), paper(&mut browser)), (seen, dark.clone()));

    // Another view keeps the colours, and its links too; another sentence is seen from its beginning.
    browser.eval("document.querySelector('[data-view=compare]').click()");
    browser.wait("document.querySelector('h1').textContent === 'Compare'");
    assert_eq!((browser.eval("location.hash.includes('theme=dark')"), paper(&mut browser)), (json!(true), dark));
    // The browser's own button leads back.
    browser.eval("history.back()");
    browser.wait("document.querySelector('h1').textContent.startsWith('Cross-attention')");
    browser.open(&page, &address);
    browser.eval("document.getElementById('sample-next').click()");
    browser.wait("!location.hash.includes('at=')");
    browser.settle();
    assert_eq!(place(&mut browser), json!([0, 0]));
    browser.eval("theme.click()");
    browser.wait("location.hash.includes('theme=light')");
    browser.settle();
    assert_eq!(paper(&mut browser), light);
    browser.was_quiet();
}

/// Two thousand source tokens: the canvas is as large as what is seen, not as the matrix.
#[test]
fn long_sentences_are_drawn_as_far_as_they_are_seen() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = long(folder.path());
    browser.window(1440, 1000, "light");
    browser.open(&page, "#view=head");
    let canvas =
        |browser: &mut Browser| browser.number("(({ width, height }) => width * height)(document.querySelector('.matrix canvas'))");
    assert!(canvas(&mut browser) <= 1440.0 * 1000.0);
    let scroll = "document.querySelector('.matrix .heat-scroll')";
    assert!(browser.number(&format!("{scroll}.scrollWidth")) > 5000.0, "the rest is there to scroll to");
    browser.eval(&format!("{scroll}.scrollLeft = 1e6"));
    browser.settle();
    browser.tab_to("it.classList.contains('heat-scroll')");
    for key in ["End", "ArrowDown", "End"] {
        browser.press(key);
    }
    let said = browser.text("document.querySelector('.matrix [role=status].hidden').textContent");
    assert!(said.contains("column 2000 of 2000"), "{said}");
    browser.picture("long");

    // One term off: what is seen is rebuilt at once, and the figures of all rows follow, the same as if all had been.
    // Of a single sentence every score is its position's: without that term attention is even.
    browser.wait("document.getElementById('tv')?.dataset.value !== undefined");
    browser.eval(COUNT_READOUTS);
    // The slider moved and the colours stretched meanwhile begin nothing anew, and nothing is said twice.
    browser.eval(
        "document.querySelector(`[data-piece='0']`).click(); for (const value of [0.02, 0.01, 0]) { threshold.value = value; threshold.dispatchEvent(new Event('input')); } [...document.querySelectorAll('.check')].find((it) => it.textContent === 'stretch colours').querySelector('input').click()",
    );
    browser.wait("document.getElementById('tv')?.dataset.value > 0");
    browser.eval("threshold.value = 0.03; threshold.dispatchEvent(new Event('input'))");
    browser.settle();
    assert_eq!(browser.eval("window.readouts"), json!(["…", browser.text("tv.textContent")]), "what is rebuilt was told once");
    let (tv, agreement) = (browser.number("tv.dataset.value"), browser.number("agreement.dataset.value"));
    let (expected_tv, expected_agreement) = without(&explained.samples.sentences[0], 0);
    assert!((tv - expected_tv).abs() < 2e-3, "{tv} and {expected_tv}");
    assert!((agreement - expected_agreement).abs() < 2e-2, "{agreement} and {expected_agreement}");
    browser.was_quiet();
}

/// Keeps every total variation that is told.
const COUNT_READOUTS: &str = "(() => { window.readouts = []; new MutationObserver((changes) => { for (const { addedNodes } of changes) for (const node of addedNodes) if (node.className === 'figures') window.readouts.push(node.querySelector('#tv').textContent); }).observe(document.querySelector('.terms .readout'), { childList: true }); })()";

/// Total variation and agreement of a sentence's attention without one piece, row by row.
fn without(sample: &crosslens_lab::analysis::explain::Sample, off: usize) -> (f64, f64) {
    let (n_queries, n_keys) = sample.shapes[0];
    let pieces = &sample.pieces[0];
    let row = |query: usize, keeps: &dyn Fn(usize) -> bool| -> Vec<f64> {
        let of = |piece: usize, key: usize| f64::from(pieces[(piece * n_queries + query) * n_keys + key]);
        let scores: Vec<f64> = (0..n_keys).map(|key| (0..9).filter(|&piece| keeps(piece)).map(|piece| of(piece, key)).sum()).collect();
        let highest = scores.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
        scores.iter().map(|score| (score - highest).exp() / total).collect()
    };
    let best = |row: &[f64]| row.iter().enumerate().fold(0, |best, (key, weight)| if *weight > row[best] { key } else { best });
    let (mut tv, mut same) = (0.0, 0.0);
    for query in 0..n_queries {
        let (all, some) = (row(query, &|_| true), row(query, &|piece| piece != off));
        tv += all.iter().zip(&some).map(|(a, b)| (a - b).abs() / 2.0).sum::<f64>();
        same += f64::from(u8::from(best(&all) == best(&some)));
    }
    (tv / n_queries as f64, same / n_queries as f64)
}
