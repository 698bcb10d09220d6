//! The demo: its page, what it finds again, and what it leaves alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_lab::demo::{DemoError, DemoNetwork, PAGE_FILE, Shown, demo, with_found, write_page};
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::reproduce::Work;
use crosslens_lab::train::{Event, Run, RunConfig, RunFolder, Wish};
use crosslens_lab::train_recorded;

const STEPS: u64 = 40;

fn config(family: Family) -> RunConfig {
    let mut config = default_config("one-to-one", family).expect("a shipped recipe");
    config.network.hidden = 16;
    config.training.steps = STEPS;
    config.training.evaluate_every = 20;
    config.training.evaluate_samples = 32;
    config.training.batch = 16;
    config
}

/// Two that are trained in no time, one without attention.
fn tiny() -> [DemoNetwork; 2] {
    [
        DemoNetwork { name: "tiny-ao", about: "AO, hardly trained", config: config(Family::Ao) },
        DemoNetwork { name: "tiny-ved", about: "VED, hardly trained", config: config(Family::Ved) },
    ]
}

/// The demo of both, and how many updates were made for it.
fn shown(folder: &Path, is_fresh: bool) -> (Result<Vec<Shown>, DemoError>, u64) {
    let mut n_updates = 0;
    let shown = demo(&tiny(), folder, is_fresh, 1, &mut |work| {
        n_updates += u64::from(matches!(work, Work::Training(Event::Updated { .. })));
        Wish::GoOn
    });
    (shown, n_updates)
}

/// Every file below a folder, with what is in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { [(path.clone(), std::fs::read(&path).expect("a file"))].into() })
        .collect()
}

fn refused(found: Result<Vec<Shown>, DemoError>) -> PathBuf {
    match found {
        Err(DemoError::Foreign { path }) => path,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_page_holds_every_network_a_second_call_finds_them_and_a_fresh_one_trains_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (first, n_updates) = shown(folder, false);
    let first = first.expect("a demo");
    assert_eq!((first.len(), n_updates), (2, 2 * STEPS));
    assert!(first.iter().all(|shown| !shown.is_found));
    let page = write_page(&first, folder).expect("a page");
    assert_eq!(page, folder.join(PAGE_FILE));
    let text = std::fs::read_to_string(&page).expect("text");
    for part in ["AO, hardly trained", "VED, hardly trained", "id=\"crosslens-report-0\"", "id=\"crosslens-report-1\""] {
        assert!(text.contains(part), "no `{part}` in the page");
    }

    let lines = |shown: &[Shown]| shown.iter().map(Shown::line).collect::<Vec<_>>();
    assert!(lines(&first)[0].contains("scores are") && lines(&first)[1].contains("no attention"), "{:?}", lines(&first));
    let (again, n_updates) = shown(folder, false);
    let again = again.expect("the same demo");
    assert_eq!(n_updates, 0);
    assert!(again.iter().all(|shown| shown.is_found));
    assert_eq!(lines(&again), lines(&first));

    let (fresh, n_updates) = shown(folder, true);
    let fresh = fresh.expect("a new demo in the place of the old");
    assert_eq!(n_updates, 2 * STEPS);
    assert!(fresh.iter().all(|shown| !shown.is_found));
    assert_eq!(lines(&fresh), lines(&first), "the same seeds, the same networks");
}

/// `crosslens --only X` shows the others too that are there, and none that somebody else made or that was never trained.
#[test]
fn a_demo_of_one_network_keeps_the_others_on_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    shown(folder, false).0.expect("a demo");
    let all = tiny();
    let names = |shown: &[Shown]| shown.iter().map(|shown| (shown.network.name, shown.is_found)).collect::<Vec<_>>();
    let only = demo(&all[1..], folder, true, 1, &mut |_| Wish::GoOn).expect("a demo of one");
    let on_page = with_found(&only, &all, folder);
    assert_eq!(names(&on_page), [("tiny-ao", true), ("tiny-ved", false)], "in the order of the story");
    let text = std::fs::read_to_string(write_page(&on_page, folder).expect("a page")).expect("text");
    assert!(text.contains("AO, hardly trained") && text.contains("VED, hardly trained"));
    std::fs::remove_file(folder.join("tiny-ao/demo.json")).expect("the mark");
    assert_eq!(names(&with_found(&only, &all, folder)), [("tiny-ved", false)], "it may be somebody's own");
}

#[test]
fn a_demo_that_was_stopped_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = demo(&tiny(), folder.path(), false, 1, &mut |work| match work {
        Work::Training(Event::Updated { step: 30, .. }) => Wish::Stop,
        _ => Wish::GoOn,
    });
    assert!(matches!(stopped, Err(DemoError::Interrupted)), "{stopped:?}");
    let (shown, n_updates) = shown(folder.path(), false);
    assert_eq!((shown.expect("a demo").len(), n_updates), (2, 2 * STEPS - 30));
}

#[test]
fn a_recipe_that_changed_replaces_the_run_of_the_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    shown(folder, false).0.expect("a demo");
    let mut changed = tiny();
    changed[0].config.training.steps = STEPS - 20;
    let all = demo(&changed, folder, false, 1, &mut |_| Wish::GoOn).expect("the demo's own run may be replaced");
    assert_eq!(all.iter().map(|shown| shown.is_found).collect::<Vec<_>>(), [false, true]);
    assert_eq!(RunFolder::at(folder.join("tiny-ao")).read_config().expect("a run").training.steps, STEPS - 20);
}

#[test]
fn a_run_the_demo_did_not_make_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let theirs = folder.join("tiny-ved");
    let run = Run::prepare(RunConfig { seed: 3, ..config(Family::Ved) }, RunFolder::at(&theirs)).expect("a run");
    train_recorded(&run, 1, false, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    std::fs::write(theirs.join("report.json"), "what they found").expect("writable");
    let before = files(folder);
    for is_fresh in [false, true] {
        let (found, n_updates) = shown(folder, is_fresh);
        assert_eq!((refused(found), n_updates), (theirs.clone(), 0));
        assert!(files(folder) == before, "something was written or removed");
    }
}

#[test]
fn a_run_of_the_demo_that_somebody_trained_further_is_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    shown(folder, false).0.expect("a demo");
    let theirs = folder.join("tiny-ao");
    let mut further = config(Family::Ao);
    further.training.steps = STEPS + 5;
    let run = Run::prepare_again(further, RunFolder::at(&theirs)).expect("the same network");
    train_recorded(&run, 1, true, &mut |_: Event<'_>| Wish::GoOn).expect("a run that goes on");
    let before = files(folder);
    for is_fresh in [false, true] {
        assert_eq!(refused(shown(folder, is_fresh).0), theirs);
        assert!(files(folder) == before, "something was written or removed");
    }
}

#[test]
fn a_page_beside_no_demo_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join(PAGE_FILE);
    std::fs::write(&page, "what they wrote").expect("writable");
    let before = files(folder.path());
    assert_eq!(refused(shown(folder.path(), true).0), page);
    assert!(files(folder.path()) == before, "something was written or removed");
}
