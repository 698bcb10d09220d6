//! `crosslens report` as a user sees it; what the page does is tested in a browser.

use serde_json::Value;

use super::common::{TINY, run, shown, succeed, train};

#[test]
fn a_run_a_recording_and_a_saved_report_become_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "60");
    let output = succeed(folder, &["report", "run", "--sentences", "60", "--samples", "3", "-o", "page.html"]);
    let seen = shown(&output);
    let bytes = folder.join("page.html").metadata().expect("the page").len();
    assert!(seen.contains(&format!("page.html: {} kB, 1 report with 3 sentences", bytes.div_ceil(1000))), "{seen}");
    assert!(seen.contains("open page.html in a browser"), "{seen}");
    let page = std::fs::read_to_string(folder.join("page.html")).expect("text");
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains("id=\"crosslens-sample-0-2\"")
            && !page.contains("id=\"crosslens-sample-0-3\"")
    );

    succeed(folder, &["record", "run", "--samples", "40", "-o", "rec"]);
    succeed(folder, &["explain", "run", "--samples", "60", "--geometry", "--save", "found.json", "--json"]);
    let output =
        succeed(folder, &["report", "found.json", "rec", "run", "--sentences", "40", "--samples", "5", "--json", "-o", "three.html"]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["reports"], serde_json::json!(["found", "rec", "run"]));
    assert_eq!((&said["samples"], &said["file"]), (&15.into(), &"three.html".into()));
    assert_eq!(said["bytes"], folder.join("three.html").metadata().expect("the page").len());
    // It was saved with fewer sentences than are asked for, which nothing is wrong with.
    let seen = shown(&succeed(folder, &["report", "found.json", "--samples", "50"]));
    assert!(!seen.contains("are shown one by one"), "{seen}");
}

#[test]
fn the_same_run_gives_the_same_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "20");
    for page in ["a.html", "b.html"] {
        succeed(folder, &["report", "run", "--sentences", "30", "-o", page, "--threads", if page == "a.html" { "1" } else { "2" }]);
    }
    let read = |page: &str| std::fs::read_to_string(folder.join(page)).expect("a page");
    assert!(read("a.html") == read("b.html"));
}

#[test]
fn a_network_without_attention_has_a_page_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--arch", "ved", "--steps", "5", "--out", "run", "--quiet"]);
    succeed(folder, &["report", "run", "--sentences", "30"]);
    assert!(folder.join("report.html").exists(), "that is its name unless another is given");
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "1");
    std::fs::write(folder.join("other.json"), "{\"schema\": \"something/1\"}").expect("writable");
    std::fs::write(folder.join("broken.json"), "{").expect("writable");
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let output = run(folder, &[&["report"], arguments].concat());
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {seen}");
        assert!(seen.contains(says) && output.stdout.is_empty(), "{arguments:?}: {seen}");
    };
    refused(&[], 2, "<DIR|MODEL|REC|report.json>");
    refused(&["nowhere"], 1, "there is no `nowhere`");
    refused(&["missing.json"], 1, "missing.json");
    refused(&["other.json"], 1, "`other.json` has the schema `something/1`");
    refused(&["broken.json"], 1, "broken.json");
    refused(&["run", "--sentences", "5", "-o", "no/such/page.html"], 1, "cannot write `no/such/page.html`");
    refused(&["run", "--sentences", "0"], 2, "--sentences");
    std::fs::write(folder.join("run/timeline.json"), "{}").expect("writable");
    refused(&["run", "--sentences", "5"], 1, "timeline.json");
}
