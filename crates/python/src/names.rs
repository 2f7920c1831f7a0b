//! Names of files and folders.

use pyo3::prelude::*;
use std::path::PathBuf;

/// Lets two files or folders have each other's name; `OSError` where that is not possible.
#[pyfunction]
pub(crate) fn exchange(one: PathBuf, other: PathBuf) -> PyResult<()> {
    Ok(tailtrim_sys::files::exchange(&one, &other)?)
}
