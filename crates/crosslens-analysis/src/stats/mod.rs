//! The sums of all streams of a model, as they are kept on disk and merged: [`Stats`].

mod error;
mod file;

use std::path::Path;

use crosslens_kernels::Threads;

use crate::explain::{Corpus, ExplainError, Phase, Progress, Wanted, batches, read};
use crate::{Consumed, Description, Recorded, Sums};

pub use error::{Mismatch, StatsError};

/// Most states that are counted: beyond this `f64` does not tell two counts apart.
pub const MAX_STATES: u64 = 1 << 53;

/// The sums of every stream of one model: all that components are fitted from.
///
/// Those of parts of a corpus, made by different processes or on different machines, merge into those of the whole.
///
/// ```
/// use crosslens_analysis::{Consumed, Stats, StreamSums, Sums};
///
/// let stream = |state: [f32; 2]| {
///     let mut sums = Sums::new(2);
///     sums.add(&[7], &state);
///     StreamSums { name: "encoder".into(), consumed: Consumed::Current, n_tokens: 9, sums }
/// };
/// let stats = |state| Stats { model_hash: "00ff".into(), streams: vec![stream(state)] };
/// let folder = tempfile::tempdir()?;
/// let paths = [folder.path().join("a.stats.safetensors"), folder.path().join("b.stats.safetensors")];
/// stats([1.0, 2.0]).save(&paths[0])?;
/// stats([3.0, 4.0]).save(&paths[1])?;
/// let merged = Stats::load_merged(&paths)?;
/// assert_eq!(merged.streams[0].sums.n_states(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// [`Description::model_hash`]; empty where it is not known.
    pub model_hash: String,
    /// In the order of [`Description::streams`].
    pub streams: Vec<StreamSums>,
}

/// The sums of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSums {
    /// The stream's name.
    pub name: String,
    /// Which token its states have consumed last.
    pub consumed: Consumed,
    /// How many tokens its side has; where states may have consumed none, those stand under this number.
    pub n_tokens: u32,
    /// The sums.
    pub sums: Sums,
}

impl StreamSums {
    /// The lowest number that no token has.
    pub(crate) fn token_end(&self) -> u64 {
        u64::from(self.n_tokens) + u64::from(self.consumed == Consumed::Previous)
    }
}

impl Stats {
    /// No state yet.
    pub fn new(description: &Description) -> Self {
        let streams = description.streams.iter().map(|stream| StreamSums {
            name: stream.name.clone(),
            consumed: stream.consumed,
            n_tokens: description.words(stream.side).count,
            sums: Sums::new(stream.d),
        });
        Self { model_hash: description.model_hash.clone(), streams: streams.collect() }
    }

    /// Sums a corpus, on `n_threads` threads (0 for one per core); the result does not depend on them.
    pub fn of(corpus: &dyn Corpus, n_threads: usize, progress: &mut dyn FnMut(Progress)) -> Result<Self, ExplainError> {
        let total = corpus.n_sentences();
        if total == 0 {
            return Err(ExplainError::Empty);
        }
        let threads = Threads::new(n_threads)?;
        let description = corpus.description();
        let mut stats = Self::new(description);
        for range in batches(corpus) {
            let done = range.end;
            stats.add(description, &read(corpus, range, Wanted::States, &threads)?, &threads);
            progress(Progress { phase: Phase::Fitting, done, total });
        }
        Ok(stats)
    }

    /// Adds sentences of the model described.
    fn add(&mut self, description: &Description, sentences: &[Recorded], threads: &Threads) {
        threads.for_each(&mut self.streams, |number, summed| {
            let stream = &description.streams[number];
            for sentence in sentences {
                summed.sums.add(&sentence.tokens(stream, description.words(stream.side)), &sentence.states[number]);
            }
        });
    }

    /// Adds what another one has summed, if it is of the same streams of the same model; otherwise nothing changes. An unknown model goes
    /// with any.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_hash(&other.model_hash)?;
        self.check_names(other.streams.iter().map(|stream| stream.name.as_str()))?;
        for (left, right) in self.streams.iter().zip(&other.streams) {
            check_stream(left, right.sums.d(), right.consumed, right.n_tokens)?;
            let states = left.sums.n_states().saturating_add(right.sums.n_states());
            if states > MAX_STATES {
                return Err(Mismatch::TooMany { stream: left.name.clone() });
            }
        }
        for (left, right) in self.streams.iter_mut().zip(&other.streams) {
            left.sums.merge(&right.sums).expect("the dimensions were compared");
            left.n_tokens = left.n_tokens.max(right.n_tokens);
        }
        if self.model_hash.is_empty() {
            self.model_hash.clone_from(&other.model_hash);
        }
        Ok(())
    }

    /// Reads files and merges them in their order.
    pub fn load_merged(paths: &[impl AsRef<Path>]) -> Result<Self, StatsError> {
        let [first, rest @ ..] = paths else { return Err(StatsError::NoFile) };
        let mut merged = Self::load(first.as_ref())?;
        // An unknown model goes with any: the file to blame is the one that named it.
        let mut known_by = first.as_ref();
        for path in rest {
            let path = path.as_ref();
            let other = Self::load(path)?;
            let by_hash = merged.check_hash(&other.model_hash).is_err();
            let was_known = !merged.model_hash.is_empty();
            merged.merge(&other).map_err(|source| StatsError::Mismatch {
                left: if by_hash { known_by.to_owned() } else { first.as_ref().to_owned() },
                right: path.to_owned(),
                source,
            })?;
            if !was_known {
                known_by = path;
            }
        }
        Ok(merged)
    }

    /// The sums by stream, if they are of the model described.
    pub fn sums_for(self, description: &Description) -> Result<Vec<Sums>, Mismatch> {
        self.check_hash(&description.model_hash)?;
        self.check_names(description.streams.iter().map(|stream| stream.name.as_str()))?;
        for (left, right) in self.streams.iter().zip(&description.streams) {
            check_stream(left, right.d, right.consumed, description.words(right.side).count)?;
        }
        Ok(self.streams.into_iter().map(|stream| stream.sums).collect())
    }

    fn check_hash(&self, other: &str) -> Result<(), Mismatch> {
        if self.model_hash.is_empty() || other.is_empty() || self.model_hash == other {
            return Ok(());
        }
        Err(Mismatch::Model { left: self.model_hash.clone(), right: other.to_owned() })
    }

    fn check_names<'a>(&self, others: impl Iterator<Item = &'a str> + Clone) -> Result<(), Mismatch> {
        if self.streams.iter().map(|stream| stream.name.as_str()).eq(others.clone()) {
            return Ok(());
        }
        let list = |names: &mut dyn Iterator<Item = &str>| names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let left = list(&mut self.streams.iter().map(|stream| stream.name.as_str()));
        Err(Mismatch::Streams { left, right: list(&mut others.into_iter()) })
    }
}

fn check_stream(left: &StreamSums, d: usize, consumed: Consumed, n_tokens: u32) -> Result<(), Mismatch> {
    let stream = || left.name.clone();
    if left.sums.d() != d {
        return Err(Mismatch::Dimensions { stream: stream(), left: left.sums.d(), right: d });
    }
    if left.consumed != consumed {
        return Err(Mismatch::Consumed { stream: stream() });
    }
    // The number of a state without a token is that of no word: it must be the same on both sides.
    if consumed == Consumed::Previous && left.n_tokens != n_tokens {
        return Err(Mismatch::Tokens { stream: stream(), left: left.n_tokens, right: n_tokens });
    }
    Ok(())
}
