//! Options by name.

use crosslens_lab::analysis::explain::{Chosen, Options, Rank, Rerun};
use crosslens_lab::analysis::{Estimator, Shrinkage};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;

pub(crate) fn estimator(name: &str) -> Result<Estimator, Failure> {
    match name {
        "paper" => Ok(Estimator::Paper),
        "joint" => Ok(Estimator::Joint),
        other => Err(Failure::config(format!("there is no estimator `{other}`: it is `paper` or `joint`"))),
    }
}

/// A number, `"auto"` or nothing.
#[derive(FromPyObject)]
pub(crate) enum Shrink {
    By(f64),
    Named(String),
}

pub(crate) fn shrinkage(value: Option<Shrink>) -> Result<Shrinkage, Failure> {
    match value {
        None => Ok(Shrinkage::None),
        Some(Shrink::By(value)) => Ok(Shrinkage::Given(value)),
        Some(Shrink::Named(name)) if name == "auto" => Ok(Shrinkage::Estimated),
        Some(Shrink::Named(name)) => Err(Failure::config(format!("the shrinkage is `{name}`: it is a number from 0, \"auto\" or None"))),
    }
}

/// Reads the options of an explanation; an unknown name is refused.
pub(crate) fn of(given: Option<&Bound<'_, PyDict>>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let Some(given) = given else { return Ok(options) };
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let wrong = |error: PyErr| Failure::config(format!("`{name}`: {error}"));
        match name.as_str() {
            "estimator" => options.estimator = estimator(&value.extract::<String>().map_err(wrong)?)?,
            "shrinkage" => options.shrinkage = shrinkage(value.extract().map_err(wrong)?)?,
            "held_out" => options.held_out = value.extract().map_err(wrong)?,
            "k" => options.k = value.extract().map_err(wrong)?,
            "bootstrap" => options.bootstrap = value.extract::<u16>().map_err(wrong)?.into(),
            "step_intervals" => options.step_intervals = value.extract().map_err(wrong)?,
            "seed" => options.seed = value.extract().map_err(wrong)?,
            "causal" => options.causal = value.extract().map_err(wrong)?,
            "rerun" => {
                options.rerun = match value.extract::<String>().map_err(wrong)?.as_str() {
                    "recorded" => Rerun::Recorded,
                    "live" => Rerun::Live,
                    "free" => Rerun::Free,
                    other => return Err(Failure::config(format!("`rerun` is `{other}`: it is `recorded`, `live` or `free`"))),
                }
            }
            "samples" => options.samples = value.extract().map_err(wrong)?,
            "rank" => options.rank = rank(value.extract::<Option<String>>().map_err(wrong)?.as_deref())?,
            "subset" => options.subsets = subsets(value.extract().map_err(wrong)?)?,
            "geometry" => options.geometry = value.extract().map_err(wrong)?,
            "n_threads" => options.n_threads = value.extract().map_err(wrong)?,
            _ => return Err(Failure::config(format!("there is no option `{name}`"))),
        }
    }
    Ok(options)
}

/// Pieces of scores that attention is rebuilt from, each written as `crosslens explain --subset` has them.
fn subsets(names: Vec<String>) -> Result<Vec<Chosen>, Failure> {
    let read = |name: &String| name.parse().map_err(|what: String| Failure::config(format!("`subset` is `{name}`: {what}")));
    names.iter().map(read).collect()
}

fn rank(name: Option<&str>) -> Result<Option<Rank>, Failure> {
    Ok(Some(match name {
        None => return Ok(None),
        Some("drift") => Rank::Drift,
        Some("coverage") => Rank::Coverage,
        Some("entropy") => Rank::Entropy,
        Some("loss") => Rank::Loss,
        Some(other) => return Err(Failure::config(format!("`rank` is `{other}`: it is `drift`, `coverage`, `entropy` or `loss`"))),
    }))
}
