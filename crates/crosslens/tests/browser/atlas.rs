//! The atlas: its cells say what the report says, in the order and the choice asked for.

use crosslens_lab::analysis::report::SiteReport;
use serde_json::json;

use super::chromium::Browser;
use super::pages::{many_heads, one_head, planted};
use super::planted::{Plan, pieces_of_words};

const PARTS: [(&str, &str); 3] = [("temporal", "position"), ("input", "token"), ("residual", "the rest")];

/// Centred shares of position with its bias, of token, and of everything else.
fn totals(site: &SiteReport) -> [f64; 3] {
    let shares = site.shares.as_ref().expect("exact");
    let (position, token) = match shares.parts.get("centred") {
        Some(parts) => (parts.query[0] + parts.key[0], parts.query[1] + parts.key[1]),
        None => (shares.tables["centred"][0][0], shares.tables["centred"][1][1]),
    };
    let position = position + shares.position_bias;
    [position, token, 1.0 - position - token]
}

/// The part with the largest share.
fn driver(site: &SiteReport) -> usize {
    let shares = totals(site);
    (0..3).fold(0, |best, part| if shares[part] > shares[best] { part } else { best })
}

/// How often that part alone looks at the same key.
fn kept(site: &SiteReport) -> f64 {
    let part = driver(site);
    let with_bias = site.rebuilt.get("temporal+bias").filter(|_| part == 0);
    with_bias.unwrap_or_else(|| &site.rebuilt[PARTS[part].0]).argmax
}

fn percent(share: f64) -> String {
    format!("{:.0}\u{a0}%", (100.0 * share).round() + 0.0).replace('-', "−")
}

const CELLS: &str = "[...document.querySelectorAll('.atlas-cell')]";

/// Chooses something by its label as its user would.
fn choose(browser: &mut Browser, label: &str, value: &str) {
    browser.eval(&format!("(() => {{ const box = document.querySelector('select[aria-label=\"{label}\"]'); box.value = '{value}'; box.dispatchEvent(new Event('change')); }})()"));
    browser.settle();
}

fn numbers(browser: &mut Browser) -> Vec<usize> {
    let list = browser.eval(&format!("{CELLS}.map((cell) => Number(cell.dataset.site))"));
    serde_json::from_value(list).expect("numbers")
}

#[test]
fn a_cell_says_what_drives_its_head() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { n_layers: 1, n_heads: 4, n_sentences: 60, lengths: (9, 8), names: pieces_of_words() };
    let (page, explained) = planted(folder.path(), &plan, 2);
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=atlas");
    for (number, site) in explained.report.sites.iter().enumerate() {
        let part = driver(site);
        let words = browser.text(&format!("document.querySelector(`[data-site='{number}']`).getAttribute('aria-label')"));
        let says = format!(
            "{}; {} makes {} of the scores and alone keeps {} of where it looks",
            site.verdict.label,
            PARTS[part].1,
            percent(totals(site)[part]),
            percent(kept(site))
        );
        assert!(words.ends_with(&says), "{words}, not {says}");
        // The ring is as full as what is kept.
        let ring =
            format!("document.querySelector(`[data-site='{number}'] circle[stroke-dasharray]`)?.getAttribute('stroke-dasharray') ?? '0 1'");
        let dash = browser.text(&ring);
        let lengths: Vec<f64> = dash.split(' ').map(|length| length.parse().expect("a length")).collect();
        assert!((lengths[0] / lengths[1] - kept(site)).abs() < 1e-6, "{dash}, not {}", kept(site));
    }
    browser.was_quiet();
}

#[test]
fn heads_are_sorted_chosen_and_looked_at() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = planted(folder.path(), &many_heads(20, 8), 1);
    let sites = &explained.report.sites;
    browser.window(1280, 1000, "light");
    browser.open(&page, "#view=atlas");
    assert_eq!(numbers(&mut browser).len(), sites.len());

    // Sorted by the share of token, the largest first.
    choose(&mut browser, "Sort by", "1");
    let shares: Vec<f64> = numbers(&mut browser).iter().map(|&site| totals(&sites[site])[1]).collect();
    assert!(shares.len() == sites.len() && shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
    choose(&mut browser, "Sort by", "kept");
    let keeps: Vec<f64> = numbers(&mut browser).iter().map(|&site| kept(&sites[site])).collect();
    assert!(keeps.is_sorted_by(|a, b| a >= b), "{keeps:?}");

    // Only those that position drives.
    choose(&mut browser, "Sort by", "place");
    choose(&mut browser, "Show", "part0");
    let expected: Vec<usize> = (0..sites.len()).filter(|&site| driver(&sites[site]) == 0).collect();
    assert!(!expected.is_empty() && expected.len() < sites.len());
    assert_eq!(numbers(&mut browser), expected);
    browser.wait("location.hash.includes('filter=part0')");

    // Arrows go down to the nearest head shown in the next layer that has any, however few there are.
    browser.tab_to("it.classList.contains('atlas-cell')");
    let (mut at, last) = (expected[0], sites[*expected.last().expect("some")].layer);
    while sites[at].layer < last {
        let next = (sites[at].layer + 1..).find(|layer| expected.iter().any(|&site| sites[site].layer == *layer)).expect("below the last");
        let below = expected.iter().copied().filter(|&site| sites[site].layer == next);
        let nearest = below.min_by_key(|&site| sites[site].head.abs_diff(sites[at].head)).expect("some");
        browser.press("ArrowDown");
        assert_eq!(browser.number("document.activeElement.dataset.site"), nearest as f64, "below head {at}");
        at = nearest;
    }
    browser.press("ArrowDown");
    assert_eq!(browser.number("document.activeElement.dataset.site"), at as f64, "there is nothing below");

    // Average attention in place of discs.
    browser.eval("document.querySelector('[data-value=average]').click()");
    browser.wait(&format!("document.querySelectorAll('.atlas-thumb').length === {}", expected.len()));
    assert_eq!(browser.eval("(({ width, height }) => [width, height])(document.querySelector('.atlas-thumb'))"), json!([8, 8]));

    // A click opens the head.
    let middle = browser.eval(
        "(() => { const cell = document.querySelector('.atlas-cell'); cell.scrollIntoView({ block: 'center' }); const { left, top, width, height } = cell.getBoundingClientRect(); return [left + width / 2, top + height / 2]; })()",
    );
    let [x, y]: [f64; 2] = serde_json::from_value(middle).expect("a place");
    browser.pointer(x, y, true);
    let SiteReport { layer, head, .. } = &sites[expected[0]];
    browser.wait(&format!("document.querySelector('h1')?.textContent === 'Cross-attention · layer {layer} · head {head}'"));
    browser.was_quiet();
}

#[test]
fn one_head_needs_no_atlas() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (page, explained) = one_head(folder.path(), (7, 7), 2);
    browser.open(&page, "");
    assert_eq!(browser.text("document.querySelector('h1').textContent"), "Cross-attention · layer 0 · head 0");
    assert_eq!(browser.eval("document.querySelector('[data-view=atlas]') === null && document.getElementById('head-next') === null"), true);
    // Its verdict in words.
    let verdict = &explained.report.sites[0].verdict;
    let shown = browser.text("document.querySelector('.verdict').textContent").to_lowercase().replace('\u{a0}', " ");
    assert!(shown.contains(&verdict.label.to_lowercase()) && shown.contains(&verdict.text.to_lowercase()), "{shown}");
    browser.was_quiet();
}
