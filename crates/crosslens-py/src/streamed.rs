//! Models that run elsewhere, as in PyTorch: what they recorded comes in batches of padded arrays.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crosslens_lab::analysis::explain::{ExplainError, FirstTotals, Options, SecondTotals, Streamed};
use crosslens_lab::analysis::{
    Consumed, Description as Described, Existing, Linear, Recorded, RecordingWriter, RelativeBias, ScoreMap, Side, Site, SiteKind, Stream,
    Sums, Token, Visible, Words,
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::slice;
use crate::components::{ModelSums, bytes_of, stats_of};
use crate::errors::Failure;
use crate::explanation::{Explanation, Under};
use crate::options;
use crate::watch::detached;

/// What a model records: its tokens, its streams of states and its attention heads.
#[pyclass(module = "crosslens._native")]
pub(crate) struct Description {
    described: Arc<Described>,
}

/// Weights `[d_in, d_out]` and bias `[d_out]`.
type LinearArrays<'py> = (PyReadonlyArray2<'py, f32>, Option<PyReadonlyArray1<'py, f32>>);

#[pymethods]
impl Description {
    #[new]
    #[pyo3(signature = (model, model_hash, source, target))]
    fn new(model: String, model_hash: String, source: WordsOf, target: WordsOf) -> Self {
        let words = |words: WordsOf| Words { count: words.0, names: words.1, start: words.2, end: words.3 };
        let described = Described {
            model,
            model_hash,
            source: words(source),
            target: words(target),
            streams: Vec::new(),
            sites: Vec::new(),
            readout: None,
        };
        Self { described: Arc::new(described) }
    }

    /// Adds a stream of states; `side` is `source` or `target`. Returns its number.
    fn add_stream(&mut self, name: String, side: &str, d: usize) -> Result<usize, Failure> {
        let side = match side {
            "source" => Side::Source,
            "target" => Side::Target,
            other => return Err(Failure::array(format!("there is no side `{other}`"))),
        };
        if d == 0 || self.described.streams.iter().any(|stream| stream.name == name) {
            return Err(Failure::array(format!("stream `{name}` stands twice or has no dimension")));
        }
        let described = Arc::make_mut(&mut self.described);
        described.streams.push(Stream { name, side, consumed: Consumed::Current, d });
        Ok(described.streams.len() - 1)
    }

    /// Adds a head that scores `(z·W_Q + b_Q)·(h·W_K + b_K) × scale + bias[key − query]`.
    #[pyo3(signature = (kind, layer, head, query, key, causal, query_map, key_map, scale, bias=None, value_map=None))]
    #[expect(clippy::too_many_arguments, reason = "all are named in Python")]
    fn add_site(
        &mut self,
        kind: &str,
        layer: usize,
        head: usize,
        query: usize,
        key: usize,
        causal: bool,
        query_map: LinearArrays<'_>,
        key_map: LinearArrays<'_>,
        scale: f32,
        bias: Option<(i64, Vec<f32>)>,
        value_map: Option<LinearArrays<'_>>,
    ) -> Result<(), Failure> {
        let kind = SiteKind::ALL
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| Failure::array(format!("there is no attention of kind `{kind}`")))?;
        let (query_map, key_map) = (linear(&query_map, "query_map")?, linear(&key_map, "key_map")?);
        let value = value_map.map(|map| linear(&map, "value_map")).transpose()?;
        let width = |stream: usize| self.described.streams.get(stream).map(|stream| stream.d);
        let fits = width(query) == Some(query_map.d_in)
            && width(key) == Some(key_map.d_in)
            && query_map.d_out == key_map.d_out
            && value.as_ref().is_none_or(|value| Some(value.d_in) == width(key));
        if !fits || bias.as_ref().is_some_and(|(_, values)| values.is_empty()) {
            return Err(Failure::array(format!(
                "the maps of {} attention, layer {layer}, head {head}, do not fit its streams",
                kind.name()
            )));
        }
        let position_bias = bias.map(|(lowest, values)| RelativeBias { lowest, values }.into());
        let map = ScoreMap::Projected { query: query_map, key: key_map, scale, position_bias };
        let visible = if causal { Visible::Causal } else { Visible::All };
        Arc::make_mut(&mut self.described).sites.push(Site { kind, layer, head, query, key, map, visible, value });
        Ok(())
    }

    #[getter]
    fn streams(&self) -> Vec<(String, &'static str, usize)> {
        let side = |side| if side == Side::Source { "source" } else { "target" };
        self.described.streams.iter().map(|stream| (stream.name.clone(), side(stream.side), stream.d)).collect()
    }

    #[getter]
    fn n_sites(&self) -> usize {
        self.described.sites.len()
    }
}

/// How many tokens, the names of the first ones, the one that starts and the one that ends.
type WordsOf = (u32, Vec<String>, Option<Token>, Option<Token>);

fn linear(arrays: &LinearArrays<'_>, name: &str) -> Result<Linear, Failure> {
    let (weights, bias) = arrays;
    let &[d_in, d_out] = weights.shape() else { return Err(Failure::array(format!("`{name}` has two axes"))) };
    let bias = bias.as_ref().map(|bias| slice(bias, name)).transpose()?.unwrap_or_default().to_vec();
    if d_in == 0 || d_out == 0 || !(bias.is_empty() || bias.len() == d_out) {
        return Err(Failure::array(format!("`{name}` is {d_in} by {d_out} with {} biases", bias.len())));
    }
    Ok(Linear { d_in, d_out, weights: slice(weights, name)?.to_vec(), bias })
}

/// A batch as Python has it: padded arrays, `[sentence, step, …]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Batch<'py> {
    /// The number of the first sentence.
    first: u64,
    source: PyReadonlyArray2<'py, u32>,
    source_lengths: PyReadonlyArray1<'py, u64>,
    fed: PyReadonlyArray2<'py, u32>,
    fed_lengths: PyReadonlyArray1<'py, u64>,
    /// By stream.
    states: Vec<PyReadonlyArray3<'py, f32>>,
    /// By site, `[sentence, query, key]`; empty where it was not kept.
    attention: Vec<PyReadonlyArray3<'py, f32>>,
    predicted: Option<PyReadonlyArray2<'py, u32>>,
    target: Option<PyReadonlyArray2<'py, u32>>,
    /// By sentence: whether every step of its target is known; all are where that is not said.
    told: Option<PyReadonlyArray1<'py, bool>>,
    loss: Option<PyReadonlyArray1<'py, f64>>,
}

impl Batch<'_> {
    /// Sentences without padding; everything is checked against the description.
    fn sentences(&self, described: &Described) -> Result<Vec<Recorded>, Failure> {
        let n = self.source_lengths.shape()[0];
        if self.states.len() != described.streams.len() || !(self.attention.is_empty() || self.attention.len() == described.sites.len()) {
            return Err(Failure::array(format!(
                "{} arrays of states and {} of attention for {} streams and {} heads",
                self.states.len(),
                self.attention.len(),
                described.streams.len(),
                described.sites.len()
            )));
        }
        (0..n).map(|place| self.sentence(described, place, n)).collect()
    }

    fn sentence(&self, described: &Described, place: usize, n: usize) -> Result<Recorded, Failure> {
        let source = tokens(&self.source, &self.source_lengths, place, n, described.source.count, "source")?;
        let fed = tokens(&self.fed, &self.fed_lengths, place, n, described.target.count, "fed")?;
        let of_target = |array: &Option<PyReadonlyArray2<'_, u32>>, name: &str| {
            array.as_ref().map(|array| tokens(array, &self.fed_lengths, place, n, described.target.count, name)).transpose()
        };
        let mut states = Vec::with_capacity(described.streams.len());
        for (stream, array) in described.streams.iter().zip(&self.states) {
            let n_steps = if stream.side == Side::Source { source.len() } else { fed.len() };
            let &[rows, steps, d] = array.shape() else { return Err(Failure::array("states have three axes")) };
            if rows != n || d != stream.d || n_steps > steps {
                let name = &stream.name;
                return Err(Failure::array(format!(
                    "the states of `{name}` are [{rows}, {steps}, {d}], of {n} sentences up to {n_steps} steps"
                )));
            }
            states.push(slice(array, &stream.name)?[place * steps * d..][..n_steps * d].to_vec());
        }
        let mut attention = Vec::with_capacity(self.attention.len());
        for (site, array) in described.sites.iter().zip(&self.attention) {
            let steps = |stream: usize| if described.streams[stream].side == Side::Source { source.len() } else { fed.len() };
            let (n_queries, n_keys) = (steps(site.query), steps(site.key));
            let &[rows, queries, keys] = array.shape() else { return Err(Failure::array("attention has three axes")) };
            if rows != n || n_queries > queries || n_keys > keys {
                return Err(Failure::array(format!(
                    "attention is [{rows}, {queries}, {keys}] for {n} sentences of {n_queries} by {n_keys}"
                )));
            }
            let all = slice(array, "attention")?;
            let row = |query: usize| &all[(place * queries + query) * keys..][..n_keys];
            attention.push((0..n_queries).flat_map(row).copied().collect());
        }
        let loss = match &self.loss {
            Some(loss) => {
                let values = slice(loss, "loss")?;
                Some(*values.get(place).ok_or_else(|| Failure::array("`loss` is too short"))?).filter(|loss| loss.is_finite())
            }
            None => None,
        };
        let is_told = match &self.told {
            Some(told) => *slice(told, "told")?.get(place).ok_or_else(|| Failure::array("`told` is too short"))?,
            None => true,
        };
        Ok(Recorded {
            number: self.first + place as u64,
            source,
            signal: None,
            predicted: of_target(&self.predicted, "predicted")?.unwrap_or_default(),
            target: if is_told { of_target(&self.target, "target")? } else { None },
            fed,
            loss: loss.filter(|_| is_told),
            states,
            attention,
        })
    }
}

fn tokens(
    array: &PyReadonlyArray2<'_, u32>,
    lengths: &PyReadonlyArray1<'_, u64>,
    place: usize,
    n: usize,
    count: u32,
    name: &str,
) -> Result<Vec<Token>, Failure> {
    let &[rows, steps] = array.shape() else { return Err(Failure::array(format!("`{name}` has two axes"))) };
    let length = slice(lengths, "lengths")?.get(place).copied().unwrap_or(0);
    if rows != n || length == 0 || length > steps as u64 {
        return Err(Failure::array(format!("`{name}` is [{rows}, {steps}], sentence {place} of {n} should have {length} steps in it")));
    }
    let tokens = slice(array, name)?[place * steps..][..length as usize].to_vec();
    match tokens.iter().find(|&&token| token >= count) {
        Some(token) => Err(Failure::array(format!("sentence {place}: token {token} of `{name}` is not among {count}"))),
        None => Ok(tokens),
    }
}

/// The sums, those of sentences held out where there are such, and the rest as text.
type Parts<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, String);

/// Sums and average attention.
#[pyclass(module = "crosslens._native")]
pub(crate) struct First {
    described: Arc<Described>,
    options: Options,
    totals: FirstTotals,
}

#[pymethods]
impl First {
    #[new]
    fn new(description: &Description, options: Option<&Bound<'_, PyDict>>) -> Result<Self, Failure> {
        let (described, options) = (description.described.clone(), options::of(options)?);
        let totals = Streamed { description: &described, options: &options }.first(&mut std::iter::empty())?;
        Ok(Self { described, options, totals })
    }

    fn add(&mut self, py: Python<'_>, batch: Batch<'_>) -> Result<(), Failure> {
        let sentences = batch.sentences(&self.described)?;
        detached(py, || {
            let streamed = Streamed { description: &self.described, options: &self.options };
            let totals = streamed.first(&mut std::iter::once(sentences))?;
            Ok(self.totals.merge(&totals)?)
        })?
    }

    fn merge(&mut self, py: Python<'_>, other: &Self) -> Result<(), Failure> {
        detached(py, || Ok(self.totals.merge(&other.totals)?))?
    }

    #[getter]
    fn n_sentences(&self) -> u64 {
        self.totals.n_sentences()
    }

    fn sums(&self) -> ModelSums {
        ModelSums { stats: self.totals.stats(&self.described) }
    }

    /// Pieces from which [`First::from_parts`] puts it together elsewhere: the sums, those of sentences held out, and the rest.
    fn parts<'py>(&self, py: Python<'py>) -> Result<Parts<'py>, Failure> {
        let (sums, held_out, averages) = detached(py, || {
            let sums = bytes_of(&self.totals.stats(&self.described))?;
            let held_out = self.totals.held_out_stats(&self.described).map(|stats| bytes_of(&stats)).transpose()?;
            Ok::<_, Failure>((sums, held_out, self.totals.averages_json()))
        })??;
        Ok((PyBytes::new(py, &sums), held_out.map(|bytes| PyBytes::new(py, &bytes)), averages))
    }

    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        description: &Description,
        options: Option<&Bound<'_, PyDict>>,
        sums: &[u8],
        held_out: Option<&[u8]>,
        averages: &str,
    ) -> Result<Self, Failure> {
        let (described, options) = (description.described.clone(), options::of(options)?);
        if held_out.is_some() != options.held_out {
            return Err(Failure::merge("the options and the sums differ in whether sentences are held out"));
        }
        detached(py, || {
            let totals = FirstTotals::from_parts(&described, stats_of(sums)?, held_out.map(stats_of).transpose()?, averages)?;
            Ok(Self { described, options, totals })
        })?
    }
}

/// Shares before they are ratios.
#[pyclass(module = "crosslens._native")]
pub(crate) struct Second {
    described: Arc<Described>,
    options: Options,
    totals: SecondTotals,
}

#[pymethods]
impl Second {
    fn merge(&mut self, py: Python<'_>, other: &Self) -> Result<(), Failure> {
        detached(py, || Ok(self.totals.merge(&other.totals)?))?
    }

    #[getter]
    fn n_sentences(&self) -> u64 {
        self.totals.n_sentences()
    }

    fn to_json(&self, py: Python<'_>) -> Result<String, Failure> {
        detached(py, || self.totals.to_json())
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, description: &Description, options: Option<&Bound<'_, PyDict>>, text: &str) -> Result<Self, Failure> {
        let (described, options) = (description.described.clone(), options::of(options)?);
        detached(py, || {
            let totals = Streamed { description: &described, options: &options }.second_from_json(text)?;
            Ok(Self { described, options, totals })
        })?
    }
}

/// Batches that wait to be split: the model goes on while one is.
const WAITING: usize = 2;

/// The second pass, at work on its own thread, since components are carried through every score map once, at its start.
#[pyclass(module = "crosslens._native")]
pub(crate) struct SecondPass {
    described: Arc<Described>,
    options: Options,
    sender: Option<SyncSender<Vec<Recorded>>>,
    worker: Option<JoinHandle<Result<SecondTotals, ExplainError>>>,
}

#[pymethods]
impl SecondPass {
    #[new]
    #[pyo3(signature = (first, components=None))]
    fn new(py: Python<'_>, first: &First, components: Option<&ModelSums>) -> Result<Self, Failure> {
        detached(py, || {
            let (described, options) = (first.described.clone(), first.options.clone());
            let given: Option<Vec<Sums>> = components.map(|components| components.stats.clone().sums_for(&described)).transpose()?;
            let (sender, receiver) = sync_channel::<Vec<Recorded>>(WAITING);
            let (totals, description, how) = (first.totals.clone(), described.clone(), options.clone());
            let worker = std::thread::Builder::new().spawn(move || {
                let streamed = Streamed { description: &description, options: &how };
                streamed.second(&totals, given.as_deref(), &mut receiver.into_iter())
            })?;
            Ok(Self { described, options, sender: Some(sender), worker: Some(worker) })
        })?
    }

    fn add(&mut self, py: Python<'_>, batch: Batch<'_>) -> Result<(), Failure> {
        let sentences = batch.sentences(&self.described)?;
        let Some(sender) = &self.sender else { return Err(Failure::explain("this pass has ended")) };
        match py.detach(|| sender.send(sentences)) {
            Ok(()) => Ok(()),
            // The worker has given up, and says why.
            Err(_) => self.finish(py).and(Err(Failure::explain("this pass ended early"))),
        }
    }

    fn finish(&mut self, py: Python<'_>) -> Result<Second, Failure> {
        self.sender = None;
        let Some(worker) = self.worker.take() else { return Err(Failure::explain("this pass has ended")) };
        let totals = py.detach(|| worker.join()).map_err(|panic| Failure::mistake(&*panic))??;
        Ok(Second { described: self.described.clone(), options: self.options.clone(), totals })
    }
}

/// The explanation that both passes come to.
#[pyfunction]
#[pyo3(signature = (first, second, components=None, source=""))]
pub(crate) fn conclude(
    py: Python<'_>,
    first: &First,
    second: &Second,
    components: Option<&ModelSums>,
    source: &str,
) -> Result<Explanation, Failure> {
    let described = &second.described;
    if !Arc::ptr_eq(described, &first.described) && **described != *first.described {
        return Err(Failure::merge("the two passes are of other models"));
    }
    let given: Option<Vec<Sums>> = components.map(|components| components.stats.clone().sums_for(described)).transpose()?;
    detached(py, || {
        let options = Options { keep_totals: given.is_some(), ..second.options.clone() };
        let streamed = Streamed { description: described, options: &options };
        let mut explained = streamed.conclude(first.totals.clone(), given.as_deref(), second.totals.clone())?;
        explained.report.corpus.source = source.to_owned();
        let under = given.map(|given| Under { description: described.clone(), given: Arc::new(given), options });
        Ok(Explanation::new(explained, under))
    })?
}

/// A recording that is being written.
#[pyclass(module = "crosslens._native")]
pub(crate) struct Writer {
    described: Arc<Described>,
    writer: Option<RecordingWriter>,
}

#[pymethods]
impl Writer {
    #[new]
    fn new(path: PathBuf, description: &Description, overwrite: bool) -> Result<Self, Failure> {
        let existing = if overwrite { Existing::Replace } else { Existing::Refuse };
        let described = description.described.clone();
        Ok(Self { writer: Some(RecordingWriter::create(path, &described, existing)?), described })
    }

    fn add(&mut self, py: Python<'_>, batch: Batch<'_>) -> Result<(), Failure> {
        let sentences = batch.sentences(&self.described)?;
        let Some(writer) = &mut self.writer else { return Err(Failure::explain("this recording is finished")) };
        Ok(detached(py, || writer.add(&sentences))??)
    }

    fn finish(&mut self, py: Python<'_>) -> Result<(), Failure> {
        let Some(writer) = self.writer.take() else { return Err(Failure::explain("this recording is finished")) };
        Ok(detached(py, || writer.finish())??)
    }

    /// Takes away what was written so far, where something went wrong; a recording that is finished stays.
    fn discard(&mut self, py: Python<'_>) -> Result<(), Failure> {
        match self.writer.take() {
            Some(writer) => Ok(detached(py, || writer.discard())??),
            None => Ok(()),
        }
    }
}
