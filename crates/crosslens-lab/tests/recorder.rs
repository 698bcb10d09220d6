//! Components recorded along training: the same whether a run is left alone, stopped or killed.

use std::collections::BTreeMap;
use std::path::Path;

use crosslens_lab::analysis::Stats;
use crosslens_lab::analysis::timeline::Timeline;
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::train::{Event, Run, RunConfig, RunFolder, Wish};
use crosslens_lab::train_recorded;

const STEPS: u64 = 40;
const EVERY: u64 = 10;

fn config() -> RunConfig {
    let mut config = default_config("reverse", Family::Ao).expect("a shipped recipe");
    config.network.hidden = 16;
    config.training.steps = STEPS;
    config.training.evaluate_every = 20;
    config.training.evaluate_samples = 32;
    config.training.batch = 16;
    config.training.record_every = EVERY;
    config
}

fn run(folder: &Path) -> Run {
    Run::prepare(config(), RunFolder::at(folder)).expect("a configuration that makes sense")
}

/// The timeline and the sums, by file name.
fn recorded(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let sums = std::fs::read_dir(folder.join("timeline")).expect("sums were recorded").map(|entry| entry.expect("a file").path());
    let files = sums.chain([folder.join("timeline.json")]);
    files
        .map(|path| {
            (path.file_name().expect("a file").to_string_lossy().into_owned(), std::fs::read(&path).expect("a file that can be read"))
        })
        .collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file that can be copied");
        }
    }
}

#[test]
fn a_run_stopped_or_killed_and_resumed_records_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let [whole, stopped, killed] = ["whole", "stopped", "killed"].map(|name| folder.path().join(name));
    train_recorded(&run(&whole), 1, false, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");

    // At step 35 the last checkpoint is of step 20, the last record of step 30.
    let mut stop = |event: Event<'_>| match event {
        Event::Updated { step: 35, .. } => {
            copy(&stopped, &killed);
            Wish::Stop
        }
        _ => Wish::GoOn,
    };
    train_recorded(&run(&stopped), 1, false, &mut stop).expect("a run that stops");
    assert_eq!(Timeline::load(&killed.join("timeline.json")).expect("a timeline").points.len(), 4);
    for path in [&stopped, &killed] {
        train_recorded(&run(path), 2, true, &mut |_: Event<'_>| Wish::GoOn).expect("a run that goes on");
    }

    let expected = recorded(&whole);
    assert_eq!(expected.len(), 6, "five records of sums and the timeline: {:?}", expected.keys());
    assert!(recorded(&stopped) == expected, "the run that was stopped differs");
    assert!(recorded(&killed) == expected, "the run that was killed differs");

    let timeline = Timeline::load(&whole.join("timeline.json")).expect("a timeline");
    assert_eq!(timeline.points.iter().map(|point| point.step).collect::<Vec<_>>(), [0, 10, 20, 30, 40]);
    let last = timeline.points.last().expect("five records");
    let shares = last.sites[0].shares.as_ref().expect("a dot score has nine terms");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert!(last.sites[0].tv.contains_key("temporal+input"));
    assert_eq!(last.sites[0].attention.as_ref().map(Vec::len), Some(12));
    let stats = Stats::load(&RunFolder::at(&whole).sums_file(STEPS)).expect("sums that can be read");
    assert_eq!(stats.streams.len(), 2);
    assert!(stats.streams.iter().all(|stream| stream.sums.n_states() == 200 * 12));
}

#[test]
fn a_new_run_in_the_same_folder_forgets_the_old_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    train_recorded(&run(folder.path()), 1, false, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    let mut config = config();
    config.training.record_every = 0;
    let run = Run::prepare(config, RunFolder::at(folder.path())).expect("a configuration that makes sense");
    train_recorded(&run, 1, false, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    assert!(!folder.path().join("timeline.json").exists());
    assert_eq!(std::fs::read_dir(folder.path().join("timeline")).map_or(0, Iterator::count), 0);
}
