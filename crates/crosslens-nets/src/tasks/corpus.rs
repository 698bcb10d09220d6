//! Sentences of a parallel corpus: read, split into trained and held out, turned into tokens, batched by length.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crosslens_analysis::corpus::{BytesRead, CorpusError, CorpusReport, CorpusSpec, Filter, TextPair};
use crosslens_analysis::{Pair, Vocabulary};
use serde::{Deserialize, Serialize};

use super::listed::shuffled;
use super::preparing::Counter;
use super::{Lengths, Listed, Preparing, Split, Stage, Task, TaskError};
use crate::random::{hash, mix};
use crate::text::{TextCodec, TextConfig, TextFiles, Units, fold};

/// Translation of a corpus of real sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusConfig {
    /// What is trained on.
    pub train: CorpusSpec,
    /// What the network is judged on; without it, `held_out` sentences of `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<CorpusSpec>,
    /// Source sentences kept from training, with all their translations, where there is no `dev`; fewer where those are more than 5,000
    /// pairs, which is said. Default: 1000, of a corpus with fewer than 10,000 different sources a tenth of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<usize>,
    /// Pairs with more words on either side are left out, of `dev` too; so are those with more than 64 bytes and 32 for each of these,
    /// since some scripts have no blanks. Default: 30.
    #[serde(default = "default_max_words")]
    pub max_words: usize,
    /// Reading ends after so many pairs, of `dev` too: all of them are held in memory, about half a kilobyte each. It ends as well where
    /// their texts have 64 MiB and 1 KiB for each of these. Default: 4,000,000.
    #[serde(default = "default_max_pairs")]
    pub max_pairs: u64,
    /// What texts are cut into. Default: words.
    #[serde(default)]
    pub units: Units,
    /// The most words of each side, or pieces of both. Default: 8000.
    #[serde(default = "default_vocabulary")]
    pub vocabulary: usize,
    /// Whether capitals become small letters.
    #[serde(default)]
    pub lowercase: bool,
}

fn default_max_words() -> usize {
    30
}

fn default_max_pairs() -> u64 {
    4_000_000
}

fn default_vocabulary() -> usize {
    8000
}

/// Sources held out where nothing is asked for, and what share of a small corpus.
const USUAL_HELD_OUT: usize = 1000;
const HELD_OUT_SHARE: usize = 10;
/// The longest side of a pair, in bytes: of a few words, and more for each that is allowed. A text has no more tokens than bytes.
const FEW_WORDS_BYTES: usize = 64;
const WORD_BYTES: usize = 32;
/// The texts of all pairs, in bytes: of a few, and more for each that is allowed.
const FEW_PAIRS_BYTES: u64 = 64 << 20;
const PAIR_BYTES: u64 = 1 << 10;
/// Pairs that are judged and explained by, at most: those of whole sources, so that all translations of a source are references.
const MAX_HELD_OUT: usize = 5000;
/// Batches that are formed together, so that sentences of like length meet.
const POOL_BATCHES: u64 = 32;
/// Larger vocabularies are typos.
const MAX_VOCABULARY: usize = 1 << 20;
const MAX_WORDS: usize = 1000;

impl CorpusConfig {
    /// The usual way to read a corpus.
    pub fn of(train: CorpusSpec) -> Self {
        Self {
            train,
            dev: None,
            held_out: None,
            max_words: default_max_words(),
            max_pairs: default_max_pairs(),
            units: Units::default(),
            vocabulary: default_vocabulary(),
            lowercase: false,
        }
    }

    fn check(&self) -> Result<(), TaskError> {
        for (field, value, least, most) in [
            ("vocabulary", self.vocabulary, 3, MAX_VOCABULARY),
            ("max_words", self.max_words, 1, MAX_WORDS),
            ("held_out", self.held_out.unwrap_or(USUAL_HELD_OUT), 1, usize::MAX),
            ("max_pairs", usize::try_from(self.max_pairs).unwrap_or(usize::MAX), 1, usize::MAX),
        ] {
            if value < least {
                return Err(TaskError::TooSmall { field, value, least });
            }
            if value > most {
                return Err(TaskError::TooLarge { field, value, most });
            }
        }
        Ok(())
    }

    /// Which pairs of a corpus are as long as those trained on.
    pub fn filter(&self) -> Filter {
        let max_bytes = FEW_WORDS_BYTES + WORD_BYTES * self.max_words;
        Filter {
            max_words: Some(self.max_words),
            max_bytes: Some(max_bytes),
            max_pairs: Some(self.max_pairs),
            max_total_bytes: Some(PAIR_BYTES.saturating_mul(self.max_pairs).saturating_add(FEW_PAIRS_BYTES)),
            ..Filter::default()
        }
    }

    /// Reads the corpus and learns its vocabularies; with `known` files of a run, those of the run are used and the corpus must be the
    /// one it began with.
    pub fn build(&self, known: Option<TextFiles>) -> Result<CorpusTask, TaskError> {
        self.build_watched(known, &mut |_| ())
    }

    /// The same; `told` hears how far it is.
    pub fn build_watched(&self, known: Option<TextFiles>, told: &mut dyn FnMut(Preparing)) -> Result<CorpusTask, TaskError> {
        self.check()?;
        let filter = self.filter();
        let (mut train, report) = read(&self.train, &filter, told)?;
        let mut reports = vec![Read { what: "training", report }];
        let held_out = match (&self.dev, &known) {
            (Some(dev), _) => {
                let (mut pairs, report) = read(dev, &filter, told)?;
                reports.push(Read { what: "dev", report });
                let sources: Vec<&str> = pairs.iter().map(|(source, _)| source.as_str()).collect();
                let first = of_whole_sources(&sources, sources.iter().copied(), usize::MAX);
                pairs.retain(|(source, _)| first.contains(source));
                pairs
            }
            (None, Some(known)) => {
                let kept: HashSet<&str> = known.held_out.iter().map(|(source, _)| source.as_str()).collect();
                train.extract_if(.., |(source, _)| kept.contains(source.as_str())).collect()
            }
            (None, None) => self.take_held_out(&mut train)?,
        };
        let (n_pairs, digest) = (train.len() as u64, digest(&train));
        let became = Some(reports.iter().map(|read| (read.what.to_owned(), json_of(&read.report))).collect());
        let files = match known {
            Some(known) if known.digest == digest && known.n_pairs == n_pairs => TextFiles { became, ..known },
            Some(known) => {
                let what = format!(
                    "`{}` is not the corpus the run began with: {n_pairs} pairs, {} then; begin a new run (so, too, where task.held_out or task.max_pairs now take other pairs)",
                    self.train, known.n_pairs
                );
                return Err(TaskError::Corpus { what });
            }
            None => {
                let config = TextConfig { units: self.units, vocabulary: self.vocabulary, lowercase: self.lowercase };
                let codec = TextCodec::learn(config, &train, told).map_err(|error| TaskError::Corpus { what: error.to_string() })?;
                TextFiles { codec, held_out, n_pairs, digest, became }
            }
        };
        let (n_train, mut pairs) = (train.len(), train);
        pairs.extend_from_slice(&files.held_out);
        let mut train = encode(&files.codec, &pairs, told)?;
        let held_out = train.split_off(n_train);
        let listed = listed(&files.codec, train, held_out)?;
        Ok(CorpusTask { files, listed, config: self.clone(), reports })
    }

    /// The task as a run's folder keeps it: only the sentences held out, which stand in for those trained on too.
    pub fn open(&self, files: TextFiles) -> Result<CorpusTask, TaskError> {
        let pairs = encode(&files.codec, &files.held_out, &mut |_| ())?;
        let listed = listed(&files.codec, pairs.clone(), pairs)?;
        Ok(CorpusTask { files, listed, config: self.clone(), reports: Vec::new() })
    }

    /// Takes the pairs of some sources, chosen by their text alone as it is trained on, so that no source is on both sides, with other
    /// capitals neither where these become small letters.
    fn take_held_out(&self, train: &mut Vec<(String, String)>) -> Result<Vec<(String, String)>, TaskError> {
        let sources: Vec<Cow<'_, str>> = train.iter().map(|(source, _)| fold(source, self.lowercase)).collect();
        let mut ranked: Vec<(u64, &str)> = sources.iter().map(|source| (hash(source), source.as_ref())).collect();
        ranked.sort_unstable();
        ranked.dedup();
        let n_held_out = self.n_held_out(ranked.len());
        if ranked.len() <= n_held_out {
            let what = format!(
                "`{}` has {} different sources and {n_held_out} are to be held out; {}",
                self.train,
                ranked.len(),
                if self.held_out.is_some() { "set task.held_out to fewer" } else { "give a larger corpus, or task.dev to judge by" }
            );
            return Err(TaskError::Corpus { what });
        }
        let chosen = of_whole_sources(&sources, ranked.iter().map(|&(_, source)| source), n_held_out);
        let lowercase = self.lowercase;
        Ok(train.extract_if(.., |(source, _)| chosen.contains(fold(source, lowercase).as_ref())).collect())
    }

    /// How many of so many sources are to be held out.
    fn n_held_out(&self, n_sources: usize) -> usize {
        self.held_out.unwrap_or_else(|| USUAL_HELD_OUT.min(n_sources / HELD_OUT_SHARE).max(1))
    }
}

/// The first different ones of these sources, at most so many, whose pairs all together are at most [`MAX_HELD_OUT`]; one at least. `all`
/// has the source of every pair.
fn of_whole_sources<'a>(all: &[impl AsRef<str>], sources: impl Iterator<Item = &'a str>, most: usize) -> HashSet<String> {
    let mut n_pairs: HashMap<&str, usize> = HashMap::new();
    all.iter().for_each(|source| *n_pairs.entry(source.as_ref()).or_default() += 1);
    let (mut chosen, mut n_chosen) = (HashSet::new(), 0);
    for source in sources {
        if chosen.contains(source) {
            continue;
        }
        n_chosen += n_pairs.get(source).copied().unwrap_or(0);
        if chosen.len() == most || (n_chosen > MAX_HELD_OUT && !chosen.is_empty()) {
            break;
        }
        chosen.insert(source.to_owned());
    }
    chosen
}

/// What became of the lines of one corpus.
#[derive(Clone, Debug)]
struct Read {
    /// What it is for.
    what: &'static str,
    report: CorpusReport,
}

fn json_of(report: &CorpusReport) -> serde_json::Value {
    serde_json::to_value(report).expect("a report is counts and places")
}

fn read(spec: &CorpusSpec, filter: &Filter, told: &mut dyn FnMut(Preparing)) -> Result<(Vec<(String, String)>, CorpusReport), TaskError> {
    let failed = |error: CorpusError| TaskError::Corpus { what: with_causes(&error) };
    let mut read = |BytesRead { done, total }| told(Preparing { stage: Stage::Reading, done, total });
    let (pairs, report) = spec.open(filter).and_then(|reader| reader.read_all(&mut read)).map_err(failed)?;
    Ok((pairs.into_iter().map(|TextPair { source, target, .. }| (source, target)).collect(), report))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn encode(codec: &TextCodec, pairs: &[(String, String)], told: &mut dyn FnMut(Preparing)) -> Result<Vec<Pair>, TaskError> {
    let failed = |error: crate::text::TextError| TaskError::Corpus { what: error.to_string() };
    let mut counter = Counter::new(Stage::Encoding, pairs.len(), told);
    pairs
        .iter()
        .map(|(source, target)| {
            let (source, target) = (codec.encode_source(source).map_err(failed)?, codec.encode_target(target).map_err(failed)?);
            counter.count();
            Ok(Pair::new(source.tokens, target.tokens))
        })
        .collect()
}

fn listed(codec: &TextCodec, train: Vec<Pair>, test: Vec<Pair>) -> Result<Listed, TaskError> {
    Listed::new(codec.source_vocabulary().clone(), codec.target_vocabulary().clone(), train, test)
}

fn digest(pairs: &[(String, String)]) -> String {
    let total = pairs.iter().fold(0u64, |total, (source, target)| mix(total ^ hash(source).rotate_left(1) ^ hash(target)));
    format!("{total:016x}")
}

/// A corpus, ready to be trained on.
#[derive(Clone, Debug)]
pub struct CorpusTask {
    files: TextFiles,
    listed: Listed,
    config: CorpusConfig,
    /// Of what was read; nothing where the task comes from a run's folder.
    reports: Vec<Read>,
}

impl CorpusTask {
    /// Pairs trained on.
    pub fn n_pairs(&self) -> u64 {
        self.files.n_pairs
    }
}

impl Task for CorpusTask {
    fn source_vocabulary(&self) -> &Vocabulary {
        self.listed.source_vocabulary()
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        self.listed.target_vocabulary()
    }

    fn max_lengths(&self) -> Lengths {
        self.listed.max_lengths()
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        self.listed.pair(split, seed, index)
    }

    /// Sentences of like length: those of 32 batches are sorted, cut into batches, and the batches taken in a random order.
    fn batch(&self, split: Split, seed: u64, first: u64, n_pairs: usize, pairs: &mut Vec<Pair>) {
        pairs.clear();
        let n = n_pairs as u64;
        if split == Split::Test || n == 0 || !first.is_multiple_of(n) {
            return pairs.extend((0..n).map(|number| self.pair(split, seed, first + number)));
        }
        let (pool, place) = (first / n / POOL_BATCHES, first / n % POOL_BATCHES);
        let begin = pool * POOL_BATCHES * n;
        let mut order: Vec<usize> = (begin..begin + POOL_BATCHES * n).map(|index| self.listed.train_number(seed, index)).collect();
        order.sort_by_key(|&number| {
            let Pair { source, target, .. } = self.listed.train_pair(number);
            (target.len(), source.len())
        });
        let place = shuffled(place, POOL_BATCHES, mix(seed ^ mix(pool ^ 0xBA7C))) as usize;
        pairs.extend(order[place * n_pairs..][..n_pairs].iter().map(|&number| self.listed.train_pair(number).clone()));
    }

    fn text(&self) -> Option<&TextFiles> {
        Some(&self.files)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for Read { what, report } in &self.reports {
            notes.push(format!("{what}: {report}"));
            notes.extend(self.config.filter().ended(report).map(|ended| format!("{what}: {ended}; task.max_pairs takes more")));
        }
        let held_out = &self.files.held_out;
        let n_sources = held_out.iter().map(|(source, _)| fold(source, self.config.lowercase)).collect::<HashSet<_>>().len();
        let n_read = self.reports.iter().find(|read| read.what == "dev").map(|read| read.report.kept());
        match n_read {
            Some(n_read) if n_read > held_out.len() as u64 => {
                notes.push(format!("dev: the first {n_sources} sources are judged by, {} pairs of {n_read}", held_out.len()));
            }
            None if !self.reports.is_empty() && self.config.held_out.is_none() && n_sources < USUAL_HELD_OUT => {
                let n_pairs = held_out.len();
                notes.push(format!(
                    "held out: {n_sources} sources, {n_pairs} pairs; task.held_out says how many, at most {MAX_HELD_OUT} pairs are"
                ));
            }
            None if !self.reports.is_empty() && self.config.held_out.is_some_and(|asked| n_sources < asked) => {
                let (asked, n_pairs) = (self.config.held_out.unwrap_or_default(), held_out.len());
                notes.push(format!("held out: {n_sources} sources of {asked} asked for, {n_pairs} pairs; at most {MAX_HELD_OUT} are"));
            }
            _ => {}
        }
        let (source, target) = (self.source_vocabulary().len(), self.target_vocabulary().len());
        notes.push(format!("{}: {} pairs, {source} source and {target} target words", self.config.train, self.files.n_pairs));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(folder: &std::path::Path, n: usize) -> CorpusConfig {
        let path = folder.join("pairs.tsv");
        let line =
            |number: usize| format!("{}end\t{}fin\n", "a b ".repeat(number % 7 + 1), format!("x{} ", number % 50).repeat(number % 5 + 1));
        std::fs::write(&path, (0..n).map(line).collect::<String>()).expect("a file");
        CorpusConfig { held_out: Some(5), ..CorpusConfig::of(CorpusSpec::Tsv(path)) }
    }

    #[test]
    fn no_source_is_both_trained_on_and_held_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.tsv");
        let lines: String = (0..200).map(|number| format!("source {}\ttarget {number}\n", number % 40)).collect();
        std::fs::write(&path, lines).expect("a file");
        let task = CorpusConfig { held_out: Some(5), ..CorpusConfig::of(CorpusSpec::Tsv(path)) }.build(None).expect("it is sound");
        let held: HashSet<&String> = task.files.held_out.iter().map(|(source, _)| source).collect();
        assert_eq!((held.len(), task.files.held_out.len(), task.n_pairs()), (5, 25, 175));
        let held: HashSet<Vec<u32>> = (0..25).map(|index| task.pair(Split::Test, 0, index).source).collect();
        assert!((0..175).all(|index| !held.contains(&task.pair(Split::Train, 0, index).source)));
    }

    /// Sources have ten translations each: 500 of 1,000 asked for are as many as are judged by, whether they are kept from training or come
    /// from a file of their own.
    #[test]
    fn all_translations_of_a_source_are_held_out_and_fewer_sources_are_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.tsv");
        let line = |number: usize| format!("source {}\ttarget {number}\n", number % 1200);
        std::fs::write(&path, (0..12_000).map(line).collect::<String>()).expect("a file");
        let spec = CorpusSpec::Tsv(path);
        let held_out = CorpusConfig { held_out: Some(1000), ..CorpusConfig::of(spec.clone()) };
        let dev = CorpusConfig { dev: Some(spec.clone()), ..CorpusConfig::of(spec.clone()) };
        for (config, n_train, says) in [
            (held_out, 7000, "held out: 500 sources of 1000 asked for, 5000 pairs; at most 5000 are"),
            (dev, 12_000, "dev: the first 500 sources are judged by, 5000 pairs of 12000"),
        ] {
            let task = config.build(None).expect("it is sound");
            let mut n_targets: HashMap<&str, usize> = HashMap::new();
            task.files.held_out.iter().for_each(|(source, _)| *n_targets.entry(source).or_default() += 1);
            assert!(n_targets.len() == 500 && n_targets.values().all(|&n| n == 10), "{} sources", n_targets.len());
            assert_eq!(task.n_pairs(), n_train);
            assert!(task.notes().iter().any(|note| note == says), "{:?}", task.notes());
            config.build(Some(task.files)).expect("the same corpus goes on");
        }
        let few = CorpusConfig { max_pairs: 100, held_out: Some(5), ..CorpusConfig::of(spec) }.build(None).expect("it is sound");
        assert_eq!(few.n_pairs(), 95);
        let says = "training: reading ended after 100 pairs; task.max_pairs takes more";
        assert!(few.notes().iter().any(|note| note == says), "{:?}", few.notes());
    }

    #[test]
    fn long_sentences_are_left_out_of_what_is_trained_on_and_judged_by() {
        let folder = tempfile::tempdir().expect("a folder");
        let written = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            CorpusSpec::Tsv(path)
        };
        let lines: String = (0..20).map(|number| format!("source {number}\ttarget {number}\n")).collect();
        let train = written("train.tsv", format!("{lines}one two three four five\tun\n"));
        let dev = written("dev.tsv", "one two three four\tun\none\tun deux trois quatre cinq\n".to_owned());
        let task = CorpusConfig { max_words: 4, dev: Some(dev), ..CorpusConfig::of(train) }.build(None).expect("it is sound");
        assert_eq!((task.n_pairs(), task.files.held_out.len()), (20, 1));
        assert!(task.notes().iter().any(|note| note == "dev: 1 pair kept; 1 too long (line 2)"), "{:?}", task.notes());
    }

    /// A padded batch would waste what its sentences fall short of its longest; ours hold no padding at all, but steps with few rows cost
    /// more than they should. 1,024 pairs of 4 to 13 words, their targets one shorter to two longer: drawn as they come, a third of every
    /// batch would be padding.
    #[test]
    fn batches_are_of_like_length_and_every_pair_comes_once_a_round() {
        const BATCH: usize = 32;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.tsv");
        let line = |number: usize| {
            let (n, longer) = (((number * 2_654_435_761) >> 7) % 10, ((number * 40_503) >> 5) % 4);
            format!("s{number} {}\tt{number} {}\n", "a ".repeat(3 + n), "b ".repeat(2 + n + longer))
        };
        std::fs::write(&path, (0..1100).map(line).collect::<String>()).expect("a file");
        let task = CorpusConfig { held_out: Some(76), ..CorpusConfig::of(CorpusSpec::Tsv(path)) }.build(None).expect("it is sound");
        assert_eq!(task.n_pairs(), POOL_BATCHES * BATCH as u64);

        /// Share of source and target places that a padded batch would waste.
        fn padded(batches: &[Vec<Pair>]) -> [f64; 2] {
            [|pair: &Pair| pair.source.len(), |pair: &Pair| pair.target.len()].map(|length| {
                let longest = |batch: &Vec<Pair>| batch.iter().map(length).max().expect("a batch is not empty");
                let whole: usize = batches.iter().map(|batch| batch.len() * longest(batch)).sum();
                let filled: usize = batches.iter().flatten().map(length).sum();
                1.0 - filled as f64 / whole as f64
            })
        }
        let batches: Vec<Vec<Pair>> = (0..POOL_BATCHES)
            .map(|step| {
                let (mut pairs, mut again) = (Vec::new(), Vec::new());
                task.batch(Split::Train, 3, step * BATCH as u64, BATCH, &mut pairs);
                task.batch(Split::Train, 3, step * BATCH as u64, BATCH, &mut again);
                assert_eq!(pairs, again);
                pairs
            })
            .collect();
        let drawn: Vec<Pair> = (0..task.n_pairs()).map(|index| task.pair(Split::Train, 3, index)).collect();
        let as_drawn: Vec<Vec<Pair>> = drawn.chunks(BATCH).map(<[Pair]>::to_vec).collect();
        let (sorted, unsorted) = (padded(&batches), padded(&as_drawn));
        assert!(sorted.iter().all(|&share| share < 0.1) && unsorted.iter().all(|&share| share > 0.2), "{sorted:?}, {unsorted:?}");

        let in_order = |pairs: Vec<Pair>| {
            let mut pairs: Vec<_> = pairs.into_iter().map(|pair| (pair.source, pair.target)).collect();
            pairs.sort();
            pairs
        };
        assert_eq!(in_order(batches.concat()), in_order(drawn), "each comes once");
    }

    /// 64 MiB and 4 million times 1 KiB.
    #[test]
    fn memory_is_bounded_by_bytes_that_grow_with_the_pairs_wanted() {
        let config = CorpusConfig::of(CorpusSpec::Tsv("pairs.tsv".into()));
        assert_eq!(config.filter().max_total_bytes, Some(67_108_864 + 4_096_000_000));
        let most = CorpusConfig { max_pairs: u64::MAX, ..config };
        assert_eq!(most.filter().max_total_bytes, Some(u64::MAX));
    }

    /// A tenth of 40 sources is 4, of 9 none, so 1.
    #[test]
    fn a_tenth_of_a_small_corpus_is_held_out_and_it_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        for (n_sources, n_held_out) in [(40, 4), (9, 1)] {
            let path = folder.path().join("pairs.tsv");
            std::fs::write(&path, (0..n_sources).map(|number| format!("source {number}\ttarget\n")).collect::<String>()).expect("a file");
            let task = CorpusConfig::of(CorpusSpec::Tsv(path)).build(None).expect("it is sound");
            assert_eq!(task.files.held_out.len(), n_held_out);
            let says = format!("held out: {n_held_out} sources, {n_held_out} pairs; ");
            assert!(task.notes().iter().any(|note| note.starts_with(&says)), "{:?}", task.notes());
        }
    }

    /// Where capitals become small letters, `Source 3` and `source 3` are one source: kept from training together. A run that began when
    /// they were two goes on with the sentences it has kept.
    #[test]
    fn sources_that_differ_in_capitals_are_on_one_side() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.tsv");
        let line = |number: usize| format!("{}ource {}\ttarget {number}\n", if number.is_multiple_of(2) { 's' } else { 'S' }, number / 2);
        std::fs::write(&path, (0..200).map(line).collect::<String>()).expect("a file");
        let config = CorpusConfig { lowercase: true, held_out: Some(20), ..CorpusConfig::of(CorpusSpec::Tsv(path)) };
        let task = config.build(None).expect("it is sound");
        let held_out: HashSet<String> = task.files.held_out.iter().map(|(source, _)| source.to_lowercase()).collect();
        assert_eq!((held_out.len(), task.files.held_out.len(), task.n_pairs()), (20, 40, 160));

        let mut before = task.files.clone();
        let (mut train, _) = read(&config.train, &config.filter(), &mut |_| ()).expect("it is sound");
        before.held_out = train.split_off(180);
        (before.n_pairs, before.digest) = (180, digest(&train));
        assert_eq!(config.build(Some(before)).expect("it goes on").files.held_out.len(), 20);
    }

    /// 60 kB without a blank are one word and as many pieces as letters.
    #[test]
    fn a_line_without_blanks_that_is_too_long_is_left_out_with_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        for units in Units::ALL {
            let short = corpus(folder.path(), 60);
            let CorpusSpec::Tsv(path) = &short.train else { panic!("a file of lines") };
            let lines = std::fs::read_to_string(path).expect("lines");
            std::fs::write(path, format!("{}\tlong\n{lines}", "猫が好き。".repeat(4000))).expect("a file");
            let task = CorpusConfig { units, ..short }.build(None).expect("it is sound");
            assert!(task.max_lengths().source < 40, "{units:?}: {:?}", task.max_lengths());
            assert!(task.notes().iter().any(|note| note.contains("1 too long (line 1)")), "{:?}", task.notes());
        }
    }

    #[test]
    fn every_stage_is_told_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let bpe = CorpusConfig { units: Units::Bpe, ..corpus(folder.path(), 1400) };
        let mut told: Vec<Preparing> = Vec::new();
        let task = bpe.build_watched(None, &mut |now| told.push(now)).expect("it is sound");
        let stages = [Stage::Reading, Stage::Learning, Stage::Counting, Stage::Encoding];
        let mut seen: Vec<Stage> = told.iter().map(|now| now.stage).collect();
        seen.dedup();
        assert_eq!(seen, stages);
        let n_bytes = std::fs::metadata(folder.path().join("pairs.tsv")).expect("a file").len();
        let (n_pairs, n_held_out) = (task.n_pairs(), task.files.held_out.len() as u64);
        for (stage, total) in stages.into_iter().zip([n_bytes, 0, 2 * n_pairs, n_pairs + n_held_out]) {
            let of_stage: Vec<&Preparing> = told.iter().filter(|now| now.stage == stage).collect();
            assert!(of_stage.windows(2).all(|two| two[0].done <= two[1].done), "{of_stage:?}");
            assert_eq!(of_stage.last(), Some(&&Preparing { stage, done: total, total }));
        }
    }

    #[test]
    fn another_corpus_is_another_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = corpus(folder.path(), 300);
        let files = config.build(None).expect("it is sound").files;
        config.build(Some(files.clone())).expect("the same corpus goes on");
        let longer = corpus(folder.path(), 340);
        let message = longer.build(Some(files)).expect_err("a pair more").to_string();
        assert!(message.contains("not the corpus the run began with"), "{message}");
    }

    #[test]
    fn an_empty_corpus_and_one_too_small_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("none.tsv");
        std::fs::write(&path, "one side\n\n").expect("a file");
        let message = CorpusConfig::of(CorpusSpec::Tsv(path)).build(None).expect_err("no pair").to_string();
        assert!(message.contains("none.tsv"), "{message}");
        let message = CorpusConfig { held_out: Some(1000), ..corpus(folder.path(), 20) }.build(None).expect_err("too few").to_string();
        assert!(message.contains("7 different sources and 1000 are to be held out; set task.held_out to fewer"), "{message}");
        let path = folder.path().join("one.tsv");
        std::fs::write(&path, "one\tun\n").expect("a file");
        let message = CorpusConfig::of(CorpusSpec::Tsv(path)).build(None).expect_err("too few").to_string();
        assert!(message.contains("1 different sources and 1 are to be held out; give a larger corpus"), "{message}");
        assert!(CorpusConfig { vocabulary: 0, ..corpus(folder.path(), 20) }.build(None).is_err());
    }
}
