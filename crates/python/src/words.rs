//! Times and rates as people write them, read as the agent reads them.

use crate::errors::invalid;
use pyo3::prelude::*;
use tailtrim_wire::duration::time_or_number_ns;
use tailtrim_wire::traffic::Rate;

/// A time with its unit, or a number of `unit_ns`, in ns; `None` where it is neither.
#[pyfunction]
pub(crate) fn nanoseconds(text: &str, unit_ns: u64) -> Option<u64> {
    time_or_number_ns(text, unit_ns)
}

/// A rate without a prefix of its unit: `120000pps`, `500000000bit/s`.
#[pyfunction]
pub(crate) fn rate(text: &str) -> PyResult<String> {
    text.parse::<Rate>().map(|rate| rate.to_string()).map_err(invalid)
}
