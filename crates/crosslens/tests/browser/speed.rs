//! How fast the page is; measured on demand, never asserted: `cargo test -p crosslens --test browser --release speed -- --ignored`.

use serde_json::Value;

use super::chromium::Browser;
use super::pages::{many_heads, planted};
use super::planted::{Plan, pieces_of_words};

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Milliseconds of work in the page, layout and painting included, that one run of an action makes.
fn work_ms(browser: &mut Browser, action: &str, times: usize) -> f64 {
    let seconds = |browser: &mut Browser| {
        let metrics = browser.call("Performance.getMetrics", serde_json::json!({}));
        let list = metrics["metrics"].as_array().cloned().unwrap_or_default();
        list.iter().find(|metric| metric["name"] == "TaskDuration").and_then(|metric: &Value| metric["value"].as_f64()).expect("a duration")
    };
    let frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
    browser.eval(frame);
    let before = seconds(browser);
    browser.eval(&format!("(async () => {{ for (let i = 0; i < {times}; i += 1) {{ {action}; await {frame}; }} return true; }})()"));
    1000.0 * (seconds(browser) - before) / times as f64
}

#[test]
#[ignore = "a measurement, not a test: writes target/tmp/viewer-speed.md"]
fn measure_the_speed_of_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut lines = Vec::new();
    browser.window(1440, 1000, "light");
    // Time the page's own thread was at work, whoever else uses the machine.
    browser.call("Performance.disable", serde_json::json!({}));
    browser.call("Performance.enable", serde_json::json!({ "timeDomain": "threadTicks" }));
    let (page, _) = planted(folder.path(), &many_heads(50, 20), 50);
    let size = page.metadata().expect("a page").len() as f64 / 1e6;
    let (mut painted, mut shown) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        browser.open(&page, "");
        painted.push(browser.number("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
        shown.push(browser.number("performance.getEntriesByName('crosslens-shown')[0].startTime"));
    }
    lines.push(format!("| 12 × 12 heads, 50 sentences of 20 × 20 tokens ({size:.1} MB): first paint | {:.0} ms |", median(painted)));
    lines.push(format!("| the same: atlas complete | {:.0} ms |", median(shown)));
    let plan = |lengths| Plan { n_layers: 1, n_heads: 1, n_sentences: 4, lengths, names: pieces_of_words() };
    for (lengths, times) in [((100, 100), 50), ((2000, 500), 10)] {
        let mut corpus = super::planted::Planted::of(&plan(lengths));
        corpus.keep_sites(1);
        let explained = corpus.explain(1);
        let shown = crosslens_lab::Shown { name: "long".into(), explained, training: Vec::new(), timeline: None };
        let page = folder.path().join("one.html");
        shown.on(crosslens_lab::analysis::page::Page::new()).write(&page).expect("writable");
        browser.open(&page, "#view=head");
        let (keys, queries) = lengths;
        let nothing = work_ms(&mut browser, "", times);
        let toggle = work_ms(&mut browser, "document.querySelector(`[data-piece='4']`).click()", times);
        let sync = browser.number("(() => { const times = []; for (let i = 0; i < 20; i += 1) { const start = performance.now(); document.querySelector(`[data-piece='4']`).click(); times.push(performance.now() - start); } return times.sort((a, b) => a - b)[10]; })()");
        let scroll = work_ms(&mut browser, "document.querySelector('.matrix .heat-scroll').scrollLeft += 7", times);
        lines
            .push(format!("| {queries} × {keys} tokens: a term switched, softmax to repaint | {toggle:.1} ms, {sync:.1} of them script; {nothing:.1} without switching |"));
        lines.push(format!("| {queries} × {keys} tokens: one step of scrolling | {scroll:.1} ms |"));
    }
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("viewer-speed.md"), lines.join("\n") + "\n").expect("writable");
}
