//! Captures that other hosts match stretch by stretch.

use crate::analysis::{AnalysisArguments, NativeAnalysis, PythonProgress};
use crate::errors::{TailtrimError, raise, raise_capture};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};
use std::io;
use std::path::PathBuf;
use tailtrim_reading::analysis::remote::{self, Hosts, Ordered};
use tailtrim_reading::analysis::{Answers, StretchError};
use tailtrim_reading::source::{self, CaptureInput};

/// Outlines a stretch of the captures on this host; `None` where it cannot be matched on its own.
#[pyfunction]
pub(crate) fn outline_stretch(
    py: Python<'_>,
    captures: [PathBuf; 2],
    task: &[u8],
    options: AnalysisArguments,
) -> PyResult<Option<Py<PyBytes>>> {
    let (sources, asked) = (open(py, &captures, &options)?, options.options()?);
    let [ingress, egress] = sources;
    let told = py.detach(|| remote::outline(ingress, egress, task, &asked));
    answer(py, told)
}

/// Counts the pairs of a stretch on this host in the given order.
#[pyfunction]
pub(crate) fn count_stretch(
    py: Python<'_>,
    captures: [PathBuf; 2],
    task: &[u8],
    order: &[u8],
    options: AnalysisArguments,
) -> PyResult<Option<Py<PyBytes>>> {
    let (sources, asked) = (open(py, &captures, &options)?, options.options()?);
    let [ingress, egress] = sources;
    let told = py.detach(|| remote::counts(ingress, egress, (task, order), &asked));
    answer(py, told)
}

fn open(
    py: Python<'_>,
    captures: &[PathBuf; 2],
    options: &AnalysisArguments,
) -> PyResult<[CaptureInput; 2]> {
    let open = |path: &PathBuf| {
        source::open(path, options.reading()).map_err(|error| raise_capture(py, &error))
    };
    let [ingress, egress] = captures;
    Ok([open(ingress)?, open(egress)?])
}

fn answer(py: Python<'_>, told: io::Result<Option<Vec<u8>>>) -> PyResult<Option<Py<PyBytes>>> {
    let told = told.map_err(|error| TailtrimError::new_err(error.to_string()))?;
    Ok(told.map(|bytes| PyBytes::new(py, &bytes).unbind()))
}

/// Matches two captures on `hosts`, in stretches of so many packets; `None` where one host has to do it. `hosts` has
/// `outlines(tasks)` and `counts(ordered)`, which give (index, answer) in any order. `progress` is that of `analyze`.
#[pyfunction]
#[pyo3(signature = (captures, options, hosts, *, packets, progress))]
pub(crate) fn analyze_stretches(
    py: Python<'_>,
    captures: [PathBuf; 2],
    options: AnalysisArguments,
    hosts: Py<PyAny>,
    packets: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<NativeAnalysis>> {
    let [ingress, egress] = open(py, &captures, &options)?;
    let asked = options.options()?;
    let mut raised = None;
    let result = py.detach(|| {
        let extents = [ingress.extent.clone(), egress.extent.clone()];
        let mut told = PythonProgress { extents, progress: progress.as_ref(), raised: &mut raised };
        let tell = |entered, left| told.tell([entered, left]);
        let hosts = PythonHosts(hosts);
        remote::analyze(ingress, egress, packets, &asked, &hosts, tell)
    });
    match (result, raised) {
        (_, Some(error)) | (Err(StretchError::Others(error)), None) => Err(error),
        (Ok(analysis), None) => Ok(Some(NativeAnalysis { analysis, samples: None })),
        (Err(StretchError::OnePiece), None) => Ok(None),
        (Err(StretchError::Analysis(error)), None) => Err(raise(py, &error)),
        (Err(error @ StretchError::Answer(_)), None) => {
            Err(TailtrimError::new_err(error.to_string()))
        }
    }
}

/// Hosts that Python asks.
struct PythonHosts(Py<PyAny>);

impl PythonHosts {
    fn answers(&self, asked: PyResult<Py<PyAny>>) -> PyResult<Answers<'_, Vec<u8>, PyErr>> {
        let asked = asked?;
        let answers = Python::attach(|py| asked.bind(py).try_iter().map(Bound::unbind))?;
        Ok(Box::new(std::iter::from_fn(move || Python::attach(|py| next(py, &answers)))))
    }
}

fn next(py: Python<'_>, answers: &Py<PyIterator>) -> Option<PyResult<(usize, Option<Vec<u8>>)>> {
    let answer = answers.bind(py).clone().next()?;
    Some(answer.and_then(|answer| answer.extract::<(usize, Option<Vec<u8>>)>()))
}

impl Hosts for PythonHosts {
    type Error = PyErr;

    fn outlines(&self, tasks: Vec<Vec<u8>>) -> PyResult<Answers<'_, Vec<u8>, PyErr>> {
        self.answers(Python::attach(|py| {
            let tasks: Vec<_> = tasks.iter().map(|task| PyBytes::new(py, task)).collect();
            self.0.call_method1(py, "outlines", (tasks,))
        }))
    }

    fn counts(&self, ordered: Vec<Ordered>) -> PyResult<Answers<'_, Vec<u8>, PyErr>> {
        self.answers(Python::attach(|py| {
            let ordered: Vec<_> = ordered
                .iter()
                .map(|one| (one.index, PyBytes::new(py, &one.task), PyBytes::new(py, &one.order)))
                .collect();
            self.0.call_method1(py, "counts", (ordered,))
        }))
    }
}
