//! The sums that components are fitted from: of one stream of states, or of all streams of a model.

use std::path::{Path, PathBuf};
use std::sync::RwLock;

use crosslens_lab::analysis::{Consumed, MAX_STATES, Stats, StreamSums, Sums, Token};
use numpy::{PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{shaped, slice};
use crate::errors::Failure;
use crate::options;
use crate::watch::detached;

/// An array as Python sees it.
type Array<'py, T> = Bound<'py, PyArrayDyn<T>>;

/// Sums of the states of one stream. Threads of Python may read and add at the same time: each waits for the other without holding Python,
/// and never for two of these at once.
#[pyclass(module = "crosslens._native", frozen)]
pub(crate) struct StateSums {
    d: usize,
    sums: RwLock<Sums>,
}

/// The name of a stream that has none.
const UNNAMED: &str = "states";

#[pymethods]
impl StateSums {
    #[new]
    fn new(d: usize) -> Result<Self, Failure> {
        if d == 0 {
            return Err(Failure::array("states have at least one dimension"));
        }
        Ok(Self::from(Sums::new(d)))
    }

    /// `states` is `[sentence, step, d]`, `tokens` `[sentence, step]`; of each sentence the first `lengths` steps count.
    fn add(
        &self,
        py: Python<'_>,
        states: PyReadonlyArray3<'_, f32>,
        tokens: PyReadonlyArray2<'_, u32>,
        lengths: PyReadonlyArray1<'_, u64>,
    ) -> Result<(), Failure> {
        let d = self.d;
        let &[n_sentences, n_steps, width] = states.shape() else { return Err(Failure::array("`states` has three axes")) };
        if width != d {
            return Err(Failure::array(format!("`states` has {width} dimensions, these sums are of {d}")));
        }
        if tokens.shape() != [n_sentences, n_steps] || lengths.shape() != [n_sentences] {
            return Err(Failure::array(format!(
                "`states` is {:?}, so `tokens` must be [{n_sentences}, {n_steps}] and `lengths` [{n_sentences}], not {:?} and {:?}",
                states.shape(),
                tokens.shape(),
                lengths.shape()
            )));
        }
        let (states, tokens, lengths) = (slice(&states, "states")?, slice(&tokens, "tokens")?, slice(&lengths, "lengths")?);
        let mut sentences: Vec<(&[Token], &[f32])> = Vec::with_capacity(n_sentences);
        for (sentence, &length) in lengths.iter().enumerate() {
            if length > n_steps as u64 {
                return Err(Failure::array(format!("sentence {sentence} has {length} steps in `lengths` and {n_steps} in `states`")));
            }
            let row = sentence * n_steps;
            let tokens = &tokens[row..row + length as usize];
            if tokens.contains(&Token::MAX) {
                return Err(Failure::array(format!("sentence {sentence} has the token {}, the largest is {}", Token::MAX, Token::MAX - 1)));
            }
            let states = &states[row * d..][..tokens.len() * d];
            sentences.push((tokens, states));
        }
        self.change(py, |sums| {
            if let Some(sentence) = sentences.iter().position(|(_, states)| states.iter().any(|x| !x.is_finite())) {
                return Err(Failure::array(format!("the states of sentence {sentence} are not all finite numbers")));
            }
            sums.add_all(&sentences);
            Ok(())
        })?
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> Result<(), Failure> {
        let other = other.read(py, Sums::clone)?;
        self.change(py, |sums| {
            if sums.n_states().saturating_add(other.n_states()) > MAX_STATES {
                return Err(Failure::merge("there would be more than 2^53 states"));
            }
            Ok(sums.merge(&other)?)
        })?
    }

    fn copy(&self, py: Python<'_>) -> Result<Self, Failure> {
        self.read(py, |sums| Self::from(sums.clone()))
    }

    fn is_same(&self, py: Python<'_>, other: &Self) -> Result<bool, Failure> {
        let other = other.read(py, Sums::clone)?;
        self.read(py, |sums| *sums == other)
    }

    #[getter]
    fn d(&self) -> usize {
        self.d
    }

    #[getter]
    fn n_states(&self, py: Python<'_>) -> Result<u64, Failure> {
        self.read(py, Sums::n_states)
    }

    #[getter]
    fn n_steps(&self, py: Python<'_>) -> Result<usize, Failure> {
        self.read(py, Sums::n_steps)
    }

    #[getter]
    fn n_tokens(&self, py: Python<'_>) -> Result<usize, Failure> {
        self.read(py, Sums::n_tokens)
    }

    fn step_counts<'py>(&self, py: Python<'py>) -> Result<Array<'py, u64>, Failure> {
        let counts = self.read(py, |sums| sums.step_counts().to_vec())?;
        let n = [counts.len()];
        Ok(shaped(py, counts, &n)?)
    }

    fn token_counts<'py>(&self, py: Python<'py>) -> Result<(Array<'py, u32>, Array<'py, u64>), Failure> {
        let (tokens, counts): (Vec<_>, Vec<_>) = self.read(py, |sums| sums.token_counts().into_iter().unzip())?;
        let n = [tokens.len()];
        Ok((shaped(py, tokens, &n)?, shaped(py, counts, &n)?))
    }

    /// The components and how they came about, by name.
    #[pyo3(signature = (estimator, shrinkage=None))]
    fn fit<'py>(&self, py: Python<'py>, estimator: &str, shrinkage: Option<options::Shrink>) -> Result<Bound<'py, PyDict>, Failure> {
        let (estimator, shrinkage) = (options::estimator(estimator)?, options::shrinkage(shrinkage)?);
        let (fit, variance, n_steps, tokens) = self.read(py, |sums| {
            let fit = sums.fit::<f64>(estimator, shrinkage)?;
            let variance = sums.variance(estimator, fit.shrinkage)?;
            let tokens: Vec<Token> = sums.token_counts().into_iter().map(|(token, _)| token).collect();
            Ok::<_, Failure>((fit, variance, sums.n_steps(), tokens))
        })??;
        let (d, components) = (self.d, &fit.components);
        let temporal: Vec<f64> = (0..n_steps).flat_map(|step| components.temporal(step).iter().copied()).collect();
        let input: Vec<f64> = tokens.iter().flat_map(|&token| components.input(token).iter().copied()).collect();
        let found = PyDict::new(py);
        found.set_item("temporal", shaped(py, temporal, &[n_steps, d])?)?;
        found.set_item("input", shaped(py, input, &[tokens.len(), d])?)?;
        found.set_item("mean", shaped(py, components.mean().to_vec(), &[d])?)?;
        let n_tokens = tokens.len();
        found.set_item("tokens", shaped(py, tokens, &[n_tokens])?)?;
        found.set_item("shrinkage", fit.shrinkage)?;
        found.set_item("condition", fit.condition)?;
        found.set_item("variance", (variance.time, variance.token, variance.shared, variance.rest))?;
        Ok(found)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        self.read(py, |sums| Ok(stats(sums).save(&path)?))?
    }

    #[staticmethod]
    #[pyo3(signature = (path, stream=None))]
    fn load(py: Python<'_>, path: PathBuf, stream: Option<&str>) -> Result<Self, Failure> {
        let stats = detached(py, || Stats::load(&path))??;
        one_of(stats, stream, &path)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = self.read(py, |sums| bytes_of(&stats(sums)))??;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Result<Self, Failure> {
        detached(py, || one_of(stats_of(bytes)?, None, Path::new("the pickled sums")))?
    }
}

impl StateSums {
    fn read<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&Sums) -> T + Send) -> Result<T, Failure> {
        detached(py, || self.sums.read().map(|sums| look(&sums)).map_err(|_| half_added()))?
    }

    fn change<T: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut Sums) -> T + Send) -> Result<T, Failure> {
        detached(py, || self.sums.write().map(|mut sums| change(&mut sums)).map_err(|_| half_added()))?
    }
}

impl From<Sums> for StateSums {
    fn from(sums: Sums) -> Self {
        Self { d: sums.d(), sums: RwLock::new(sums) }
    }
}

/// After a panic while something was added.
fn half_added() -> Failure {
    Failure::array("a failure left these sums half added: begin with new ones")
}

/// Sums as a file holds them.
fn stats(sums: &Sums) -> Stats {
    let n_tokens = sums.token_counts().last().map_or(0, |&(token, _)| token + 1);
    let stream = StreamSums { name: UNNAMED.into(), consumed: Consumed::Current, n_tokens, sums: sums.clone() };
    Stats { model_hash: String::new(), streams: vec![stream] }
}

/// One stream of a file.
fn one_of(stats: Stats, stream: Option<&str>, path: &Path) -> Result<StateSums, Failure> {
    let names: Vec<String> = stats.streams.iter().map(|stream| format!("`{}`", stream.name)).collect();
    let mut streams = stats.streams.into_iter();
    let found = match stream {
        Some(name) => streams.find(|stream| stream.name == name),
        None if names.len() == 1 => streams.next(),
        None => None,
    };
    let shown = path.display();
    let missing = || Failure::array(format!("`{shown}` holds the streams {}: say which with stream=", names.join(", ")));
    Ok(StateSums::from(found.ok_or_else(missing)?.sums))
}

/// The bytes of a file of sums.
pub(crate) fn bytes_of(stats: &Stats) -> Result<Vec<u8>, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sums.stats.safetensors");
    stats.save(&path)?;
    Ok(std::fs::read(path)?)
}

/// The sums in the bytes of a file.
pub(crate) fn stats_of(bytes: &[u8]) -> Result<Stats, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sums.stats.safetensors");
    std::fs::write(&path, bytes)?;
    Ok(Stats::load(&path)?)
}

/// The sums of all streams of one model.
#[pyclass(module = "crosslens._native", frozen)]
pub(crate) struct ModelSums {
    pub(crate) stats: Stats,
}

#[pymethods]
impl ModelSums {
    #[getter]
    fn model_hash(&self) -> &str {
        &self.stats.model_hash
    }

    #[getter]
    fn streams(&self) -> Vec<String> {
        self.stats.streams.iter().map(|stream| stream.name.clone()).collect()
    }

    fn stream(&self, name: &str) -> Result<StateSums, Failure> {
        one_of(self.stats.clone(), Some(name), Path::new("the sums"))
    }

    fn merged(&self, py: Python<'_>, other: &Self) -> Result<Self, Failure> {
        detached(py, || {
            let mut stats = self.stats.clone();
            stats.merge(&other.stats)?;
            Ok(Self { stats })
        })?
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        detached(py, || Ok(self.stats.save(&path)?))?
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        detached(py, || Ok(Self { stats: Stats::load(&path)? }))?
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = detached(py, || bytes_of(&self.stats))??;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Result<Self, Failure> {
        detached(py, || Ok(Self { stats: stats_of(bytes)? }))?
    }
}
