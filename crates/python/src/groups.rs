//! Ingress packets by a field.

use crate::analysis::AnalysisArguments;
use crate::errors::{OutputError, invalid, raise};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tailtrim_reading::{analysis, groups};

/// Analyses the largest groups of ingress packets by a field, and the rest: `(value, summary as JSON)`, the value of the
/// rest is `None`.
#[pyfunction]
#[pyo3(signature = (ingress, egress, field, groups, options, *, jobs = None))]
pub(crate) fn analyze_by(
    py: Python<'_>,
    ingress: PathBuf,
    egress: PathBuf,
    field: &str,
    groups: usize,
    options: AnalysisArguments,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Vec<(Option<String>, String)>> {
    let field = field.parse().map_err(invalid)?;
    let (reading, options) = (options.reading(), options.options()?);
    let jobs = jobs.unwrap_or_else(analysis::all_cores);
    let captures = [ingress.as_path(), egress.as_path()];
    let found = py
        .detach(|| groups::analyze_by(captures, reading, field, groups, &options, jobs))
        .map_err(|error| raise(py, &error))?;
    let json = |analysis: &tailtrim_tail::analysis::Analysis| {
        serde_json::to_string(&analysis.summary)
            .map_err(|error| OutputError::new_err(error.to_string()))
    };
    found
        .iter()
        .map(|(value, analysis)| Ok((value.map(|value| value.to_string()), json(analysis)?)))
        .collect()
}
