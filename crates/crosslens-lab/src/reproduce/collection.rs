//! Networks by configuration and seed: trained once, then found again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::{CorpusError, CorpusSpec, Filter, TextPair};
use crosslens_analysis::explain::Progress;
use crosslens_nets::train::{Ending, Event, Run, RunConfig, RunFolder, Wish};
use serde::{Serialize, Serializer};

use super::claim::{Head, lower};
use super::study::{Study, StudyError, StudyOptions};
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
    /// Share of the temporal × temporal term, of its lowest head; null without attention and for additive scores.
    pub shares: Option<TemporalShares>,
    /// Updates made.
    pub steps: u64,
    /// Seconds trained.
    pub seconds: f64,
    /// Where its run and its report are.
    #[serde(serialize_with = "lossy")]
    pub folder: PathBuf,
}

/// Shares of the temporal × temporal term: of a network and, as a control, of untrained weights of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TemporalShares {
    /// Of what moves the scores along the source.
    pub centred: f64,
    /// Of the sizes at the highest score.
    pub top1: f64,
    /// The same as `centred`, untrained.
    pub untrained_centred: f64,
    /// The same as `top1`, untrained.
    pub untrained_top1: f64,
}

impl TemporalShares {
    fn of(study: &Study) -> Option<Self> {
        let lowest = |of: fn(Head<'_>) -> f64| study.report.sites.iter().map(|site| of(Head(Some(site)))).reduce(lower);
        let shares = Self {
            centred: lowest(|head| head.temporal("centred"))?,
            top1: lowest(|head| head.temporal("top1"))?,
            untrained_centred: lowest(|head| head.untrained_temporal("centred"))?,
            untrained_top1: lowest(|head| head.untrained_temporal("top1"))?,
        };
        shares.centred.is_finite().then_some(shares)
    }
}

/// A path as text; what is no Unicode in it is replaced, so that results can always be written.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// All networks obtained so far.
pub(super) struct Collection<'a> {
    folder: PathBuf,
    scale: Scale,
    /// What takes the place of a task of text.
    corpus: Option<Content>,
    n_threads: usize,
    n_expected: usize,
    taken: usize,
    watch: &'a mut Watch<'a>,
    entries: Vec<Entry>,
    studies: BTreeMap<(&'static str, usize), Study>,
}

/// A corpus by what is in it.
#[derive(Clone, Debug)]
pub(super) struct Content {
    spec: CorpusSpec,
    hash: u64,
}

impl Content {
    /// Reads the corpus once, a pair at a time.
    pub(super) fn of(spec: &CorpusSpec) -> Result<Self, CorpusError> {
        let mut hash = Hash::default();
        for pair in spec.open(&Filter { dedupe: false, ..Filter::default() })? {
            let TextPair { source, target, .. } = pair?;
            // Sides have no line break, so that no other pairs look the same.
            [source.as_str(), "\n", &target, "\n"].iter().for_each(|text| hash.add(text.as_bytes()));
        }
        Ok(Self { spec: spec.clone(), hash: hash.0 })
    }
}

impl<'a> Collection<'a> {
    /// Networks are kept under `folder`; `n_expected` of them are to be obtained.
    pub(super) fn new(
        folder: &Path,
        options: &ReproduceOptions,
        corpus: Option<Content>,
        n_expected: usize,
        watch: &'a mut Watch<'a>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            scale: options.scale,
            corpus,
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
            let corpus = self.corpus.as_ref().filter(|_| specimen.is_text);
            let config = specimen.config_on(corpus.map(|corpus| &corpus.spec), self.scale, seed);
            let folder = self.folder.join(key(&config, corpus));
            let study = self.study(specimen, config, &folder)?;
            if self.keep(specimen, place, seed, folder, study, attempt == REPLACEMENTS) {
                break;
            }
        }
        Ok(())
    }

    /// Takes a network up; whether claims are judged by it, because it does what it must or is the last one tried.
    fn keep(&mut self, specimen: &'static Specimen, place: usize, seed: u64, folder: PathBuf, study: Study, is_last: bool) -> bool {
        let gated = specimen.is_gated_on(self.corpus.as_ref().map(|corpus| &corpus.spec));
        let is_fit = !gated || study.passes_gate();
        let used = is_fit || is_last;
        let task = &study.report.task;
        self.entries.push(Entry {
            network: specimen.id,
            about: specimen.about,
            place,
            seed,
            gated,
            phrase_accuracy: task.phrase_accuracy.unwrap_or_default(),
            word_accuracy: task.word_accuracy.unwrap_or_default(),
            used,
            shares: TemporalShares::of(&study),
            steps: study.notes.steps,
            seconds: study.notes.seconds,
            folder,
        });
        if !is_fit {
            let phrase_accuracy = study.phrase_accuracy();
            (self.watch)(Work::Missed { about: specimen.about, seed, phrase_accuracy, is_replaced: !used });
        }
        if used {
            self.studies.insert((specimen.id, place), study);
        }
        used
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
        let options = StudyOptions { n_threads: self.n_threads, ..StudyOptions::default() };
        let (study, samples) = Study::of(&model, Some(folder), &options, &mut |progress| {
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

/// FNV-1a.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// The folder of a network: tells apart its configuration, the version of the program that trained and explained it, and what was in the
/// corpus it was trained on.
fn key(config: &RunConfig, corpus: Option<&Content>) -> String {
    let mut hash = Hash::default();
    hash.add(&serde_json::to_vec(config).expect("a configuration is tables of plain values"));
    hash.add(env!("CARGO_PKG_VERSION").as_bytes());
    if let Some(corpus) = corpus {
        hash.add(&corpus.hash.to_le_bytes());
    }
    format!("{:016x}", hash.0)
}

#[cfg(test)]
mod tests {
    use super::super::{CLAIMS, Check, Claim, ClaimOutcome, Figure, GATE};
    use super::*;
    use crosslens_nets::network::Feeding;

    #[test]
    fn another_seed_or_task_is_another_network() {
        let specimen = Specimen::named("copy-aed").expect("a specimen");
        let keys = [(Scale::Full, 1), (Scale::Full, 2), (Scale::Quick, 1)].map(|(scale, seed)| key(&specimen.config(scale, seed), None));
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2], "{keys:?}");
        assert_eq!(keys[0], key(&specimen.config(Scale::Full, 1), None));
    }

    /// One letter of a corpus is another network, though its name is the same.
    #[test]
    fn a_corpus_enters_by_what_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("writable");
            path.to_str().expect("Unicode").parse::<CorpusSpec>().expect("a corpus")
        };
        let spec = written("pairs.tsv", "a cat\tun chat\na dog\tun chien\n");
        let first = Content::of(&spec).expect("pairs");
        let config = Specimen::named("translation-aed").expect("a specimen").config_on(Some(&spec), Scale::Full, 1);
        let copied = Content::of(&written("copy.tsv", "a cat\tun chat\na dog\tun chien\n")).expect("pairs");
        assert_eq!(key(&config, Some(&first)), key(&config, Some(&copied)));
        let changed = Content::of(&written("pairs.tsv", "a cat\tun chat\na dog\tun chiot\n")).expect("pairs");
        assert_ne!(key(&config, Some(&first)), key(&config, Some(&changed)));
        assert_ne!(key(&config, Some(&first)), key(&config, None));
    }

    /// One update of eight units: nobody learns that from it.
    static HOPELESS: Specimen = Specimen::new("hopeless", "AED, hopeless", "reverse-aed", |config, _| {
        config.network.hidden = 8;
        config.training.batch = 4;
        config.training.steps = 1;
        config.training.evaluate_samples = 10;
    });

    fn options(corpus: Option<CorpusSpec>, out: &Path) -> ReproduceOptions {
        ReproduceOptions { claims: Vec::new(), seeds: 1, scale: Scale::Quick, corpus, out: out.to_owned(), n_threads: 1 }
    }

    /// A claim that nothing but the gate can fail.
    const HOLDS_ANYWAY: Claim =
        Claim { networks: &["hopeless"], measure: |_| vec![Check::at_least("one", 1.0, 0.5)], figure: |_| Figure::default(), ..CLAIMS[0] };

    #[test]
    fn a_network_is_replaced_twice_and_the_third_is_kept_but_proves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut told = Vec::new();
        let mut watch = |work: Work<'_>| {
            if let Work::Missed { seed, is_replaced, .. } = work {
                told.push((seed, is_replaced));
            }
            Wish::GoOn
        };
        let mut collection = Collection::new(folder.path(), &options(None, folder.path()), None, 1, &mut watch);
        collection.obtain(&HOPELESS, 0, 5).expect("it can be trained");
        let outcome = ClaimOutcome::of(&HOLDS_ANYWAY, 1, &collection);
        let entries = collection.into_entries();
        assert_eq!(entries.iter().map(|entry| (entry.seed, entry.used)).collect::<Vec<_>>(), [(5, false), (105, false), (205, true)]);
        assert!(entries.iter().all(|entry| entry.gated && entry.phrase_accuracy < GATE && entry.shares.is_some()));
        assert_eq!(told, [(5, true), (105, true), (205, false)]);
        let seed = &outcome.seeds[0];
        assert!(seed.checks.iter().all(|check| check.holds), "{seed:?}");
        assert_eq!((outcome.holds, seed.holds, seed.missed.as_slice()), (false, false, &["hopeless"][..]), "by the gate alone");
    }

    /// Real sentences have no one translation, so that no share of them is asked for: what claims find there is judged by their numbers.
    #[test]
    fn the_gate_is_lifted_from_text_on_a_corpus() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = HOPELESS.config(Scale::Quick, 1);
        config.training.feeding = Feeding::Forced;
        let run = Run::prepare(config, RunFolder::at(folder.path().join("run"))).expect("a shipped configuration");
        run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        let model = TrainedModel::open(&folder.path().join("run")).expect("the model it saved");
        let few = StudyOptions { n_sentences: 20, n_causal: 10, n_threads: 1 };
        let study = Study::of(&model, None, &few, &mut |_| ()).expect("it can be explained").0;
        assert!(!study.passes_gate());
        let translation = Specimen::named("translation-aed").expect("a specimen");
        let claim = CLAIMS.iter().find(|claim| claim.id == "joint-fit-text").expect("a claim of that name");
        let corpus = folder.path().join("pairs.tsv");
        std::fs::write(&corpus, "a cat\tun chat\n").expect("writable");
        let spec: CorpusSpec = corpus.to_str().expect("Unicode").parse().expect("a corpus");
        for (corpus, missed) in [(None, &["translation-aed"][..]), (Some(spec), &[][..])] {
            let content = corpus.as_ref().map(|spec| Content::of(spec).expect("pairs"));
            let mut watch = |_: Work<'_>| Wish::GoOn;
            let mut collection = Collection::new(folder.path(), &options(corpus, folder.path()), content, 1, &mut watch);
            assert_eq!(collection.keep(translation, 0, 1, folder.path().join("run"), study.clone(), false), missed.is_empty());
            collection.keep(translation, 0, 101, folder.path().join("run"), study.clone(), true);
            assert_eq!(ClaimOutcome::of(claim, 1, &collection).seeds[0].missed, missed);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_no_unicode_is_written_as_far_as_it_is() {
        use std::os::unix::ffi::OsStrExt as _;
        let entry = Entry {
            network: "copy-aed",
            about: "AED, one-to-one",
            place: 0,
            seed: 1,
            gated: true,
            phrase_accuracy: 1.0,
            word_accuracy: 1.0,
            used: true,
            shares: None,
            steps: 1,
            seconds: 1.0,
            folder: Path::new(std::ffi::OsStr::from_bytes(b"r\xff")).join("networks"),
        };
        assert_eq!(serde_json::to_value(&entry).expect("text")["folder"], "r\u{fffd}/networks");
    }
}
