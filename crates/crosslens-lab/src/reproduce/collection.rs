//! Networks by configuration and seed: trained once, then found again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::CorpusSpec;
use crosslens_analysis::explain::Progress;
use crosslens_nets::train::{Ending, Event, Run, RunConfig, RunFolder, Wish};
use serde::Serialize;

use super::study::{Study, StudyError};
use super::{ReproduceError, ReproduceOptions, Scale, Specimen, Watch};
use crate::{TrainedModel, recorder};

/// Other seeds tried where a network does not learn its task.
const REPLACEMENTS: u64 = 2;
/// From a seed to that of its replacement.
const NEXT_SEED: u64 = 100;

/// What is being done.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Work<'a> {
    /// A network is taken up: number `number` of `of`, counted from 1.
    Network {
        /// Its place.
        number: usize,
        /// How many there are, replacements apart.
        of: usize,
        /// What it is.
        about: &'a str,
        /// Its seed.
        seed: u64,
        /// Whether it was found trained and explained.
        is_found: bool,
    },
    /// It trains.
    Training(Event<'a>),
    /// It is explained.
    Explaining(Progress),
    /// It does not do its task.
    Missed {
        /// What it is.
        about: &'a str,
        /// Its seed.
        seed: u64,
        /// Free-running share of sentences right.
        phrase_accuracy: f64,
        /// Whether another seed is tried.
        is_replaced: bool,
    },
}

/// A network that was trained for some claim.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The specimen's name.
    pub network: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Which of the seeds asked for it stands for, from 0.
    pub place: usize,
    /// The seed it was trained with.
    pub seed: u64,
    /// Whether claims need it to do its task.
    pub gated: bool,
    /// Free-running share of sentences right.
    pub phrase_accuracy: f64,
    /// Free-running share of words right.
    pub word_accuracy: f64,
    /// Whether it is the one claims are judged by; others missed the gate and were replaced.
    pub used: bool,
    /// Updates made.
    pub steps: u64,
    /// Seconds trained.
    pub seconds: f64,
    /// Where its run and its report are.
    pub folder: PathBuf,
}

/// All networks obtained so far.
pub(super) struct Collection<'a> {
    folder: PathBuf,
    scale: Scale,
    /// What takes the place of a task of text.
    corpus: Option<CorpusSpec>,
    n_threads: usize,
    n_expected: usize,
    taken: usize,
    watch: &'a mut Watch<'a>,
    entries: Vec<Entry>,
    studies: BTreeMap<(&'static str, usize), Study>,
}

impl<'a> Collection<'a> {
    /// Networks are kept under `folder`; `n_expected` of them are to be obtained.
    pub(super) fn new(folder: &Path, options: &ReproduceOptions, n_expected: usize, watch: &'a mut Watch<'a>) -> Self {
        Self {
            folder: folder.to_owned(),
            scale: options.scale,
            corpus: options.corpus.clone(),
            n_threads: options.n_threads,
            n_expected,
            taken: 0,
            watch,
            entries: Vec::new(),
            studies: BTreeMap::new(),
        }
    }

    /// Trains and explains a specimen for the seed at `place`, or finds it; where it must do its task and does not, other seeds are tried.
    pub(super) fn obtain(&mut self, specimen: &'static Specimen, place: usize, seed: u64) -> Result<(), ReproduceError> {
        self.taken += 1;
        for attempt in 0..=REPLACEMENTS {
            let seed = seed + attempt * NEXT_SEED;
            let config = specimen.config_on(self.corpus.as_ref(), self.scale, seed);
            // Nobody translates every word of real sentences as another did.
            let is_gated = specimen.is_gated && !(specimen.is_text && self.corpus.is_some());
            let folder = self.folder.join(hash(&config));
            let study = self.study(specimen, config, &folder)?;
            let is_fit = !is_gated || study.passes_gate();
            let is_last = is_fit || attempt == REPLACEMENTS;
            let task = &study.report.task;
            self.entries.push(Entry {
                network: specimen.id,
                about: specimen.about,
                place,
                seed,
                gated: is_gated,
                phrase_accuracy: task.phrase_accuracy.unwrap_or_default(),
                word_accuracy: task.word_accuracy.unwrap_or_default(),
                used: is_last,
                steps: study.notes.steps,
                seconds: study.notes.seconds,
                folder,
            });
            if !is_fit {
                let phrase_accuracy = study.phrase_accuracy();
                (self.watch)(Work::Missed { about: specimen.about, seed, phrase_accuracy, is_replaced: !is_last });
            }
            if is_last {
                self.studies.insert((specimen.id, place), study);
                return Ok(());
            }
        }
        Ok(())
    }

    fn study(&mut self, specimen: &'static Specimen, config: RunConfig, folder: &Path) -> Result<Study, ReproduceError> {
        let found = Study::load(folder);
        let (number, of, seed) = (self.taken, self.n_expected, config.seed);
        let wish = (self.watch)(Work::Network { number, of, about: specimen.about, seed, is_found: found.is_some() });
        if wish == Wish::Stop {
            return Err(ReproduceError::Interrupted);
        }
        if let Some(study) = found {
            return Ok(study);
        }
        self.train(config, folder)?;
        let model = TrainedModel::open(folder)?;
        let mut stopped = false;
        let (study, samples) = Study::of(&model, Some(folder), &mut |progress| {
            stopped |= (self.watch)(Work::Explaining(progress)) == Wish::Stop;
        })?;
        samples.save(&study, folder)?;
        if stopped { Err(ReproduceError::Interrupted) } else { Ok(study) }
    }

    fn train(&mut self, config: RunConfig, folder: &Path) -> Result<(), ReproduceError> {
        let run_folder = RunFolder::at(folder);
        let is_resumed =
            run_folder.holds_run() && run_folder.holds_checkpoint() && run_folder.read_config().is_ok_and(|kept| kept == config);
        let prepare = if is_resumed { Run::prepare_again } else { Run::prepare };
        let run = prepare(config, run_folder).map_err(|error| ReproduceError::Train(recorder::RecordedTrainError::Train(error.into())))?;
        let mut watch = |event: Event<'_>| (self.watch)(Work::Training(event));
        let trained = recorder::train(&run, self.n_threads, is_resumed, &mut watch)?;
        if trained.ending == Ending::Interrupted { Err(ReproduceError::Interrupted) } else { Ok(()) }
    }

    /// The network claims are judged by.
    pub(super) fn get(&self, id: &str, place: usize) -> Option<&Study> {
        self.studies.iter().find(|((network, at), _)| *network == id && *at == place).map(|(_, study)| study)
    }

    /// Its entry.
    pub(super) fn entry(&self, id: &str, place: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.network == id && entry.place == place && entry.used)
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl From<StudyError> for ReproduceError {
    fn from(error: StudyError) -> Self {
        Self::Study(error)
    }
}

/// Tells configurations apart: FNV-1a of the configuration as JSON.
fn hash(config: &RunConfig) -> String {
    let bytes = serde_json::to_vec(config).expect("a configuration is tables of plain values");
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_seed_or_task_is_another_network() {
        let specimen = Specimen::named("copy-aed").expect("a specimen");
        let hashes = [(Scale::Full, 1), (Scale::Full, 2), (Scale::Quick, 1)].map(|(scale, seed)| hash(&specimen.config(scale, seed)));
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2] && hashes[1] != hashes[2], "{hashes:?}");
        assert_eq!(hashes[0], hash(&specimen.config(Scale::Full, 1)));
    }
}
