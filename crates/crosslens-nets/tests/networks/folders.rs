//! Run folders whose files are not what they should be.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crosslens_nets::network::{Family, Network, NetworkConfig};
use crosslens_nets::tasks::TaskConfig;
use crosslens_nets::train::{Event, Run, RunConfig, RunFolder, TrainError, TrainingConfig, Wish, parse_config};

/// A run of one update.
fn short_run(folder: &Path) -> Network {
    let run = Run::prepare(config(), RunFolder::at(folder)).expect("a configuration that makes sense");
    run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    run.network().clone()
}

fn config() -> RunConfig {
    RunConfig {
        seed: 1,
        version: None,
        task: TaskConfig::named("sort").expect("a task of that name"),
        network: NetworkConfig { hidden: 4, ..NetworkConfig::of(Family::Aed) },
        training: TrainingConfig { steps: 1, batch: 2, evaluate_samples: 2, ..TrainingConfig::default() },
        optimizer: Default::default(),
    }
}

/// What reading this file of the folder comes to. A reader that never comes back fails the test.
fn read(folder: &Path, network: &Network, name: &str) -> String {
    let (folder, mut network, name) = (RunFolder::at(folder), network.clone(), name.to_owned());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let read = match name.as_str() {
            "checkpoint.safetensors" => folder.read_checkpoint(&config(), &network).map(drop),
            "model.safetensors" => folder.read_model(&mut network).map(drop),
            "run.toml" => folder.read_config().map(drop),
            "vocab.json" => folder.read_vocabularies().map(drop),
            _ => folder.read_metrics().map(drop),
        };
        sender.send(read.map_or_else(|error| error.to_string(), |()| "read".into())).ok();
    });
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| "it is still being read".into())
}

/// An older program left `positions` out of the file it resolved where there were none; who writes by hand leaves out what is usual.
#[test]
fn a_file_resolved_by_an_older_program_keeps_its_network() {
    let by_hand = "[task]\nname = \"sort\"\n[network]\nfamily = \"ao\"\n";
    let read = |text: &str| parse_config(Path::new("run.toml"), text).expect("a configuration").network.positions;
    assert_eq!(read(by_hand), NetworkConfig::of(Family::Ao).positions);
    assert_eq!(read(&format!("version = \"0.1.0\"\n{by_hand}")), None);
    assert!(read(&format!("version = \"0.1.0\"\n{by_hand}positions = {{ amplitude = 1.0 }}\n")).is_some());
}

const FILES: [&str; 5] = ["checkpoint.safetensors", "model.safetensors", "run.toml", "vocab.json", "metrics.jsonl"];

/// Puts something in the place of each file in turn, and checks what reading it says.
fn in_place_of_each(replace: impl Fn(&Path), says: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let network = short_run(folder.path());
    for name in FILES {
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).expect("a run has it");
        assert_eq!(read(folder.path(), &network, name), "read", "{name}");
        std::fs::remove_file(&path).expect("it is there");
        replace(&path);
        let said = read(folder.path(), &network, name);
        assert!(said.contains(says) && said.contains(name), "{name}: {said}");
        std::fs::remove_file(&path).expect("it is there");
        std::fs::write(&path, whole).expect("writable");
    }
}

#[cfg(unix)]
#[test]
fn an_endless_device_is_not_read() {
    in_place_of_each(|path| std::os::unix::fs::symlink("/dev/zero", path).expect("a link"), "it is not a file");
}

/// Opening a pipe waits for somebody to write.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let make = |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    in_place_of_each(make, "it is not a file");
}

/// A gigabyte of nothing, which takes no room on the disk.
#[test]
fn a_file_longer_than_it_can_be_is_not_read() {
    let make = |path: &Path| std::fs::File::create(path).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    in_place_of_each(make, "it is longer than the");
}

/// The temporary file of a training that is about to rename it is not the reader's to remove.
#[test]
fn a_reader_leaves_the_files_of_a_run_at_work_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = short_run(folder.path());
    let half = folder.path().join(".crosslens-half");
    std::fs::write(&half, "half a checkpoint").expect("a writable folder");
    for name in FILES {
        assert_eq!(read(folder.path(), &network, name), "read", "{name}");
        assert!(half.exists(), "reading {name} removed it");
    }
    let run = Run::prepare(config(), RunFolder::at(folder.path())).expect("a configuration that makes sense");
    run.resume(1, &mut |_: Event<'_>| Wish::GoOn).expect("nothing is left to do");
    assert!(!half.exists(), "who goes on with a run removes what a kill left");
}

/// A GRU reads 6000 units with 3·6000² weights, the encoder and the decoder alike: 216 million parameters. Of 256 sentences every 16 keep a
/// gradient, so 28 numbers are needed for each parameter, 22.5 GB; of 16 sentences 13, 10.5 GB.
#[test]
fn a_network_that_no_memory_holds_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("run");
    let mut config = config();
    config.network.hidden = 6000;
    let run = |batch: usize| {
        let mut config = config.clone();
        config.training.batch = batch;
        Run::prepare(config, RunFolder::at(&place)).expect("not too many parameters")
    };
    let error = run(256).start(1, &mut |_: Event<'_>| Wish::GoOn).expect_err("too many for 16 gradients");
    assert!(matches!(error, TrainError::NetworkTooLarge { shards: 16, batch: 256, gigabytes: 23..=26, .. }), "{error}");
    assert!(!place.exists(), "a refused run leaves nothing behind");
    assert!((10u128 << 30..14 << 30).contains(&run(16).training_bytes()), "{}", run(16).training_bytes());
}
