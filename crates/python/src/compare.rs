//! `compare`, `compare_losses` and `plan_length`.

use crate::errors::TailtrimError;
use crate::explain::json;
use crate::probabilities::{below_one, probabilities, probability};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch};
use arrow_pyarrow::{PyArrowType, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tailtrim_compare::{Counted, Options, Pilot, Repetition};
use tailtrim_stats::{BlockCounts, Ranked};

/// One run of a side: its latencies, counted per block.
#[pyclass(frozen, name = "NativeRepetition", module = "tailtrim._native")]
pub(crate) struct NativeRepetition {
    repetition: Repetition,
}

#[pymethods]
impl NativeRepetition {
    /// Counts the column `latency_ns` of a table, in its order.
    #[new]
    fn new(py: Python<'_>, samples: PyArrowType<Table>) -> PyResult<Self> {
        let (batches, _) = samples.0.into_inner();
        let columns = latencies(&batches)?;
        let samples = columns.iter().map(|column| column.len() as u64).sum();
        let repetition = py.detach(|| {
            Repetition::new(samples, columns.iter().map(|column| column.values().as_ref()))
        });
        Ok(Self { repetition })
    }
}

fn latencies(batches: &[RecordBatch]) -> PyResult<Vec<&Int64Array>> {
    let column =
        |batch: &'_ RecordBatch| -> Option<usize> { batch.schema().index_of("latency_ns").ok() };
    batches
        .iter()
        .map(|batch| {
            column(batch)
                .and_then(|index| batch.column(index).as_primitive_opt::<Int64Type>())
                .filter(|column| column.null_count() == 0)
                .ok_or_else(|| PyValueError::new_err("no column latency_ns of int64"))
        })
        .collect()
}

/// Compares the repetitions of B with those of A; the result as JSON. `draws`: of what chance would do.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
#[pyo3(signature = (a, b, *, quantiles, curve, confidence, margin, seed, draws = None))]
pub(crate) fn compare_runs(
    py: Python<'_>,
    a: Vec<PyRef<'_, NativeRepetition>>,
    b: Vec<PyRef<'_, NativeRepetition>>,
    quantiles: Vec<String>,
    curve: Vec<String>,
    confidence: &str,
    margin: f64,
    seed: u64,
    draws: Option<u32>,
) -> PyResult<String> {
    let owned = |side: &[PyRef<'_, NativeRepetition>]| -> Vec<Repetition> {
        side.iter().map(|one| one.repetition.clone()).collect()
    };
    let (a, b) = (owned(&a), owned(&b));
    if !(0.0..1.0).contains(&margin) {
        return Err(PyValueError::new_err(format!(
            "margin {margin} is out of range, expected 0 or more and less than 1"
        )));
    }
    let options = Options {
        quantiles: probabilities(&quantiles)?,
        curve: probabilities(&curve)?,
        confidence: below_one(confidence)?,
        margin,
        seed,
        ..Options::default()
    };
    let options = Options { draws: draws.unwrap_or(options.draws), ..options };
    json(&py.detach(|| tailtrim_compare::compare(&a, &b, &options)))
}

/// Compares losses; each side is a list of repetitions, each a list of (lost, known) per second.
#[pyfunction]
#[pyo3(signature = (a, b, *, confidence))]
pub(crate) fn compare_losses(
    a: Vec<Vec<(u64, u64)>>,
    b: Vec<Vec<(u64, u64)>>,
    confidence: &str,
) -> PyResult<String> {
    let counted = |side: Vec<Vec<(u64, u64)>>| -> Vec<Vec<Counted>> {
        let run = |run: Vec<(u64, u64)>| {
            run.into_iter().map(|(lost, known)| Counted { lost, known }).collect()
        };
        side.into_iter().map(run).collect()
    };
    json(&tailtrim_compare::losses(&counted(a), &counted(b), below_one(confidence)?))
}

/// Plans the number of samples for a quantile, learning from those of a pilot run in `samples`. The result as JSON.
#[pyfunction]
#[pyo3(signature = (*, quantile, precision, confidence, assurance, design_effect, samples))]
pub(crate) fn plan_length(
    py: Python<'_>,
    quantile: &str,
    precision: f64,
    confidence: &str,
    assurance: &str,
    design_effect: f64,
    samples: Option<PyArrowType<Table>>,
) -> PyResult<String> {
    let (p, confidence) = (probability(quantile)?, below_one(confidence)?);
    let assurance = probability(assurance)?;
    let batches = samples.map(|samples| samples.0.into_inner().0);
    let columns = batches.as_deref().map(latencies).transpose()?;
    let planned = py.detach(|| {
        let Some(columns) = columns else {
            return tailtrim_compare::length(
                p,
                precision,
                confidence,
                assurance,
                design_effect,
                None,
            );
        };
        let mut blocks = BlockCounts::new();
        let mut values = Vec::new();
        for column in columns {
            blocks.record_all(column.values());
            values.extend_from_slice(column.values());
        }
        let latencies = Ranked::from_values(&mut values);
        // Beyond the last latency that enough samples exceed, it is unknown how they cluster.
        let rank = p
            .rank(latencies.count())
            .min(latencies.count().saturating_sub(BlockCounts::TELLING).max(1));
        let seen = latencies
            .at_rank(rank)
            .map_or(1.0, |ns| blocks.design_effect(ns, latencies.count_above(ns), confidence));
        let effect = design_effect.max(seen);
        tailtrim_compare::length(
            p,
            precision,
            confidence,
            assurance,
            effect,
            Some(Pilot { latencies: &latencies }),
        )
    });
    match planned {
        Ok(planned) => json(&planned),
        Err(error) => Err(TailtrimError::new_err(error.to_string())),
    }
}

/// Number of samples that are worth one independent sample, for the count of those later than `deadline_ns`. Where few
/// samples are later, the effect is that at a lower latency, which enough of them exceed.
#[pyfunction]
#[pyo3(signature = (samples, *, deadline_ns, confidence))]
pub(crate) fn design_effect(
    py: Python<'_>,
    samples: PyArrowType<Table>,
    deadline_ns: i64,
    confidence: &str,
) -> PyResult<f64> {
    let confidence = below_one(confidence)?;
    let (batches, _) = samples.0.into_inner();
    let columns = latencies(&batches)?;
    Ok(py.detach(|| {
        let mut blocks = BlockCounts::new();
        let mut values = Vec::new();
        for column in columns {
            blocks.record_all(column.values());
            values.extend_from_slice(column.values());
        }
        let latencies = Ranked::from_values(&mut values);
        let rank = latencies.count().saturating_sub(BlockCounts::TELLING).max(1);
        latencies.at_rank(rank).map_or(1.0, |telling_ns| {
            let ns = telling_ns.min(deadline_ns);
            blocks.design_effect(ns, latencies.count_above(ns), confidence)
        })
    }))
}

/// Whether the share of bad packets is within a limit. The result as JSON.
#[pyfunction]
#[pyo3(signature = (*, bad, packets, design_effect, limit, confidence, assurance))]
pub(crate) fn promised(
    bad: u64,
    packets: u64,
    design_effect: f64,
    limit: f64,
    confidence: &str,
    assurance: &str,
) -> PyResult<String> {
    let observed = tailtrim_compare::Observed { bad, packets, design_effect };
    let (confidence, assurance) = (below_one(confidence)?, probability(assurance)?);
    json(&tailtrim_compare::promised(observed, limit, confidence, assurance))
}
