//! Training is scrubbed: what is shown at a checkpoint is what was found there.

use super::chromium::Browser;
use super::pages::with_timeline;

#[test]
fn the_scrubber_replays_how_attention_formed() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, timeline) = with_timeline(folder.path());
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=training");
    browser.names_everything("training");
    browser.tab_to("it.id === 'scrubber'");
    browser.press("Home");
    for (place, point) in timeline.points.iter().enumerate() {
        if place > 0 {
            browser.press("ArrowRight");
        }
        let shown = browser.text("scrubbed.textContent");
        let loss = format!("on the 100 recorded sentences loss {:.3}", point.loss.expect("known"));
        assert!(shown.starts_with(&format!("After {} updates: ", point.step)) && shown.contains(&loss), "{shown}, not {loss}");
        let shares = point.sites[0].shares.as_ref().expect("exact");
        let position = format!("position {:.0}\u{a0}%", (100.0 * shares[0]).round() + 0.0).replace('-', "−");
        assert!(shown.contains(&position), "{shown}, not {position}");
        // A label that says only that nothing was run again is no verdict.
        let verdict = point.sites[0].verdict.as_str();
        assert_eq!(shown.contains(verdict), verdict != "not rerun", "{shown}, {verdict}");
        assert_eq!(browser.text("document.activeElement.getAttribute('aria-valuetext')"), format!("update {}", point.step));
    }
    assert!(timeline.points.iter().any(|point| point.sites[0].verdict == "not rerun"), "some label is left out");
    assert_eq!(browser.number("document.querySelectorAll('.charts .heatmap canvas').length"), 1.0, "the average attention is drawn");
    browser.press("ArrowLeft");
    browser.wait("location.hash.includes('step=3')");
    // The matrix says its numbers to those who listen.
    browser.tab_to("it.classList.contains('heat-scroll')");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    let average = &timeline.points[3].sites[0].attention.as_ref().expect("kept")[0];
    let said = browser.text("document.querySelector('.charts [role=status].hidden').textContent");
    let number = said.strip_prefix("step 0 looks at step 1, ").and_then(|rest| rest.strip_suffix("\u{a0}%")).map(str::parse::<f32>);
    assert!((number.expect(&said).expect("a number") - 100.0 * average[1]).abs() <= 0.051, "{said}, not {}", average[1]);
    // Round numbers of updates, named.
    let ticks = browser.eval("[...document.querySelector('.chart').querySelectorAll('.tick')].map((tick) => tick.textContent)");
    let ticks: Vec<u32> =
        serde_json::from_value::<Vec<String>>(ticks).expect("texts").iter().map(|tick| tick.parse().expect("a number")).collect();
    assert!(ticks.len() > 2 && ticks[0] == 0 && ticks.iter().all(|tick| tick % 50 == 0 && *tick <= 400), "{ticks:?}");
    browser.tab_to("it.id === 'scrubber'");
    // Played from the start, it ends at the last checkpoint.
    browser.press("End");
    browser.eval("play.click()");
    browser.wait("scrubber.value === '0'");
    browser.wait("scrubber.value === '4' && play.textContent.includes('play')");
    // All charts and the average attention at the checkpoint are one figure.
    let figure = String::from_utf8(browser.download("", "SVG")).expect("text");
    for says in [
        "Loss, nats a word",
        "Accuracy",
        "What makes the scores",
        "fresh sentences",
        "sentences right",
        "position",
        "Average attention after",
        ">updates</text>",
    ] {
        assert!(figure.contains(says), "{says} is not in {figure}");
    }
    browser.was_quiet();
}
