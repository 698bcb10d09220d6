//! Sentences of a parallel corpus: read, split into trained and held out, turned into tokens, batched by length.

use std::collections::HashSet;

use crosslens_analysis::corpus::{BytesRead, CorpusError, CorpusReport, CorpusSpec, Filter, TextPair};
use crosslens_analysis::{Pair, Vocabulary};
use serde::{Deserialize, Serialize};

use super::listed::shuffled;
use super::preparing::Counter;
use super::{Lengths, Listed, Preparing, Split, Stage, Task, TaskError};
use crate::random::mix;
use crate::text::{TextCodec, TextConfig, TextFiles, Units};

/// Translation of a corpus of real sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusConfig {
    /// What is trained on.
    pub train: CorpusSpec,
    /// What the network is judged on; without it, `held_out` sentences of `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<CorpusSpec>,
    /// Source sentences kept from training, with all their translations, where there is no `dev`. Default: 1000.
    #[serde(default = "default_held_out")]
    pub held_out: usize,
    /// Pairs with more words on either side are left out, of `dev` too. Default: 30.
    #[serde(default = "default_max_words")]
    pub max_words: usize,
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

fn default_held_out() -> usize {
    1000
}

fn default_max_words() -> usize {
    30
}

fn default_vocabulary() -> usize {
    8000
}

/// Pairs of the held-out part that are kept: enough to judge and explain by.
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
            held_out: default_held_out(),
            max_words: default_max_words(),
            units: Units::default(),
            vocabulary: default_vocabulary(),
            lowercase: false,
        }
    }

    fn check(&self) -> Result<(), TaskError> {
        for (field, value, least, most) in [
            ("vocabulary", self.vocabulary, 3, MAX_VOCABULARY),
            ("max_words", self.max_words, 1, MAX_WORDS),
            ("held_out", self.held_out, 1, usize::MAX),
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

    /// Reads the corpus and learns its vocabularies; with `known` files of a run, those of the run are used and the corpus must be the
    /// one it began with.
    pub fn build(&self, known: Option<TextFiles>) -> Result<CorpusTask, TaskError> {
        self.build_watched(known, &mut |_| ())
    }

    /// The same; `told` hears how far it is.
    pub fn build_watched(&self, known: Option<TextFiles>, told: &mut dyn FnMut(Preparing)) -> Result<CorpusTask, TaskError> {
        self.check()?;
        let filter = Filter { max_words: Some(self.max_words), ..Filter::default() };
        let (mut train, report) = read(&self.train, &filter, told)?;
        let (mut held_out, dev_report) = match &self.dev {
            Some(dev) => {
                let (pairs, report) = read(dev, &filter, told)?;
                (pairs, Some(report))
            }
            None => (self.take_held_out(&mut train)?, None),
        };
        held_out.truncate(MAX_HELD_OUT);
        let (n_pairs, digest) = (train.len() as u64, digest(&train));
        let files = match known {
            Some(known) if known.digest == digest && known.n_pairs == n_pairs => known,
            Some(known) => {
                let what = format!(
                    "`{}` is not the corpus the run began with: {n_pairs} pairs, {} then; begin a new run",
                    self.train, known.n_pairs
                );
                return Err(TaskError::Corpus { what });
            }
            None => {
                let config = TextConfig { units: self.units, vocabulary: self.vocabulary, lowercase: self.lowercase };
                let codec = TextCodec::learn(config, &train, told).map_err(|error| TaskError::Corpus { what: error.to_string() })?;
                TextFiles { codec, held_out, n_pairs, digest }
            }
        };
        let (n_train, mut pairs) = (train.len(), train);
        pairs.extend_from_slice(&files.held_out);
        let mut train = encode(&files.codec, &pairs, told)?;
        let held_out = train.split_off(n_train);
        let listed = listed(&files.codec, train, held_out)?;
        Ok(CorpusTask { files, listed, name: self.train.clone(), report: Some(report), dev_report })
    }

    /// The task as a run's folder keeps it: only the sentences held out, which stand in for those trained on too.
    pub fn open(&self, files: TextFiles) -> Result<CorpusTask, TaskError> {
        let pairs = encode(&files.codec, &files.held_out, &mut |_| ())?;
        let listed = listed(&files.codec, pairs.clone(), pairs)?;
        Ok(CorpusTask { files, listed, name: self.train.clone(), report: None, dev_report: None })
    }

    /// Takes the pairs of some sources, chosen by their text alone, so that no source is on both sides.
    fn take_held_out(&self, train: &mut Vec<(String, String)>) -> Result<Vec<(String, String)>, TaskError> {
        let mut ranked: Vec<(u64, &str)> = train.iter().map(|(source, _)| (hash(source), source.as_str())).collect();
        ranked.sort_unstable();
        ranked.dedup();
        if ranked.len() <= self.held_out {
            let what = format!(
                "`{}` has {} different sources and {} are to be held out; set task.held_out to fewer",
                self.train,
                ranked.len(),
                self.held_out
            );
            return Err(TaskError::Corpus { what });
        }
        let chosen: HashSet<String> = ranked[..self.held_out].iter().map(|&(_, source)| source.to_owned()).collect();
        Ok(train.extract_if(.., |(source, _)| chosen.contains(source)).collect())
    }
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

/// 64 bits of a text, the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(mix(text.len() as u64), |hash, byte| mix(hash ^ u64::from(byte)))
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
    name: CorpusSpec,
    report: Option<CorpusReport>,
    dev_report: Option<CorpusReport>,
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
        let said = [("training", &self.report), ("dev", &self.dev_report)];
        notes.extend(said.into_iter().filter_map(|(what, report)| Some(format!("{what}: {}", report.as_ref()?))));
        let (source, target) = (self.source_vocabulary().len(), self.target_vocabulary().len());
        notes.push(format!("{}: {} pairs, {source} source and {target} target words", self.name, self.files.n_pairs));
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
        CorpusConfig { held_out: 5, ..CorpusConfig::of(CorpusSpec::Tsv(path)) }
    }

    #[test]
    fn no_source_is_both_trained_on_and_held_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.tsv");
        let lines: String = (0..200).map(|number| format!("source {}\ttarget {number}\n", number % 40)).collect();
        std::fs::write(&path, lines).expect("a file");
        let task = CorpusConfig { held_out: 5, ..CorpusConfig::of(CorpusSpec::Tsv(path)) }.build(None).expect("it is sound");
        let held: HashSet<&String> = task.files.held_out.iter().map(|(source, _)| source).collect();
        assert_eq!((held.len(), task.files.held_out.len(), task.n_pairs()), (5, 25, 175));
        let held: HashSet<Vec<u32>> = (0..25).map(|index| task.pair(Split::Test, 0, index).source).collect();
        assert!((0..175).all(|index| !held.contains(&task.pair(Split::Train, 0, index).source)));
    }

    /// A padded batch would waste what its sentences fall short of its longest; ours hold no padding at all, but steps with few rows cost
    /// more than they should.
    #[test]
    fn batches_are_of_like_length_and_every_pair_comes_once_a_round() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = corpus(folder.path(), 700).build(None).expect("it is sound");
        let n_pairs = task.n_pairs() as usize;
        let batch = n_pairs / POOL_BATCHES as usize;
        let mut pairs = Vec::new();
        let (mut seen, mut padded, mut whole) = (0, 0, 0);
        for step in 0..POOL_BATCHES {
            task.batch(Split::Train, 3, step * batch as u64, batch, &mut pairs);
            let again = pairs.clone();
            task.batch(Split::Train, 3, step * batch as u64, batch, &mut pairs);
            assert_eq!(pairs, again);
            let longest = pairs.iter().map(|pair| pair.target.len()).max().expect("a batch is not empty");
            padded += pairs.iter().map(|pair| longest - pair.target.len()).sum::<usize>();
            whole += longest * pairs.len();
            seen += pairs.len();
        }
        assert_eq!(seen, batch * POOL_BATCHES as usize);
        assert!(padded * 10 < whole, "{padded} of {whole} places would be padding");
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
        let message = CorpusConfig { held_out: 1000, ..corpus(folder.path(), 20) }.build(None).expect_err("too few").to_string();
        assert!(message.contains("task.held_out"), "{message}");
        assert!(CorpusConfig { vocabulary: 0, ..corpus(folder.path(), 20) }.build(None).is_err());
    }
}
