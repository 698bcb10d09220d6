//! The page of a reproduction: claims, what came out, and their figures.

use std::path::{Path, PathBuf};

use crosslens_lab::Shown;
use crosslens_lab::analysis::figure::{Colours, Theme};
use crosslens_lab::analysis::page::Page;
use crosslens_lab::reproduce::{Check, ClaimOutcome, Entry, Figure, Gate, Reproduction, Role, SeedOutcome, Series, TemporalShares};
use serde_json::{Value, json};

use super::chromium::Browser;
use super::planted::{Plan, Planted, pieces_of_words};

fn claim(id: &'static str, value: f64, figure: Figure) -> ClaimOutcome {
    judged(id, Check::at_least("share of <b>steps</b>", value, 0.9), figure)
}

fn judged(id: &'static str, check: Check, figure: Figure) -> ClaimOutcome {
    let value = check.value;
    let seed = SeedOutcome { value: Some(value), holds: check.holds, missed: Vec::new(), networks: Vec::new(), checks: vec![check] };
    ClaimOutcome {
        id,
        claim: "Networks <script>look</script> along the diagonal.",
        origin: "paper",
        remark: "",
        what: check.what,
        value: Some(value),
        spread: 0.01,
        floor: Some(check.floor),
        bound: Some(check.bound),
        holds: seed.holds,
        seeds: vec![seed.clone(), seed],
        figure: Some(figure),
    }
}

/// Its numbers are as they should be, but one of its networks has not learnt its task.
fn gated() -> ClaimOutcome {
    let mut claim = claim("gated", 0.99, Figure::matrix("A matrix.", vec![vec![1.0]]));
    claim.holds = false;
    claim.seeds[1].holds = false;
    claim.seeds[1].missed = vec!["copy-aed", "copy-ao"];
    claim
}

fn network(seed: u64, role: Role, phrase_accuracy: f64, centred: f64) -> Entry {
    Entry {
        network: "copy-aed",
        about: "AED, <i>one</i>-to-one".into(),
        place: 1,
        seed,
        gate: if role == Role::Control { Gate::Open } else { Gate::Phrases },
        role,
        phrase_accuracy,
        word_accuracy: 0.8,
        gained_by_attention: Some(0.4),
        steps: 900,
        seconds: 1.0,
        folder: "networks/0".into(),
        shares: Some(TemporalShares { centred, top1: 0.8, untrained_centred: 0.094, untrained_top1: 0.35 }),
    }
}

fn networks() -> Vec<Entry> {
    let without_attention = Entry { about: "VED".into(), shares: None, ..network(213, Role::Control, 0.103, 0.0) };
    vec![
        network(212, Role::Judged, 0.995, 0.985),
        network(112, Role::Replaced, 0.016, 0.936),
        network(312, Role::Missed, 0.5, 0.9),
        without_attention,
    ]
}

fn reproduction() -> Reproduction {
    let lines = vec![Series::by_step("one", &[0.1, 0.5, 0.4]), Series::by_step("two", &[0.3, f64::NAN, -0.2])];
    let bars =
        Figure::bars("Bars.", "share", vec!["a".into(), "b".into()], vec![("one".into(), vec![0.2, 0.9]), ("two".into(), vec![0.1, -0.3])]);
    let claims = vec![
        claim("lines", 0.97, Figure::lines("Lines.", "updates", "share", lines.clone())),
        claim("bars", 0.95, bars),
        claim("points", 0.2, Figure::points("Points.", "distance", "share", lines)),
        claim("matrix", 0.99, Figure::matrix("A matrix.", vec![vec![0.9, 0.1], vec![0.2, 0.8]])),
        gated(),
        ClaimOutcome {
            spread: 3.2e-10,
            ..judged("tiny", Check::at_most("error", 1.7e-9, 2.5e-6), Figure::matrix("A matrix.", vec![vec![1.0]]))
        },
    ];
    Reproduction { held: 4, of: claims.len(), claims, quick: false, networks: networks() }
}

/// A page of these claims, beside one planted head.
fn page(folder: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
    page_of(folder, &reproduction(), change)
}

fn page_of(folder: &Path, reproduction: &Reproduction, change: impl FnOnce(&mut Value)) -> PathBuf {
    let plan = Plan { n_layers: 1, n_heads: 1, n_sentences: 20, lengths: (6, 6), names: pieces_of_words() };
    let shown = Shown { name: "planted".into(), explained: Planted::of(&plan).explain(2), training: Vec::new(), timeline: None };
    let path = folder.join("reproduce.html");
    let mut claims = serde_json::to_value(reproduction).expect("JSON");
    change(&mut claims);
    shown.on(Page::new().claims(&claims)).write(&path).expect("writable");
    path
}

#[test]
fn claims_open_first_and_each_has_its_number_and_its_figure() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page(folder.path(), |claims| {
        (claims["claims"][1]["proof"], claims["claims"][1]["proof_reason"]) = ("states".into(), "there is <i>nothing</i> to change".into());
    });
    for (name, width, scheme) in [("narrow", 320, "dark"), ("wide", 1280, "light")] {
        browser.window(width, 1000, scheme);
        browser.open(&path, "");
        browser.settle();
        assert_eq!(browser.text("document.querySelector('h1').textContent"), "Claims");
        assert_eq!(browser.text("held.textContent"), "4 of 6 claims hold");
        assert_eq!(browser.number("document.querySelectorAll('article').length"), 6.0);
        browser.fits("claims");
        browser.names_everything("claims");
        browser.picture(&format!("claims-{name}-{scheme}"));
    }
    let marks = |id: &str, mark: &str| format!("document.querySelectorAll('[data-claim={id}] figure > svg {mark}').length");
    for (id, mark, n) in [("lines", "path", 2.0), ("bars", "rect", 4.0), ("points", "circle", 5.0), ("matrix", "rect", 4.0)] {
        assert_eq!(browser.number(&marks(id, mark)), n, "{id}");
    }
    let text = browser.text("document.querySelector('[data-claim=lines]').textContent");
    assert!(text.contains("Networks <script>look</script>") && text.contains("0.970 ± 0.010; at least 0.9 asked"), "{text}");
    let said = "No network was changed, since it is about what states are like: there is <i>nothing</i> to change.";
    assert_eq!(browser.text("document.querySelector('[data-claim=bars] .proof').textContent"), said);
    let reasons = |id: &str| format!("[...document.querySelectorAll('[data-claim={id}] .missed')].map((it) => it.textContent).join('|')");
    assert_eq!(browser.text(&reasons("lines")), "");
    let reason = "Seed 2: nothing is judged by networks that do not do their task: AED, <i>one</i>-to-one; copy-ao.";
    assert_eq!(browser.text(&reasons("gated")), reason);
    let text = browser.text("document.querySelector('[data-claim=tiny]').textContent");
    assert!(text.contains("error: 2e-9 ± 3e-10; at most 2.5e-6 asked for"), "{text}");
    browser.eval("document.querySelector('[data-value=no]').click()");
    browser.wait("document.querySelectorAll('article').length === 2 && location.hash.includes('holds=no')");
    browser.eval("document.querySelector('[data-view=head]').click()");
    browser.wait("document.querySelector('.matrix canvas') !== null");
    browser.was_quiet();
}

/// Shares alone prove nothing: networks that did not learn, and untrained weights, are shown beside those that claims are judged by.
#[test]
fn every_network_is_shown_with_its_role_and_its_share() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page(folder.path(), |_| ());
    browser.window(1280, 1000, "light");
    browser.open(&path, "");
    browser.settle();
    let rows = |id: &str| {
        format!(
            "[...document.querySelectorAll('#{id} tbody tr')].map((row) => [...row.cells].map((it) => it.textContent).join('|')).join('\\n')"
        )
    };
    let judged = "AED, <i>one</i>-to-one|212|judged|99.5\u{a0}%|0.985|0.094";
    let controls = "AED, <i>one</i>-to-one|112|missed the gate, replaced|1.6\u{a0}%|0.936|0.094\n\
                    AED, <i>one</i>-to-one|312|missed the gate, proves nothing|50.0\u{a0}%|0.900|0.094\n\
                    VED|213|control|10.3\u{a0}%|–|–";
    assert_eq!(browser.text(&rows("controls")), controls);
    assert_eq!(browser.text(&rows("networks")), format!("{judged}\n{controls}"));
    assert_eq!(browser.eval("document.querySelector('#networks').closest('details').open"), false);
    let said = browser.text("document.querySelector('.networks p').textContent");
    assert!(said.contains("so have untrained weights (0.094 to 0.094)"), "{said}");
    browser.eval("document.querySelector('.networks').scrollIntoView()");
    browser.eval("document.querySelector('.networks summary').click()");
    browser.settle();
    browser.fits("networks");
    browser.picture("claims-networks-light");
    browser.was_quiet();
}

/// A page of figures like those of the claims: names at points, one scale for both axes, many seeds.
fn drawn(folder: &Path) -> PathBuf {
    let turned = |k: usize, length: f64| {
        let angle = std::f64::consts::TAU * (k as f64 / 3.0 + 0.1);
        [length * angle.cos(), length * angle.sin()]
    };
    let plane = vec![
        Series::new("readouts × 0.42", (0..3).map(|k| turned(k, 2.6)).collect()).named((0..3).map(|k| format!("O{k}"))),
        Series::new("input components", (0..3).map(|k| turned(k, 2.0)).collect()).named((0..3).map(|k| format!("I{k}"))),
    ];
    let path = |name: &str, radius: f64| {
        let at = |step: usize| [radius * (step as f64 / 6.0).cos(), 0.3 * radius * (step as f64 / 6.0).sin()];
        Series::new(name, (0..18).map(at).collect()).named((0..18).map(|step| step.to_string()))
    };
    let paths = vec![path("encoder", 3.0), path("decoder", 2.4), path("encoder without input", 1.0)];
    let seeds = |of: fn(usize, usize) -> f64| {
        (0..8).map(move |k| Series::by_step(format!("seed {}", k + 1), &(0..5).map(|step| of(k, step)).collect::<Vec<f64>>()))
    };
    let eight: Vec<Series> = seeds(|k, step| 0.1 * k as f64 + 0.05 * step as f64).collect();
    let law = |k: usize, shift: f64| [0.05 * k as f64 + shift, 0.09 * k as f64 + shift];
    let names = ["copy-aed", "copy-ao", "reverse-aed", "reverse-ao", "escan-aed", "escan-and-aed", "escan-luong", "translation-aed"];
    let points = [0.0, 0.013, -0.017].into_iter().enumerate().map(|(place, shift)| {
        let at = (0..names.len()).map(|k| law(k, shift)).collect();
        Series::new(format!("seed {}", place + 1), at).named(names.map(String::from))
    });
    let bars = |n: usize| {
        let series = (0..n).map(|k| (format!("seed {}", k + 1), (0..names.len()).map(|place| 0.989 - 0.1 * place as f64).collect()));
        Figure::bars("Bars by network.", "centred share", names.map(String::from).to_vec(), series.collect())
    };
    let attention = (0..20).map(|row| (0..20).map(|place: i32| if place == row { 0.8 } else { 0.01 }).collect()).collect();
    let claims = vec![
        claim("plane", 0.97, Figure::points("Words read and written.", "first axis", "second axis", plane).with_equal_axes()),
        claim("paths", 0.97, Figure::lines("Temporal components.", "first axis", "second axis", paths).with_equal_axes()),
        claim("eight", 0.97, Figure::lines("Eight seeds.", "updates", "share", eight)),
        claim("law", 0.97, Figure::points("Every network.", "total variation from the average", "1 − temporal share", points.collect())),
        claim("three", 0.97, bars(3)),
        claim("eight-bars", 0.97, bars(8)),
        claim("diagonal", 0.97, Figure::matrix("Average attention.", attention)),
    ];
    page_of(folder, &Reproduction { held: 7, of: 7, claims, quick: false, networks: networks() }, |_| ())
}

#[test]
fn figures_have_round_ticks_names_and_axes_that_measure_the_same() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = drawn(folder.path());
    for (name, width, height, scheme) in [("narrow", 400, 4200, "dark"), ("wide", 1280, 2400, "light")] {
        browser.window(width, height, scheme);
        browser.open(&path, "");
        browser.settle();
        browser.fits("claims");
        browser.names_everything("claims");
        browser.picture(&format!("claims-figures-{name}-{scheme}"));
    }
    let words =
        |id: &str| format!("[...document.querySelectorAll('[data-claim={id}] figure > svg text')].map((it) => it.textContent).join(' ')");
    for (id, ticks) in [("three", "0.0 0.2 0.4 0.6 0.8 1.0"), ("eight", "0.0 0.2 0.4 0.6 0.8 1.0"), ("law", "−0.2 0.0 0.2 0.4 0.6 0.8")] {
        let text = browser.text(&words(id));
        assert!(text.starts_with(ticks), "{id}: {text}");
    }
    let text = browser.text(&words("plane"));
    assert!(["O0", "O1", "O2", "I0", "I1", "I2"].iter().all(|name| text.split(' ').any(|word| word == *name)), "{text}");
    let text = browser.text(&words("paths"));
    assert!(["5", "10", "17"].iter().all(|step| text.split(' ').any(|word| word == *step)), "{text}");
    let text = browser.text(&words("three"));
    assert!(text.contains("translation-aed") && text.contains("escan-and-aed"), "every bar has its name: {text}");
    // The same distance along both axes is the same on the screen: a readout lies as far from the origin whichever way it points.
    let lengths = "(() => { const all = [...document.querySelectorAll('[data-claim=plane] figure > svg line[stroke-opacity]')].slice(0, 3); \
                   const long = all.map((it) => Math.hypot(it.x2.baseVal.value - it.x1.baseVal.value, it.y2.baseVal.value - it.y1.baseVal.value)); \
                   return Math.max(...long) / Math.min(...long); })()";
    assert!((browser.number(lengths) - 1.0).abs() < 1e-3, "{}", browser.number(lengths));
    // The name of y stands left of all numbers and is turned, also beside bars.
    let name_of_y = "(() => { const it = document.querySelector('[data-claim=three] figure > svg text[transform^=\"rotate(-90\"]'); \
                     return `${it.textContent} ${it.getAttribute('x')}`; })()";
    assert_eq!(browser.text(name_of_y), "centred share 12");
    // From eight series on colours come again, and something else tells them apart: in the figure and in its legend.
    let looks = |id: &str, what: &str, of: &str| {
        format!("new Set([...document.querySelectorAll('[data-claim={id}] {what}')].map((it) => {of})).size")
    };
    let line = "`${it.getAttribute('stroke')} ${it.getAttribute('stroke-dasharray')}`";
    assert_eq!(browser.number(&looks("eight", "figure > svg path", line)), 8.0);
    assert_eq!(browser.number(&looks("eight", "figure .legend line", line)), 8.0);
    let bar = "`${it.getAttribute('fill')} ${it.getAttribute('fill-opacity')}`";
    assert_eq!(browser.number(&looks("eight-bars", "figure > svg rect", bar)), 8.0);
    browser.was_quiet();
}

#[test]
fn the_figure_of_a_claim_is_taken_along_with_its_numbers() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page(folder.path(), |_| ());
    browser.window(1280, 1000, "dark");
    browser.open(&path, "");
    browser.settle();
    let paper = format!("fill=\"{}\"", Colours::of(Theme::Dark).paper().hex());
    let points = ["one,0,0.1", "one,1,0.5", "one,2,0.4", "two,0,0.3", "two,1,", "two,2,-0.2"];
    let bars = ["one,a,0.2", "one,b,0.9", "two,a,0.1", "two,b,-0.3"];
    let figures: [(&str, &str, &[&str], &[&str]); 4] = [
        ("lines", "series,updates,share", &points, &["Lines.", ">two<", ">updates<"]),
        ("bars", "series,label,share", &bars, &["Bars.", ">two<", ">share<"]),
        ("points", "series,distance,share", &points, &["Points.", ">two<", ">distance<"]),
        ("matrix", "decoder step by source,0,1", &["0,0.9,0.1", "1,0.2,0.8"], &["A matrix.", "share of attention<", ">decoder step<"]),
    ];
    for (id, head, rows, words) in figures {
        // A page anew for each: a browser lets one page hand it a few files only.
        browser.open(&path, "");
        browser.settle();
        let place = format!("[data-claim={id}] figure");
        let figure = String::from_utf8(browser.download(&place, "SVG")).expect("text");
        assert!(figure.starts_with("<svg") && figure.contains(&paper), "{id}: {figure}");
        words.iter().for_each(|words| assert!(figure.contains(words), "{id}: no {words} in {figure}"));
        let text = serde_json::to_string(&figure).expect("text");
        let is_whole = format!("new DOMParser().parseFromString({text}, 'image/svg+xml').querySelector('parsererror') === null");
        assert_eq!(browser.eval(&is_whole), true, "{id}: {figure}");
        assert!(browser.download(&place, "PNG").starts_with(b"\x89PNG"), "{id}");
        let numbers = String::from_utf8(browser.download(&place, "CSV")).expect("text");
        assert_eq!(numbers.lines().collect::<Vec<_>>(), [&[head][..], rows].concat(), "{id}");
        let data: Value = serde_json::from_slice(&browser.download(&place, "JSON")).expect("JSON");
        assert_eq!((&data["claim"], &data["kind"]), (&json!(id), &json!(id)));
    }
    // By keyboard alone; whoever listens hears which figure the buttons are for.
    browser.tab_to("it.closest('[data-claim=points] .downloads') && it.textContent === 'SVG'");
    assert_eq!(browser.text("document.activeElement.parentElement.getAttribute('aria-label')"), "Downloads of the figure of points");
    let figure = browser.downloaded("SVG", |browser| browser.press("Enter"));
    assert!(String::from_utf8_lossy(&figure).contains("points: Points."));
    assert_eq!(browser.text("said.textContent"), "claim-points.svg was handed to the browser's downloads");
    browser.was_quiet();
}
