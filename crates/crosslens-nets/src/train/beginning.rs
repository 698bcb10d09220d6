//! A run begins in a folder, in the place of one that may be there.
//!
//! A kill at any moment leaves the old run, the new one, or a folder without weights, which everything that reads runs refuses.

use std::path::{Path, PathBuf};

use crosslens_analysis::{Existing, StagedFile};

use super::RunConfig;
use super::folder::{
    CHECKPOINT_FILE, FolderError, KEPT_ENDING, KEPT_FOLDER, METRICS_FILE, MODEL_FILE, Progress, RunFolder, SUMS_ENDING, SUMS_FOLDER,
    TIMELINE_FILE, Vocabularies, checkpoint_bytes, remove, toml_of,
};
use crate::network::Network;
use crate::text::TextFiles;

/// What a run begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    /// How it is trained.
    pub(crate) config: &'a RunConfig,
    /// Its words.
    pub(crate) words: &'a Vocabularies,
    /// What is trained.
    pub(crate) network: &'a Network,
    /// Its first weights.
    pub(crate) progress: &'a Progress,
    /// The files of a run on text, by name, as [`TextFiles::contents`] gives them; none of any other.
    pub(crate) text: &'a [(&'static str, Vec<u8>)],
}

/// One change of a folder: it is made, or it is not.
#[derive(Debug)]
enum Change {
    Remove(PathBuf),
    Place(StagedFile),
}

impl Change {
    fn make(self) -> Result<(), FolderError> {
        match self {
            Self::Remove(path) => remove(&path),
            Self::Place(file) => {
                let path = file.path().to_owned();
                file.persist().map_err(|source| FolderError::Io { action: "write", path, source })
            }
        }
    }
}

impl RunFolder {
    /// Makes the folder and begins a run in it.
    pub(crate) fn create(&self, start: &Start<'_>) -> Result<(), FolderError> {
        let io = |source| FolderError::Io { action: "create", path: self.path().to_owned(), source };
        std::fs::create_dir_all(self.path()).map_err(io)?;
        let is_claimed = self.existing == Existing::Refuse;
        if is_claimed {
            self.claim(start.config)?;
        }
        let changes = self.sweep().and_then(|()| self.changes(start));
        if is_claimed && changes.is_err() {
            remove(&self.file("run.toml")).ok();
        }
        changes?.into_iter().try_for_each(Change::make)
    }

    /// Makes an empty folder this run's: `run.toml` comes into it by one act, which fails for every other run.
    fn claim(&self, config: &RunConfig) -> Result<(), FolderError> {
        let taken = || FolderError::Taken { path: self.path().to_owned() };
        if !self.is_empty() {
            return Err(taken());
        }
        let staged = self.stage("run.toml", toml_of(config).as_bytes())?;
        staged.persist_new().map_err(|source| match self.holds_run() {
            true => taken(),
            false => FolderError::Io { action: "write", path: self.file("run.toml"), source },
        })
    }

    /// What makes this the folder of a run that begins, in an order that never mixes two runs.
    ///
    /// All files of the new run lie on the disk before the first change. The weights of the old one go first: the model, which its
    /// checkpoint can give again, and the checkpoint. From then on nothing is read here until the new checkpoint, which comes last.
    fn changes(&self, start: &Start<'_>) -> Result<Vec<Change>, FolderError> {
        let Start { config, words, network, progress, text } = start;
        let words = serde_json::to_vec_pretty(words).expect("vocabularies are lists of strings");
        let (config_text, checkpoint) = (toml_of(config), checkpoint_bytes(config, network, progress));
        let of_text = text.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
        let own = [("vocab.json", words.as_slice()), (CHECKPOINT_FILE, checkpoint.as_slice())];
        let placed = std::iter::once(("run.toml", config_text.as_bytes())).chain(of_text).chain(own);
        let placed: Vec<StagedFile> = placed.map(|(name, bytes)| self.stage(name, bytes)).collect::<Result<_, _>>()?;

        let is_old = |name: &&str| !text.iter().any(|(new, _)| new == name);
        let named =
            [MODEL_FILE, CHECKPOINT_FILE, METRICS_FILE, TIMELINE_FILE].into_iter().chain(TextFiles::NAMES.into_iter().filter(is_old));
        let mut removed: Vec<PathBuf> = named.map(|name| self.file(name)).filter(|path: &PathBuf| Path::exists(path)).collect();
        removed.extend(self.numbered(KEPT_FOLDER, KEPT_ENDING, |_| true));
        removed.extend(self.numbered(SUMS_FOLDER, SUMS_ENDING, |_| true));
        Ok(removed.into_iter().map(Change::Remove).chain(placed.into_iter().map(Change::Place)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Family, NetworkConfig};
    use crate::tasks::TaskConfig;
    use crate::train::{Event, Metrics, Moments, Run, TrainError, TrainingConfig, Wish};

    /// Four short steps, after which the mean of the last two weights is the model, so that `kept/` has files too.
    fn config(task: &str, family: Family, seed: u64) -> RunConfig {
        RunConfig {
            seed,
            version: None,
            task: TaskConfig::named(task).expect("a task of that name"),
            network: NetworkConfig { hidden: 4, ..NetworkConfig::of(family) },
            training: TrainingConfig {
                steps: 4,
                batch: 4,
                evaluate_every: 2,
                evaluate_samples: 4,
                average: 2,
                ..TrainingConfig::default()
            },
            optimizer: Default::default(),
        }
    }

    fn go_on(_: Event<'_>) -> Wish {
        Wish::GoOn
    }

    fn prepared(config: &RunConfig, folder: &RunFolder) -> Run {
        Run::prepare(config.clone(), folder.clone()).expect("a configuration that makes sense")
    }

    /// What must not depend on how a run came to its end.
    fn result(folder: &RunFolder) -> (Vec<u8>, Vocabularies, Vec<Metrics>) {
        let mut metrics = folder.read_metrics().expect("metrics");
        metrics.iter_mut().for_each(|line| line.seconds = 0.0);
        (std::fs::read(folder.file(MODEL_FILE)).expect("a model"), folder.read_vocabularies().expect("words"), metrics)
    }

    /// Makes the first `n` changes of a run that begins; says whether there are no more.
    fn begin_up_to(run: &Run, n: usize) -> bool {
        let words = Vocabularies { source: run.task().source_vocabulary().clone(), target: run.task().target_vocabulary().clone() };
        let weights = run.network().draw_weights(run.config().seed);
        let moments = Moments::new(weights.len());
        let progress = Progress { weights, moments, loss_sum: 0.0, loss_count: 0, seconds: 0.0, finished: false };
        let start = Start { config: run.config(), words: &words, network: run.network(), progress: &progress, text: &[] };
        let changes = run.folder().changes(&start).expect("a writable folder");
        let n_changes = changes.len();
        changes.into_iter().take(n).for_each(|change| change.make().expect("a writable folder"));
        n >= n_changes
    }

    /// The kill comes after 0, 1, 2, … changes. Whatever can go on then ends as the old run or the new one ends that was never killed.
    #[test]
    fn a_kill_at_any_moment_leaves_the_old_run_or_the_new_one_or_no_weights() {
        let (old, new) = (config("sort", Family::Aed, 1), config("one-to-one", Family::Luong, 2));
        let whole = [&old, &new].map(|config| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = RunFolder::at(folder.path());
            prepared(config, &folder).start(1, &mut go_on).expect("a run that ends");
            result(&folder)
        });
        let mut seen = Vec::new();
        for n_changes in 0.. {
            let place = tempfile::tempdir().expect("a folder");
            let folder = RunFolder::at(place.path());
            prepared(&old, &folder).start(1, &mut go_on).expect("a run that ends");
            let is_all = begin_up_to(&prepared(&new, &folder), n_changes);
            let found = folder.read_config().expect("there is a run.toml at every moment, so that --overwrite takes the folder again");
            seen.push(if !folder.holds_model() && !folder.holds_checkpoint() {
                "no weights"
            } else {
                let run = prepared(&found, &folder);
                run.resume(1, &mut go_on).expect("what has weights goes on");
                let (name, expected) = if found == old { ("old", &whole[0]) } else { ("new", &whole[1]) };
                assert_eq!(&result(&folder), expected, "the {name} run after {n_changes} changes");
                name
            });
            if is_all {
                break;
            }
        }
        assert!(seen.len() > 7, "{seen:?}");
        seen.dedup();
        assert_eq!(seen, ["old", "no weights", "new"]);
    }

    #[test]
    fn a_run_in_a_free_folder_is_not_lost_to_another_that_saw_it_free_too() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = RunFolder::free_at(place.path().join("run"));
        let [one, other] = [1, 2].map(|seed| prepared(&config("sort", Family::Aed, seed), &folder));
        one.start(1, &mut go_on).expect("a run that ends");
        let before = result(&folder);
        let error = other.start(1, &mut go_on).expect_err("there is a run by now");
        assert!(matches!(error, TrainError::Folder(FolderError::Taken { .. })), "{error}");
        assert!(result(&folder) == before && folder.read_config().expect("run.toml").seed == 1, "the first run is touched");
    }

    #[test]
    fn of_runs_that_begin_at_once_in_one_folder_one_does() {
        for _ in 0..8 {
            let place = tempfile::tempdir().expect("a folder");
            let folder = RunFolder::free_at(place.path());
            let gate = std::sync::Barrier::new(4);
            let begin = |seed| {
                let run = prepared(&config("sort", Family::Aed, seed), &folder);
                gate.wait();
                (seed, run.start(1, &mut go_on))
            };
            let ended: Vec<_> = std::thread::scope(|scope| {
                let begin = &begin;
                let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || begin(seed))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let (begun, refused): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(_, ended)| ended.is_ok());
            assert_eq!(begun.len(), 1, "{refused:?}");
            assert!(refused.iter().all(|(_, ended)| matches!(ended, Err(TrainError::Folder(FolderError::Taken { .. })))), "{refused:?}");
            assert_eq!(folder.read_config().expect("run.toml").seed, begun[0].0);
        }
    }

    #[test]
    fn a_checkpoint_of_another_run_is_refused() {
        let [one, other] = [1, 2].map(|seed| {
            let place = tempfile::tempdir().expect("a folder");
            let folder = RunFolder::at(place.path());
            prepared(&config("sort", Family::Aed, seed), &folder).start(1, &mut go_on).expect("a run that ends");
            (place, folder)
        });
        let mut longer = config("sort", Family::Aed, 1);
        longer.training.steps = 6;
        prepared(&longer, &one.1).resume(1, &mut go_on).expect("a run may become longer");
        std::fs::copy(other.1.file(CHECKPOINT_FILE), one.1.file(CHECKPOINT_FILE)).expect("a writable folder");
        let error = prepared(&longer, &one.1).resume(1, &mut go_on).expect_err("a checkpoint of seed 2 in a run of seed 1");
        assert!(error.to_string().contains("checkpoint.safetensors` is damaged or not ours: it belongs to another run"), "{error}");
    }
}
