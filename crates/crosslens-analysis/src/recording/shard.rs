//! One shard: the numbers of some sentences, one after the other in flat arrays.
//!
//! Where a sentence's numbers begin follows from the lengths of those before it. They are summed up once, when the shard is opened, and the
//! sums at every [`STRIDE`]th sentence are kept: a read then looks at no more than so many lengths too many.

use std::ops::Range;
use std::path::Path;

use super::{RecordingError, check, name};
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::safetensors;
use crate::{Description, Recorded, Side};

/// Sentences between two sums that are kept.
const STRIDE: u64 = 1024;

/// A shard whose header and lengths were found to agree.
#[derive(Debug)]
pub(super) struct Shard {
    arrays: Arrays,
    /// How many sentences come before it.
    first: u64,
    n_sentences: u64,
    /// Steps of its longest source and target.
    longest: (u64, u64),
    /// Where sentences 0, [`STRIDE`], 2 [`STRIDE`]… begin.
    marks: Vec<Begin>,
}

/// The lengths of one sentence.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    source: u64,
    target: u64,
    is_kept: bool,
}

impl Lengths {
    fn of(self, side: Side) -> u64 {
        match side {
            Side::Source => self.source,
            Side::Target => self.target,
        }
    }

    /// Weights of one site: none where they were not kept.
    fn attention(self, sides: (Side, Side)) -> Option<u64> {
        if self.is_kept { self.of(sides.0).checked_mul(self.of(sides.1)) } else { Some(0) }
    }
}

/// Where a sentence begins: how much of everything comes before it.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    source: u64,
    target: u64,
    /// By the sides of query and key.
    attention: [[u64; 2]; 2],
}

impl Begin {
    /// Where the next sentence begins; none where that cannot be counted.
    fn after(mut self, lengths: Lengths) -> Option<Self> {
        self.source = self.source.checked_add(lengths.source)?;
        self.target = self.target.checked_add(lengths.target)?;
        for query in [Side::Source, Side::Target] {
            for key in [Side::Source, Side::Target] {
                let sum = &mut self.attention[query as usize][key as usize];
                *sum = sum.checked_add(lengths.attention((query, key))?)?;
            }
        }
        Some(self)
    }

    fn rows(&self, side: Side) -> u64 {
        match side {
            Side::Source => self.source,
            Side::Target => self.target,
        }
    }
}

/// The sides of a site's query and key.
fn sides(description: &Description, site: usize) -> (Side, Side) {
    let site = &description.sites[site];
    (description.streams[site.query].side, description.streams[site.key].side)
}

impl Shard {
    /// Opens the shard of `n_sentences` sentences that follow the `first` of a recording. The description was checked before.
    pub(super) fn open(path: &Path, description: &Description, first: u64, n_sentences: u64) -> Result<Self, RecordingError> {
        let mut shard = Self { arrays: safetensors::open(path)?, first, n_sentences, longest: (0, 0), marks: Vec::new() };
        shard.expect_per_sentence()?;
        let end = shard.sum_lengths()?;
        shard.expect_rows(description, end)?;
        Ok(shard)
    }

    pub(super) fn n_sentences(&self) -> u64 {
        self.n_sentences
    }

    /// Steps of its longest source and target.
    pub(super) fn longest(&self) -> (u64, u64) {
        self.longest
    }

    fn expect_per_sentence(&self) -> Result<(), RecordingError> {
        let arrays = [
            (name::NUMBERS, Dtype::U64),
            (name::LOSSES, Dtype::F64),
            (name::SOURCE_LENGTHS, Dtype::U32),
            (name::TARGET_LENGTHS, Dtype::U32),
            (name::PREDICTED_KNOWN, Dtype::U8),
            (name::TARGET_KNOWN, Dtype::U8),
            (name::ATTENTION_KEPT, Dtype::U8),
        ];
        arrays.iter().try_for_each(|(name, dtype)| self.arrays.expect(name, &[*dtype], [self.n_sentences]))
    }

    /// Keeps where every [`STRIDE`]th sentence begins; returns where the last one ends.
    fn sum_lengths(&mut self) -> Result<Begin, RecordingError> {
        let mut begin = Begin::default();
        let mut sentence = 0;
        while sentence < self.n_sentences {
            self.marks.push(begin);
            let block = self.lengths(sentence..self.n_sentences.min(sentence + STRIDE))?;
            for (place, lengths) in block.iter().enumerate() {
                let side = if lengths.source == 0 { Side::Source } else { Side::Target };
                if lengths.of(side) == 0 {
                    let sentence = self.first + sentence + place as u64;
                    return Err(RecordingError::EmptySentence { path: self.arrays.path().to_owned(), sentence, side });
                }
                begin = begin.after(*lengths).ok_or_else(|| self.uncountable())?;
                self.longest = (self.longest.0.max(lengths.source), self.longest.1.max(lengths.target));
            }
            sentence += block.len() as u64;
        }
        Ok(begin)
    }

    fn uncountable(&self) -> RecordingError {
        RecordingError::Damaged { path: self.arrays.path().to_owned(), what: "the lengths of its sentences add up beyond any file".into() }
    }

    /// Fails unless all arrays have as many rows as the lengths add up to, and no other array is there.
    fn expect_rows(&self, description: &Description, end: Begin) -> Result<(), RecordingError> {
        let tokens =
            [(name::SOURCE, Side::Source), (name::FED, Side::Target), (name::PREDICTED, Side::Target), (name::TARGET, Side::Target)];
        for (name, side) in tokens {
            let [rows] = self.arrays.shape(name, &[Dtype::U32])?;
            self.expect_sum(name, end.rows(side), rows)?;
        }
        let mut others = std::collections::BTreeSet::new();
        for stream in &description.streams {
            let name = name::states(&stream.name);
            let [rows, d] = self.arrays.shape(&name, &[Dtype::F32])?;
            if d != stream.d as u64 {
                return Err(self.arrays.misshapen(&name, &[rows, d], &format!("[{rows}, {}]", stream.d)));
            }
            self.expect_sum(&name, end.rows(stream.side), rows)?;
            others.insert(name);
        }
        for site in 0..description.sites.len() {
            let name = name::attention(site);
            let [weights] = self.arrays.shape(&name, &[Dtype::F32])?;
            let (query, key) = sides(description, site);
            self.expect_sum(&name, end.attention[query as usize][key as usize], weights)?;
            others.insert(name);
        }
        let is_token_array = |name: &str| tokens.iter().any(|(known, _)| *known == name);
        self.arrays.refuse_unknown(|name| is_token_array(name) || name::PER_SENTENCE.contains(&name) || others.contains(name))
    }

    fn expect_sum(&self, name: &str, lengths: u64, rows: u64) -> Result<(), RecordingError> {
        if lengths == rows {
            return Ok(());
        }
        Err(RecordingError::Lengths { path: self.arrays.path().to_owned(), name: name.to_owned(), lengths, rows })
    }

    fn lengths(&self, range: Range<u64>) -> Result<Vec<Lengths>, RecordingError> {
        let count = range.end - range.start;
        let source: Vec<u64> = self.arrays.numbers(name::SOURCE_LENGTHS, range.start)?.take(count)?;
        let target: Vec<u64> = self.arrays.numbers(name::TARGET_LENGTHS, range.start)?.take(count)?;
        let kept: Vec<u8> = self.arrays.numbers(name::ATTENTION_KEPT, range.start)?.take(count)?;
        let sentences = source.into_iter().zip(target).zip(kept);
        Ok(sentences.map(|((source, target), kept)| Lengths { source, target, is_kept: kept != 0 }).collect())
    }

    /// Reads sentences by their places in the shard, which must be among it.
    pub(super) fn read(&self, description: &Description, range: Range<u64>) -> Result<Vec<Recorded>, RecordingError> {
        let mark = range.start / STRIDE;
        let mut begin = self.marks.get(mark as usize).copied().unwrap_or_default();
        for lengths in self.lengths(mark * STRIDE..range.start)? {
            begin = begin.after(lengths).ok_or_else(|| self.uncountable())?;
        }
        let lengths = self.lengths(range.clone())?;
        let mut sentences = vec![Recorded::default(); lengths.len()];

        self.read_tokens(begin, &lengths, &mut sentences)?;
        self.read_facts(&range, &mut sentences)?;
        for stream in &description.streams {
            let name = name::states(&stream.name);
            let mut numbers = self.arrays.numbers(&name, begin.rows(stream.side).saturating_mul(stream.d as u64))?;
            for (sentence, lengths) in sentences.iter_mut().zip(&lengths) {
                sentence.states.push(numbers.take(lengths.of(stream.side).saturating_mul(stream.d as u64))?);
            }
        }
        for site in 0..description.sites.len() {
            let name = name::attention(site);
            let (query, key) = sides(description, site);
            let mut numbers = self.arrays.numbers(&name, begin.attention[query as usize][key as usize])?;
            for (sentence, lengths) in sentences.iter_mut().zip(&lengths).filter(|(_, lengths)| lengths.is_kept) {
                let count = lengths.attention((query, key)).ok_or_else(|| self.uncountable())?;
                sentence.attention.push(numbers.take(count)?);
            }
        }

        for (place, sentence) in (self.first + range.start..).zip(&sentences) {
            check::sentence(self.arrays.path(), description, place, sentence)?;
        }
        Ok(sentences)
    }

    fn read_tokens(&self, begin: Begin, lengths: &[Lengths], sentences: &mut [Recorded]) -> Result<(), RecordingError> {
        let mut source = self.arrays.numbers(name::SOURCE, begin.source)?;
        let mut fed = self.arrays.numbers(name::FED, begin.target)?;
        let mut predicted = self.arrays.numbers(name::PREDICTED, begin.target)?;
        let mut target = self.arrays.numbers(name::TARGET, begin.target)?;
        for (sentence, lengths) in sentences.iter_mut().zip(lengths) {
            sentence.source = source.take(lengths.source)?;
            sentence.fed = fed.take(lengths.target)?;
            sentence.predicted = predicted.take(lengths.target)?;
            sentence.target = Some(target.take(lengths.target)?);
        }
        Ok(())
    }

    /// What a sentence has once: its number, its loss, and what is known of it.
    fn read_facts(&self, range: &Range<u64>, sentences: &mut [Recorded]) -> Result<(), RecordingError> {
        let count = range.end - range.start;
        let numbers: Vec<u64> = self.arrays.numbers(name::NUMBERS, range.start)?.take(count)?;
        let losses: Vec<f64> = self.arrays.numbers(name::LOSSES, range.start)?.take(count)?;
        let predicted: Vec<u8> = self.arrays.numbers(name::PREDICTED_KNOWN, range.start)?.take(count)?;
        let target: Vec<u8> = self.arrays.numbers(name::TARGET_KNOWN, range.start)?.take(count)?;
        for (place, sentence) in sentences.iter_mut().enumerate() {
            sentence.number = numbers[place];
            sentence.loss = Some(losses[place]).filter(|loss| !loss.is_nan());
            if predicted[place] == 0 {
                sentence.predicted = Vec::new();
            }
            if target[place] == 0 {
                sentence.target = None;
            }
        }
        Ok(())
    }
}
