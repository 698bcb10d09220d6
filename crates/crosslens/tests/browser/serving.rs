//! The page of a running server: a sentence is typed, seen, changed and decoded again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crosslens_lab::analysis::Part;
use crosslens_lab::analysis::figure::{Colours, Theme};
use serde_json::{Value, json};

use super::chromium::Browser;
use super::common::{TINY, crosslens, succeed};
use super::lines::{columns, tick};
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
    assert_eq!(browser.eval("document.getElementById('other-components') === null"), true);
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
    // Its sentences are split by components that the model is not run with, which is said.
    browser.wait("document.getElementById('other-components') !== null");

    // A longer one is cancelled.
    fill(&mut browser, "job-sentences", "100000");
    browser.eval("document.getElementById('job-start').click()");
    browser.wait("document.querySelector('.job-cancel') !== null");
    browser.picture("serve-job");
    // A page that is loaded meanwhile knows of it, watches it and can cancel it.
    browser.visit(&serving.url);
    browser.wait("document.querySelectorAll('.job-cancel').length === 1");
    browser.wait("/: \\d+ of 100000$/.test(document.querySelector('.job .muted')?.textContent)");
    assert_eq!(browser.text("document.querySelector('.job-cancel').getAttribute('aria-label')"), "cancel: run on 100000 sentences");
    browser.names_everything("a job that was found");
    browser.eval("document.querySelector('.job-cancel').click()");
    browser.wait("document.querySelector('.job-end')?.textContent === 'cancelled'");
    assert_eq!(browser.eval("fetch('api/jobs').then((answer) => answer.json()).then((jobs) => jobs.at(-1).state)"), "cancelled");
    browser.asked_only(&serving.url);
}

/// Keeps what the page asks, and what it is answered.
const LISTEN: &str = "(() => { window.asked = []; window.answers = []; const plain = window.fetch; window.fetch = async (...all) => { window.asked.push(all[1]?.body ?? null); const answer = await plain(...all); if (String(all[0]).endsWith('/explain')) answer.clone().json().then((json) => window.answers.push(json)); return answer; }; })()";

/// Words of a sentence without the one that ends it, as somebody types them.
fn typed(words: &Value) -> String {
    let words: Vec<&str> = words.as_array().expect("words").iter().map(|word| word.as_str().expect("a word")).collect();
    words.into_iter().filter(|word| *word != "<eos>").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_question_is_asked_as_it_was_put_and_again_by_its_address() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    succeed(folder.path(), &["report", "run", "-o", "page.html", "--sentences", "100"]);
    let serving = Serving::start(folder.path(), &["run", "--sentences", "100"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    let n_before = browser.number("document.querySelectorAll('select[aria-label=Sentence] option').length");
    let known = browser.eval("fetch('api/reports/0').then((answer) => answer.json()).then(({ samples }) => samples[1])");
    let (source, target) = (typed(&known["source"]), typed(&known["target"]));
    browser.eval(LISTEN);

    // With a target, which the decoder reads, and by the other estimator.
    browser.eval("document.getElementById('live-estimator').value = 'joint'; document.getElementById('live-estimator').dispatchEvent(new Event('change'))");
    browser.eval("[...document.querySelectorAll('.live .check')].find((it) => it.textContent.includes('reads the target')).querySelector('input').click()");
    fill(&mut browser, "live-source", &source);
    fill(&mut browser, "live-target", &target);
    browser.press("Enter");
    browser.wait("window.answers.length === 1");
    browser.wait("location.hash.includes('asked=')");
    let answer = browser.eval("window.answers[0]");
    assert_eq!((&answer["estimator"], &answer["sample"]["source"]), (&json!("joint"), &known["source"]));
    assert_eq!(answer["sample"]["target"], known["target"]);
    let (fed, given) = (answer["sample"]["fed"].as_array().expect("words"), known["target"].as_array().expect("words"));
    assert_eq!(fed[1..], given[..given.len() - 1], "the decoder reads the target");

    // One term off, and somebody else opens the address.
    browser.eval("document.querySelector(`[data-piece='0']`).click()");
    browser.wait("location.hash.includes('off=1')");
    let (place, tv) = (browser.text("location.hash"), browser.number("tv.dataset.value"));
    browser.visit(&format!("{}{place}", serving.url));
    browser.wait("document.getElementById('tv') !== null");
    assert!((browser.number("tv.dataset.value") - tv).abs() < 1e-6, "the same attention without the same term");
    let shown = browser.text("[...document.querySelectorAll('.sentence-line')][0].textContent");
    assert!(shown.contains(&source), "{shown}");
    assert_eq!(browser.number("document.querySelectorAll('select[aria-label=Sentence] option').length"), n_before + 1.0);
    assert_eq!(browser.text("document.getElementById('live-source').value"), source);
    assert_eq!(browser.text("document.getElementById('live-estimator').value"), "joint");
    // Away and back by the list: the address asks for it again.
    browser.eval("document.getElementById('sample-back').click()");
    browser.wait("!location.hash.includes('asked=')");
    browser.eval("document.getElementById('sample-next').click()");
    browser.wait("location.hash.includes('asked=')");

    // A sentence of the task that is refused is not counted.
    browser.eval("window.plain = window.fetch; window.fetch = () => Promise.reject(new Error('no line'))");
    browser.eval("document.getElementById('live-take').click()");
    browser.wait("document.querySelector('.live output').textContent === 'no line'");
    browser.eval(&format!("window.fetch = window.plain; {LISTEN}"));
    browser.eval("document.getElementById('live-take').click()");
    browser.wait("window.answers.length === 1");
    assert_eq!(browser.eval("JSON.parse(window.asked.find((body) => body)).sentence"), json!({ "sample": 0 }));
    browser.wait("document.getElementById('live-sample').value === '1'");
    browser.asked_only(&serving.url);

    // A page on disk cannot ask, and shows no other sentence in its place.
    browser.open(&folder.path().join("page.html"), &place);
    let said = browser.text("document.getElementById('not-here').textContent");
    assert!(said.contains(&source) && said.contains("crosslens serve"), "{said}");
}

/// A run of a few updates on text, cut into at most 40 pieces.
const TEXT: &str = "[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 8\nunits = 'bpe'\nvocabulary = 40\n\
    [network]\nfamily = 'luong'\nscore = 'general'\nhidden = 8\n[training]\nsteps = 5\nbatch = 8\nevaluate_every = 5\nevaluate_samples = 4\n";

/// A letter that no piece has is no end of a word, which the marks of pieces alone do not tell.
#[test]
fn words_are_joined_by_the_rules_of_the_model() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let nouns = [("cat", "le chat"), ("dog", "le chien"), ("mouse", "la souris"), ("cow", "la vache")];
    let pairs = nouns.iter().flat_map(|(subject, sujet)| {
        let verbs = [("sees", "voit"), ("eats", "mange"), ("hears", "entend"), ("wants", "veut")];
        nouns.iter().flat_map(move |(object, objet)| {
            verbs.map(|(verb, verbe)| format!("The {subject} {verb} the {object}.\t{sujet} {verbe} {objet}.\n"))
        })
    });
    std::fs::write(folder.path().join("pairs.tsv"), pairs.collect::<String>()).expect("writable");
    std::fs::write(folder.path().join("text.toml"), TEXT).expect("writable");
    succeed(folder.path(), &["train", "text.toml", "--out", "text", "--quiet"]);
    let serving = Serving::start(folder.path(), &["text", "--sentences", "20"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    browser.eval(LISTEN);
    fill(&mut browser, "live-source", "The c猫t sees the dog.");
    browser.press("Enter");
    browser.wait("window.answers.length === 1");
    browser.wait("location.hash.includes('asked=')");
    browser.settle();
    let n_pieces = columns(&mut browser).len();
    tick(&mut browser, "whole words");
    assert_eq!(columns(&mut browser), ["The", "c<unk>t", "sees", "the", "dog.", "<eos>"]);
    assert!(n_pieces > 6, "{n_pieces} pieces");
    browser.asked_only(&serving.url);
}

/// The page is there before its report, says how far that is, and shows it as soon as it is made.
#[test]
fn the_page_tells_how_far_an_explanation_is_until_it_is_there() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    let serving = Serving::start(folder.path(), &["run", "--sentences", "60000"]);
    browser.window(1280, 1000, "light");
    browser.call("Page.navigate", json!({ "url": serving.url }));
    browser.wait("document.querySelector('#preparing progress') !== null");
    assert_eq!(browser.text("document.querySelector('h1').textContent"), "run is being explained");
    assert_eq!(browser.text("said.textContent"), "run is being explained");
    browser.wait("/^(fitting|splitting|checking): \\d+ of 60000$/.test(document.querySelector('#preparing .job span')?.textContent)");
    browser.fits("the page of a model that is being explained");
    browser.picture("serve-preparing");
    // Another view is asked for meanwhile, and is the one that comes.
    browser.eval("document.querySelector('[data-view=components]').click()");
    browser.wait_long("document.documentElement.dataset.ready !== undefined", Duration::from_secs(300));
    assert_eq!(browser.text("document.querySelector('h1').textContent"), "Components");
    assert!(browser.text("document.getElementById('foot').textContent").contains("60000 sentences"));
    browser.eval("document.querySelector('[data-view=head]').click()");
    browser.wait("document.getElementById('live-source') !== null");
    browser.asked_only(&serving.url);
}

/// Whoever has asked for too much need not wait for it.
#[test]
fn the_first_explanation_is_cancelled_from_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    let serving = Serving::start(folder.path(), &["run", "--sentences", "1000000"]);
    browser.window(1280, 1000, "light");
    browser.call("Page.navigate", json!({ "url": serving.url }));
    browser.wait("/ of 1000000$/.test(document.querySelector('#preparing .job span')?.textContent)");
    assert_eq!(browser.text("document.querySelector('.prepare-cancel').getAttribute('aria-label')"), "cancel: run");
    browser.eval("document.querySelector('.prepare-cancel').click()");
    browser.wait("document.querySelector('main [role=alert]') !== null");
    let said = browser.text("document.querySelector('main [role=alert] p').textContent");
    assert_eq!(said, "`run` cannot be shown: its explanation was cancelled; start the server again to have it");
}

/// Where the second report of a comparison is chosen.
const REPORT_B: &str = "document.querySelector('select[aria-label=\"Report B\"]')";

fn compare_with(browser: &mut Browser, report: usize) {
    browser.eval(&format!("{REPORT_B}.value = '{report}'; {REPORT_B}.dispatchEvent(new Event('change'))"));
}

/// The report beside it is being explained for long: the one after that is compared with, until somebody asks for it.
#[test]
fn what_is_still_explained_is_compared_with_only_where_that_is_asked_for() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    for report in ["one.json", "two.json"] {
        succeed(folder.path(), &["explain", "run", "--samples", "50", "--causal", "0", "--save", report, "--json"]);
    }
    let serving = Serving::start(folder.path(), &["one.json", "run", "two.json", "--sentences", "1000000"]);
    browser.window(1280, 1000, "light");
    let chosen = format!("{REPORT_B}.value");
    browser.visit(&format!("{}#view=compare", serving.url));
    assert_eq!(browser.text(&chosen), "2");
    browser.visit(&format!("{}#view=compare&report=2", serving.url));
    assert_eq!(browser.text(&chosen), "0");
    compare_with(&mut browser, 1);
    browser.wait("document.querySelector('#preparing progress') !== null");
    assert_eq!(browser.text("document.querySelector('#preparing h2').textContent"), "run is being explained");
    assert_eq!(browser.text(&chosen), "1");
    browser.names_everything("a comparison that waits");
    browser.fits("a comparison that waits");
    browser.picture("serve-compare-waiting");
    // Another one is there at once.
    compare_with(&mut browser, 0);
    browser.wait("document.querySelectorAll('.compare .heatmap').length === 3");
    browser.asked_only(&serving.url);
}

/// What cannot be shown leaves the choice of another.
#[test]
fn a_report_that_failed_is_not_compared_with() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    succeed(folder.path(), &["explain", "run", "--samples", "50", "--causal", "0", "--save", "one.json", "--json"]);
    succeed(folder.path(), &["train", TINY, "--out", "broken", "--quiet"]);
    std::fs::write(folder.path().join("broken/timeline.json"), "no timeline").expect("writable");
    let serving = Serving::start(folder.path(), &["one.json", "broken", "--sentences", "50"]);
    browser.window(1280, 1000, "light");
    browser.visit(&format!("{}#view=compare", serving.url));
    browser.wait("document.querySelector('.nothing')?.textContent === '`broken` cannot be shown: the terminal of the server says why'");
    browser.names_everything("a comparison with what cannot be shown");
    browser.picture("serve-compare-failed");
    compare_with(&mut browser, 0);
    browser.wait("document.querySelectorAll('.compare .heatmap').length === 3");
}

#[test]
fn the_page_of_a_model_fits_every_window_and_names_everything() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    tiny(folder.path());
    let serving = Serving::start(folder.path(), &["run", "--sentences", "100"]);
    for (name, width, scheme) in [("narrow", 320, "dark"), ("wide", 1440, "light"), ("4k", 3840, "dark")] {
        browser.window(width, 1000, scheme);
        browser.visit(&serving.url);
        browser.settle();
        browser.fits("the page of a model");
        browser.names_everything("the page of a model");
        browser.picture(&format!("serve-{name}-{scheme}"));
    }
    // Colours of the page are those of figures.
    let swatch = browser.text("getComputedStyle(document.querySelector('.share-bar span')).backgroundColor");
    let hex = Colours::of(Theme::Dark).part(Part::Temporal).hex();
    let [r, g, b] = [1, 3, 5].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"));
    assert_eq!(swatch, format!("rgb({r}, {g}, {b})"));
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

/// A folder of Hugging Face's: what is typed becomes tokens of its own tokenizer, on both sides, and is split by what its corpus was.
#[test]
fn text_is_typed_into_a_pretrained_model() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = super::numbered::folder();
    let serving = Serving::start(folder.path(), &["t5", "--corpus", "pairs.tsv"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    browser.wait("document.querySelector('h1').textContent === 'Atlas'");
    fill(&mut browser, "live-source", "w5 w6 w7");
    fill(&mut browser, "live-target", "w9 w8");
    browser.press("Enter");
    browser.wait("document.querySelector('h1').textContent.includes('head 0')");
    let lines = browser.text("[...document.querySelectorAll('.sentence-line')].map(line => line.textContent).join('|')");
    let lines: Vec<String> = lines.split('|').map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((lines.len(), &lines[0][..], &lines[2][..]), (3, "sourcew5w6w7</s>", "shouldbew9w8</s>"), "{lines:?}");
    assert_eq!(browser.number("document.querySelectorAll('[data-piece]').length"), 9.0);
    browser.settle();
    assert_eq!(browser.number("tv.dataset.value"), 0.0);
    browser.picture("serve-pretrained");
    browser.asked_only(&serving.url);
}
