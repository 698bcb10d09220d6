//! `*.stats.safetensors`: the sums of all streams in one file.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{MAX_STATES, Stats, StatsError, StreamSums};
use crate::components::TokenSum;
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::files;
use crate::storage::safetensors::{self, Tensor, Values};
use crate::{Consumed, RecordingError, Sums};

/// The format and its version.
const SCHEMA: &str = "crosslens-stats/1";
/// How the schema of every version begins.
const SCHEMAS: &str = "crosslens-stats/";

/// The arrays of a stream.
const N: &str = "n";
const BY_STEP: &str = "by_step";
const TOKENS: &str = "tokens";
const M: &str = "m";
const BY_TOKEN: &str = "by_token";
const C_LENGTHS: &str = "c_lengths";
const C_STEPS: &str = "c_steps";
const C_TIMES: &str = "c_times";
const SQUARES: &str = "squares";
const ARRAYS: [&str; 9] = [N, BY_STEP, TOKENS, M, BY_TOKEN, C_LENGTHS, C_STEPS, C_TIMES, SQUARES];

fn array(stream: usize, name: &str) -> String {
    format!("streams.{stream}.{name}")
}

/// What the header says of a stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamEntry {
    name: String,
    #[serde(with = "crate::recorded::ConsumedName")]
    consumed: Consumed,
    d: usize,
    n_tokens: u32,
}

/// The sums of a stream as flat arrays.
#[derive(Default)]
struct Flat {
    tokens: Vec<u32>,
    m: Vec<u64>,
    by_token: Vec<f64>,
    c_lengths: Vec<u32>,
    c_steps: Vec<u32>,
    c_times: Vec<u64>,
    squares: [f64; 1],
}

impl Flat {
    fn of(sums: &Sums) -> Self {
        let mut flat = Self { squares: [sums.squares()], ..Self::default() };
        for token in sums.tokens() {
            flat.tokens.push(token.token);
            flat.m.push(token.count);
            flat.by_token.extend(&token.sum[..]);
            flat.c_lengths.push(token.steps.len() as u32);
            flat.c_steps.extend(token.steps.iter().map(|&(step, _)| step));
            flat.c_times.extend(token.steps.iter().map(|&(_, times)| times));
        }
        flat
    }

    fn tensors<'a>(&'a self, stream: usize, sums: &'a Sums) -> Vec<Tensor<'a>> {
        let tensor = |name: &str, shape: Vec<usize>, values: Values<'a>| Tensor {
            name: array(stream, name),
            shape: shape.into_iter().map(|size| size as u64).collect(),
            values,
        };
        let (n_steps, n_tokens, d) = (sums.n_steps(), self.tokens.len(), sums.d());
        vec![
            tensor(N, vec![n_steps], Values::U64(sums.step_counts())),
            tensor(BY_STEP, vec![n_steps, d], Values::F64(sums.by_step())),
            tensor(TOKENS, vec![n_tokens], Values::U32(&self.tokens)),
            tensor(M, vec![n_tokens], Values::U64(&self.m)),
            tensor(BY_TOKEN, vec![n_tokens, d], Values::F64(&self.by_token)),
            tensor(C_LENGTHS, vec![n_tokens], Values::U32(&self.c_lengths)),
            tensor(C_STEPS, vec![self.c_steps.len()], Values::U32(&self.c_steps)),
            tensor(C_TIMES, vec![self.c_times.len()], Values::U64(&self.c_times)),
            tensor(SQUARES, vec![1], Values::F64(&self.squares)),
        ]
    }
}

impl Stats {
    /// Writes the sums to a file, which is whole or not there. Sums that [`Stats::load`] would refuse are not written.
    pub fn save(&self, path: &Path) -> Result<(), StatsError> {
        check_names(path, self.streams.iter().map(|stream| stream.name.as_str()))?;
        self.streams.iter().try_for_each(|stream| check(path, stream))?;
        let entries: Vec<_> = self
            .streams
            .iter()
            .map(|StreamSums { name, consumed, n_tokens, sums }| StreamEntry {
                name: name.clone(),
                consumed: *consumed,
                d: sums.d(),
                n_tokens: *n_tokens,
            })
            .collect();
        let streams = serde_json::to_string(&entries).expect("names and numbers");
        let metadata = BTreeMap::from([("schema", SCHEMA.to_owned()), ("model_hash", self.model_hash.clone()), ("streams", streams)]);
        let flat: Vec<Flat> = self.streams.iter().map(|stream| Flat::of(&stream.sums)).collect();
        let tensors = self.streams.iter().zip(&flat).enumerate().flat_map(|(place, (stream, flat))| flat.tensors(place, &stream.sums));
        let mut tensors: Vec<Tensor<'_>> = tensors.collect();
        Ok(files::write_atomically(path, |file| safetensors::write(file, &metadata, &mut tensors))?)
    }

    /// Reads the sums of a file. Every size is checked against the file before memory is taken, every count against the others.
    pub fn load(path: &Path) -> Result<Self, StatsError> {
        let no_sums = |what: &str| StatsError::NotStats { path: path.to_owned(), what: what.to_owned() };
        if path.is_dir() {
            return Err(no_sums("it is a folder"));
        }
        let arrays = safetensors::open(path)?;
        let found = arrays.metadata("schema").ok_or_else(|| no_sums("its header names no schema"))?;
        if found != SCHEMA {
            return Err(match found.starts_with(SCHEMAS) {
                true => StatsError::Schema { path: path.to_owned(), found: found.to_owned(), known: SCHEMA },
                false => no_sums(&format!("its schema is `{found}`")),
            });
        }
        let model_hash = arrays.metadata("model_hash").ok_or_else(|| no_sums("its header names no model"))?.to_owned();
        let entries = arrays.metadata("streams").ok_or_else(|| no_sums("its header names no streams"))?;
        let entries: Vec<StreamEntry> = serde_json::from_str(entries)
            .map_err(|error| RecordingError::Damaged { path: path.to_owned(), what: format!("streams: {error}") })?;
        check_names(path, entries.iter().map(|entry| entry.name.as_str()))?;
        let known: HashSet<String> = (0..entries.len()).flat_map(|place| ARRAYS.map(|name| array(place, name))).collect();
        arrays.refuse_unknown(|name| known.contains(name))?;

        let streams = entries.into_iter().enumerate().map(|(place, entry)| {
            let stream = read(&arrays, place, entry)?;
            check(path, &stream)?;
            Ok(stream)
        });
        Ok(Self { model_hash, streams: streams.collect::<Result<_, StatsError>>()? })
    }
}

fn check_names<'a>(path: &Path, names: impl Iterator<Item = &'a str>) -> Result<(), StatsError> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(RecordingError::Duplicate { path: path.to_owned(), name: name.to_owned() }.into()),
        None => Ok(()),
    }
}

fn read(arrays: &Arrays, place: usize, entry: StreamEntry) -> Result<StreamSums, StatsError> {
    let name = |name: &str| array(place, name);
    let inconsistent =
        |what: &str| StatsError::Inconsistent { path: arrays.path().to_owned(), stream: entry.name.clone(), what: what.to_owned() };
    let StreamEntry { d, n_tokens, consumed, .. } = entry;
    if d == 0 {
        return Err(inconsistent("its states have no dimension"));
    }
    let [n_steps] = arrays.shape(&name(N), &[Dtype::U64])?;
    let [n_seen] = arrays.shape(&name(TOKENS), &[Dtype::U32])?;
    let [n_places] = arrays.shape(&name(C_STEPS), &[Dtype::U32])?;
    arrays.expect(&name(BY_STEP), &[Dtype::F64], [n_steps, d as u64])?;
    arrays.expect(&name(M), &[Dtype::U64], [n_seen])?;
    arrays.expect(&name(BY_TOKEN), &[Dtype::F64], [n_seen, d as u64])?;
    arrays.expect(&name(C_LENGTHS), &[Dtype::U32], [n_seen])?;
    arrays.expect(&name(C_TIMES), &[Dtype::U64], [n_places])?;
    arrays.expect(&name(SQUARES), &[Dtype::F64], [1])?;

    let tokens: Vec<u32> = arrays.all(&name(TOKENS))?;
    let lengths: Vec<u64> = arrays.all(&name(C_LENGTHS))?;
    if lengths.iter().map(|&length| u128::from(length)).sum::<u128>() != u128::from(n_places) {
        return Err(inconsistent("the lengths of its rows of counts do not add up to the counts there are"));
    }
    let counts: Vec<u64> = arrays.all(&name(M))?;
    let (by_token, c_steps, c_times) = (name(BY_TOKEN), name(C_STEPS), name(C_TIMES));
    let mut sums = arrays.numbers(&by_token, 0)?;
    let (mut steps, mut times) = (arrays.numbers(&c_steps, 0)?, arrays.numbers(&c_times, 0)?);
    let mut rows = Vec::with_capacity(tokens.len());
    for ((token, count), length) in tokens.into_iter().zip(counts).zip(lengths) {
        let (steps, times): (Vec<u32>, Vec<u64>) = (steps.take(length)?, times.take(length)?);
        let sum: Vec<f64> = sums.take(d as u64)?;
        rows.push(TokenSum { token, count, sum: sum[..].into(), steps: steps.into_iter().zip(times).collect() });
    }
    let squares: Vec<f64> = arrays.all(&name(SQUARES))?;
    let by_step: Vec<f64> = arrays.all(&name(BY_STEP))?;
    let sums =
        Sums::from_parts(d, arrays.all(&name(N))?, &by_step, rows, squares[0]).ok_or_else(|| inconsistent("a token stands in it twice"))?;
    Ok(StreamSums { name: entry.name, consumed, n_tokens, sums })
}

/// Fails unless `Σ_t n = Σ_w m = Σ c`, row by row and column by column, every token is among the words and every number is finite.
fn check(path: &Path, stream: &StreamSums) -> Result<(), StatsError> {
    contradiction(stream).map_or(Ok(()), |what| Err(StatsError::Inconsistent { path: path.to_owned(), stream: stream.name.clone(), what }))
}

fn contradiction(stream: &StreamSums) -> Option<String> {
    let sums = &stream.sums;
    if sums.d() == 0 {
        return Some("its states have no dimension".into());
    }
    let total: u128 = sums.step_counts().iter().map(|&n| u128::from(n)).sum();
    if total > u128::from(MAX_STATES) {
        return Some(format!("{total} states are more than 2^53"));
    }
    // Every count below is added to a sum that is at most 2^53 or refused.
    let mut by_step = vec![0u64; sums.n_steps()];
    for TokenSum { token, count, sum, steps } in sums.tokens() {
        if u64::from(*token) >= stream.token_end() {
            return Some(format!("token {token} is beyond the {} there are", stream.token_end()));
        }
        let mut by_token = 0u64;
        let mut next = 0;
        for &(step, times) in steps {
            if step < next {
                return Some(format!("the steps of token {token} do not ascend"));
            }
            next = step.saturating_add(1);
            let Some(at_step) = by_step.get_mut(step as usize) else {
                return Some(format!("token {token} stands at step {step} of {}", sums.n_steps()));
            };
            if times == 0 || times > MAX_STATES {
                return Some(format!("token {token} stands {times} times at step {step}"));
            }
            *at_step = at_step.saturating_add(times);
            by_token = by_token.saturating_add(times);
        }
        if by_token != *count || *count == 0 {
            return Some(format!("token {token} was seen {count} times, but at its steps {by_token} times"));
        }
        if !is_finite(sum) {
            return Some(format!("the sum of token {token} is not finite"));
        }
    }
    if let Some(step) = (0..sums.n_steps()).find(|&step| by_step[step] != sums.step_counts()[step]) {
        return Some(format!("step {step} was reached {} times, but by tokens {} times", sums.step_counts()[step], by_step[step]));
    }
    if !is_finite(sums.by_step()) {
        return Some("the sum of a step is not finite".into());
    }
    if !sums.squares().is_finite() || sums.squares() < 0.0 {
        return Some(format!("the sum of squares is {}", sums.squares()));
    }
    None
}

fn is_finite(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}
