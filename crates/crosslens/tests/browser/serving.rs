//! The page of a running server: a sentence is typed, seen, changed and decoded again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::chromium::Browser;
use super::common::crosslens;
use super::pages::tiny;

/// A server that ends with the test.
pub(crate) struct Serving {
    process: Child,
    pub(crate) url: String,
}

impl Serving {
    pub(crate) fn start(folder: &std::path::Path, arguments: &[&str]) -> Self {
        let mut process = crosslens(folder, &[&["serve"], arguments].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("its standard output is ours")).read_line(&mut url).expect("its URL");
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Types into a field as its user would.
fn fill(browser: &mut Browser, id: &str, text: &str) {
    browser.eval(&format!("document.getElementById('{id}').focus(); document.getElementById('{id}').value = ''"));
    text.chars().for_each(|key| browser.press(&key.to_string()));
}

#[test]
fn a_sentence_is_typed_explained_and_decoded_again_without_a_term() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    let serving = Serving::start(folder.path(), &["run", "--sentences", "100"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    let n_before = browser.number("document.querySelectorAll('select[aria-label=Sentence] option').length");

    // Two words it knows, taken from a sentence it is shown with.
    let words = browser.text("[...document.querySelectorAll('.sentence-line')][0].querySelector('.tokens').textContent");
    let word = words.split_whitespace().next().expect("a word").to_owned();
    fill(&mut browser, "live-source", "nonsense");
    browser.press("Enter");
    browser.wait("document.querySelector('.live').textContent.includes('`nonsense` is not in the model')");
    fill(&mut browser, "live-source", &format!("{word} {word} {word}"));
    browser.press("Enter");
    browser.wait(&format!("document.querySelectorAll('select[aria-label=Sentence] option').length === {}", n_before + 1.0));
    browser.settle();
    let shown = browser.text("[...document.querySelectorAll('.sentence-line')][0].textContent");
    assert!(shown.contains(&format!("{word} {word} {word}")), "{shown}");
    assert_eq!(browser.number("tv.dataset.value"), 0.0, "nothing is off yet");
    assert_eq!(browser.eval("document.querySelector('.matrix .heat-scroll') !== null"), true);

    // Everything on: it writes what it wrote.
    let written = browser.text("[...document.querySelectorAll('.sentence-line')][1].querySelector('.tokens').textContent.trim()");
    browser.eval("rerun.click()");
    browser.wait("document.querySelector('.again output').textContent.startsWith('it now writes')");
    let again = browser.text("document.querySelector('.again output').textContent.replace('it now writes: ', '').trim()");
    assert_eq!(again, written);
    browser.eval("document.querySelector(`[data-piece='0']`).click()");
    assert!(browser.number("tv.dataset.value") > 0.0);
    browser.eval("document.querySelector('.again output').textContent = ''; rerun.click()");
    browser.wait("document.querySelector('.again output').textContent.startsWith('it now writes')");
    let n_words = browser.number("document.querySelectorAll('.again output bdi').length");
    assert_eq!(n_words, written.split_whitespace().count() as f64);
    browser.picture("serve-typed");

    // A sentence of the task, with the other estimator.
    browser.eval("document.getElementById('live-estimator').value = 'joint'; document.getElementById('live-estimator').dispatchEvent(new Event('change'))");
    browser.eval("document.getElementById('live-take').click()");
    browser.wait(&format!("document.querySelectorAll('select[aria-label=Sentence] option').length === {}", n_before + 2.0));

    // A whole explanation joins the reports and is shown.
    fill(&mut browser, "job-sentences", "150");
    browser.eval("document.getElementById('job-start').click()");
    browser.wait("document.getElementById('report-picker')?.options.length === 2");
    browser.wait("document.getElementById('foot').textContent.includes('150 sentences')");
    browser.settle();

    // A longer one is cancelled.
    fill(&mut browser, "job-sentences", "100000");
    browser.eval("document.getElementById('job-start').click()");
    browser.wait("document.getElementById('job-cancel') !== null");
    browser.picture("serve-job");
    browser.eval("document.getElementById('job-cancel').click()");
    browser.wait("document.getElementById('job-end')?.textContent === 'cancelled'");
    browser.asked_only(&serving.url);
}

/// Random weights of the package e2k's names, four heads; see `crosslens-nets/tests/golden/make_e2k.py`.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-nets/tests/golden/imported/tiny.safetensors");

#[test]
fn a_model_of_another_program_is_asked_with_a_corpus_and_without() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(WEIGHTS, folder.path().join("w.safetensors")).expect("a copy");
    let words: String = (0..40u8).map(|i| format!("{}{}ing\n", char::from(b'a' + i % 26), char::from(b'a' + i % 26 * 7 % 26))).collect();
    std::fs::write(folder.path().join("words.txt"), words).expect("a corpus");
    browser.window(1280, 1000, "light");

    // Nothing is fitted: the page says so, opens where a sentence can be typed, and shows its attention.
    let serving = Serving::start(folder.path(), &["w.safetensors"]);
    browser.visit(&serving.url);
    assert_eq!(browser.eval("document.getElementById('live-unfitted').textContent.includes('--corpus FILE')"), true);
    assert_eq!(browser.eval("document.getElementById('live-take') === null && document.getElementById('job-start') === null"), true);
    fill(&mut browser, "live-source", "sing");
    browser.press("Enter");
    browser.wait("[...document.querySelectorAll('.sentence-line')][0]?.textContent.includes('s i n g')");
    browser.settle();
    assert_eq!(browser.number("document.querySelectorAll('[data-piece]').length"), 9.0);
    // Another head is asked for when it is looked at.
    browser.eval("document.getElementById('head-next').click()");
    browser.wait("document.querySelector('h1').textContent.includes('head 1')");
    assert_eq!(browser.number("tv.dataset.value"), 0.0);
    browser.eval("rerun.click()");
    browser.wait("document.querySelector('.again output').textContent.startsWith('it now writes')");
    browser.picture("serve-unfitted");
    browser.asked_only(&serving.url);
    drop((browser, serving));
    let Some(mut browser) = Browser::start() else { return };
    browser.window(1280, 1000, "light");

    let serving = Serving::start(folder.path(), &["w.safetensors", "--corpus", "words.txt"]);
    browser.visit(&serving.url);
    browser.wait("document.querySelector('h1').textContent === 'Atlas'");
    fill(&mut browser, "live-source", "sing");
    browser.press("Enter");
    browser.wait("document.querySelector('h1').textContent.includes('head 0')");
    browser.wait("[...document.querySelectorAll('.sentence-line')][0]?.textContent.includes('s i n g')");
    browser.eval("document.getElementById('live-take').click()");
    browser.wait("document.querySelectorAll('select[aria-label=Sentence] option').length === 12 + 3");
    browser.settle();
    browser.picture("serve-model");
    browser.asked_only(&serving.url);
}
