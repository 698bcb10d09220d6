//! Networks by configuration and seed: trained once, then found again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::{CorpusError, Filter, TextPair};
use crosslens_analysis::explain::Progress;
use crosslens_nets::train::{Ending, Event, Run, RunConfig, RunFolder, Wish};
use serde::{Serialize, Serializer};

use super::claim::{Head, lower};
use super::study::{STUDY_SCHEMA, Study, StudyError, StudyOptions, TEXT_GATE, TEXT_WORDS};
use super::{Gate, OnCorpus, ReproduceError, ReproduceOptions, Scale, Specimen, Watch};
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
        /// What it came to, in words.
        came_to: &'a str,
        /// Whether another seed is tried.
        is_replaced: bool,
    },
}

/// A network that was trained for some claim.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The specimen's name.
    pub network: &'static str,
    /// What it is, and of which corpus.
    pub about: String,
    /// Which of the seeds asked for it stands for, from 0.
    pub place: usize,
    /// The seed it was trained with.
    pub seed: u64,
    /// What it must do before claims are judged by it.
    pub gate: Gate,
    /// What became of it.
    pub role: Role,
    /// Free-running share of sentences right.
    pub phrase_accuracy: f64,
    /// Free-running share of words right.
    pub word_accuracy: f64,
    /// Share of words right beyond those that uniform attention leaves right; null where it was not run again.
    pub gained_by_attention: Option<f64>,
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

/// What became of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Claims are judged by it.
    Judged,
    /// It need not do its task: others are compared with it.
    Control,
    /// It missed the gate and another seed took its place.
    Replaced,
    /// It missed the gate on the last seed too: claims on it do not hold.
    Missed,
}

impl Role {
    /// Whether claims are tested on it, whatever they then come to.
    pub fn is_used(self) -> bool {
        self != Self::Replaced
    }
}

impl Entry {
    /// What it came to beside its gate, in words.
    pub fn came_to(&self) -> String {
        match (self.gate, self.gained_by_attention) {
            (Gate::Attention, Some(gained)) => {
                let percent = (1000.0 * gained).round() / 10.0 + 0.0;
                let [right, asked, gain] = [self.word_accuracy, TEXT_WORDS, TEXT_GATE].map(|share| 100.0 * share);
                format!(
                    "attention adds {percent:.1} % of the words where {gain:.0} % are asked for, \
                     and {right:.1} % are right where {asked:.0} % are asked for"
                )
            }
            _ => format!("{:.1} % of phrases right", 100.0 * self.phrase_accuracy),
        }
    }
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
    corpus: OnCorpus,
    hash: u64,
}

impl Content {
    /// Reads the corpus once, a pair at a time.
    pub(super) fn of(corpus: &OnCorpus) -> Result<Self, CorpusError> {
        let mut hash = Hash::default();
        for pair in corpus.spec.open(&Filter { dedupe: false, ..Filter::default() })? {
            let TextPair { source, target, .. } = pair?;
            // Sides have no line break, so that no other pairs look the same.
            [source.as_str(), "\n", &target, "\n"].iter().for_each(|text| hash.add(text.as_bytes()));
        }
        Ok(Self { corpus: corpus.clone(), hash: hash.0 })
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
            let config = specimen.config_on(corpus.map(|content| &content.corpus), self.scale, seed);
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
        let corpus = self.corpus.as_ref().filter(|_| specimen.is_text).map(|content| &content.corpus);
        let gate = specimen.gate_on(corpus);
        let role = match (study.passes(gate), is_last) {
            (true, _) if gate == Gate::Open => Role::Control,
            (true, _) => Role::Judged,
            (false, false) => Role::Replaced,
            (false, true) => Role::Missed,
        };
        let task = &study.report.task;
        let entry = Entry {
            network: specimen.id,
            about: corpus.map_or_else(|| specimen.about.to_owned(), |corpus| format!("{} of {}", specimen.about, corpus.spec)),
            place,
            seed,
            gate,
            role,
            phrase_accuracy: task.phrase_accuracy.unwrap_or_default(),
            word_accuracy: task.word_accuracy.unwrap_or_default(),
            gained_by_attention: Some(study.gained_by_attention()).filter(|gained| gained.is_finite()),
            shares: TemporalShares::of(&study),
            steps: study.notes.steps,
            seconds: study.notes.seconds,
            folder,
        };
        if matches!(role, Role::Replaced | Role::Missed) {
            let came_to = entry.came_to();
            (self.watch)(Work::Missed { about: &entry.about, seed, came_to: &came_to, is_replaced: role == Role::Replaced });
        }
        self.entries.push(entry);
        if role.is_used() {
            self.studies.insert((specimen.id, place), study);
        }
        role.is_used()
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
        self.entries.iter().find(|entry| entry.network == id && entry.place == place && entry.role.is_used())
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

/// The folder of a network: tells apart its configuration, the version of the program that trained and explained it, how it is studied, and
/// what was in the corpus it was trained on.
fn key(config: &RunConfig, corpus: Option<&Content>) -> String {
    let mut hash = Hash::default();
    hash.add(&serde_json::to_vec(config).expect("a configuration is tables of plain values"));
    hash.add(env!("CARGO_PKG_VERSION").as_bytes());
    hash.add(STUDY_SCHEMA.as_bytes());
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
            on_corpus(&path)
        };
        let corpus = written("pairs.tsv", "a cat\tun chat\na dog\tun chien\n");
        let first = Content::of(&corpus).expect("pairs");
        let config = Specimen::named("translation-aed").expect("a specimen").config_on(Some(&corpus), Scale::Full, 1);
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

    fn on_corpus(path: &Path) -> OnCorpus {
        OnCorpus { spec: path.to_str().expect("Unicode").parse().expect("a corpus"), steps: 1 }
    }

    fn options(corpus: Option<OnCorpus>, out: &Path) -> ReproduceOptions {
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
        let roles = [(5, Role::Replaced), (105, Role::Replaced), (205, Role::Missed)];
        assert_eq!(entries.iter().map(|entry| (entry.seed, entry.role)).collect::<Vec<_>>(), roles);
        assert!(entries.iter().all(|entry| entry.gate == Gate::Phrases && entry.phrase_accuracy < GATE && entry.shares.is_some()));
        assert_eq!(told, [(5, true), (105, true), (205, false)]);
        let seed = &outcome.seeds[0];
        assert!(seed.checks.iter().all(|check| check.holds), "{seed:?}");
        assert_eq!((outcome.holds, seed.holds, seed.missed.as_slice()), (false, false, &["hopeless"][..]), "by the gate alone");
    }

    /// Real sentences have no one translation, so that no share of them is asked for; but what learnt nothing misses the gate there too.
    #[test]
    fn a_network_of_one_update_misses_the_gate_with_and_without_a_corpus() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = HOPELESS.config(Scale::Quick, 1);
        config.training.feeding = Feeding::Forced;
        let run = Run::prepare(config, RunFolder::at(folder.path().join("run"))).expect("a shipped configuration");
        run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        let model = TrainedModel::open(&folder.path().join("run")).expect("the model it saved");
        let few = StudyOptions { n_sentences: 20, n_causal: 10, n_threads: 1 };
        let study = Study::of(&model, None, &few, &mut |_| ()).expect("it can be explained").0;
        let translation = Specimen::named("translation-aed").expect("a specimen");
        let claims = ["joint-fit-text", "translation"];
        let path = folder.path().join("pairs.tsv");
        std::fs::write(&path, "a cat\tun chat\n").expect("writable");
        for corpus in [None, Some(on_corpus(&path))] {
            let content = corpus.as_ref().map(|corpus| Content::of(corpus).expect("pairs"));
            let gate = if corpus.is_some() { Gate::Attention } else { Gate::Phrases };
            let mut watch = |_: Work<'_>| Wish::GoOn;
            let mut collection = Collection::new(folder.path(), &options(corpus, folder.path()), content, 1, &mut watch);
            assert!(!collection.keep(translation, 0, 1, folder.path().join("run"), study.clone(), false), "{gate:?}");
            collection.keep(translation, 0, 101, folder.path().join("run"), study.clone(), true);
            for other in ["copy-aed", "escan-aed"] {
                let other = Specimen::named(other).expect("a specimen");
                collection.keep(other, 0, 1, folder.path().join("run"), study.clone(), true);
            }
            for id in claims {
                let claim = CLAIMS.iter().find(|claim| claim.id == id).expect("a claim of that name");
                let outcome = ClaimOutcome::of(claim, 1, &collection);
                assert!(!outcome.holds && outcome.seeds[0].missed.contains(&"translation-aed"), "{gate:?}, {id}: {outcome:?}");
            }
            let entries = collection.into_entries();
            assert_eq!((entries[0].gate, entries[0].role, entries[1].role), (gate, Role::Replaced, Role::Missed));
            assert_eq!(entries[0].about.contains("pairs.tsv"), gate == Gate::Attention, "{}", entries[0].about);
            assert_eq!(entries[0].came_to().contains("attention adds"), gate == Gate::Attention, "{}", entries[0].came_to());
        }
    }

    /// The other side: enough words that only attention gets right open the gate of text, whatever share of sentences is right.
    #[test]
    fn the_gate_of_text_asks_for_words_that_attention_gets_right() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = Run::prepare(HOPELESS.config(Scale::Quick, 1), RunFolder::at(folder.path().join("run"))).expect("a run");
        run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        let model = TrainedModel::open(&folder.path().join("run")).expect("the model it saved");
        let few = StudyOptions { n_sentences: 10, n_causal: 5, n_threads: 1 };
        let mut study = Study::of(&model, None, &few, &mut |_| ()).expect("it can be explained").0;
        let mut with = |own: f64, uniform: f64| {
            study.report.unchanged.as_mut().expect("it was run").word_accuracy = own;
            let rebuilt = study.report.sites[0].rebuilt.get_mut("uniform").and_then(|rebuilt| rebuilt.causal.as_mut());
            rebuilt.expect("it was run").word_accuracy = uniform;
            study.passes(Gate::Attention)
        };
        assert!(with(0.40, 0.30) && !with(0.40, 0.36) && !with(0.40, 0.45) && !with(0.20, 0.1) && !with(f64::NAN, 0.1));
        assert!(!study.passes(Gate::Phrases) && study.passes(Gate::Open));
        study.report.unchanged = None;
        assert!(!study.passes(Gate::Attention), "not run is not passed");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_no_unicode_is_written_as_far_as_it_is() {
        use std::os::unix::ffi::OsStrExt as _;
        let entry = Entry {
            network: "copy-aed",
            about: "AED, one-to-one".into(),
            place: 0,
            seed: 1,
            gate: Gate::Phrases,
            role: Role::Judged,
            phrase_accuracy: 1.0,
            word_accuracy: 1.0,
            gained_by_attention: Some(0.6),
            shares: None,
            steps: 1,
            seconds: 1.0,
            folder: Path::new(std::ffi::OsStr::from_bytes(b"r\xff")).join("networks"),
        };
        assert_eq!(serde_json::to_value(&entry).expect("text")["folder"], "r\u{fffd}/networks");
    }
}
