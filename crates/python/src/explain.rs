//! `explain` and its result.

use crate::errors::TailtrimError;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use serde::Serialize;
use tailtrim_model::explain::periodic;

/// The result as JSON.
pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| TailtrimError::new_err(error.to_string()))
}

/// Stamps of the samples (ingress, egress) from the table `sample` of a run directory.
pub(crate) fn stamps(samples: PyTable) -> PyResult<Vec<(i64, i64)>> {
    let (batches, _) = samples.into_inner();
    let mut pairs = Vec::with_capacity(batches.iter().map(|batch| batch.num_rows()).sum());
    for batch in &batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
                .ok_or_else(|| PyValueError::new_err(format!("no column {name} of int64")))
        };
        let (ingress, egress) = (column("ingress_ns")?, column("egress_ns")?);
        pairs.extend(ingress.values().iter().copied().zip(egress.values().iter().copied()));
    }
    Ok(pairs)
}

/// Periodic causes of the late packets among these samples, as JSON.
#[pyfunction]
pub(crate) fn periodic_causes(py: Python<'_>, samples: PyTable) -> PyResult<String> {
    let samples = stamps(samples)?;
    let found = py.detach(|| periodic::explain(&samples));
    json(&found)
}
