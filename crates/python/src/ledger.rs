//! An analysis whose packets an engine matched: rows in, the same result as of `analyze` out.

use crate::analysis::{NativeAnalysis, output_failed, signing};
use crate::errors::{OutputError, TailtrimError, invalid};
use crate::merge::Merge;
use crate::probabilities::{below_one, probabilities};
use crate::rows;
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tailtrim_reading::converted;
use tailtrim_tables::SampleSink;
use tailtrim_tail::analysis::{Facts, Ledger, LedgerError, Options};
use tailtrim_tail::matching::{MEMORY, Window};
use tailtrim_tail::signature::Signature;

/// Pairs that are counted at once.
const MERGED: usize = 1 << 16;

/// The books of an analysis.
#[pyclass(name = "NativeLedger", module = "tailtrim._native")]
pub(crate) struct NativeLedger {
    ledger: Option<Ledger>,
    /// Behind a lock because Python may share objects between threads and a Parquet writer may not be.
    sink: Mutex<SampleSink>,
}

#[pymethods]
impl NativeLedger {
    /// Empty books for two decoded captures. For the options see `analyze`.
    #[new]
    #[pyo3(signature = (ingress, egress, *, signature_bytes, signature, masks, trim_ns, window_ns, quantiles,
        confidence, watched_to_the_end, directory, keep_samples))]
    #[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
    fn new(
        ingress: &str,
        egress: &str,
        signature_bytes: usize,
        signature: Option<String>,
        masks: Vec<String>,
        trim_ns: i64,
        window_ns: i64,
        quantiles: Vec<String>,
        confidence: &str,
        watched_to_the_end: bool,
        directory: Option<PathBuf>,
        keep_samples: bool,
    ) -> PyResult<Self> {
        let options = Options {
            window: Window { window_ns, ..Window::default() },
            trim_ns,
            quantiles: probabilities(&quantiles)?,
            confidence: below_one(confidence)?,
            watched_to_the_end,
            ..signing(signature.as_deref(), &masks)?
        };
        let facts = |text: &str| serde_json::from_str::<Facts>(text).map_err(invalid);
        let sink = SampleSink::new(keep_samples, directory.as_deref()).map_err(|error| {
            output_failed(directory.as_deref().unwrap_or(Path::new("")), &error)
        })?;
        let ledger = Ledger::new(facts(ingress)?, facts(egress)?, signature_bytes, options);
        Ok(Self { ledger: Some(ledger), sink: Mutex::new(sink) })
    }

    /// To be added to the egress stamps.
    #[getter]
    fn shift_ns(&mut self) -> PyResult<i64> {
        Ok(self.ledger()?.shift_ns())
    }

    /// Where the seconds begin to count.
    #[getter]
    fn origin_ns(&mut self) -> PyResult<i64> {
        Ok(self.ledger()?.origin_ns())
    }

    /// Samples that left until then are trimmed; `None` without any match.
    #[getter]
    fn trimmed_until_ns(&mut self) -> PyResult<Option<i64>> {
        Ok(self.ledger()?.trimmed_until_ns())
    }

    /// The latencies, in ns, from which on two packets of one signature match, lie beyond the window and
    /// have nothing to do with each other.
    #[getter]
    fn bounds_ns(&mut self) -> PyResult<[i64; 3]> {
        Ok(self.ledger()?.window().bounds_ns())
    }

    /// The stamps from which and until which a packet that did not leave is lost, until which an
    /// unmatched one may have entered before the capture, and a packet is trimmed. To be asked for when all pairs are settled.
    #[getter]
    fn ends_ns(&mut self) -> PyResult<[i64; 4]> {
        let ends = self.ledger()?.ends();
        Ok([
            ends.lost_from_ns,
            ends.lost_until_ns,
            ends.entered_before_until_ns,
            ends.trimmed_until_ns,
        ])
    }

    /// Matches packets whose signature repeats, in order of signature, running maximum, side, index.
    fn tangled(&mut self, py: Python<'_>, packets: PyArrowType<RecordBatch>) -> PyResult<()> {
        let packets = rows::tangled(&packets.0)?;
        let ledger = self.ledger()?;
        py.detach(|| packets.iter().try_for_each(|packet| ledger.tangled(packet)))
            .map_err(|error: LedgerError| TailtrimError::new_err(error.to_string()))
    }

    /// Counts pairs, in the order in which they were decided.
    fn pairs(&mut self, py: Python<'_>, pairs: PyArrowType<RecordBatch>) -> PyResult<()> {
        let pairs = rows::decided(&pairs.0)?;
        let (ledger, sink) = self.parts()?;
        let counted = py.detach(|| ledger.pairs(&pairs, sink));
        counted.map_err(|error| sink_failed(&error))
    }

    /// Counts the pairs of several iterators of batches, each of which is in order.
    fn merge<'py>(&mut self, py: Python<'py>, runs: Vec<Bound<'py, PyIterator>>) -> PyResult<()> {
        let mut merge = Merge::new(runs)?;
        let mut merged = Vec::with_capacity(MERGED);
        loop {
            let rest = merge.read(py, &mut merged, MERGED)?;
            let (ledger, sink) = self.parts()?;
            let counted = py.detach(|| ledger.pairs(&merged, sink));
            counted.map_err(|error| sink_failed(&error))?;
            py.check_signals()?;
            if !rest {
                return Ok(());
            }
        }
    }

    /// No pair follows.
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        let (ledger, sink) = self.parts()?;
        let settled = py.detach(|| ledger.settle(sink).and_then(|()| sink.close()));
        settled.map_err(|error| sink_failed(&error))
    }

    /// The result. `outcomes` counts packets whose signature does not repeat, `gaps` and `loads` are of
    /// both taps. `sign` is given places of packets in the ingress capture and returns for each the place
    /// and both halves of the signature.
    fn finish(
        &mut self,
        outcomes: PyArrowType<RecordBatch>,
        gaps: [PyArrowType<RecordBatch>; 2],
        loads: [PyArrowType<RecordBatch>; 2],
        sign: &Bound<'_, PyAny>,
    ) -> PyResult<NativeAnalysis> {
        let ledger = self.ledger.take().ok_or_else(finished)?;
        let tally = rows::outcomes(&outcomes.0)?;
        let [ingress_gaps, egress_gaps] = gaps.map(|batch| rows::histogram(&batch.0));
        let [ingress_loads, egress_loads] = loads.map(|batch| rows::loads(&batch.0));
        let mut analysis =
            ledger.finish(tally, [ingress_gaps?, egress_gaps?], [ingress_loads?, egress_loads?]);
        let worst: Vec<i64> =
            analysis.worst.iter().map(|worst| worst.sample.signature.low).collect();
        if !worst.is_empty() {
            let rows: Vec<(i64, i64, i64)> = sign.call1((worst,))?.extract()?;
            let signatures: HashMap<i64, Signature> = rows
                .into_iter()
                .map(|(index, high, low)| (index, Signature { high, low }))
                .collect();
            for worst in &mut analysis.worst {
                let index = worst.sample.signature.low;
                worst.sample.signature = *signatures.get(&index).ok_or_else(|| {
                    TailtrimError::new_err(format!(
                        "internal error: the engine did not return packet {index}"
                    ))
                })?;
            }
        }
        converted::tell(&mut analysis.summary)
            .map_err(|error| TailtrimError::new_err(error.to_string()))?;
        Ok(NativeAnalysis { analysis, samples: self.sink().kept.take() })
    }

    /// Ingress packets after which one is forgotten.
    #[classattr]
    const MEMORY: usize = MEMORY;
}

impl NativeLedger {
    fn ledger(&mut self) -> PyResult<&mut Ledger> {
        self.ledger.as_mut().ok_or_else(finished)
    }

    fn sink(&mut self) -> &mut SampleSink {
        self.sink.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts(&mut self) -> PyResult<(&mut Ledger, &mut SampleSink)> {
        let sink = self.sink.get_mut().unwrap_or_else(PoisonError::into_inner);
        Ok((self.ledger.as_mut().ok_or_else(finished)?, sink))
    }
}

fn sink_failed(error: &io::Error) -> PyErr {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<LedgerError>()) {
        Some(disorder) => TailtrimError::new_err(disorder.to_string()),
        None => OutputError::new_err(error.to_string()),
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the ledger is closed")
}
