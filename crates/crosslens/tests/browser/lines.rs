//! The lines of a matrix: what they are called, which are left out or joined, which stand out, and which sentence they are of.

use crosslens_lab::analysis::Token;
use crosslens_lab::analysis::explain::{Explained, Sample, TokenNames};
use crosslens_lab::analysis::figure::Colours;
use serde_json::Value;

use super::chromium::Browser;
use super::heads::middle;
use super::pages::{one_head, planted};
use super::planted::{Plan, pieces_of_words};

/// A token as the page shows it.
fn shown(names: &TokenNames, token: Token) -> String {
    names.name(token).trim_start_matches('▁').to_owned()
}

fn weight(sample: &Sample, row: usize, column: usize) -> f64 {
    f64::from(sample.attention[0][row * sample.shapes[0].1 + column])
}

fn shown_weight(browser: &mut Browser) -> f64 {
    browser.number("document.getElementById('cell-weight').dataset.value")
}

/// Opens the matrix as a table and gives what stands above its columns.
pub(super) fn columns(browser: &mut Browser) -> Vec<String> {
    let details = "[...document.querySelectorAll('details')].find((it) => it.textContent.startsWith('The matrix as a table'))";
    for is_open in [false, true] {
        browser.eval(&format!("{details}.open = {is_open}"));
        browser.settle();
    }
    let heads =
        browser.eval(&format!("[...{details}.querySelector('table').tHead.rows[0].cells].slice(1).map((cell) => cell.textContent)"));
    serde_json::from_value(heads).expect("texts")
}

/// Presses a check box by what stands beside it.
pub(super) fn tick(browser: &mut Browser, label: &str) {
    browser.eval(&format!(
        "[...document.querySelectorAll('.check')].find((it) => it.textContent === '{label}').querySelector('input').click()"
    ));
    browser.settle();
}

/// Places of the pieces of each word; a sign that is no word stands alone.
fn words(names: &TokenNames, tokens: &[Token]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, &token) in tokens.iter().enumerate() {
        let is_sign = |place: usize| names.name(tokens[place]).starts_with('<');
        let begins = place == 0 || names.name(token).starts_with('▁') || is_sign(place) || is_sign(place - 1);
        match groups.last_mut().filter(|_| !begins) {
            Some(word) => word.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

#[test]
fn what_is_read_and_what_is_written_are_both_said() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (7, 9), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 2);
    let (sample, target) = (&explained.samples.sentences[1].sentence, &explained.samples.target);
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head&sample=1&pin=4,2");
    let [read, written] = [sample.fed[4], sample.predicted[4]].map(|token| shown(target, token));
    let said = browser.text("document.querySelector('.cell-words').textContent");
    let looked_at = shown(&explained.samples.source, sample.source[2]);
    assert!(said.starts_with(&format!("After {read} it writes {written} and gives {looked_at} (place 2) ")), "{said}");
    browser.tab_to("it.classList.contains('heat-scroll')");
    browser.press("ArrowRight");
    let said = browser.text("document.querySelector('.matrix [role=status].hidden').textContent");
    assert!(said.starts_with(&format!("row 5 of 9, reads {read}, writes {written}; column 4 of 7, ")), "{said}");
    // Each kind of attention says what its rows and columns are.
    let label = "document.querySelector('.matrix .heat-scroll').getAttribute('aria-label')";
    for (number, site) in explained.report.sites.iter().enumerate() {
        browser.open(&page, &format!("#view=head&site={number}"));
        let says = browser.text(label);
        let rows = if site.kind == "encoder-self" { "Rows: a source token." } else { "Rows: what the decoder writes." };
        let columns =
            if site.kind == "decoder-self" { "Columns: the tokens read so far." } else { "Columns: the source tokens looked at." };
        assert!(says.contains(rows) && says.contains(columns), "{}: {says}", site.kind);
    }
    browser.was_quiet();
}

/// Three numbers of a colour written as in `#a1b2c3`.
fn rgb(hex: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")))
}

/// A decoder that looks at itself looks at what it read, which is one place behind what it wrote.
#[test]
fn the_words_that_a_decoder_reads_are_shaded_by_how_much_it_looks_at_them() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (7, 9), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 2);
    let site = explained.report.sites.iter().position(|site| site.kind == "decoder-self").expect("planted");
    let sample = &explained.samples.sentences[1];
    browser.window(1280, 1000, "light");
    browser.open(&page, &format!("#view=head&sample=1&site={site}&pin=6,2"));
    let line = "[...document.querySelectorAll('.sentence-line')].find((it) => it.firstChild.textContent === 'read')";
    browser.wait("document.getAnimations().length === 0");
    let seen = browser.eval(&format!(
        "[...{line}.querySelectorAll('bdi')].map((it) => [it.textContent, getComputedStyle(it).backgroundColor.match(/\\d+/g).map(Number)])"
    ));
    let seen: Vec<(String, [f64; 3])> = serde_json::from_value(seen).expect("words and colours");
    assert_eq!(seen.len(), 9);
    for (place, (word, colour)) in seen.iter().enumerate() {
        assert_eq!(*word, shown(&explained.samples.target, sample.sentence.fed[place]));
        let expected = rgb(&Colours::default().weight(f64::from(sample.attention[site][6 * 9 + place])).hex());
        assert!(colour.iter().zip(expected).all(|(a, b)| (a - b).abs() < 6.0), "place {place}: {colour:?}, not {expected:?}");
    }
    // Of cross-attention the source is shaded, and what was read stands in the rows.
    browser.open(&page, "#view=head&sample=1&site=0");
    assert_eq!(browser.eval(&format!("{line} === undefined")), true);
    browser.was_quiet();
}

/// Whether what was read stands left of what was written in each row of the matrix as a table.
const READ_IS_LEFT: &str = "[...document.querySelectorAll('details table')].pop().tBodies[0].rows.length && [...[...document.querySelectorAll('details table')].pop().tBodies[0].rows].map(({ cells: [{ firstChild: node }] }) => { const box = (from, to) => { const range = document.createRange(); range.setStart(node, from); range.setEnd(node, to); return range.getBoundingClientRect(); }; const at = node.data.indexOf(' → '); return box(0, at).right <= box(at + 3, node.length).left; })";

/// Two words that are read from the right would be one run of text, the first of them at its right end.
#[test]
fn what_is_read_stands_left_of_what_is_written_in_every_script() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let target = vec!["שלום", "ילדה", "مرحبا", "<eos>"];
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (5, 9), names: [pieces_of_words()[0].clone(), target] };
    let (page, explained) = planted(folder.path(), &plan, 1);
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head&sample=0");
    assert_eq!(columns(&mut browser).len(), 5);
    assert_eq!(browser.eval(READ_IS_LEFT), serde_json::json!(vec![true; 9]));
    let figure = String::from_utf8(browser.download(".matrix", "SVG")).expect("text");
    let (sample, names) = (&explained.samples.sentences[0].sentence, &explained.samples.target);
    let row = [sample.fed[3], sample.predicted[3]].map(|token| format!("\u{2068}{}\u{2069}", names.name(token))).join(" → ");
    assert!(figure.contains(&format!(">{row}</text>")), "no {row} in {figure}");
    browser.was_quiet();
}

/// The colour of a cell beside its upper left corner, where no number stands.
fn pixel(browser: &mut Browser, row: usize, column: usize) -> [f64; 3] {
    let rgb = browser.eval(&format!(
        "(() => {{ const canvas = document.querySelector('.matrix canvas'); const copy = document.createElement('canvas'); [copy.width, copy.height] = [canvas.width, canvas.height]; const context = copy.getContext('2d', {{ willReadFrequently: true }}); context.drawImage(canvas, 0, 0); const {{ left, top, cell, high }} = document.querySelector('.matrix .heat-scroll').dataset; return [...context.getImageData(Math.round(Number(left) + {column} * cell + 4), Math.round(Number(top) + {row} * high + 4), 1, 1).data].slice(0, 3); }})()"
    ));
    let rgb: Vec<f64> = serde_json::from_value(rgb).expect("three numbers");
    [rgb[0], rgb[1], rgb[2]]
}

/// How many colours a cell has, its edges left out: one where no number stands in it.
fn n_colours(browser: &mut Browser, row: usize, column: usize) -> f64 {
    browser.number(&format!(
        "(() => {{ const canvas = document.querySelector('.matrix canvas'); const copy = document.createElement('canvas'); [copy.width, copy.height] = [canvas.width, canvas.height]; const context = copy.getContext('2d', {{ willReadFrequently: true }}); context.drawImage(canvas, 0, 0); const {{ left, top, cell, high }} = document.querySelector('.matrix .heat-scroll').dataset; const {{ data }} = context.getImageData(Math.round(Number(left) + {column} * cell + 3), Math.round(Number(top) + {row} * high + 3), Math.floor(cell - 6), Math.floor(high - 6)); return new Set(new Uint32Array(data.buffer)).size; }})()"
    ))
}

fn is_near(a: [f64; 3], b: [f64; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 3.0)
}

#[test]
fn pointing_fades_the_rest_and_the_slider_hides_small_weights() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = one_head(folder.path(), (8, 7), 1);
    let sample = &explained.samples.sentences[0];
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head");
    browser.settle();
    let [aside, in_row, in_column] = [(5, 1), (2, 6), (6, 4)];
    let before = [aside, in_row, in_column].map(|(row, column)| pixel(&mut browser, row, column));
    let (x, y) = middle(&mut browser, 2, 4, sample.shapes[0]);
    browser.pointer(x, y, false);
    browser.settle();
    let faded = before[0].map(|byte| byte + 0.66 * (255.0 - byte));
    assert!(is_near(pixel(&mut browser, aside.0, aside.1), faded), "{:?} of {:?}", pixel(&mut browser, aside.0, aside.1), before[0]);
    for ((row, column), colour) in [in_row, in_column].into_iter().zip(&before[1..]) {
        assert!(is_near(pixel(&mut browser, row, column), *colour), "row and column stay as they are");
    }
    browser.pointer(2.0, 2.0, false);
    browser.settle();
    assert!(is_near(pixel(&mut browser, aside.0, aside.1), before[0]), "all is back");

    // Between the least and the largest weight of a row: one is gone, the other stays.
    let row = |column: &usize| weight(sample, 3, *column);
    let least = (0..8).min_by(|a, b| row(a).total_cmp(&row(b))).expect("columns");
    let most = (0..8).max_by(|a, b| row(a).total_cmp(&row(b))).expect("columns");
    let threshold = (50.0 * (row(&least) + row(&most))).round() / 100.0;
    assert!(row(&least) < threshold && threshold <= row(&most) && threshold <= 0.5, "{threshold}");
    let stays = pixel(&mut browser, 3, most);
    // A weight that is hidden takes its number along.
    let cells = || (0..7).flat_map(|row| (0..8).map(move |column| (row, column)));
    let is_numbered = |(row, column): (usize, usize)| weight(sample, row, column) >= 0.01;
    let hidden = cells().filter(|&cell| is_numbered(cell)).find(|&(row, column)| weight(sample, row, column) < threshold);
    let (hidden_row, hidden_column) = hidden.expect("some number is hidden");
    assert!(n_colours(&mut browser, hidden_row, hidden_column) > 1.0 && n_colours(&mut browser, 3, most) > 1.0, "both have numbers");
    browser.eval(&format!("threshold.value = {threshold}; threshold.dispatchEvent(new Event('input'))"));
    browser.settle();
    let nothing = rgb(&Colours::default().weight(0.0).hex());
    assert_eq!(n_colours(&mut browser, hidden_row, hidden_column), 1.0, "no number without its colour");
    assert!(n_colours(&mut browser, 3, most) > 1.0, "the other keeps its own");
    assert!(is_near(pixel(&mut browser, 3, least), nothing) && is_near(pixel(&mut browser, 3, most), stays));
    browser.wait(&format!("new URLSearchParams(location.hash.slice(1)).get('threshold') === '{threshold}'"));
    browser.was_quiet();
}

#[test]
fn signs_left_out_give_their_weight_to_the_others() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let signs = ["<s>", "[CLS]", "__eng__", ">>fr<<", "en_XX", "eng_Latn", "<pad>"];
    // A full stop of eSCAN and a byte of a tokenizer look like signs, and are what is said.
    let words = ["▁the", "▁cat", "▁sat", "<.>", "<0x0A>"];
    let source = words.into_iter().chain(signs).chain(["</s>"]).collect();
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (14, 6), names: [source, pieces_of_words()[1].clone()] };
    let (page, explained) = planted(folder.path(), &plan, 12);
    let names = &explained.samples.source;
    let is_word = |token: &Token| words.contains(&names.name(*token).as_ref());
    let (mut left_out, mut stood) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for (number, sample) in explained.samples.sentences.iter().enumerate() {
        let tokens = &sample.sentence.source;
        let kept: Vec<usize> = (0..tokens.len()).filter(|&place| is_word(&tokens[place])).collect();
        let (said, signs): (Vec<Token>, Vec<Token>) = tokens.iter().copied().partition(is_word);
        stood.extend(said.into_iter().map(|token| names.name(token).into_owned()));
        left_out.extend(signs.into_iter().map(|token| names.name(token).into_owned()));
        if kept.is_empty() {
            continue;
        }
        browser.open(&page, &format!("#view=head&hide=1&sample={number}&pin=2,0"));
        let words: Vec<String> = kept.iter().map(|&place| shown(names, tokens[place])).collect();
        assert_eq!(columns(&mut browser), words);
        let all: f64 = kept.iter().map(|&place| weight(sample, 2, place)).sum();
        let expected = weight(sample, 2, kept[0]) / all;
        assert!((shown_weight(&mut browser) - expected).abs() < 1e-5, "{expected}");
    }
    assert_eq!(left_out.len(), signs.len() + 1, "every kind of sign stood somewhere: {left_out:?}");
    assert_eq!(stood.len(), words.len(), "every word stood somewhere: {stood:?}");

    // By the check box, there and back.
    let n_words = |sample: &Sample| sample.sentence.source.iter().filter(|&token| is_word(token)).count();
    let number = explained.samples.sentences.iter().position(|sample| n_words(sample) > 0).expect("some sentence has words");
    browser.open(&page, &format!("#view=head&sample={number}"));
    assert_eq!(columns(&mut browser).len(), 14);
    tick(&mut browser, "hide end and other signs");
    assert_eq!(columns(&mut browser).len(), n_words(&explained.samples.sentences[number]));
    browser.wait("location.hash.includes('hide=1')");
    tick(&mut browser, "hide end and other signs");
    assert_eq!(columns(&mut browser).len(), 14);
    browser.was_quiet();
}

#[test]
fn pieces_are_joined_to_words_and_taken_apart_again() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (12, 10), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 6);
    let joined_of = |sample: &Sample| words(&explained.samples.source, &sample.sentence.source);
    let number = explained.samples.sentences.iter().position(|sample| joined_of(sample).len() < 12).expect("some word has pieces");
    let sample = &explained.samples.sentences[number];
    let (rows, joined) = (words(&explained.samples.target, &sample.sentence.predicted), joined_of(sample));
    browser.window(1280, 1000, "light");
    browser.open(&page, &format!("#view=head&sample={number}&pin=2,3"));
    assert!((shown_weight(&mut browser) - weight(sample, 2, 3)).abs() < 1e-5);
    assert_eq!(columns(&mut browser).len(), 12);

    // Of words another cell would stand at that place: the pin is let go, here and in the address.
    tick(&mut browser, "whole words");
    assert_eq!(columns(&mut browser).len(), joined.len());
    assert_eq!(browser.eval("document.querySelector('.pinned') === null && document.getElementById('cell-weight') === null"), true);
    browser.wait("location.hash.includes('words=1') && !location.hash.includes('pin=')");
    tick(&mut browser, "whole words");
    assert_eq!(columns(&mut browser).len(), 12);
    browser.wait("!location.hash.includes('words=1') && !location.hash.includes('pin=')");

    // Weights of the pieces of a word are added, rows of one averaged.
    let [row, column] = [&rows, &joined].map(|words| (0..words.len()).max_by_key(|&word| words[word].len()).expect("words"));
    browser.open(&page, &format!("#view=head&sample={number}&words=1&pin={row},{column}"));
    let sum: f64 = rows[row].iter().flat_map(|&query| joined[column].iter().map(move |&key| weight(sample, query, key))).sum();
    let expected = sum / rows[row].len() as f64;
    assert!((shown_weight(&mut browser) - expected).abs() < 1e-5, "{expected}");
    browser.was_quiet();
}

/// Numbers of the sentences with a text in one of their tokens.
fn having(explained: &Explained, text: &str) -> Vec<usize> {
    let samples = &explained.samples;
    let has = |names: &TokenNames, tokens: &[Token]| tokens.iter().any(|&token| names.name(token).to_lowercase().contains(text));
    let is_in = |sample: &Sample| {
        let sentence = &sample.sentence;
        has(&samples.source, &sentence.source) || has(&samples.target, &sentence.fed) || has(&samples.target, &sentence.predicted)
    };
    (0..samples.sentences.len()).filter(|&sample| is_in(&samples.sentences[sample])).collect()
}

#[test]
fn sentences_are_found_by_a_token_and_averaged() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = one_head(folder.path(), (6, 5), 8);
    let candidates = ["believ", "moon", "story", "cat", "licht", "matte", "told"];
    let text = candidates.into_iter().find(|text| having(&explained, text).first().is_some_and(|&first| first > 0)).expect("one");
    let found = having(&explained, text);
    browser.open(&page, "#view=head");
    browser.eval("document.getElementById('sample-search').focus()");
    text.chars().for_each(|key| browser.press(&key.to_string()));
    let said = browser.text("document.querySelector('.search output').textContent");
    assert_eq!(said, format!("in {} of 8 sentences", found.len()));
    // Straight to the field: what a browser suggests for it may lie in the way.
    browser.eval("document.getElementById('sample-search').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))");
    browser.wait(&format!("document.querySelector('.samples select').value === '{}'", found[0]));

    // The average is a sample of its own, the last one.
    browser.open(&page, "#view=head&sample=average&pin=3,2");
    let average = explained.samples.averages[0][3][2];
    assert!((shown_weight(&mut browser) - average).abs() < 1e-5, "{average}");
    assert_eq!(browser.eval("document.querySelectorAll('.term').length"), Value::from(0));
    browser.eval("document.getElementById('sample-back').click()");
    browser.wait("document.querySelector('.samples select').value === '7'");
    browser.was_quiet();
}

/// Another sentence in its place would be taken for it.
#[test]
fn an_address_of_a_sentence_that_is_not_here_says_so() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = one_head(folder.path(), (6, 5), 3);
    browser.open(&page, "#view=head&sample=3");
    let said = browser.text("document.getElementById('not-here').textContent");
    assert_eq!(said, "This address is of sentence 4, and 3 are here. Choose one above.");
    assert_eq!(browser.eval("document.querySelector('.matrix') === null"), true);
    browser.open(&page, "#view=head&asked=%7B%22source%22%3A%22the+cat%22%7D");
    let said = browser.text("document.getElementById('not-here').textContent");
    assert!(said.contains("“the cat”") && said.contains("crosslens serve"), "{said}");
    browser.eval("document.getElementById('sample-next').click()");
    browser.wait("document.querySelector('.matrix') !== null && document.querySelector('.samples select').value === '0'");
    browser.wait("!location.hash.includes('asked')");
    browser.was_quiet();
}
