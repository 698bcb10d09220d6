//! The native part of the Python package `crosslens`: arrays in, arrays and JSON out. What users see is written in Python on top of it, in
//! `python/crosslens`, with its types in `_native.pyi`.
//!
//! Arrays are read where NumPy keeps them (what came through DLPack is a NumPy view too), and Python is let go while anything is computed.

mod arrays;
mod components;
mod errors;
mod explanation;
mod model;
mod options;
mod streamed;
mod training;
mod watch;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    module.add_class::<components::StateSums>()?;
    module.add_class::<components::ModelSums>()?;
    module.add_class::<explanation::Explanation>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<streamed::Description>()?;
    module.add_class::<streamed::First>()?;
    module.add_class::<streamed::Second>()?;
    module.add_class::<streamed::SecondPass>()?;
    module.add_class::<streamed::Writer>()?;
    module.add_function(wrap_pyfunction!(streamed::conclude, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(training::reproduce, module)?)
}
