//! Requests and replies of one capture, as the two sides of an analysis.

use crate::analysis::{AnalysisArguments, NativeAnalysis, PythonProgress, output_failed};
use crate::errors::raise;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use tailtrim_reading::source;
use tailtrim_tables::SampleSink;
use tailtrim_tail::analysis::{AnalysisError, analyze};
use tailtrim_tail::exchange::{Found, messages};
use tailtrim_wire::exchange::{Part, Protocol};

/// Protocols whose replies say which request they answer.
#[pyfunction]
pub(crate) fn protocols() -> [&'static str; Protocol::ALL.len()] {
    Protocol::ALL.map(Protocol::name)
}

/// Counts the requests and replies of a capture: `(name, requests, replies)` for each protocol, the protocol of most
/// exchanges, and the packets, those that repeat a TCP timestamp, those of no such protocol, and those without a stamp.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "read by one typed wrapper")]
pub(crate) fn count_exchanges(
    py: Python<'_>,
    capture: PathBuf,
    options: AnalysisArguments,
) -> PyResult<(Vec<(&'static str, u64, u64)>, Option<&'static str>, [u64; 4])> {
    let reading = options.reading();
    let found = py
        .detach(|| Found::of(&mut source::open(&capture, reading)?.capture))
        .map_err(|error| raise(py, &AnalysisError::Capture(error)))?;
    let protocols = Protocol::ALL.map(|protocol| {
        let [requests, replies] = found.of_protocol(protocol);
        (protocol.name(), requests, replies)
    });
    let counts = [found.packets, found.repeated, found.others, found.unstamped];
    Ok((protocols.to_vec(), found.commonest().map(Protocol::name), counts))
}

/// Matches the requests of a protocol with their replies. Samples are streamed to `sample.parquet` in `directory` where
/// one is given, and kept in memory with `keep_samples`.
#[pyfunction]
#[pyo3(signature = (capture, protocol, options, *, directory, keep_samples, progress))]
pub(crate) fn analyze_exchanges(
    py: Python<'_>,
    capture: PathBuf,
    protocol: &str,
    options: AnalysisArguments,
    directory: Option<PathBuf>,
    keep_samples: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<NativeAnalysis> {
    let protocol = Protocol::ALL
        .into_iter()
        .find(|one| one.name() == protocol)
        .ok_or_else(|| PyValueError::new_err(format!("unknown protocol {protocol:?}")))?;
    let (reading, options) = (options.reading(), options.options()?);
    let mut sink = SampleSink::new(keep_samples, directory.as_deref())
        .map_err(|error| output_failed(directory.as_deref().unwrap_or(&capture), &error))?;
    let mut raised = None;
    let result = py.detach(|| {
        let [requests, replies] =
            [source::open(&capture, reading.clone())?, source::open(&capture, reading)?];
        let extents = [requests.extent.clone(), replies.extent.clone()];
        let mut told = PythonProgress { extents, progress: progress.as_ref(), raised: &mut raised };
        let mut requests = messages(requests.capture, protocol, Part::Request);
        let mut replies = messages(replies.capture, protocol, Part::Reply);
        analyze(&mut requests, &mut replies, &options, &mut sink, |entered, left| {
            told.tell([entered, left])
        })
        .and_then(|analysis| sink.close().map(|()| analysis).map_err(AnalysisError::Sink))
    });
    match (result, raised) {
        (_, Some(error)) => Err(error),
        (Ok(analysis), None) => Ok(NativeAnalysis { analysis, samples: sink.kept }),
        (Err(error), None) => Err(raise(py, &error)),
    }
}
