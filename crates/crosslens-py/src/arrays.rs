//! From NumPy's arrays to slices, and back.

use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray};
use pyo3::prelude::*;

use crate::errors::Failure;

/// The numbers of an array, which must lie without gaps; the package sees to that.
pub(crate) fn slice<'a, T: Element, D: numpy::ndarray::Dimension>(
    array: &'a PyReadonlyArray<'_, T, D>,
    name: &str,
) -> Result<&'a [T], Failure> {
    array.as_slice().map_err(|_| Failure::array(format!("`{name}` does not lie in memory without gaps: numpy.ascontiguousarray copies it")))
}

/// An array of this shape; as many values as it takes.
pub(crate) fn shaped<'py, T: Element>(py: Python<'py>, values: Vec<T>, shape: &[usize]) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    PyArray1::from_vec(py, values).reshape(shape.to_vec())
}
