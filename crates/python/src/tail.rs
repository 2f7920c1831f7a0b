//! The tail of latencies that come in parts: percentiles with the intervals that an analysis has, and nothing else.

use crate::errors::invalid;
use crate::probabilities::{below_one, probabilities};
use crate::rows::columns;
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use serde::Serialize;
use tailtrim_stats::{Band, BlockCounts, Histogram, Ranked, Undelivered, samples_needed};
use tailtrim_tail::summary::Quantile;

/// Latencies, counted, and in blocks by their order.
#[pyclass(name = "NativeTail", module = "tailtrim._native")]
pub(crate) struct NativeTail {
    counted: Histogram,
    blocks: BlockCounts,
}

#[derive(Serialize)]
struct Told {
    samples: u64,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    quantiles: Vec<Quantile>,
}

#[pymethods]
impl NativeTail {
    #[new]
    fn new() -> Self {
        Self { counted: Histogram::new(), blocks: BlockCounts::new() }
    }

    /// Counts the column `latency_ns` of a batch, in its order.
    fn record(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        let [latencies_ns] = columns(&batch.0, ["latency_ns"])?;
        py.detach(|| {
            self.counted.record_all(latencies_ns.iter().copied());
            self.blocks.record_all(latencies_ns);
        });
        Ok(())
    }

    /// Number, ends and quantiles of all latencies as JSON.
    fn told_json(
        &self,
        py: Python<'_>,
        quantiles: Vec<String>,
        confidence: &str,
    ) -> PyResult<String> {
        let (quantiles, confidence) = (probabilities(&quantiles)?, below_one(confidence)?);
        let told = py.detach(|| {
            let ranked = Ranked::new(&self.counted);
            let band = Band::new(&ranked, &self.blocks, Undelivered::NONE, confidence);
            let count = ranked.count();
            let of = |p| {
                let bounds = band.at(p);
                let high = bounds.interval.high.and_then(|rank| ranked.at_rank(rank));
                Quantile {
                    p,
                    value: ranked.quantile(p),
                    low: bounds.interval.low.and_then(|rank| ranked.at_rank(rank)),
                    high,
                    supported: bounds.supported && high.is_some(),
                    samples_needed: samples_needed(p, confidence),
                    effective_samples: (count as f64 / bounds.effect) as u64,
                    episodes: bounds.episodes as u64,
                    clusters: None,
                }
            };
            let (min_ns, max_ns) = (ranked.at_rank(1), ranked.at_rank(count));
            let quantiles = quantiles.into_iter().map(of).collect();
            Told { samples: count, min_ns, max_ns, quantiles }
        });
        serde_json::to_string(&told).map_err(invalid)
    }
}
