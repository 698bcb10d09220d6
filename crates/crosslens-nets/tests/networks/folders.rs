//! Run folders whose files are not what they should be.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crosslens_nets::network::{Family, Network, NetworkConfig};
use crosslens_nets::tasks::TaskConfig;
use crosslens_nets::train::{Event, Run, RunConfig, RunFolder, TrainingConfig, Wish};

/// A run of one update.
fn short_run(folder: &Path) -> Network {
    let config = RunConfig {
        seed: 1,
        version: None,
        task: TaskConfig::named("sort").expect("a task of that name"),
        network: NetworkConfig { hidden: 4, ..NetworkConfig::of(Family::Aed) },
        training: TrainingConfig { steps: 1, batch: 2, evaluate_samples: 2, ..TrainingConfig::default() },
        optimizer: Default::default(),
    };
    let run = Run::prepare(config, RunFolder::at(folder)).expect("a configuration that makes sense");
    run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    run.network().clone()
}

/// What reading this file of the folder comes to. A reader that never comes back fails the test.
fn read(folder: &Path, network: &Network, name: &str) -> String {
    let (folder, mut network, name) = (RunFolder::at(folder), network.clone(), name.to_owned());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let read = match name.as_str() {
            "checkpoint.safetensors" => folder.read_checkpoint(&network).map(drop),
            "model.safetensors" => folder.read_model(&mut network).map(drop),
            "run.toml" => folder.read_config().map(drop),
            "vocab.json" => folder.read_vocabularies().map(drop),
            _ => folder.read_metrics().map(drop),
        };
        sender.send(read.map_or_else(|error| error.to_string(), |()| "read".into())).ok();
    });
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| "it is still being read".into())
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
