//! An analysis whose packets an engine matched: rows in, the same result as of `analyze` out.

use crate::analysis::{NativeAnalysis, invalid, output_failed, parsed, signing};
use crate::errors::{OutputError, TailtrimError};
use crate::merge::Merge;
use crate::rundir::SampleSink;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3_arrow::PyRecordBatch;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tailtrim_stats::Histogram;
use tailtrim_tail::analysis::{
    DecidedPair, Facts, Ledger, LedgerError, Options, Outcomes, Place, TangledPacket,
};
use tailtrim_tail::matching::{MEMORY, Pair, Window};
use tailtrim_tail::signature::Signature;

/// Pairs that are counted at once.
const MERGED: usize = 1 << 16;

/// Values of the column `ingress` of the outcomes.
const LOST: i64 = 1;
const CUT: i64 = 2;
const BEYOND: i64 = 3;
/// Values of the column `egress` of the outcomes.
const UNMATCHED: i64 = 1;
const MAYBE_BEFORE: i64 = 2;

/// The books of an analysis.
#[pyclass(name = "NativeLedger", module = "tailtrim._native")]
pub(crate) struct NativeLedger {
    ledger: Option<Ledger>,
    /// Behind a lock because Python may share objects between threads and a Parquet writer may not be.
    sink: Mutex<SampleSink>,
    place: PathBuf,
}

#[pymethods]
impl NativeLedger {
    /// Empty books for two decoded captures. For the options see `analyze`.
    #[new]
    #[pyo3(signature = (ingress, egress, *, signature_bytes, signature, masks, trim_ns, window_ns, quantiles,
        confidence, directory, keep_samples))]
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
        directory: Option<PathBuf>,
        keep_samples: bool,
    ) -> PyResult<Self> {
        let options = Options {
            window: Window { window_ns, ..Window::default() },
            trim_ns,
            quantiles: parsed(&quantiles)?,
            confidence: confidence.parse().map_err(invalid)?,
            ..signing(signature.as_deref(), &masks)?
        };
        let facts = |text: &str| serde_json::from_str::<Facts>(text).map_err(invalid);
        let place = directory.clone().unwrap_or_default();
        let sink = SampleSink::new(keep_samples, directory.as_deref())
            .map_err(|error| output_failed(&place, &error))?;
        let ledger = Ledger::new(facts(ingress)?, facts(egress)?, signature_bytes, options);
        Ok(Self { ledger: Some(ledger), sink: Mutex::new(sink), place })
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

    /// The largest latency of all pairs.
    #[getter]
    fn longest_ns(&mut self) -> PyResult<i64> {
        Ok(self.ledger()?.longest_ns())
    }

    /// Matches packets whose signature repeats, in order of signature, running maximum, side, index.
    fn tangled(&mut self, py: Python<'_>, packets: PyRecordBatch) -> PyResult<()> {
        let batch = packets.into_inner();
        let [high, low, order_ns, side, index, stamp_ns, position, forgotten_ns] = columns(
            &batch,
            [
                "signature_high",
                "signature_low",
                "order_ns",
                "side",
                "packet_index",
                "stamp_ns",
                "burst_position",
                "forgotten_ns",
            ],
        )?;
        let ledger = self.ledger()?;
        py.detach(|| {
            (0..batch.num_rows()).try_for_each(|row| {
                ledger.tangled(&TangledPacket {
                    signature: Signature { high: high[row], low: low[row] },
                    place: place(order_ns[row], side[row], index[row]),
                    stamp_ns: stamp_ns[row],
                    position: tag(position[row]),
                    forgotten_ns: forgotten_ns[row],
                })
            })
        })
        .map_err(|error: LedgerError| TailtrimError::new_err(error.to_string()))
    }

    /// Counts pairs, in the order in which they were decided.
    fn pairs(&mut self, py: Python<'_>, pairs: PyRecordBatch) -> PyResult<()> {
        let pairs = decided(&pairs.into_inner())?;
        let (ledger, sink) = self.parts()?;
        let counted = py.detach(|| ledger.pairs(&pairs, sink));
        counted.map_err(|error| self.sink_failed(&error))
    }

    /// Counts the pairs of several iterators of batches, each of which is in order.
    fn merge<'py>(&mut self, py: Python<'py>, runs: Vec<Bound<'py, PyIterator>>) -> PyResult<()> {
        let mut merge = Merge::new(runs)?;
        let mut merged = Vec::with_capacity(MERGED);
        loop {
            let rest = merge.read(py, &mut merged, MERGED)?;
            let (ledger, sink) = self.parts()?;
            let counted = py.detach(|| ledger.pairs(&merged, sink));
            counted.map_err(|error| self.sink_failed(&error))?;
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
        settled.map_err(|error| self.sink_failed(&error))
    }

    /// The result. `outcomes` counts packets whose signature does not repeat, `gaps` and `loads` are of
    /// both taps. `sign` is given places of packets in the ingress capture and returns for each the place
    /// and both halves of the signature.
    fn finish(
        &mut self,
        outcomes: PyRecordBatch,
        gaps: [PyRecordBatch; 2],
        loads: [PyRecordBatch; 2],
        sign: &Bound<'_, PyAny>,
    ) -> PyResult<NativeAnalysis> {
        let ledger = self.ledger.take().ok_or_else(finished)?;
        let outcomes = counted(&outcomes.into_inner())?;
        let [ingress_gaps, egress_gaps] = gaps.map(|batch| histogram(&batch.into_inner()));
        let [ingress_loads, egress_loads] = loads.map(|batch| load(&batch.into_inner()));
        let mut analysis =
            ledger.finish(outcomes, [ingress_gaps?, egress_gaps?], [ingress_loads?, egress_loads?]);
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
                    TailtrimError::new_err(format!("the engine lost packet {index}"))
                })?;
            }
        }
        Ok(NativeAnalysis { analysis, samples: self.sink().kept.take() })
    }

    /// Ingress packets after which nobody remembers one.
    #[classattr]
    const MEMORY: usize = MEMORY;

    /// How much earlier than it entered a packet may leave, in ns: the taps' clocks may disagree.
    #[classattr]
    fn early_ns() -> i64 {
        Window::default().early_ns
    }
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

    fn sink_failed(&self, error: &io::Error) -> PyErr {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<LedgerError>()) {
            Some(disorder) => TailtrimError::new_err(disorder.to_string()),
            None if self.place == Path::new("") => OutputError::new_err(error.to_string()),
            None => output_failed(&self.place, error),
        }
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the books are closed")
}

fn place(order_ns: i64, side: i64, index: i64) -> Place {
    Place { order_ns, left: side != 0, index }
}

fn tag(position: i64) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX)
}

/// Columns of 64-bit integers without nulls.
fn columns<'a, const N: usize>(
    batch: &'a RecordBatch,
    names: [&str; N],
) -> PyResult<[&'a [i64]; N]> {
    let mut columns = [&[][..]; N];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = batch
            .column_by_name(name)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .filter(|column| column.null_count() == 0)
            .ok_or_else(|| PyValueError::new_err(format!("no column {name} of int64")))?
            .values();
    }
    Ok(columns)
}

/// The pairs of a batch.
pub(crate) fn decided(batch: &RecordBatch) -> PyResult<Vec<DecidedPair>> {
    let [order_ns, side, index, ingress_ns, egress_ns, ingress_index, position] = columns(
        batch,
        [
            "decided_ns",
            "decided_side",
            "decided_index",
            "ingress_ns",
            "egress_ns",
            "ingress_index",
            "burst_position",
        ],
    )?;
    let pairs = (0..batch.num_rows()).map(|row| DecidedPair {
        place: place(order_ns[row], side[row], index[row]),
        pair: Pair {
            ingress_ns: ingress_ns[row],
            egress_ns: egress_ns[row],
            signature: Signature { high: 0, low: ingress_index[row] },
            tag: tag(position[row]),
        },
    });
    Ok(pairs.collect())
}

fn count(value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| PyValueError::new_err(format!("a count of {value}")))
}

fn histogram(batch: &RecordBatch) -> PyResult<Histogram> {
    let [values, counts] = columns(batch, ["gap_ns", "packets"])?;
    let mut histogram = Histogram::new();
    for (value, n) in values.iter().zip(counts) {
        histogram.record_n(*value, count(*n)?);
    }
    Ok(histogram)
}

/// Packets and bytes by second.
fn load(batch: &RecordBatch) -> PyResult<BTreeMap<i64, (u64, u64)>> {
    let [seconds, packets, bytes] = columns(batch, ["second", "packets", "bytes"])?;
    (0..batch.num_rows())
        .map(|row| Ok((seconds[row], (count(packets[row])?, count(bytes[row])?))))
        .collect()
}

fn counted(batch: &RecordBatch) -> PyResult<Outcomes> {
    let names = ["ingress", "ingress_trimmed", "second", "egress", "egress_trimmed", "packets"];
    let [ingress, ingress_trimmed, seconds, egress, egress_trimmed, packets] =
        columns(batch, names)?;
    let mut outcomes = Outcomes::default();
    for row in 0..batch.num_rows() {
        let n = count(packets[row])?;
        match (ingress[row], ingress_trimmed[row] != 0) {
            (LOST, trimmed) => {
                let counts = outcomes.lost.entry(seconds[row]).or_default();
                *(if trimmed { &mut counts.1 } else { &mut counts.0 }) += n;
            }
            (CUT, false) => outcomes.ingress.cut += n,
            (CUT, true) => outcomes.ingress.trimmed += n,
            (BEYOND, false) => outcomes.ingress.beyond_window += n,
            (BEYOND, true) => outcomes.trimmed_beyond += n,
            _ => {}
        }
        match (egress[row], egress_trimmed[row] != 0) {
            (UNMATCHED | MAYBE_BEFORE, true) => outcomes.egress.trimmed += n,
            (UNMATCHED, false) => outcomes.egress.unmatched += n,
            (MAYBE_BEFORE, false) => outcomes.egress.cut += n,
            _ => {}
        }
    }
    Ok(outcomes)
}
