//! Components: turned, drawn near, pointed at, and taken along.

use serde_json::Value;

use super::chromium::Browser;
use super::common::succeed;
use super::pages::{planted, tiny};
use super::planted::{Plan, pieces_of_words};

const N_SOURCE: usize = 9;
const N_TARGET: usize = 7;

/// Where in the window the middle of the picture lies.
fn middle(browser: &mut Browser) -> (f64, f64) {
    browser.eval("document.querySelector('.cloud').scrollIntoView({ block: 'center' })");
    browser.settle();
    let of = |browser: &mut Browser, side: &str, size: &str| {
        browser.number(&format!(
            "(({{ {side}, {size} }}) => {side} + {size} / 2)(document.querySelector('.cloud canvas').getBoundingClientRect())"
        ))
    };
    (of(browser, "left", "width"), of(browser, "top", "height"))
}

/// Turn, tilt and zoom, as the address has them.
fn eye(browser: &mut Browser) -> Vec<f64> {
    // The address follows a moment later.
    browser.settle();
    browser.settle();
    let text = browser.text("new URLSearchParams(location.hash.slice(1)).get('eye') ?? '0.6,0.35,1'");
    text.split(',').map(|number| number.parse().expect("a number")).collect()
}

#[test]
fn the_picture_is_turned_drawn_near_and_pointed_at() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (N_SOURCE, N_TARGET), names: pieces_of_words() };
    let (page, _) = planted(folder.path(), &plan, 1);
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=components");
    let seen = |browser: &mut Browser| browser.text("document.querySelector('.cloud canvas').toDataURL()");
    assert_eq!(eye(&mut browser), [0.6, 0.35, 1.0]);
    let before = seen(&mut browser);

    // Keys.
    browser.tab_to("it.getAttribute('aria-roledescription') === '3-D picture'");
    browser.press("ArrowRight");
    browser.press("ArrowDown");
    browser.press("+");
    assert_eq!(eye(&mut browser), [0.75, 0.5, 1.2]);
    assert!(seen(&mut browser) != before, "it is drawn anew");
    browser.press("0");
    assert_eq!(eye(&mut browser), [0.6, 0.35, 1.0]);

    // The pointer: 60 pixels are half a unit of turning, the wheel draws near.
    let (x, y) = middle(&mut browser);
    browser.drag((x, y), (x + 60.0, y - 24.0));
    let [turn, tilt, zoom] = eye(&mut browser)[..] else { panic!("three numbers") };
    assert!((turn - 1.1).abs() < 0.02 && (tilt - 0.15).abs() < 0.02 && (zoom - 1.0).abs() < 1e-9, "{turn} {tilt} {zoom}");
    browser.wheel(x, y, -200.0);
    browser.wait("Number(new URLSearchParams(location.hash.slice(1)).get('eye')?.split(',')[2]) > 1.1");
    browser.pointer(2.0, 2.0, false);
    browser.settle();
    let turned = seen(&mut browser);

    // The address shows the same again.
    let place = browser.text("location.hash");
    browser.open(&page, &place);
    browser.settle();
    browser.pointer(2.0, 2.0, false);
    browser.settle();
    assert!(seen(&mut browser) == turned, "{place} is looked at from elsewhere");

    // Flat: no turning.
    browser.eval("[...document.querySelectorAll('.choice button')].find((button) => button.textContent === '2-D').click()");
    browser.wait("location.hash.includes('flat=1')");
    let before = eye(&mut browser);
    let (x, y) = middle(&mut browser);
    browser.drag((x, y), (x + 60.0, y));
    assert_eq!(eye(&mut browser), before);
    browser.was_quiet();
}

/// The place a path of a figure begins at.
fn beginning(path: &str) -> (f64, f64) {
    let (x, y) = path.strip_prefix('M').and_then(|rest| rest.split_once(' ')).expect("a place");
    let y: String = y.chars().take_while(|sign| sign.is_ascii_digit() || ".-".contains(*sign)).collect();
    (x.parse().expect("x"), y.parse().expect("y"))
}

#[test]
fn steps_of_both_paths_are_joined_and_marks_are_named() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths: (N_SOURCE, N_TARGET), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 1);
    let geometry = explained.report.geometry.expect("asked for");
    let n_joined = geometry.streams.iter().map(|stream| stream.path.len()).min().expect("streams");
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=components&flat=1");
    let figure = String::from_utf8(browser.download("", "SVG")).expect("text");
    let paths: Vec<&str> = figure.split(" d=\"").skip(1).map(|rest| rest.split('"').next().expect("a path")).collect();
    let count = |path: &str, sign: char| path.chars().filter(|&found| found == sign).count();
    let joins: Vec<&&str> = paths.iter().filter(|path| count(path, 'M') == n_joined && count(path, 'L') == n_joined).collect();
    assert_eq!(joins.len(), 1, "one line for each of {n_joined} steps: {paths:?}");
    assert!(figure.contains("encoder") && figure.contains("decoder") && figure.contains("axis 1: "), "{figure}");

    // A token's mark is a square of 8 pixels; pointed at, it says what it is.
    let square = paths.iter().find(|path| path.ends_with("h8v8h-8z")).expect("a token");
    let (x, y) = beginning(square);
    let (left, top) = {
        middle(&mut browser);
        let of = |browser: &mut Browser, side: &str| {
            browser.number(&format!("document.querySelector('.cloud canvas').getBoundingClientRect().{side}"))
        };
        (of(&mut browser, "left"), of(&mut browser, "top"))
    };
    browser.pointer(left + x + 4.0, top + y + 4.0, false);
    browser.wait("document.querySelector('.tip').classList.contains('on')");
    let said = browser.text("document.querySelector('.tip').textContent");
    assert!(said.contains(" · encoder") || said.contains(" · decoder"), "{said}");
    browser.was_quiet();
}

/// Presses the check box of a layer.
fn tick(browser: &mut Browser, layer: &str) {
    browser.eval(&format!(
        "[...document.querySelectorAll('.check')].find((it) => it.textContent === '{layer}').querySelector('input').click()"
    ));
    browser.settle();
}

#[test]
fn positions_tokens_residuals_and_readouts_are_drawn_and_can_be_left_out() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tiny(folder);
    succeed(folder, &["explain", "run", "--samples", "100", "--causal", "0", "--geometry", "--save", "found.json", "--json"]);
    succeed(folder, &["report", "found.json", "-o", "page.html"]);
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("found.json")).expect("the report")).expect("JSON");
    let geometry = &report["geometry"];
    let streams = || geometry["streams"].as_array().expect("streams").iter().filter(|stream| stream["frame"] == 0);
    let count = |field: &str| streams().map(|stream| stream[field].as_array().map_or(0, Vec::len)).sum::<usize>();
    let n_arrows = geometry["readout"]["arrows"].as_array().expect("words are read from the context").len();
    // A step is a disc, a token a square with its edge, a residual a dot, a readout an arrow.
    let layers = [
        ("positions", "a4 4 0 1 0 8 0a", count("path")),
        ("tokens", "h8v8h-8z", 2 * count("inputs")),
        ("the rest", "a2 2 0 1 0 4 0a", count("residuals")),
        ("readouts", "stroke-width=\"1.5\"", n_arrows.min(64)),
    ];
    browser.window(1280, 1000, "light");
    browser.open(&folder.join("page.html"), "#view=components");
    browser.settle();
    let drawn = |browser: &mut Browser, without: &str| {
        let figure = String::from_utf8(browser.download("", "SVG")).expect("text");
        for (layer, mark, n) in layers {
            let expected = if layer == without { 0 } else { n };
            assert_eq!(figure.matches(mark).count(), expected, "{layer}, without {without}");
        }
        figure
    };
    assert!(layers.iter().all(|(_, _, n)| *n > 0), "{layers:?}");
    let figure = drawn(&mut browser, "nothing");
    let names: Vec<&str> =
        streams().flat_map(|stream| stream["inputs"].as_array().into_iter().flatten()).filter_map(|input| input["name"].as_str()).collect();
    // Beside each other or not: whatever has room on one of four sides is named, and so is every axis.
    for name in names.iter().filter(|name| !name.starts_with('<')) {
        assert!(figure.contains(&format!(">{name}</text>")), "{name} is not named in {figure}");
    }
    for axis in ["axis 1: ", "axis 2: ", "axis 3: "] {
        assert!(figure.contains(axis), "no {axis} in {figure}");
    }
    for (layer, _, _) in layers {
        tick(&mut browser, layer);
        drawn(&mut browser, layer);
        tick(&mut browser, layer);
    }
    drawn(&mut browser, "nothing");
    browser.was_quiet();
}
