//! Claims tested, training recorded.

use super::common::{TINY, metrics, run, shown, succeed};
use serde_json::Value;

#[test]
fn a_claim_is_tested_and_its_network_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = ["reproduce", "--quick", "--seeds", "1", "--claim", "diagonal-ao", "time-from-positions", "--out", "out", "--json"];
    let output = succeed(folder, &arguments);
    let found: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&found["held"], &found["of"]), (&Value::from(2), &Value::from(2)), "{found}");
    let claim = &found["claims"][0];
    assert_eq!(claim["id"], "diagonal-ao");
    assert_eq!((&claim["holds"], &claim["floor"]), (&Value::from(true), &Value::from(0.9)));
    assert!(claim["value"].as_f64().expect("a number") >= 0.9);
    assert_eq!(claim["seeds"].as_array().expect("one a seed").len(), 1);
    let file: Value = serde_json::from_slice(&std::fs::read(folder.join("out/reproduce.json")).expect("the results")).expect("JSON");
    assert_eq!(file, found);
    let page = std::fs::read_to_string(folder.join("out/reproduce.html")).expect("the page");
    for part in ["id=\"crosslens-claims\"", "id=\"crosslens-report-0\"", "\"name\":\"AO, one-to-one\""] {
        assert!(page.contains(part), "no `{part}` in the page");
    }
    assert!(!page.contains("id=\"crosslens-report-1\""), "both claims are about one network");

    let note = "Made at commit 839b4da.";
    let again = ["reproduce", "--quick", "--seeds", "1", "--claim", "diagonal-ao", "--out", "out", "--markdown", "page.md", "--note", note];
    let again = succeed(folder, &again);
    let text = shown(&again);
    assert!(text.contains("1 of 1 claims hold") && text.contains("look at them: out/reproduce.html"), "{text}");
    let page = std::fs::read_to_string(folder.join("page.md")).expect("the page");
    for part in [
        "**1 of 1 claims hold**",
        "### diagonal-ao",
        "--seeds 1 --quick --markdown page.md",
        "reads what it writes itself",
        "AO, one-to-one",
        "\n\nMade at commit 839b4da.\n\n",
    ] {
        assert!(page.contains(part), "no `{part}` in\n{page}");
    }
    assert_eq!(std::fs::read_dir(folder.join("out/networks")).expect("networks").count(), 1);
}

/// Two updates on a few sentences teach nothing: the claim is tested and does not hold, by the gate, which says why.
#[test]
fn a_claim_on_a_corpus_runs_through_and_what_learnt_nothing_misses_the_gate() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let nouns = [("cat", "chat"), ("dog", "chien"), ("man", "homme"), ("boy", "garçon"), ("bird", "oiseau"), ("king", "roi")];
    let verbs = [("sleeps", "dort"), ("eats", "mange"), ("reads", "lit"), ("sings", "chante"), ("runs", "court"), ("falls", "tombe")];
    // No word is in all of them, so that none is right by being written everywhere.
    let words = |noun: usize, verb: usize| (0..3).flat_map(move |more| [nouns[(noun + more) % 6], verbs[(verb + more) % 6]]);
    let sides = |noun, verb| [words(noun, verb).map(|word| word.0).collect::<Vec<_>>(), words(noun, verb).map(|word| word.1).collect()];
    let pairs = (0..6).flat_map(|noun| (0..6).map(move |verb| (noun, verb)));
    let text: String = pairs.map(|(noun, verb)| format!("{}\n", sides(noun, verb).map(|side| side.join(" ")).join("\t"))).collect();
    std::fs::write(folder.join("pairs.tsv"), text).expect("writable");
    let claim = ["reproduce", "--claim", "joint-fit-text", "--corpus", "pairs.tsv", "--corpus-steps", "2", "--seeds", "1"];
    let output = succeed(folder, &[&claim[..], &["--out", "out", "--json", "--markdown", "page.md"]].concat());
    let told = shown(&output);
    assert!(told.contains("AED, translation of pairs.tsv, seed 521: attention adds "), "{told}");
    assert!(told.contains("5 % are asked for; another seed is tried") && told.contains("its claims do not hold"), "{told}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&found["held"], &found["of"]), (&Value::from(0), &Value::from(1)), "{found}");
    let claim = &found["claims"][0];
    assert_eq!((&claim["holds"], &claim["seeds"][0]["missed"][0]), (&Value::from(false), &Value::from("translation-aed")));
    let networks = found["networks"].as_array().expect("a list");
    let roles: Vec<_> = networks.iter().map(|network| (network["gate"].as_str(), network["role"].as_str())).collect();
    let gate = Some("attention");
    assert_eq!(roles, [(gate, Some("replaced")), (gate, Some("replaced")), (gate, Some("missed"))]);
    assert!(networks.iter().all(|network| network["about"] == "AED, translation of pairs.tsv"), "{networks:?}");
    let page = std::fs::read_to_string(folder.join("page.md")).expect("the page");
    for part in [
        "Real sentences have no one translation",
        "--corpus pairs.tsv --corpus-steps 2",
        "| missed the gate, replaced |",
        "| **missed the gate** |",
    ] {
        assert!(page.contains(part) && !page.contains("| control |"), "no `{part}`, or a control, in\n{page}");
    }
    assert_eq!(run(folder, &["reproduce", "--corpus-steps", "2"]).status.code(), Some(2), "of no corpus");
}

#[test]
fn claims_are_listed_and_unknown_ones_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = shown(&succeed(folder.path(), &["reproduce", "--list"]));
    assert!(listed.contains("diagonal-aed") && listed.contains("formation"), "{listed}");
    let unknown = run(folder.path(), &["reproduce", "--claim", "diagonal-aoe"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(shown(&unknown).contains("did you mean `diagonal-ao`?"), "{}", shown(&unknown));
    let slow = run(folder.path(), &["reproduce", "--quick", "--claim", "cells"]);
    assert_eq!(slow.status.code(), Some(2));
    let none = run(folder.path(), &["reproduce", "--claim", "translation", "--corpus", "none.tsv"]);
    assert!(!none.status.success() && shown(&none).contains("none.tsv"), "{}", shown(&none));
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing was written");
}

#[test]
fn the_demo_has_help_and_takes_no_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = shown(&succeed(folder.path(), &["--help"]));
    assert!(help.contains("--fresh") && help.contains("reproduce"), "{help}");
    assert_eq!(run(folder.path(), &["--fresh", "train", TINY]).status.code(), Some(2));
}

/// The quickest network of the demo: trained, found again, trained anew; its page is written and named.
#[test]
fn a_demo_of_one_network_is_found_again_and_started_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let page = folder.join("my demo/report.html");
    let demo = ["--only", "one-to-one-ao", "--out", "my demo"];
    let first = succeed(folder, &demo);
    let text = shown(&first);
    for part in [
        "  AO on one-to-one: ",
        "% by step",
        "look at them: my demo/report.html",
        "crosslens explain 'my demo/one-to-one-ao' --samples 200 --control",
        "crosslens attend 'my demo/one-to-one-ao' --terms",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("found in"), "{text}");
    let written = std::fs::read_to_string(&page).expect("the page");
    assert!(written.contains("\"name\":\"AO on one-to-one\"") && written.contains("id=\"crosslens-report-0\""));

    let trained_at = || std::fs::metadata(folder.join("my demo/one-to-one-ao/model.safetensors")).and_then(|facts| facts.modified());
    let before = trained_at().expect("a model");
    std::fs::remove_file(&page).expect("the page");
    let again = succeed(folder, &demo);
    assert_eq!(first.stdout, again.stdout);
    assert!(shown(&again).contains("found in my demo; --fresh trains everything again"), "{}", shown(&again));
    assert_eq!(trained_at().expect("a model"), before, "nothing was trained");
    assert!(page.exists(), "the page is written again");

    let fresh = succeed(folder, &[&["--fresh"], &demo[..]].concat());
    assert_eq!(first.stdout, fresh.stdout, "the same seed, the same network");
    assert!(!shown(&fresh).contains("found in"), "{}", shown(&fresh));
    assert!(trained_at().expect("a model") > before, "it was trained again");
}

#[test]
fn the_demo_leaves_runs_alone_that_it_did_not_make() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--steps", "2", "--out", "runs/one-to-one-aed", "--quiet"]);
    std::fs::write(folder.join("runs/one-to-one-aed/report.json"), "mine").expect("writable");
    for arguments in [&["--out", "runs"][..], &["--fresh", "--out", "runs"]] {
        let refused = run(folder, arguments);
        let text = shown(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        let said = "`runs/one-to-one-aed` is there already, and this demo did not make it\n  hint: another --out, or move it away";
        assert!(text.contains(said), "{text}");
        assert_eq!(std::fs::read_to_string(folder.join("runs/one-to-one-aed/report.json")).expect("their report"), "mine");
        assert_eq!(std::fs::read_dir(folder.join("runs")).expect("runs").count(), 1, "nothing else was made");
    }
    let unknown = run(folder, &["--only", "one-to-one-oa"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(shown(&unknown).contains("one-to-one-ao"), "{}", shown(&unknown));
}

/// About two minutes of two cores: the demo itself, then its results found again.
#[test]
#[ignore = "trains seven networks"]
fn the_demo_tells_its_story_and_finds_it_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = succeed(folder.path(), &[]);
    let text = shown(&first);
    // One line a network, each right on nearly every phrase, with its shares and its verdict.
    let story = String::from_utf8_lossy(&first.stdout);
    for (network, found) in [
        ("AED on one-to-one", "positional"),
        ("AO on one-to-one", "scores are"),
        ("VED on short one-to-one", "no attention"),
        ("Bahdanau on eSCAN", "scores are"),
        ("Luong on eSCAN", "scores are"),
        ("AED on eSCAN", "scores are"),
        ("AO on the small eSCAN", "scores are"),
    ] {
        let lines: Vec<&str> = story.lines().filter(|line| line.trim_start().starts_with(&format!("{network}: "))).collect();
        let [line] = lines[..] else { panic!("not one line of {network} in\n{story}") };
        assert!(line.contains(found) && (line.contains(" 100 % of phrases right") || line.contains(" 99 % of phrases right")), "{line}");
    }
    for part in ["look at them: crosslens-demo/report.html", "next:"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let page = std::fs::read_to_string(folder.path().join("crosslens-demo/report.html")).expect("the page");
    assert!((0..7).all(|report| page.contains(&format!("id=\"crosslens-report-{report}\""))), "a network is missing on the page");
    let again = succeed(folder.path(), &[]);
    assert_eq!(first.stdout, again.stdout);
    assert!(shown(&again).contains("found in crosslens-demo"), "{}", shown(&again));
}

#[test]
fn training_is_recorded_and_a_resumed_run_goes_on_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", TINY, "--out", "run", "--steps", "20", "--record-every", "10", "--quiet"]);
    succeed(folder, &["train", "run", "--resume", "--steps", "30", "--quiet"]);
    let text = std::fs::read_to_string(folder.join("run/timeline.json")).expect("a timeline");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    let steps: Vec<&Value> = timeline["points"].as_array().expect("a list").iter().map(|point| &point["step"]).collect();
    assert_eq!(steps, [0, 10, 20, 30]);
    assert!(folder.join("run/timeline/00000030.stats.safetensors").exists());
    assert_eq!(metrics(&folder.join("run")).len(), 3);
    succeed(folder, &["explain", "run", "--components", "run/timeline/00000030.stats.safetensors", "--json"]);
    assert_eq!(run(folder, &["train", "run", "--resume", "--record-every", "5"]).status.code(), Some(1));
}
