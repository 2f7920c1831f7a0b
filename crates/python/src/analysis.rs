//! `analyze` and its result.

use crate::errors::{OutputError, invalid, raise, raise_capture, raise_order};
use crate::probabilities::{below_one, probabilities};
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tailtrim_reading::analysis;
use tailtrim_reading::source::{self, Extent, Reading};
use tailtrim_tables::{SampleSink, batches, write_tables};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Departures, Options, Sample};
use tailtrim_tail::capture::{InterfaceDirection, Only, StampSource};
use tailtrim_tail::directions::Direction;
use tailtrim_tail::matching::Window;
use tailtrim_tail::signature::Rewrites;

/// The result of [`analyze`]: tables as Arrow record batches, the rest as JSON.
#[pyclass(frozen, name = "NativeAnalysis", module = "tailtrim._native")]
pub(crate) struct NativeAnalysis {
    pub(crate) analysis: Analysis,
    pub(crate) samples: Option<Vec<Sample>>,
}

#[pymethods]
impl NativeAnalysis {
    /// The summary as the text that `--json` prints.
    fn summary_json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.analysis.summary)
            .map_err(|error| OutputError::new_err(error.to_string()))
    }

    /// The table of this name as an Arrow record batch.
    fn table(&self, name: &str) -> PyResult<PyArrowType<RecordBatch>> {
        let batch = match name {
            "sample" => {
                self.samples.as_deref().map(batches::samples).transpose().map_err(failed)?
            }
            _ => {
                let tables = batches::all(&self.analysis).map_err(failed)?;
                tables.into_iter().find(|(table, _)| *table == name).map(|(_, batch)| batch)
            }
        };
        batch.map(PyArrowType).ok_or_else(|| PyValueError::new_err(format!("no table {name:?}")))
    }

    /// Raises where packets left before they entered, see [`Analysis::check_order`].
    fn check_order(&self, py: Python<'_>) -> PyResult<()> {
        self.analysis.check_order().map_err(|error| raise_order(py, &error))
    }

    /// Writes every table but the samples into a directory, that of lost packets if they were asked for.
    fn write_tables(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        py.detach(|| write_tables(&directory, &self.analysis))
            .map_err(|error| output_failed(&directory, &error))
    }
}

pub(crate) fn failed(error: ArrowError) -> PyErr {
    OutputError::new_err(error.to_string())
}

pub(crate) fn output_failed(directory: &std::path::Path, error: &io::Error) -> PyErr {
    OutputError::new_err(format!("{}: cannot be written: {error}", directory.display()))
}

/// Options of which only what makes the signature is set.
pub(crate) fn signing(signature: Option<&str>, masks: &[String]) -> PyResult<Options> {
    let masked = |name: &str| masks.iter().any(|mask| mask == name);
    Ok(Options {
        rewrites: Rewrites { nat: masked("nat"), tos: masked("tos"), tunnel: masked("tunnel") },
        selection: signature.map(str::parse).transpose().map_err(invalid)?,
        ..Options::default()
    })
}

/// Options of an analysis: the matching of two captures, and the statistics of their latencies.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AnalysisArguments {
    signature: Option<String>,
    masks: Vec<String>,
    trim_ns: i64,
    window_ns: i64,
    quantiles: Vec<String>,
    confidence: String,
    x552_trailer: bool,
    nanoseconds: bool,
    salvage: bool,
    watched_to_the_end: bool,
    stalled: Vec<(i64, i64)>,
    late: Vec<(i64, i64)>,
    correction_ns: i64,
    in_order: bool,
    direction: Option<String>,
    lost: usize,
    fit_clocks: bool,
}

impl AnalysisArguments {
    pub(crate) fn options(&self) -> PyResult<Options> {
        Ok(Options {
            window: Window { window_ns: self.window_ns, ..Window::default() },
            trim_ns: self.trim_ns,
            quantiles: probabilities(&self.quantiles)?,
            confidence: below_one(&self.confidence)?,
            watched_to_the_end: self.watched_to_the_end,
            departures: Departures { stalled: self.stalled.clone(), late: self.late.clone() },
            correction_ns: self.correction_ns,
            in_order: self.in_order,
            direction: self.direction.as_deref().map(direction).transpose()?,
            lost: self.lost,
            fit_clocks: self.fit_clocks,
            ..signing(self.signature.as_deref(), &self.masks)?
        })
    }

    pub(crate) fn reading(&self) -> Reading {
        let stamps = stamp_source(self.x552_trailer, self.nanoseconds);
        Reading { stamps, salvage: self.salvage, only: None }
    }
}

/// Source of the stamps that these arguments name.
pub(crate) fn stamp_source(x552_trailer: bool, nanoseconds: bool) -> StampSource {
    match (x552_trailer, nanoseconds) {
        (true, _) => StampSource::X552Trailer,
        (false, true) => StampSource::Nanoseconds,
        (false, false) => StampSource::Header,
    }
}

/// Packets of a capture by interface and direction: what to name them by, the interface in words, and how many they are.
#[pyfunction]
pub(crate) fn survey(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, String, u64)>> {
    let told = py.detach(|| source::open(&path, Reading::default())?.capture.survey());
    let told = told.map_err(|error| raise_capture(py, &error))?;
    Ok(told.into_iter().map(|seen| (seen.choice, seen.interface, seen.packets)).collect())
}

fn direction(name: &str) -> PyResult<Direction> {
    match name {
        "forward" => Ok(Direction::Forward),
        "reverse" => Ok(Direction::Reverse),
        _ => Err(invalid(format!("unknown direction {name:?}, expected forward or reverse"))),
    }
}

/// Tells Python how much is done, and takes what it raises.
pub(crate) struct PythonProgress<'a> {
    pub(crate) extents: [Extent; 2],
    pub(crate) progress: Option<&'a Py<PyAny>>,
    pub(crate) raised: &'a mut Option<PyErr>,
}

impl PythonProgress<'_> {
    pub(crate) fn tell(&mut self, offsets: [u64; 2]) -> ControlFlow<()> {
        let [ingress, egress] = &self.extents;
        let done = (ingress.done(offsets[0]), egress.done(offsets[1]));
        let share = done.0.zip(done.1).map(|(ingress, egress)| ingress.midpoint(egress));
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.map_or(Ok(()), |call| call.call1(py, (share,)).map(|_| ()))
        });
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Settings for reading each side, of which an interface may be named.
pub(crate) fn sides(reading: &Reading, named: (Option<String>, Option<String>)) -> [Reading; 2] {
    [(named.0, InterfaceDirection::In), (named.1, InterfaceDirection::Out)].map(|(name, side)| {
        let only = name.map(|interface| Only::named(&interface, side));
        Reading { only, ..reading.clone() }
    })
}

/// Matches two captures, on all cores or at most on `jobs` of them. `progress` is called now and then with the share done
/// (0 to 1) or `None` where it cannot be known. Samples are streamed to `sample.parquet` in `directory` where one is given,
/// and kept in memory with `keep_samples`. The ingress capture is read again for the lost packets, if some are asked for.
#[pyfunction]
#[pyo3(signature = (ingress, egress, options, *, directory, keep_samples, progress, jobs = None, interfaces = (None, None)))]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
pub(crate) fn analyze(
    py: Python<'_>,
    ingress: PathBuf,
    egress: PathBuf,
    options: AnalysisArguments,
    directory: Option<PathBuf>,
    keep_samples: bool,
    progress: Option<Py<PyAny>>,
    jobs: Option<NonZeroUsize>,
    interfaces: (Option<String>, Option<String>),
) -> PyResult<NativeAnalysis> {
    let (readings, options) = (sides(&options.reading(), interfaces), options.options()?);
    let mut sink = SampleSink::new(keep_samples, directory.as_deref())
        .map_err(|error| output_failed(directory.as_deref().unwrap_or(&ingress), &error))?;
    let mut raised = None;
    let result = py.detach(|| {
        let [entering, leaving] = readings;
        let (ingress, egress) =
            (source::open(&ingress, entering)?, source::open(&egress, leaving)?);
        let jobs = jobs.unwrap_or_else(analysis::all_cores);
        let extents = [ingress.extent.clone(), egress.extent.clone()];
        let mut told = PythonProgress { extents, progress: progress.as_ref(), raised: &mut raised };
        analysis::analyze(
            ingress,
            egress,
            jobs,
            &options,
            &mut sink,
            |ingress_offset, egress_offset| told.tell([ingress_offset, egress_offset]),
        )
        .and_then(|analysis| sink.close().map(|()| analysis).map_err(AnalysisError::Sink))
    });
    match (result, raised) {
        (_, Some(error)) => Err(error),
        (Ok(analysis), None) => Ok(NativeAnalysis { analysis, samples: sink.kept }),
        (Err(error), None) => Err(raise(py, &error)),
    }
}
