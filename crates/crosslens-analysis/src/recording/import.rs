//! Dumps of other frameworks: one `.npz` or `.safetensors` file of padded arrays.
//!
//! ```text
//! key_states    [N, S, d_key]     query_states    [N, T, d_query]    real numbers
//! key_tokens    [N, S]            query_tokens    [N, T]             whole numbers
//! key_lengths   [N]               query_lengths   [N]                whole numbers from 1 to S, T
//! target_tokens [N, T]            predicted_tokens [N, T]            if known
//! attention     [N, H, T, S]                                         if kept
//! losses        [N]                                                  if known, NaN where not
//! causal        []                                                   1 where a query sees its own step and those before
//!
//! query_weights [H, d_query, d_head]  query_bias [H, d_head]  key_weights [H, d_key, d_head]  key_bias [H, d_head]  scale []
//! position_bias [H, n]  position_bias_lowest []
//! additive_query [d_query, a]  additive_key [d_key, a]  additive_bias [a]  additive_vector [a]
//! about         [bytes]                                              JSON: kind, layer and heads, names of the tokens
//! ```
//! With `query_weights` and `key_weights` the score is projected and there are `H` heads; with the `additive_` arrays it is additive; with
//! neither it is the dot product, times `scale` if that is given. What lies beyond the lengths is never looked at.

use std::ops::Range;
use std::path::Path;

use super::about::{ABOUT, About};
use super::{RecordingError, check};
use crate::storage::arrays::{Arrays, Numbers};
use crate::storage::dtype::Dtype;
use crate::storage::{npz, safetensors};
use crate::{Consumed, Description, Linear, Recorded, RelativeBias, ScoreMap, Side, Site, SiteKind, Stream, Token, Visible, Words};

const KEY_STATES: &str = "key_states";
const QUERY_STATES: &str = "query_states";
const KEY_TOKENS: &str = "key_tokens";
const QUERY_TOKENS: &str = "query_tokens";
const KEY_LENGTHS: &str = "key_lengths";
const QUERY_LENGTHS: &str = "query_lengths";
const TARGET_TOKENS: &str = "target_tokens";
const PREDICTED_TOKENS: &str = "predicted_tokens";
const ATTENTION: &str = "attention";
const LOSSES: &str = "losses";
const CAUSAL: &str = "causal";
const QUERY_WEIGHTS: &str = "query_weights";
const QUERY_BIAS: &str = "query_bias";
const KEY_WEIGHTS: &str = "key_weights";
const KEY_BIAS: &str = "key_bias";
const SCALE: &str = "scale";
const POSITION_BIAS: &str = "position_bias";
const POSITION_BIAS_LOWEST: &str = "position_bias_lowest";
const ADDITIVE_QUERY: &str = "additive_query";
const ADDITIVE_KEY: &str = "additive_key";
const ADDITIVE_BIAS: &str = "additive_bias";
const ADDITIVE_VECTOR: &str = "additive_vector";

const PROJECTED: [&str; 6] = [QUERY_WEIGHTS, QUERY_BIAS, KEY_WEIGHTS, KEY_BIAS, POSITION_BIAS, POSITION_BIAS_LOWEST];
const ADDITIVE: [&str; 4] = [ADDITIVE_QUERY, ADDITIVE_KEY, ADDITIVE_BIAS, ADDITIVE_VECTOR];
const DATA: [&str; 12] = [
    KEY_STATES,
    QUERY_STATES,
    KEY_TOKENS,
    QUERY_TOKENS,
    KEY_LENGTHS,
    QUERY_LENGTHS,
    TARGET_TOKENS,
    PREDICTED_TOKENS,
    ATTENTION,
    LOSSES,
    CAUSAL,
    ABOUT,
];

/// Sentences whose tokens are looked at together when the words are counted.
const BLOCK: u64 = 1024;

fn is_known(name: &str) -> bool {
    name == SCALE || [&DATA[..], &PROJECTED, &ADDITIVE].iter().any(|names| names.contains(&name))
}

/// A dump whose arrays were found to agree.
#[derive(Debug)]
pub(super) struct Import {
    arrays: Arrays,
    n_sentences: u64,
    /// Steps of a key row, padding included.
    n_keys: u64,
    /// Steps of a query row.
    n_queries: u64,
    n_heads: u64,
    d_key: u64,
    d_query: u64,
    kind: SiteKind,
}

impl Import {
    /// Opens a `.npz` file and tells what it describes.
    pub(super) fn open_npz(path: &Path) -> Result<(Self, Description), RecordingError> {
        Self::new(npz::open(path, is_known)?)
    }

    /// Opens a `.safetensors` file and tells what it describes.
    pub(super) fn open_safetensors(path: &Path) -> Result<(Self, Description), RecordingError> {
        let arrays = safetensors::open(path)?;
        arrays.refuse_unknown(is_known)?;
        Self::new(arrays)
    }

    pub(super) fn n_sentences(&self) -> u64 {
        self.n_sentences
    }

    /// Steps that a source and a target have at most.
    pub(super) fn longest(&self) -> (u64, u64) {
        let (n_keys, n_queries) = (self.n_keys, self.n_queries);
        // Keys and queries that are the same tokens are on one side.
        if self.kind == SiteKind::Cross { (n_keys, n_queries) } else { (n_keys.max(n_queries), n_keys.max(n_queries)) }
    }

    fn new(arrays: Arrays) -> Result<(Self, Description), RecordingError> {
        let [n_sentences, n_keys, d_key] = arrays.shape(KEY_STATES, &Dtype::FLOATS)?;
        let [_, n_queries, d_query] = arrays.shape(QUERY_STATES, &Dtype::FLOATS)?;
        let n_heads = if arrays.has(QUERY_WEIGHTS) { arrays.shape::<3>(QUERY_WEIGHTS, &Dtype::FLOATS)?[0] } else { 1 };
        // An array without numbers can claim any number of heads or sentences.
        for (name, shape) in [(KEY_STATES, [n_sentences, n_keys, d_key]), (QUERY_STATES, [n_sentences, n_queries, d_query])] {
            if shape[2] == 0 {
                return Err(arrays.misshapen(name, &shape, "at least one dimension"));
            }
        }
        let about = About::read(&arrays)?;
        let import = Self { arrays, n_sentences, n_keys, n_queries, n_heads, d_key, d_query, kind: about.kind };
        import.check_shapes()?;

        let path = import.arrays.path();
        if n_sentences == 0 {
            return Err(RecordingError::Empty { path: path.to_owned() });
        }
        let maps = import.maps()?;
        let visible = if import.number(CAUSAL)?.is_some_and(|causal| causal != 0.0) { Visible::Causal } else { Visible::All };
        let (n_keys, n_queries) = import.count_words()?;
        let (source, target) = about.words(path, n_keys, n_queries)?;
        let (key_side, query_side) = check::sides(about.kind);
        let stream = |name: &str, side, d| Stream { name: name.to_owned(), side, consumed: Consumed::Current, d: d as usize };
        let heads = about.heads(path, maps.len())?;
        let sites = maps.into_iter().zip(heads).map(|(map, head)| Site {
            kind: about.kind,
            layer: about.layer,
            head,
            query: 1,
            key: 0,
            map,
            visible,
            value: None,
        });
        let sites: Vec<Site> = sites.collect();
        let description = Description {
            model: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            model_hash: import.hash(&sites, [&source, &target])?,
            source,
            target,
            streams: vec![stream("key", key_side, d_key), stream("query", query_side, d_query)],
            sites,
            readout: None,
        };
        check::description(path, &description)?;
        Ok((import, description))
    }

    /// FNV-1a, 64 bits in hexadecimal digits, of what dumps of one model have in common: their heads and how these score, and the names of
    /// tokens. How many tokens occur is left out.
    fn hash(&self, sites: &[Site], words: [&Words; 2]) -> Result<String, RecordingError> {
        let heads: Vec<_> = sites.iter().map(|site| (site.kind.name(), site.layer, site.head, site.visible == Visible::Causal)).collect();
        let words = words.map(|words| (&words.names, words.start, words.end));
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let text = serde_json::to_vec(&(heads, words, self.scale()?)).expect("names and numbers");
        let mut hash = text.into_iter().fold(0xcbf2_9ce4_8422_2325, add);
        for name in PROJECTED.iter().chain(&ADDITIVE).filter(|name| self.arrays.has(name)) {
            let numbers = self.arrays.all::<f64>(name)?;
            hash = name.bytes().chain(numbers.iter().flat_map(|number| number.to_bits().to_le_bytes())).fold(hash, add);
        }
        Ok(format!("{hash:016x}"))
    }

    /// Fails unless all arrays of the sentences agree on `N`, `S`, `T` and `H`.
    fn check_shapes(&self) -> Result<(), RecordingError> {
        let Self { arrays, n_sentences: n, n_keys, n_queries, n_heads, d_query, .. } = self;
        arrays.expect(QUERY_STATES, &Dtype::FLOATS, [*n, *n_queries, *d_query])?;
        arrays.expect(KEY_TOKENS, &Dtype::INTEGERS, [*n, *n_keys])?;
        arrays.expect(QUERY_TOKENS, &Dtype::INTEGERS, [*n, *n_queries])?;
        arrays.expect(KEY_LENGTHS, &Dtype::INTEGERS, [*n])?;
        arrays.expect(QUERY_LENGTHS, &Dtype::INTEGERS, [*n])?;
        for name in [TARGET_TOKENS, PREDICTED_TOKENS] {
            if arrays.has(name) {
                arrays.expect(name, &Dtype::INTEGERS, [*n, *n_queries])?;
            }
        }
        if arrays.has(LOSSES) {
            arrays.expect(LOSSES, &Dtype::FLOATS, [*n])?;
        }
        if arrays.has(ATTENTION) {
            arrays.expect(ATTENTION, &Dtype::FLOATS, [*n, *n_heads, *n_queries, *n_keys])?;
        }
        Ok(())
    }

    /// The score map of every head.
    fn maps(&self) -> Result<Vec<ScoreMap>, RecordingError> {
        let has = |names: &[&'static str]| names.iter().find(|name| self.arrays.has(name)).copied();
        match (has(&PROJECTED), has(&ADDITIVE)) {
            (None, None) => Ok(vec![ScoreMap::Dot { scale: self.scale()? }]),
            (Some(_), None) => self.projected(),
            (None, Some(_)) => self.additive(),
            (Some(projected), Some(additive)) => Err(RecordingError::Description {
                path: self.arrays.path().to_owned(),
                what: format!("`{projected}` belongs to a projected score and `{additive}` to an additive one"),
            }),
        }
    }

    fn projected(&self) -> Result<Vec<ScoreMap>, RecordingError> {
        let Self { arrays, n_heads, d_key, d_query, .. } = self;
        let [_, _, d_head] = arrays.shape(QUERY_WEIGHTS, &Dtype::FLOATS)?;
        if *n_heads == 0 || d_head == 0 {
            return Err(arrays.misshapen(QUERY_WEIGHTS, &[*n_heads, *d_query, d_head], "at least one head and one dimension"));
        }
        arrays.expect(QUERY_WEIGHTS, &Dtype::FLOATS, [*n_heads, *d_query, d_head])?;
        arrays.expect(KEY_WEIGHTS, &Dtype::FLOATS, [*n_heads, *d_key, d_head])?;
        for bias in [QUERY_BIAS, KEY_BIAS] {
            if arrays.has(bias) {
                arrays.expect(bias, &Dtype::FLOATS, [*n_heads, d_head])?;
            }
        }
        let scale = self.scale()?;
        let of_head = |weights: &str, bias: &str, head: u64, d_in: u64| {
            Ok::<_, RecordingError>(Linear {
                d_in: d_in as usize,
                d_out: d_head as usize,
                weights: arrays.numbers(weights, head * d_in * d_head)?.take(d_in * d_head)?,
                bias: if arrays.has(bias) { arrays.numbers(bias, head * d_head)?.take(d_head)? } else { Vec::new() },
            })
        };
        let map = |head| {
            let query = of_head(QUERY_WEIGHTS, QUERY_BIAS, head, *d_query)?;
            let key = of_head(KEY_WEIGHTS, KEY_BIAS, head, *d_key)?;
            Ok(ScoreMap::Projected { query, key, scale, position_bias: self.position_bias(head)?.map(Into::into) })
        };
        (0..*n_heads).map(map).collect()
    }

    /// What one head adds to a score for the distance of its two steps.
    fn position_bias(&self, head: u64) -> Result<Option<RelativeBias>, RecordingError> {
        let arrays = &self.arrays;
        let Some(lowest) = self.number(POSITION_BIAS_LOWEST)? else {
            return if arrays.has(POSITION_BIAS) { Err(missing(arrays, POSITION_BIAS_LOWEST)) } else { Ok(None) };
        };
        if lowest.fract() != 0.0 {
            let what = format!("`{POSITION_BIAS_LOWEST}` is {lowest}, not a whole number");
            return Err(RecordingError::Damaged { path: arrays.path().to_owned(), what });
        }
        let [_, n_distances] = arrays.shape(POSITION_BIAS, &Dtype::FLOATS)?;
        arrays.expect(POSITION_BIAS, &Dtype::FLOATS, [self.n_heads, n_distances])?;
        let values = arrays.numbers(POSITION_BIAS, head * n_distances)?.take(n_distances)?;
        Ok(Some(RelativeBias { lowest: lowest as i64, values }))
    }

    fn additive(&self) -> Result<Vec<ScoreMap>, RecordingError> {
        let Self { arrays, d_key, d_query, .. } = self;
        if arrays.has(SCALE) {
            let what = format!("an additive score has no `{SCALE}`");
            return Err(RecordingError::Description { path: arrays.path().to_owned(), what });
        }
        let [a] = arrays.shape(ADDITIVE_VECTOR, &Dtype::FLOATS)?;
        arrays.expect(ADDITIVE_QUERY, &Dtype::FLOATS, [*d_query, a])?;
        arrays.expect(ADDITIVE_KEY, &Dtype::FLOATS, [*d_key, a])?;
        let linear = |weights: &str, d_in: u64, bias| {
            Ok::<_, RecordingError>(Linear { d_in: d_in as usize, d_out: a as usize, weights: arrays.all(weights)?, bias })
        };
        let mut bias = Vec::new();
        if arrays.has(ADDITIVE_BIAS) {
            arrays.expect(ADDITIVE_BIAS, &Dtype::FLOATS, [a])?;
            bias = arrays.all(ADDITIVE_BIAS)?;
        }
        Ok(vec![ScoreMap::Additive {
            query: linear(ADDITIVE_QUERY, *d_query, Vec::new())?,
            key: linear(ADDITIVE_KEY, *d_key, bias)?,
            vector: arrays.all(ADDITIVE_VECTOR)?,
        }])
    }

    /// 1 where there is none.
    fn scale(&self) -> Result<f32, RecordingError> {
        Ok(self.number(SCALE)?.unwrap_or(1.0) as f32)
    }

    /// One number, as `[]` or `[1]`; `None` where there is none.
    fn number(&self, name: &str) -> Result<Option<f64>, RecordingError> {
        if !self.arrays.has(name) {
            return Ok(None);
        }
        let numeric = [&Dtype::FLOATS[..], &Dtype::INTEGERS, &[Dtype::Bool]].concat();
        if self.arrays.shape::<0>(name, &numeric).is_err() {
            self.arrays.expect(name, &numeric, [1])?;
        }
        Ok(self.arrays.all::<f64>(name)?.first().copied())
    }

    /// One more than the largest token of each side: how many words there are at least. Looks at every length and token.
    fn count_words(&self) -> Result<(u32, u32), RecordingError> {
        let (mut source, mut target) = (0, 0);
        let mut first = 0;
        while first < self.n_sentences {
            let range = first..self.n_sentences.min(first + BLOCK);
            for sentence in self.read_tokens(range.clone())? {
                let written = sentence.predicted.iter().chain(sentence.target.iter().flatten());
                source = source.max(self.count(KEY_TOKENS, sentence.source.iter())?);
                target = target.max(self.count(QUERY_TOKENS, sentence.fed.iter().chain(written))?);
            }
            first = range.end;
        }
        Ok((source, target))
    }

    fn count<'a>(&self, name: &str, tokens: impl Iterator<Item = &'a Token>) -> Result<u32, RecordingError> {
        let largest = tokens.max().copied().unwrap_or_default();
        let damaged =
            || RecordingError::Damaged { path: self.arrays.path().to_owned(), what: format!("`{name}` holds the token {largest}") };
        largest.checked_add(1).ok_or_else(damaged)
    }

    fn lengths(&self, name: &str, side: Side, most: u64, range: &Range<u64>) -> Result<Vec<u64>, RecordingError> {
        let lengths: Vec<u64> = self.arrays.numbers(name, range.start)?.take(range.end - range.start)?;
        for (sentence, length) in range.clone().zip(&lengths) {
            let path = self.arrays.path().to_owned();
            if *length == 0 {
                return Err(RecordingError::EmptySentence { path, sentence, side });
            }
            if *length > most {
                return Err(RecordingError::TooLong { path, name: name.to_owned(), sentence, length: *length, most });
            }
        }
        Ok(lengths)
    }

    /// Reads everything but states and attention.
    fn read_tokens(&self, range: Range<u64>) -> Result<Vec<Recorded>, RecordingError> {
        let keys = self.lengths(KEY_LENGTHS, Side::Source, self.n_keys, &range)?;
        let queries = self.lengths(QUERY_LENGTHS, Side::Target, self.n_queries, &range)?;
        let mut source = Rows::new(&self.arrays, KEY_TOKENS, range.start, self.n_keys, 1)?;
        let mut fed = Rows::new(&self.arrays, QUERY_TOKENS, range.start, self.n_queries, 1)?;
        let rows = |name| {
            let rows = || Rows::new(&self.arrays, name, range.start, self.n_queries, 1);
            self.arrays.has(name).then(rows).transpose()
        };
        let (mut predicted, mut target) = (rows(PREDICTED_TOKENS)?, rows(TARGET_TOKENS)?);

        let sentences = range.clone().zip(keys.into_iter().zip(queries)).map(|(number, (n_keys, n_queries))| {
            let sentence = Recorded {
                number,
                source: source.next(n_keys)?,
                fed: fed.next(n_queries)?,
                predicted: predicted.as_mut().map(|rows| rows.next(n_queries)).transpose()?.unwrap_or_default(),
                target: target.as_mut().map(|rows| rows.next(n_queries)).transpose()?,
                ..Recorded::default()
            };
            self.check_self(&sentence)?;
            Ok(sentence)
        });
        sentences.collect()
    }

    /// Fails where a side that attends to itself has two different sentences.
    fn check_self(&self, sentence: &Recorded) -> Result<(), RecordingError> {
        if self.kind == SiteKind::Cross || sentence.source == sentence.fed {
            return Ok(());
        }
        let (number, kind) = (sentence.number, self.kind.name());
        let what =
            format!("sentence {number}: with `{kind}`, `{KEY_TOKENS}` and `{QUERY_TOKENS}` must be the same tokens, but they differ");
        Err(RecordingError::Description { path: self.arrays.path().to_owned(), what })
    }

    /// Reads sentences by their places, which must be among those there are.
    pub(super) fn read(&self, description: &Description, range: Range<u64>) -> Result<Vec<Recorded>, RecordingError> {
        let mut sentences = self.read_tokens(range.clone())?;
        let mut keys = Rows::new(&self.arrays, KEY_STATES, range.start, self.n_keys, self.d_key)?;
        let mut queries = Rows::new(&self.arrays, QUERY_STATES, range.start, self.n_queries, self.d_query)?;
        for sentence in &mut sentences {
            sentence.states.push(keys.next(sentence.source.len() as u64)?);
            sentence.states.push(queries.next(sentence.fed.len() as u64)?);
        }
        if self.arrays.has(LOSSES) {
            let losses: Vec<f64> = self.arrays.numbers(LOSSES, range.start)?.take(range.end - range.start)?;
            for (sentence, loss) in sentences.iter_mut().zip(losses) {
                sentence.loss = Some(loss).filter(|loss| !loss.is_nan());
            }
        }
        if self.arrays.has(ATTENTION) {
            let first_row = range.start * self.n_heads * self.n_queries;
            let mut rows = Rows::new(&self.arrays, ATTENTION, first_row, self.n_keys, 1)?;
            for sentence in &mut sentences {
                for _ in 0..self.n_heads {
                    sentence.attention.push(self.weights(&mut rows, sentence.source.len(), sentence.fed.len())?);
                }
            }
        }
        for (place, sentence) in range.zip(&sentences) {
            check::sentence(self.arrays.path(), description, place, sentence)?;
        }
        Ok(sentences)
    }

    /// The weights of one sentence and head, without padding.
    fn weights(&self, rows: &mut Rows<'_>, n_keys: usize, n_queries: usize) -> Result<Vec<f32>, RecordingError> {
        let mut weights = Vec::new();
        for _ in 0..n_queries {
            weights.extend(rows.next::<f32>(n_keys as u64)?);
        }
        rows.skip(self.n_queries - n_queries as u64)?;
        Ok(weights)
    }
}

fn missing(arrays: &Arrays, name: &str) -> RecordingError {
    RecordingError::MissingArray { path: arrays.path().to_owned(), name: name.to_owned() }
}

/// Reads padded rows of an array `[…, steps, d]` one after the other.
struct Rows<'a> {
    numbers: Numbers<'a>,
    n_steps: u64,
    d: u64,
}

impl<'a> Rows<'a> {
    /// Begins with the row `first`. The array is there, and as large as its shape: no product of its sizes is beyond counting.
    fn new(arrays: &'a Arrays, name: &'a str, first: u64, n_steps: u64, d: u64) -> Result<Self, RecordingError> {
        Ok(Self { numbers: arrays.numbers(name, first * n_steps * d)?, n_steps, d })
    }

    /// The first so many steps of the next row.
    fn next<N: crate::storage::dtype::Number>(&mut self, n_steps: u64) -> Result<Vec<N>, RecordingError> {
        let valid = self.numbers.take(n_steps * self.d)?;
        self.numbers.skip((self.n_steps - n_steps) * self.d)?;
        Ok(valid)
    }

    fn skip(&mut self, n_rows: u64) -> Result<(), RecordingError> {
        self.numbers.skip(n_rows * self.n_steps * self.d)
    }
}
