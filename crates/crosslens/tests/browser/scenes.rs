//! Sounds and pictures: attention planted on a known second and a known patch is seen, and heard, there.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslens_lab::Shown;
use crosslens_lab::analysis::explain::{CodeExample, CodeExamples, Explained, Sample, Scene, SceneWord, Spectrum};
use crosslens_lab::analysis::page::Page;

use super::chromium::Browser;
use super::common::succeed;
use super::planted::{Plan, Planted, pieces_of_words};
use super::serving::Serving;
use super::{planted_sight, planted_whisper};

/// White, 50 × 40 pixels, grey: `PIL.Image.new("L", (50, 40), 255)`.
const WHITE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAADIAAAAoCAAAAACZGfaQAAAAIElEQVR42mP8z0AqYGIY1TKqZVTLqJZRLaNaRrUMSS0ANkgBTxD0LUoAAAAASUVORK5CYII=";
/// Patches of it.
const N_SPECIAL: usize = 1;
const ROWS: usize = 4;
const COLUMNS: usize = 5;
/// The sound: 150 steps of 20 ms, of which 100 are no padding.
const N_SOURCE: usize = 150;
const N_STEPS: usize = 100;
const SECONDS_PER_STEP: f64 = 0.02;
/// The row that looks at one moment alone, and the moment.
const SHARP_ROW: usize = 2;
const MOMENT: usize = 60;

/// Lets a row look at these steps of the source and at nothing else, by the term of token and token.
fn look(sample: &mut Sample, row: usize, steps: &[usize]) {
    let (n_queries, n_keys) = sample.shapes[0];
    for piece in 0..9 {
        let line = &mut sample.pieces[0][(piece * n_queries + row) * n_keys..][..n_keys];
        line.iter_mut().enumerate().for_each(|(step, term)| *term = if piece == 4 && steps.contains(&step) { 30.0 } else { 0.0 });
    }
}

/// One head and one sentence with so many source steps and six rows, changed as a test wants it.
fn scene(n_source: usize, change: impl FnOnce(&mut Sample), codes: Vec<CodeExamples>) -> Explained {
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 12, lengths: (n_source, 6), names: pieces_of_words() };
    let mut corpus = Planted::of(&plan);
    corpus.keep_sites(1);
    let mut explained = corpus.explain(1);
    change(&mut explained.samples.sentences[0]);
    explained.samples.codes = codes;
    explained
}

/// A page of that.
fn page(folder: &Path, n_source: usize, change: impl FnOnce(&mut Sample), codes: Vec<CodeExamples>) -> PathBuf {
    let explained = scene(n_source, change, codes);
    let shown = Shown { name: "scene".into(), explained, training: Vec::new(), timeline: None };
    let path = folder.join("scene.html");
    shown.on(Page::new()).write(&path).expect("writable");
    path
}

/// Rows 0, 1 and 5 look at patch (3, 4), row 2 at (1, 2), row 3 at the step that is no patch, row 4 everywhere.
fn picture(sample: &mut Sample) {
    let step = |row: usize, column: usize| N_SPECIAL + (row - 1) * COLUMNS + column - 1;
    for (row, steps) in [vec![step(3, 4)], vec![step(3, 4)], vec![step(1, 2)], vec![0], vec![], vec![step(3, 4)]].iter().enumerate() {
        look(sample, row, steps);
    }
    let png = STANDARD.decode(WHITE).expect("base64");
    sample.scene = Some(Scene::Picture { png, n_special: N_SPECIAL, rows: ROWS, columns: COLUMNS });
}

/// The pixels of a canvas, read from a copy: the browser complains of those who read the same one again and again.
const COPY: &str = "(canvas) => { const copy = document.createElement('canvas'); [copy.width, copy.height] = [canvas.width, canvas.height]; const context = copy.getContext('2d', { willReadFrequently: true }); context.drawImage(canvas, 0, 0); return context.getImageData(0, 0, copy.width, copy.height); }";

/// The darkest patch as (row, column) from 1, and how dark it is.
const DARKEST: &str = "(() => { const patches = [...document.querySelectorAll('.patch')]; const dark = (patch) => Number(patch.getAttribute('fill-opacity')); const best = patches.reduce((best, patch) => (dark(patch) > dark(best) ? patch : best)); const at = Number(best.dataset.step) - 1; return `${Math.floor(at / 5) + 1}, ${at % 5 + 1}: ${dark(best)}`; })()";

#[test]
fn the_scene_of_a_picture_is_darkest_where_a_row_looks() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), N_SPECIAL + ROWS * COLUMNS, picture, Vec::new());
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head&pin=2,4");
    assert_eq!(browser.text(DARKEST), "1, 2: 0.82");
    assert_eq!(browser.text("document.querySelector('.picture-words ol li').textContent"), "(1, 2)100.0\u{a0}%");
    browser.open(&page, "#view=head&pin=0,4");
    assert_eq!(browser.text(DARKEST), "3, 4: 0.82");
    // The term of token and token looks there too, the one of position and position at nothing: white paper in grey stays as it is.
    let term = |piece: usize| {
        format!(
            "(() => {{ const {{ width, height, data }} = ({COPY})(document.querySelector(`[data-piece='{piece}'] canvas`)); const red = (at) => data[4 * (Math.floor((Math.floor(at / 5) + 0.5) * height / 4) * width + Math.floor((at % 5 + 0.5) * width / 5))]; const reds = Array.from({{ length: 20 }}, (_, at) => red(at)); const best = reds.indexOf(Math.min(...reds)); return Math.max(...reds) - Math.min(...reds) > 100 ? `${{Math.floor(best / 5) + 1}}, ${{best % 5 + 1}}` : 'even'; }})()"
        )
    };
    browser.wait("document.querySelector('.term.over') !== null");
    assert_eq!(browser.number("document.querySelectorAll('.term.over[data-piece] canvas').length"), 9.0, "each of the nine terms");
    assert_eq!((browser.text(&term(4)), browser.text(&term(0))), ("3, 4".to_owned(), "even".to_owned()));
    // Without a row, all of them together: half look at (3, 4).
    browser.open(&page, "#view=head");
    assert!(browser.text(DARKEST).starts_with("3, 4: "));
    browser.open(&page, "#view=head&pin=3,0");
    assert_eq!(browser.text("document.querySelector('#special-steps li').textContent"), "special 1100.0\u{a0}%");
    browser.picture("scene-picture");
    browser.was_quiet();
}

#[test]
fn a_patch_of_a_scene_leads_to_its_column() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let code = |sample: &Sample| sample.sentence.source[N_SPECIAL];
    let mut wanted = None;
    let codes = |wanted: Option<u32>| wanted.map(|code| CodeExamples { code, examples: vec![CodeExample { sample: 0, step: 14 }] });
    page(folder.path(), N_SPECIAL + ROWS * COLUMNS, |sample| wanted = Some(code(sample)), Vec::new());
    let page = page(folder.path(), N_SPECIAL + ROWS * COLUMNS, picture, codes(wanted).into_iter().collect());
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head");
    let place = |side: &str, share: f64| {
        format!(
            "(({{ {side}, width, height }}) => {side} + {share} * ('{side}' === 'left' ? width : height))(document.querySelector('.patches').getBoundingClientRect())"
        )
    };
    let before = browser.text("document.querySelector('.matrix canvas').toDataURL()");
    let (x, y) = (browser.number(&place("left", 3.5 / 5.0)), browser.number(&place("top", 2.5 / 4.0)));
    browser.pointer(x, y, false);
    browser.settle();
    let told = browser.text("document.getElementById('patch-told').textContent");
    assert!(told.starts_with("(3, 4) 5") && told.contains("most of all by"), "{told}");
    assert!(browser.text("document.querySelector('.matrix canvas').toDataURL()") != before, "the column stands out");
    // A click keeps the row that looks there most; keys do the same.
    browser.pointer(x, y, true);
    browser.wait("new URLSearchParams(location.hash.slice(1)).get('pin') === '0,14'");
    browser.open(&page, "#view=head");
    browser.tab_to("it.classList.contains('patches')");
    for key in ["ArrowRight", "ArrowRight", "Enter"] {
        browser.press(key);
    }
    browser.wait("new URLSearchParams(location.hash.slice(1)).get('pin') === '2,2'");
    // What a code stands for is shown beside the cell.
    browser.open(&page, "#view=head&pin=0,1");
    assert_eq!(browser.text("document.querySelector('.code-patch').getAttribute('aria-label')"), "sentence 1, patch (3, 4)");
    let svg = "[...document.querySelectorAll('.picture .downloads button')].map((button) => button.textContent).join(' ')";
    assert_eq!(browser.text(svg), "SVG PNG");
    browser.was_quiet();
}

/// A tone of two seconds as a WAV file: 8000 numbers a second, mono, 16 bit.
fn wave() -> Vec<u8> {
    let tone = (0..16_000u32).map(|n| ((f64::from(n) * 0.3).sin() * 9000.0) as i16).flat_map(i16::to_le_bytes);
    let data: Vec<u8> = tone.collect();
    let n_bytes = data.len() as u32;
    let chunk = |name: &[u8; 4], size: u32| [&name[..], &size.to_le_bytes()].concat();
    let format = [
        &1u16.to_le_bytes()[..],
        &1u16.to_le_bytes(),
        &8000u32.to_le_bytes(),
        &16_000u32.to_le_bytes(),
        &2u16.to_le_bytes(),
        &16u16.to_le_bytes(),
    ]
    .concat();
    [chunk(b"RIFF", 36 + n_bytes), b"WAVE".to_vec(), chunk(b"fmt ", 16), format, chunk(b"data", n_bytes), data].concat()
}

/// Row 2 looks at one moment, where alone the spectrogram is loud; row 3 at 30 steps; row 4 writes a word with times of its own.
fn sound(sample: &mut Sample, wave: Option<Vec<u8>>) {
    let spread: Vec<usize> = (40..70).collect();
    for (row, steps) in [&[][..], &[], &[MOMENT], &spread, &[90], &[]].into_iter().enumerate() {
        look(sample, row, steps);
    }
    let levels = (0..2 * N_STEPS * 4).map(|place| if place / 4 / 2 == MOMENT { 255 } else { 0 }).collect();
    let spectrum = Spectrum { seconds_per_frame: SECONDS_PER_STEP / 2.0, n_bands: 4, levels };
    let words = vec![SceneWord { text: " word".into(), start: 1.5, end: 1.75, first_row: 4, last_row: 4 }];
    let path = vec![(0, 0), (1, 30), (SHARP_ROW as u32, MOMENT as u32), (3, 60), (4, 90), (5, 99)];
    sample.scene = Some(Scene::Sound { seconds_per_step: SECONDS_PER_STEP, n_steps: N_STEPS, spectrum, wave, words, path });
}

/// Sizes of the matrix in the page: labels on the left, the band above, a cell's width and height.
fn sizes(browser: &mut Browser) -> [f64; 4] {
    ["left", "top", "cell", "high"].map(|name| browser.number(&format!("document.querySelector('.matrix .heat-scroll').dataset.{name}")))
}

/// A pixel of the matrix's canvas.
fn pixel(browser: &mut Browser, x: f64, y: f64) -> [f64; 3] {
    let at = format!(
        "(({{ width, data }}) => [...data.subarray(4 * (Math.floor({y}) * width + Math.floor({x}))).subarray(0, 3)])(({COPY})(document.querySelector('.matrix canvas')))"
    );
    let value = browser.eval(&at);
    [0, 1, 2].map(|place| value[place].as_f64().expect("a byte"))
}

#[test]
fn the_scene_of_a_sound_has_its_seconds_over_the_matrix() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), N_SOURCE, |sample| sound(sample, Some(wave())), Vec::new());
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=head&path=0");
    let [left, top, cell, high] = sizes(&mut browser);
    let width = browser.number("parseFloat(document.querySelector('.matrix .heat-spacer').style.width)");
    assert!((width - (left + N_STEPS as f64 * cell + 1.0)).abs() < 0.5, "the padding is cut off: {width}");

    // The loudest moment of the spectrogram stands right over the cell that looks at it.
    let x = left + (MOMENT as f64 + 0.5) * cell;
    let row = top + (SHARP_ROW as f64 + 0.5) * high;
    let dark = |[r, g, b]: [f64; 3]| r + g + b;
    for y in [top - 60.0, row] {
        let (there, before, after) =
            (pixel(&mut browser, x, y), pixel(&mut browser, x - 3.0 * cell, y), pixel(&mut browser, x + 3.0 * cell, y));
        assert!(dark(there) + 200.0 < dark(before).min(dark(after)), "{there:?} between {before:?} and {after:?}");
    }
    let [r, _, b] = pixel(&mut browser, x, row);
    assert!(b >= r, "without the alignment the cell is blue");

    // What the axis says, as it is written: one second stands at step 50.
    browser.eval("(() => { window.written = []; const write = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.written.push([text, x, y]); return write.call(this, text, x, y); }; })()");
    browser.window(1281, 1000, "light");
    let [left, .., cell, _] = sizes(&mut browser);
    let at = browser.number("window.written.findLast(([text]) => /^1(\\.0+)? s$/.test(text))[1]");
    assert!((at - (left + 50.0 * cell)).abs() < 1.0, "one second stands at {at}, not at {}", left + 50.0 * cell);
    assert_eq!(browser.eval("window.written.some(([text]) => text === 'word')"), true, "words stand over their times");

    // The alignment goes through the cell.
    browser.open(&page, "#view=head");
    let [left, top, cell, high] = sizes(&mut browser);
    let [r, _, b] = pixel(&mut browser, left + (MOMENT as f64 + 0.5) * cell, top + (SHARP_ROW as f64 + 0.5) * high);
    assert!(r > b + 60.0, "the alignment is drawn in another colour: {r} {b}");

    // With the padding, the whole source.
    browser.open(&page, "#view=head&padding=1");
    let [left, _, cell, _] = sizes(&mut browser);
    let width = browser.number("parseFloat(document.querySelector('.matrix .heat-spacer').style.width)");
    assert!((width - (left + N_SOURCE as f64 * cell + 1.0)).abs() < 0.5, "{width}");
    browser.picture("scene-sound");
    browser.was_quiet();
}

#[test]
fn the_scene_of_a_row_is_played_from_its_first_second_to_its_last() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page(folder.path(), N_SOURCE, |sample| sound(sample, Some(wave())), Vec::new());
    browser.window(1280, 1000, "light");
    browser.open(&path, "#view=head");
    let stretch = |browser: &mut Browser| {
        (browser.number("document.getElementById('stretch').dataset.from"), browser.number("document.getElementById('stretch').dataset.to"))
    };
    assert_eq!(stretch(&mut browser), (0.0, 2.0), "nothing is chosen: all of it, without the padding");

    // Row 3 looks at steps 40 to 69 alike: all but 5 % at either end lies in steps 41 to 68.
    let [left, top, cell, high] = sizes(&mut browser);
    let edge = |side: &str| {
        format!(
            "(() => {{ const canvas = document.querySelector('.matrix canvas'); canvas.scrollIntoView({{ block: 'center' }}); return canvas.getBoundingClientRect().{side}; }})()"
        )
    };
    let (x, y) = (browser.number(&edge("left")), browser.number(&edge("top")));
    browser.pointer(x + left + 50.5 * cell, y + top + 3.5 * high, true);
    let (from, to) = stretch(&mut browser);
    assert!((from - 41.0 * SECONDS_PER_STEP).abs() < 1e-9 && (to - 69.0 * SECONDS_PER_STEP).abs() < 1e-9, "{from} to {to}");

    // It is quiet until asked, plays from there, and stops by itself at the end.
    assert_eq!(browser.eval("document.querySelector('audio').paused && document.querySelector('audio').currentTime === 0"), true);
    browser.eval("(() => { window.heard = []; const audio = document.querySelector('audio'); for (const name of ['seeking', 'play', 'pause']) audio.addEventListener(name, () => window.heard.push([name, audio.currentTime])); })()");
    browser.tab_to("it.id === 'play-stretch'");
    browser.press("Enter");
    browser.wait("window.heard.some(([name]) => name === 'pause')");
    let (begun, ended) = (
        browser.number("window.heard.find(([name]) => name === 'seeking')[1]"),
        browser.number("window.heard.find(([name]) => name === 'pause')[1]"),
    );
    assert!((begun - from).abs() < 0.01, "begins at {begun}, not {from}");
    assert!(ended >= to && ended < to + 0.3, "ends at {ended}, not {to}");

    // A word has times of its own, and leads to them.
    browser.eval("document.querySelectorAll('.sentence .word')[4].click()");
    assert_eq!(stretch(&mut browser), (1.5, 1.75));
    browser.was_quiet();

    let silent = page(folder.path(), N_SOURCE, |sample| sound(sample, None), Vec::new());
    browser.open(&silent, "#view=head&pin=3,50");
    assert_eq!(browser.eval("document.getElementById('play-stretch').disabled"), true);
    browser.was_quiet();
}

/// What a page may load is said by its server there, and by the page itself on disk.
#[test]
fn the_scene_of_a_sound_can_be_played_from_a_server() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut explained = scene(N_SOURCE, |sample| sound(sample, Some(wave())), Vec::new());
    explained.save(&folder.path().join("sound.json")).expect("writable");
    let serving = Serving::start(folder.path(), &["sound.json"]);
    browser.visit(&format!("{}#view=head", serving.url));
    browser.wait("document.querySelector('audio').readyState > 0");
    assert_eq!(
        browser.eval("document.querySelector('audio').error === null && Math.abs(document.querySelector('audio').duration - 2) < 0.01"),
        true
    );
    browser.asked_only(&serving.url);
}

/// Models built by hand, `sees` and `hears`, with a picture and two sounds of ten seconds.
fn models() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["sees", "hears", "sounds"] {
        std::fs::create_dir(at(name)).expect("a folder");
    }
    planted_sight::plant(&at("sees"));
    planted_whisper::plant(&at("hears"));
    std::fs::write(at("white.png"), STANDARD.decode(WHITE).expect("base64")).expect("writable");
    for name in ["sounds/a.wav", "sounds/b.wav"] {
        std::fs::write(at(name), planted_whisper::wav(10.0)).expect("writable");
    }
    folder
}

#[test]
fn the_pages_of_the_program_show_planted_patches_and_seconds() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = models();
    succeed(folder.path(), &["caption", "sees", "white.png", "--explain", "sees.html"]);
    succeed(folder.path(), &["transcribe", "hears", "sounds/a.wav", "--explain", "hears.html"]);
    browser.window(1280, 1000, "light");
    for (row, (word, (patch_row, column))) in planted_sight::NAMED.iter().enumerate() {
        browser.open(&folder.path().join("sees.html"), &format!("#view=head&pin={row},0"));
        let darkest = browser.text(DARKEST);
        assert!(darkest.starts_with(&format!("{patch_row}, {column}: ")), "{word}: {darkest}");
    }
    browser.picture("planted-picture");
    // Rows 0, 1 and 2 write the language, the task and a timestamp.
    for (word, (text, seconds)) in planted_whisper::SAID.iter().enumerate() {
        browser.open(&folder.path().join("hears.html"), &format!("#view=head&pin={},0", 3 + word));
        let (from, to) = (
            browser.number("document.getElementById('stretch').dataset.from"),
            browser.number("document.getElementById('stretch').dataset.to"),
        );
        let (first, last) = (seconds.start as f64, seconds.end as f64);
        assert!(first - 0.1 <= from && from < to && to <= last + 0.1 && to - from > 0.8 * (last - first), "{text}: {from} to {to} s");
    }
    browser.picture("planted-sound");
    // Frames that are all alike have one code; what it stands for is where it was found first.
    let told = browser.text("document.getElementById('codes').textContent");
    assert!(told.starts_with("The frames of a source have no tokens") && told.contains("the nearest of 1 that k-means found"), "{told}");
    let stands = browser.text("document.querySelector('.code-examples').textContent");
    assert!(stands.starts_with("1: 0.00 s"), "{stands}");
    browser.was_quiet();
}

#[test]
fn a_picture_is_chosen_sent_and_seen_with_its_patches() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = models();
    let serving = Serving::start(folder.path(), &["sees"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    browser.wait("document.getElementById('live-file') !== null");
    browser.choose_file("#live-file", &folder.path().join("white.png"));
    browser.eval("document.getElementById('live-explain').click()");
    browser.wait("document.querySelectorAll('.patch').length > 0");
    browser.settle();
    // A click on a word leads to its row.
    for (row, (word, (patch_row, column))) in planted_sight::NAMED.iter().enumerate() {
        browser.eval(&format!("document.querySelectorAll('.sentence .word')[{row}].click()"));
        browser.settle();
        let darkest = browser.text(DARKEST);
        assert!(darkest.starts_with(&format!("{patch_row}, {column}: ")), "{word}: {darkest}");
    }
    browser.picture("serve-picture");
    browser.asked_only(&serving.url);
}

#[test]
fn a_sound_is_chosen_sent_and_seen_with_its_words() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = models();
    let serving = Serving::start(folder.path(), &["hears", "--corpus", "sounds"]);
    browser.window(1280, 1000, "light");
    browser.visit(&serving.url);
    browser.wait("document.getElementById('live-file') !== null");
    browser.choose_file("#live-file", &folder.path().join("sounds/b.wav"));
    browser.eval("document.getElementById('live-explain').click()");
    browser.wait("document.getElementById('stretch') !== null");
    browser.settle();
    assert_eq!(browser.number("document.getElementById('stretch').dataset.to"), 10.0);
    let aligned = "[...document.querySelectorAll('label')].some((label) => label.textContent.includes('alignment'))";
    assert_eq!(browser.eval(aligned), true, "its words were found in time");
    browser.picture("serve-sound");
    assert_eq!(browser.eval("document.getElementById('file-warning') === null"), true, "nothing is wrong with it");

    // A sound that breaks off is explained as far as it goes, and that is said.
    std::fs::write(folder.path().join("cut.wav"), &planted_whisper::wav(10.0)[..44 + 5 * 32_000]).expect("writable");
    browser.choose_file("#live-file", &folder.path().join("cut.wav"));
    browser.eval("document.getElementById('live-explain').click()");
    browser.wait("document.getElementById('file-warning') !== null");
    browser.settle();
    let warned = browser.text("document.getElementById('file-warning').textContent");
    assert_eq!(warned, "The file that was sent breaks off at 5.0 s of the 10.0 s that its header promises.");
    assert_eq!(browser.number("document.getElementById('stretch').dataset.to"), 5.0);
    browser.asked_only(&serving.url);
}

/// A file of so many bytes, which a file system that knows of holes does not even store.
fn hollow(path: &Path, n_bytes: u64) {
    std::fs::File::create(path).and_then(|file| file.set_len(n_bytes)).expect("writable");
}

#[test]
fn files_too_large_are_refused_by_the_page_and_by_its_server() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = models();
    let serving = Serving::start(folder.path(), &["hears"]);
    browser.visit(&serving.url);
    browser.wait("document.getElementById('live-file') !== null");
    let refused = |browser: &mut Browser, n_bytes: u64, words: &str| {
        let file = folder.path().join(format!("{n_bytes}.wav"));
        hollow(&file, n_bytes);
        browser.choose_file("#live-file", &file);
        browser.eval("document.getElementById('live-explain').click()");
        browser.wait(&format!("document.querySelector('.live').textContent.includes('{words}')"));
    };
    refused(&mut browser, 12_100_000, "the file has 12.1 MB, and at most 12 are taken");
    browser.asked_only(&serving.url);
    // A page that does not look at the size: its server does. In base64 the file is 120 bytes longer than what is taken.
    browser.eval("Object.defineProperty(Blob.prototype, 'size', { get: () => 1 }) && true");
    refused(&mut browser, 12_583_000, "the body is larger than the 16777216 bytes that are taken; send less");
    // What is no sound is said too, and then a sound is explained as ever.
    refused(&mut browser, 1_000, "the file that was sent does not begin as a sound does");
    browser.choose_file("#live-file", &folder.path().join("sounds/b.wav"));
    browser.eval("document.getElementById('live-explain').click()");
    browser.wait("document.getElementById('stretch') !== null");
}

/// A side of 5000 pixels is more than a page shows: the matrix stays.
#[test]
fn a_picture_too_large_for_a_page_is_left_out_of_it() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let large = |sample: &mut Sample| {
        picture(sample);
        let Some(Scene::Picture { png, .. }) = &mut sample.scene else { panic!("a picture") };
        png[16..20].copy_from_slice(&5000u32.to_be_bytes());
    };
    let page = page(folder.path(), N_SPECIAL + ROWS * COLUMNS, large, Vec::new());
    browser.open(&page, "#view=head");
    let seen = "[document.querySelector('.patches'), document.querySelector('.matrix canvas')].map((found) => found !== null).join()";
    assert_eq!(browser.text(seen), "false,true");
    browser.was_quiet();
}
