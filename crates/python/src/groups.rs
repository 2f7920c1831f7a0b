//! Ingress packets by a field.

use crate::analysis::{AnalysisArguments, sides};
use crate::errors::{OutputError, invalid, raise};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tailtrim_reading::source::open;
use tailtrim_reading::{analysis, groups};
use tailtrim_wire::flow::Field;

/// Fields by which packets are grouped.
#[pyfunction]
pub(crate) fn fields() -> [&'static str; Field::ALL.len()] {
    Field::ALL.map(|(_, name)| name)
}

/// Analyses the largest groups of ingress packets by a field, and the rest: `(value, summary as JSON)`, the value of the
/// rest is `None`.
#[pyfunction]
#[pyo3(signature = (ingress, egress, field, groups, options, *, jobs = None, interfaces = (None, None)))]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
pub(crate) fn analyze_by(
    py: Python<'_>,
    ingress: PathBuf,
    egress: PathBuf,
    field: &str,
    groups: usize,
    options: AnalysisArguments,
    jobs: Option<NonZeroUsize>,
    interfaces: (Option<String>, Option<String>),
) -> PyResult<Vec<(Option<String>, String)>> {
    let field = field.parse().map_err(invalid)?;
    let (readings, options) = (sides(&options.reading(), interfaces), options.options()?);
    let jobs = jobs.unwrap_or_else(analysis::all_cores);
    let found = py.detach(|| {
        let [entering, leaving] = readings;
        let (ingress, egress) = (open(&ingress, entering)?, open(&egress, leaving)?);
        groups::analyze_by(&ingress, &egress, field, groups, &options, jobs)
    });
    let found = found.map_err(|error| raise(py, &error))?;
    let json = |analysis: &tailtrim_tail::analysis::Analysis| {
        serde_json::to_string(&analysis.summary)
            .map_err(|error| OutputError::new_err(error.to_string()))
    };
    found
        .iter()
        .map(|(value, analysis)| Ok((value.map(|value| value.to_string()), json(analysis)?)))
        .collect()
}
