//! Two reports side by side: both sides, their difference, and what one of them does not know.

use crosslens_lab::Shown;
use crosslens_lab::analysis::page::Page;
use serde_json::Value;

use super::chromium::Browser;
use super::planted::{Plan, Planted, pieces_of_words};

/// A row of a table by its name: the texts of its cells.
fn row(browser: &mut Browser, name: &str) -> Vec<String> {
    let cells = browser.eval(&format!(
        "[...document.querySelectorAll('tbody tr')].filter((row) => row.cells[0].textContent === '{name}').map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))[0]"
    ));
    serde_json::from_value(cells).unwrap_or_else(|_| panic!("no row {name}"))
}

/// A share as whole percents.
fn percents(text: &str) -> f64 {
    text.replace('−', "-").trim_end_matches("\u{a0}%").parse().unwrap_or_else(|_| panic!("{text} is no share"))
}

#[test]
fn two_reports_are_compared() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Head 0 is driven by position, head 1 by the token.
    let shown = |name: &str, n_heads: usize, n_sentences: u64| {
        let plan = Plan { n_layers: 1, n_heads, n_sentences, lengths: (7, 6), names: pieces_of_words() };
        let mut corpus = Planted::of(&plan);
        corpus.keep_sites(n_heads);
        Shown { name: name.into(), explained: corpus.explain(1), training: Vec::new(), timeline: None }
    };
    let (mut a, mut b) = (shown("one", 2, 30), shown("two", 2, 40));
    a.explained.report.sites[0].rebuilt.remove("residual");
    b.explained.report.sites[1].rebuilt.remove("residual");
    let path = folder.path().join("both.html");
    b.on(a.on(Page::new())).write(&path).expect("writable");
    browser.window(1280, 1000, "light");
    browser.open(&path, "#view=compare&site=0&with=1&other=1");
    assert_eq!(browser.number("document.querySelectorAll('.compare .heatmap').length"), 3.0);
    let shares = [&a.explained.report.sites[0], &b.explained.report.sites[1]]
        .map(|site| site.shares.as_ref().expect("exact").tables["centred"][0][0]);
    let found = row(&mut browser, "share of position");
    for (text, share) in found.iter().zip([shares[0], shares[1], shares[1] - shares[0]]) {
        assert!((percents(text.trim_start_matches('+')) - 100.0 * share).abs() <= 0.51, "{found:?}, not {shares:?}");
    }
    assert_eq!(row(&mut browser, "sentences explained")[..2], ["30", "40"]);
    // What neither knows has no difference.
    assert_eq!(row(&mut browser, "same token, rebuilt from the rest alone"), ["–", "–", "–"]);
    // A cell of the difference says its number to those who listen.
    browser.eval("document.querySelectorAll('.compare .heat-scroll')[2].focus()");
    for key in ["ArrowRight", "ArrowDown", "ArrowRight"] {
        browser.press(key);
    }
    let said = browser.text("document.querySelectorAll('.compare .heatmap')[2].querySelector('[role=status].hidden').textContent");
    let [from, to] = [(&a, 0), (&b, 1)].map(|(shown, site)| shown.explained.samples.averages[site][1][1]);
    let number = said.strip_prefix("step 1 and 1, ").unwrap_or_else(|| panic!("{said}"));
    assert!((percents(number) - 100.0 * (to - from)).abs() <= 0.051, "{said}, not {}", 100.0 * (to - from));
    assert!(browser.text("document.querySelector('main').textContent").contains("need not add up to 100 %"));
    let figure = String::from_utf8(browser.download("", "SVG")).expect("text");
    for says in ["A · one", "B · two", "B − A", "average attention, A", "B less A"] {
        assert!(figure.contains(says), "{says} is not in {figure}");
    }
    let data: Value = serde_json::from_slice(&browser.download("", "JSON")).expect("JSON");
    let [one, two] = [("a", &a, 0), ("b", &b, 1)].map(|(side, shown, site)| {
        let found = data["averages"][side]["values"][8].as_f64().expect("a number");
        let average = &shown.explained.samples.averages[site];
        let expected = average[8 / average[0].len()][8 % average[0].len()];
        assert!((found - expected).abs() < 1e-5, "{side}: {found}, not {expected}");
        found
    });
    assert!((data["difference"]["values"][8].as_f64().expect("a number") - (two - one)).abs() < 1e-5);
    browser.was_quiet();
}
