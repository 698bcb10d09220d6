//! What was found, as a value.

use std::path::PathBuf;
use std::sync::Arc;

use crosslens_lab::analysis::explain::{Explained, Options};
use crosslens_lab::analysis::heads::Head;
use crosslens_lab::analysis::page::Page;
use crosslens_lab::analysis::{Description, Sums};
use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::arrays::shaped;
use crate::errors::Failure;
use crate::watch::detached;

/// A report and the sentences that show it.
#[pyclass(module = "crosslens._native", frozen)]
pub(crate) struct Explanation {
    explained: Explained,
    under: Option<Under>,
    /// Whether it comes from a file or a pickle, which keep no totals.
    is_read: bool,
}

/// What an explanation was made under, where it can be merged with another.
#[derive(Clone)]
pub(crate) struct Under {
    pub(crate) description: Arc<Description>,
    pub(crate) given: Arc<Vec<Sums>>,
    pub(crate) options: Options,
}

impl Under {
    /// An option that changes what is counted, and is not the same in both.
    fn differs_in(&self, other: &Self) -> Option<&'static str> {
        let (a, b) = (&self.options, &other.options);
        let same = [
            ("estimator", a.estimator == b.estimator),
            ("shrinkage", a.shrinkage == b.shrinkage),
            ("held_out", a.held_out == b.held_out),
            ("k", a.k == b.k),
            ("bootstrap", a.bootstrap == b.bootstrap),
            ("step_intervals", a.bootstrap == 0 || a.step_intervals == b.step_intervals),
            ("seed", a.bootstrap == 0 || a.seed == b.seed),
            ("causal", (a.causal == 0) == (b.causal == 0)),
            ("rerun", a.causal == 0 || a.rerun == b.rerun),
            ("rank", a.rank == b.rank),
            ("geometry", a.geometry == b.geometry),
        ];
        same.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }
}

impl Explanation {
    pub(crate) fn new(explained: Explained, under: Option<Under>) -> Self {
        Self { explained, under, is_read: false }
    }
}

type Matrix<'py> = Bound<'py, PyArrayDyn<f32>>;

#[pymethods]
impl Explanation {
    /// The report, as `docs/report.schema.json` describes it.
    fn report_json(&self) -> String {
        self.explained.report.to_json()
    }

    /// Every head with its label.
    fn heads_json(&self) -> String {
        serde_json::to_string(&Head::all(&self.explained.report)).expect("a head has string keys")
    }

    #[getter]
    fn n_samples(&self) -> usize {
        self.explained.samples.sentences.len()
    }

    /// The words of one sentence: source, fed, predicted and, if known, target.
    #[expect(clippy::type_complexity, reason = "four lists of words")]
    fn words(&self, sample: usize) -> Result<(Vec<String>, Vec<String>, Vec<String>, Option<Vec<String>>), Failure> {
        let samples = &self.explained.samples;
        let sentence = &self.sample(sample)?.sentence;
        let source = sentence.source.iter().map(|&token| samples.source.name(token).into_owned()).collect();
        let of = |tokens: &[u32]| tokens.iter().map(|&token| samples.target.name(token).into_owned()).collect();
        Ok((source, of(&sentence.fed), of(&sentence.predicted), sentence.target.as_deref().map(of)))
    }

    /// Attention `[query, key]`, pieces `[piece, query, key]` and the bias of positions of one sentence at one site.
    fn matrices<'py>(
        &self,
        py: Python<'py>,
        sample: usize,
        site: usize,
    ) -> Result<(Matrix<'py>, Matrix<'py>, Option<Matrix<'py>>), Failure> {
        let sample = self.sample(sample)?;
        let &(n_queries, n_keys) = sample.shapes.get(site).ok_or_else(|| Failure::array(format!("there is no site {site}")))?;
        let pieces = sample.pieces[site].clone();
        let n_pieces = pieces.len() / (n_queries * n_keys).max(1);
        let bias = sample.bias.get(site).filter(|bias| !bias.is_empty());
        Ok((
            shaped(py, sample.attention[site].clone(), &[n_queries, n_keys])?,
            shaped(py, pieces, &[n_pieces, n_queries, n_keys])?,
            bias.map(|bias| shaped(py, bias.clone(), &[n_queries, n_keys])).transpose()?,
        ))
    }

    /// The page that shows it, one file that needs no network.
    fn html(&self, py: Python<'_>, name: &str) -> Result<String, Failure> {
        detached(py, || Page::new().title(name).report(name, &self.explained.report, &self.explained.samples).html())
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        detached(py, || Ok(self.explained.clone().save(&path)?))?
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        detached(py, || Ok(Self { explained: Explained::load(&path, usize::MAX)?, under: None, is_read: true }))?
    }

    /// The explanation of the sentences of both.
    fn merged(&self, py: Python<'_>, other: &Self) -> Result<Self, Failure> {
        if self.is_read || other.is_read {
            return Err(Failure::merge(
                "an explanation from a file or a pickle does not add up: neither keeps what was counted; explain again, or add before saving",
            ));
        }
        let (Some(under), Some(others)) = (&self.under, &other.under) else {
            return Err(Failure::merge("only explanations made under the same components add up: explain both with the same components="));
        };
        if let Some(option) = under.differs_in(others) {
            return Err(Failure::merge(format!(
                "the two were made with another `{option}`: only explanations with the same options add up"
            )));
        }
        detached(py, || {
            let is_same = Arc::ptr_eq(&under.given, &others.given) || under.given == others.given;
            if !is_same || under.description.model_hash != others.description.model_hash {
                return Err(Failure::merge("the two were made under other components or of other models"));
            }
            let merged = self.explained.merge(&other.explained, &under.description, &under.given, &under.options)?;
            Ok(Self::new(merged, Some(under.clone())))
        })?
    }
}

impl Explanation {
    fn sample(&self, number: usize) -> Result<&crosslens_lab::analysis::explain::Sample, Failure> {
        let sentences = &self.explained.samples.sentences;
        sentences.get(number).ok_or_else(|| Failure::array(format!("there is no sentence {number}: {} are kept", sentences.len())))
    }
}
