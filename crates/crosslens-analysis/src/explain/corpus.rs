//! Where recorded sentences come from.

use std::ops::Range;

use crate::{Description, Fed, Pair, RecordError, Recordable, Recorded, Recording, Token};

/// Why sentences cannot be had.
pub type CorpusError = Box<dyn std::error::Error + Send + Sync>;

/// Recorded sentences, read as they are needed: twice or three times, a few at a time.
pub trait Corpus: Sync {
    /// What was recorded.
    fn description(&self) -> &Description;

    /// How many sentences there are.
    fn n_sentences(&self) -> u64;

    /// How many of them are in hand at a time; fewer where each is large.
    fn batch_size(&self) -> u64 {
        super::batch::MOST
    }

    /// Some of them by their places, each with its number: of a recording the one it was recorded under, else its place.
    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError>;

    /// The same for sums: states and attention are there; what was predicted and its loss need not be, where they take work.
    fn read_states(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.read(sentences)
    }

    /// Those among them whose numbers are wanted; a model need not run the others.
    fn read_wanted(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        let mut read = self.read(sentences)?;
        read.retain(|sentence| is_wanted(sentence.number));
        Ok(read)
    }

    /// The same for states and attention, as [`Corpus::read_states`] reads them.
    fn read_wanted_states(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        self.read_wanted(sentences, is_wanted)
    }

    /// Whether several threads may read at once, each a part: so with files, but not with models, which have threads of their own.
    fn is_read_in_parts(&self) -> bool {
        false
    }

    /// The model, where it can be run again.
    fn model(&self) -> Option<&dyn Recordable>;
}

/// A model and pairs made on demand; the model feeds itself, as it would alone.
pub struct Live<'a> {
    /// Whose attention is explained.
    pub model: &'a dyn Recordable,
    /// Pair number so and so.
    pub pair: &'a (dyn Fn(u64) -> Pair + Sync),
    /// How many pairs there are.
    pub n_pairs: u64,
    /// What the decoder reads.
    pub fed: Fed<'a>,
}

impl Live<'_> {
    /// What the model makes of the pairs with these numbers, by one of its ways to record.
    fn recorded(
        &self,
        numbers: Vec<u64>,
        record: impl FnOnce(&dyn Recordable, &[Pair], Fed<'_>) -> Result<Vec<Recorded>, RecordError>,
    ) -> Result<Vec<Recorded>, CorpusError> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let pairs: Vec<Pair> = numbers.iter().map(|&number| (self.pair)(number)).collect();
        let of_these: Vec<Vec<Token>>;
        let fed = match self.fed {
            Fed::Given(lists) => {
                let missing = || format!("{} lists of fed tokens are given for {} pairs", lists.len(), self.n_pairs);
                let list = |&number: &u64| lists.get(usize::try_from(number).ok()?).cloned();
                of_these = numbers.iter().map(list).collect::<Option<_>>().ok_or_else(missing)?;
                Fed::Given(&of_these)
            }
            other => other,
        };
        let mut recorded = record(self.model, &pairs, fed)?;
        recorded.iter_mut().zip(numbers).for_each(|(sentence, number)| sentence.number = number);
        Ok(recorded)
    }
}

impl Corpus for Live<'_> {
    fn description(&self) -> &Description {
        self.model.description()
    }

    fn n_sentences(&self) -> u64 {
        self.n_pairs
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.recorded(sentences.collect(), |model, pairs, fed| model.record(pairs, fed))
    }

    fn read_states(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.recorded(sentences.collect(), |model, pairs, fed| model.record_states(pairs, fed))
    }

    fn read_wanted(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        let wanted = sentences.filter(|&number| is_wanted(number)).collect();
        self.recorded(wanted, |model, pairs, fed| model.record(pairs, fed))
    }

    fn read_wanted_states(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        let wanted = sentences.filter(|&number| is_wanted(number)).collect();
        self.recorded(wanted, |model, pairs, fed| model.record_states(pairs, fed))
    }

    fn model(&self) -> Option<&dyn Recordable> {
        Some(self.model)
    }
}

/// What was recorded can be explained, but not run again.
impl Corpus for Recording {
    fn description(&self) -> &Description {
        self.description()
    }

    fn n_sentences(&self) -> u64 {
        self.len()
    }

    fn batch_size(&self) -> u64 {
        let (n_source, n_target) = self.longest();
        super::batch::batch_size(self.description(), n_source as usize, n_target as usize)
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        Ok(self.read(sentences)?)
    }

    fn is_read_in_parts(&self) -> bool {
        true
    }

    fn model(&self) -> Option<&dyn Recordable> {
        None
    }
}

/// The beginning of a corpus.
pub struct First<'a> {
    /// Of what.
    pub corpus: &'a dyn Corpus,
    /// How many of its sentences; all, where it has fewer.
    pub n_sentences: u64,
}

impl Corpus for First<'_> {
    fn description(&self) -> &Description {
        self.corpus.description()
    }

    fn n_sentences(&self) -> u64 {
        self.n_sentences.min(self.corpus.n_sentences())
    }

    fn batch_size(&self) -> u64 {
        self.corpus.batch_size()
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.corpus.read(sentences)
    }

    fn read_states(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.corpus.read_states(sentences)
    }

    fn read_wanted(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        self.corpus.read_wanted(sentences, is_wanted)
    }

    fn read_wanted_states(&self, sentences: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        self.corpus.read_wanted_states(sentences, is_wanted)
    }

    fn is_read_in_parts(&self) -> bool {
        self.corpus.is_read_in_parts()
    }

    fn model(&self) -> Option<&dyn Recordable> {
        self.corpus.model()
    }
}

/// Some sentences of a corpus, equally far apart.
pub struct EveryNth<'a> {
    /// Of what.
    pub corpus: &'a dyn Corpus,
    /// The place of the first.
    pub first: u64,
    /// From one to the next; at least 1.
    pub n: u64,
}

/// Sentences no farther apart are read together with what lies between them, so that a file is not opened for each.
const NEAR: u64 = 8;

impl EveryNth<'_> {
    /// The sentences at these places, which `read` reads with those between them.
    fn sparse(
        &self,
        sentences: Range<u64>,
        read: impl Fn(Range<u64>) -> Result<Vec<Recorded>, CorpusError>,
    ) -> Result<Vec<Recorded>, CorpusError> {
        let mut kept = Vec::new();
        let together = if self.n <= NEAR { self.corpus.batch_size().max(1) } else { 1 };
        let mut next = sentences.start;
        while next < sentences.end {
            let from = self.first + next * self.n;
            let to = (from + together).min(self.first + (sentences.end - 1) * self.n + 1);
            let before = kept.len();
            kept.extend(read(from..to)?.into_iter().step_by(usize::try_from(self.n)?));
            next += (kept.len() - before) as u64;
        }
        Ok(kept)
    }
}

impl Corpus for EveryNth<'_> {
    fn description(&self) -> &Description {
        self.corpus.description()
    }

    fn n_sentences(&self) -> u64 {
        self.corpus.n_sentences().saturating_sub(self.first).div_ceil(self.n)
    }

    fn batch_size(&self) -> u64 {
        self.corpus.batch_size()
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.sparse(sentences, |range| self.corpus.read(range))
    }

    fn read_states(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.sparse(sentences, |range| self.corpus.read_states(range))
    }

    fn is_read_in_parts(&self) -> bool {
        self.corpus.is_read_in_parts()
    }

    fn model(&self) -> Option<&dyn Recordable> {
        self.corpus.model()
    }
}
