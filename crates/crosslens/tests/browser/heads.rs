//! One head: its numbers are those of the report, and what is pointed at is told.

use std::path::Path;

use crosslens_lab::analysis::figure::{Colours, Theme};
use serde_json::Value;

use super::chromium::Browser;
use super::common::succeed;
use super::pages::{planted, tiny};
use super::planted::{Plan, pieces_of_words, strange_names};

/// A report of one sentence, its components fitted on others: its means are those of that sentence, as the page computes them.
fn page_of_one_sentence(folder: &Path) -> Value {
    tiny(folder);
    let words: Value = serde_json::from_slice(&std::fs::read(folder.join("run/vocab.json")).expect("words")).expect("JSON");
    let side = |side: &str| [0, 1, 1, 0].map(|number| words[side][number].as_str().expect("a word").to_owned()).join(" ");
    std::fs::write(folder.join("one.tsv"), format!("{}\t{}\n", side("source"), side("target"))).expect("writable");
    succeed(folder, &["fit", "run", "--samples", "300", "-o", "x.stats.safetensors"]);
    succeed(folder, &["explain", "run", "--corpus", "one.tsv", "--components", "x.stats.safetensors", "--save", "one.json", "--json"]);
    succeed(folder, &["report", "one.json", "-o", "one.html"]);
    serde_json::from_slice(&std::fs::read(folder.join("one.json")).expect("the report")).expect("JSON")
}

#[test]
fn terms_switched_off_give_the_numbers_of_the_report() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let report = page_of_one_sentence(folder.path());
    browser.open(&folder.path().join("one.html"), "#view=head");
    assert_eq!((browser.number("tv.dataset.value"), browser.number("agreement.dataset.value")), (0.0, 1.0), "nothing is off yet");
    let rebuilt = &report["sites"][0]["rebuilt"];
    let presets =
        [("position", "temporal"), ("token", "input"), ("position + token", "temporal+input"), ("without position", "no-temporal")];
    for (preset, name) in presets {
        browser.eval(&format!("document.querySelector(`[data-preset='{preset}']`).click()"));
        is_as_reported(&mut browser, &rebuilt[name], name);
    }
    // The same by hand: everything but the rest × the rest off.
    browser.eval("document.querySelector(`[data-preset='everything']`).click()");
    browser.eval("for (let piece = 0; piece < 8; piece += 1) document.querySelector(`[data-piece='${piece}']`).click()");
    is_as_reported(&mut browser, &rebuilt["residual"], "residual");
    // The address holds the choice.
    browser.wait("location.hash.includes('off=255')");
    let place = browser.text("location.hash");
    browser.open(&folder.path().join("one.html"), &place);
    is_as_reported(&mut browser, &rebuilt["residual"], "residual");
    browser.was_quiet();
}

fn is_as_reported(browser: &mut Browser, rebuilt: &Value, name: &str) {
    let (tv, agreement) = (browser.number("tv.dataset.value"), browser.number("agreement.dataset.value"));
    let expected = |field: &str| rebuilt[field].as_f64().expect("a number");
    assert!((tv - expected("tv")).abs() < 1e-5, "{name}: total variation {tv}, the report says {}", expected("tv"));
    assert!((agreement - expected("argmax")).abs() < 1e-9, "{name}: agreement {agreement}, the report says {}", expected("argmax"));
}

/// Additive scores, a causal mask and a bias of positions: softmax of all pieces is the attention Rust found.
#[test]
fn every_kind_of_attention_is_rebuilt_from_its_pieces() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 2, n_sentences: 30, lengths: (7, 9), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 3);
    for site in 0..explained.report.sites.len() {
        browser.open(&page, &format!("#view=head&site={site}&sample=1"));
        let (n_queries, n_keys) = explained.samples.sentences[1].shapes[site];
        for (row, column) in [(0, 0), (n_queries - 1, n_keys / 2), (n_queries / 2, 1)] {
            browser.open(&page, &format!("#view=head&site={site}&sample=1&pin={row},{column}"));
            let shown = browser.number("document.getElementById('cell-weight').dataset.value");
            let weight = f64::from(explained.samples.sentences[1].attention[site][row * n_keys + column]);
            assert!((shown - weight).abs() < 1e-5, "site {site}, {row}, {column}: {shown}, not {weight}");
        }
        let n_terms = browser.number("document.querySelectorAll('.term').length");
        let report = &explained.report.sites[site];
        assert_eq!(n_terms, if report.map == "additive" { 6.0 } else { 9.0 + f64::from(u8::from(report.kind == "decoder-self")) });
        browser.eval("document.querySelector(`[data-piece='0']`).click()");
        assert!(browser.number("tv.dataset.value") > 0.0);
    }
    browser.was_quiet();
}

/// Where the middle of a cell of the large matrix lies in the window. Cells are square and reach to the matrix's right and lower edge.
pub(super) fn middle(browser: &mut Browser, row: usize, column: usize, shape: (usize, usize)) -> (f64, f64) {
    let edge = |side: &str, size: &str| {
        format!(
            "(() => {{ const spacer = document.querySelector('.matrix .heat-spacer'); spacer.scrollIntoView({{ block: 'center' }}); return spacer.getBoundingClientRect().{side} + parseFloat(spacer.style.{size}); }})()"
        )
    };
    let (right, bottom) = (browser.number(&edge("left", "width")), browser.number(&edge("top", "height")));
    let cell = browser.number("document.querySelector('.matrix .heat-scroll').dataset.cell");
    (right - 1.0 - cell * (shape.1 as f64 - column as f64 - 0.5), bottom - 1.0 - cell * (shape.0 as f64 - row as f64 - 0.5))
}

#[test]
fn pointing_tells_and_clicking_pins() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 2, n_sentences: 30, lengths: (7, 9), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 3);
    browser.window(1280, 900, "light");
    browser.open(&page, "#view=head");
    let sample = &explained.samples.sentences[0];
    let shape = sample.shapes[0];
    for (row, column) in [(2, 4), (8, 0)] {
        let (x, y) = middle(&mut browser, row, column, shape);
        browser.pointer(x, y, false);
        let weight = f64::from(sample.attention[0][row * shape.1 + column]);
        assert!((browser.number("document.getElementById('cell-weight').dataset.value") - weight).abs() < 1e-5);
        assert_eq!(browser.eval("document.querySelector('.pinned') === null"), true);
    }
    let (x, y) = middle(&mut browser, 3, 5, shape);
    browser.pointer(x, y, true);
    browser.pointer(2.0, 2.0, false);
    let weight = f64::from(sample.attention[0][3 * shape.1 + 5]);
    assert!((browser.number("document.getElementById('cell-weight').dataset.value") - weight).abs() < 1e-5, "the pin stays");
    assert_eq!(browser.text("document.querySelector('.pinned').textContent"), "pinned");
    browser.wait("new URLSearchParams(location.hash.slice(1)).get('pin') === '3,5'");
    // Nine bars explain the cell: they add up to what it says.
    let bars = browser.number("document.querySelectorAll('.bar-row').length");
    assert_eq!(bars, 9.0);
    browser.was_quiet();
}

#[test]
fn hiding_signs_and_joining_words_keeps_rows_whole() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (12, 12), names: pieces_of_words() };
    let (page, _) = planted(folder.path(), &plan, 4);
    let sums = "(() => { const rows = [...document.querySelectorAll('details table tbody tr')].filter((row) => row.children.length > 5); return rows.map((row) => [...row.querySelectorAll('td')].reduce((sum, cell) => sum + parseFloat(cell.textContent), 0)); })()";
    let mut shapes = Vec::new();
    for place in ["", "&hide=1", "&words=1", "&hide=1&words=1"] {
        browser.open(&page, &format!("#view=head{place}"));
        browser
            .eval("[...document.querySelectorAll('summary')].find((summary) => summary.textContent.includes('matrix as a table')).click()");
        browser.settle();
        let rows: Vec<f64> = browser.eval(sums).as_array().expect("rows").iter().map(|sum| sum.as_f64().expect("a number")).collect();
        assert!(rows.iter().all(|sum| (sum - 100.0).abs() <= 6.0), "{place}: whole percents of a row add up: {rows:?}");
        shapes.push(rows.len());
    }
    assert_eq!(shapes[0], 12);
    assert!(shapes[1] == 11 && shapes[2] < 12 && shapes[3] == shapes[2] - 1, "{shapes:?}");
    browser.was_quiet();
}

/// The source token that would turn text around, among [`strange_names`].
const TURNED: u32 = 10;

#[test]
fn tokens_are_text_whatever_they_say() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 2, n_sentences: 60, lengths: (14, 12), names: strange_names() };
    let (page, explained) = planted(folder.path(), &plan, 6);
    browser.window(1280, 1000, "light");
    for view in ["atlas", "head", "head&sample=2&pin=1,1", "components", "training", "compare"] {
        browser.open(&page, &format!("#view={view}"));
        browser.settle();
        assert_eq!(browser.eval("document.querySelectorAll('main img, main b, main script').length"), 0);
    }
    browser.open(&page, "#view=head&sample=0");
    let shown = browser.text("document.querySelector('.sentence').textContent");
    // What would turn the text around is written out, as in figures.
    let first = explained.samples.source.name(explained.samples.sentences[0].sentence.source[0]).replace('\u{202e}', "\\u{202e}");
    assert!(shown.contains(first.trim()) || first.is_empty(), "{shown} has no {first}");
    let turned: Vec<usize> = (0..6).filter(|&sample| explained.samples.sentences[sample].sentence.source.contains(&TURNED)).collect();
    assert!(!turned.is_empty(), "some sentence has such a token");
    for sample in turned {
        browser.open(&page, &format!("#view=head&sample={sample}"));
        assert!(browser.text("document.querySelector('.sentence').textContent").contains("\\u{202e}evil"));
        assert_eq!(browser.eval("document.body.innerText.includes('\\u202e')"), false);
    }
    browser.open(&page, "#view=head&sample=0");
    browser.picture("strange-tokens");
    browser.was_quiet();
}

/// How many tokens of the source begin neither right of where the one before them ends nor on a line below.
const OUT_OF_ORDER: &str = "(() => { const boxes = [...document.querySelector('.sentence-line').querySelectorAll('bdi')].map((it) => it.getClientRects()); return boxes.filter(([first], place) => { if (!place) return false; const before = [...boxes[place - 1]].pop(); return first.left < before.right - 1 && first.top < before.bottom - 1; }).length; })()";

/// A word that is read from the right does not turn the sentence around it: tokens stand in their order, like the columns they name.
#[test]
fn tokens_of_every_script_keep_their_order() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 60, lengths: (14, 12), names: strange_names() };
    let (page, explained) = planted(folder.path(), &plan, 6);
    let shown = |name: &str| if name.is_empty() { "∅".to_owned() } else { name.replace('\u{202e}', "\\u{202e}") };
    let mut seen = std::collections::BTreeSet::new();
    for (number, sample) in explained.samples.sentences.iter().enumerate() {
        browser.open(&page, &format!("#view=head&sample={number}"));
        browser.settle();
        let names: Vec<String> = sample.sentence.source.iter().map(|&token| shown(explained.samples.source.name(token).as_ref())).collect();
        let line = browser.eval("[...document.querySelector('.sentence-line').querySelectorAll('bdi')].map((it) => it.textContent)");
        assert_eq!(line, serde_json::json!(names), "sentence {number}");
        assert_eq!(browser.eval(OUT_OF_ORDER), 0, "sentence {number}: {names:?}");
        let figure = String::from_utf8(browser.download(".matrix", "SVG")).expect("text");
        let foreign = ["שלום", "مرحبا", "猫", "日本語"].into_iter().filter(|word| names.iter().any(|name| name == word));
        for word in foreign {
            assert!(figure.contains(&format!(">{word}</text>")), "{word} names no column of {figure}");
            seen.insert(word);
        }
    }
    assert_eq!(seen.len(), 4, "every script stood somewhere: {seen:?}");
    browser.was_quiet();
}

#[test]
fn figures_and_data_can_be_taken_along() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 2, n_sentences: 40, lengths: (6, 5), names: strange_names() };
    let (page, _) = planted(folder.path(), &plan, 2);
    browser.open(&page, "#view=head");
    for kind in ["SVG", "PNG", "JSON", "CSV"] {
        let bytes = browser.download(".matrix", kind);
        let text = String::from_utf8_lossy(&bytes);
        match kind {
            "SVG" => assert!(text.starts_with("<svg") && text.matches("<rect").count() == 31 && !text.contains("<img"), "{text}"),
            "PNG" => assert!(bytes.starts_with(b"\x89PNG")),
            "JSON" => assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("JSON")["shape"], serde_json::json!([5, 6])),
            _ => assert!(text.lines().count() == 6 && !text.lines().any(|line| line.starts_with('=')), "{text}"),
        }
    }
    browser.was_quiet();
}

/// On dark paper too; what is taken along is read elsewhere, beside nothing that would explain it.
#[test]
fn every_figure_brings_its_paper_and_its_legend() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 2, n_sentences: 40, lengths: (6, 5), names: strange_names() };
    let (page, _) = planted(folder.path(), &plan, 2);
    browser.window(1280, 1000, "dark");
    let paper = format!("fill=\"{}\"", Colours::of(Theme::Dark).paper().hex());
    let figures: [(&str, &str, &[&str]); 5] = [
        ("atlas", "", &["Cross-attention", "position", "token", "the rest"]),
        ("components", "", &["encoder", "decoder", "axis 1: "]),
        ("head", ".matrix", &["Cross-attention · layer 0 · head 0", "share of attention"]),
        ("head", ".terms", &["position × token", "the rest × the rest", "above or below the mean of a row"]),
        ("compare", "", &["A · planted", "B − A", "B less A: blue where B looks more"]),
    ];
    for (view, place, words) in figures {
        browser.open(&page, &format!("#view={view}"));
        browser.settle();
        let figure = String::from_utf8(browser.download(place, "SVG")).expect("text");
        assert!(figure.starts_with("<svg") && figure.contains(&paper), "{view}: {figure}");
        words.iter().for_each(|words| assert!(figure.contains(words), "{view} {place}: no {words} in {figure}"));
        let text = serde_json::to_string(&figure).expect("text");
        let is_whole = format!("new DOMParser().parseFromString({text}, 'image/svg+xml').querySelector('parsererror') === null");
        assert_eq!(browser.eval(&is_whole), true, "{view}: {figure}");
        assert!(browser.download(place, "PNG").starts_with(b"\x89PNG"), "{view} {place}");
    }
    browser.was_quiet();
}
