//! Quantiles and confidences as people write them: `0.999`, `99.9%`, `99.9`, `p99.9`.

use crate::errors::invalid;
use pyo3::prelude::*;
use tailtrim_stats::Probability;

/// A quantile as the summary writes it: `0.999`.
#[pyfunction]
pub(crate) fn quantile(text: &str) -> PyResult<String> {
    probability(text).map(|p| p.to_string())
}

/// A confidence as the summary writes it.
#[pyfunction]
pub(crate) fn confidence(text: &str) -> PyResult<String> {
    below_one(text).map(|confidence| confidence.to_string())
}

/// Independent episodes beyond a quantile that support it.
#[pyfunction]
pub(crate) fn episodes_needed(confidence: &str) -> PyResult<u64> {
    probability(confidence).map(tailtrim_stats::episodes_needed)
}

pub(crate) fn probability(text: &str) -> PyResult<Probability> {
    text.parse().map_err(invalid)
}

pub(crate) fn probabilities(texts: &[String]) -> PyResult<Vec<Probability>> {
    texts.iter().map(|text| probability(text)).collect()
}

/// Reads a confidence. No number of samples makes anything certain.
pub(crate) fn below_one(text: &str) -> PyResult<Probability> {
    let confidence = probability(text)?;
    if confidence == Probability::ONE {
        return Err(invalid(format_args!("confidence `{text}`: expected less than 1 (100%)")));
    }
    Ok(confidence)
}
