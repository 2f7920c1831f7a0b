//! Round trips that were measured elsewhere: stamps in, the same result as of `analyze` out.

use crate::analysis::{NativeAnalysis, output_failed};
use crate::errors::raise;
use crate::rows::columns;
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tailtrim_tables::SampleSink;
use tailtrim_tail::analysis::{AnalysisError, Numbered, Numbers, Options, analyze};
use tailtrim_tail::matching::Window;

/// Analyses round trips: what was sent enters, what was received leaves. Both sides are batches with the columns
/// `stamp_ns`, which ascends, and `number`, which is the same for a probe and its reply; a batch is asked for when
/// the one before it is used up. `names` are what the summary calls the sides, `length` is that of a frame in bytes.
/// Samples are streamed to `sample.parquet` in `directory`, if there is one.
#[pyfunction]
#[pyo3(signature = (sent, received, *, names, length, window_ns, directory))]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
pub(crate) fn analyze_round_trips(
    py: Python<'_>,
    sent: &Bound<'_, PyAny>,
    received: &Bound<'_, PyAny>,
    names: [String; 2],
    length: u32,
    window_ns: i64,
    directory: Option<PathBuf>,
) -> PyResult<NativeAnalysis> {
    let window = Window { window_ns, ..Window::default() };
    let options = Options { window, ..Options::default() }.for_round_trips();
    let [sent_name, received_name] = names;
    let failure = Failure::default();
    let mut ingress = Numbers::new(sent_name, length, Blocks::new(sent, &failure)?);
    let mut egress = Numbers::new(received_name, length, Blocks::new(received, &failure)?);
    let mut sink = SampleSink::new(false, directory.as_deref())
        .map_err(|error| output_failed(directory.as_deref().unwrap_or("".as_ref()), &error))?;
    let result = py.detach(|| {
        let progress = |_, _| ControlFlow::Continue(());
        analyze(&mut ingress, &mut egress, &options, &mut sink, progress)
            .and_then(|analysis| sink.close().map(|()| analysis).map_err(AnalysisError::Sink))
    });
    if let Some(error) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    match result {
        Ok(analysis) => Ok(NativeAnalysis { analysis, samples: None }),
        Err(error) => Err(raise(py, &error)),
    }
}

/// The first error of an iterator over batches, which ends both.
type Failure = Arc<Mutex<Option<PyErr>>>;

/// Packets of a side, a block for each batch of a Python iterator.
struct Blocks {
    batches: Py<PyIterator>,
    failure: Failure,
}

impl Blocks {
    fn new(batches: &Bound<'_, PyAny>, failure: &Failure) -> PyResult<Self> {
        Ok(Self { batches: batches.try_iter()?.unbind(), failure: Arc::clone(failure) })
    }
}

impl Iterator for Blocks {
    type Item = Vec<Numbered>;

    fn next(&mut self) -> Option<Vec<Numbered>> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return None;
        }
        let block = Python::attach(|py| {
            let mut batches = self.batches.bind(py).clone();
            batches.next().map(|batch| block(&batch?))
        });
        match block? {
            Ok(block) => Some(block),
            Err(error) => {
                *failure = Some(error);
                None
            }
        }
    }
}

fn block(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Numbered>> {
    let batch = batch.extract::<PyArrowType<RecordBatch>>()?.0;
    let [stamps_ns, numbers] = columns(&batch, ["stamp_ns", "number"])?;
    let packets = stamps_ns
        .iter()
        .zip(numbers)
        .map(|(&stamp_ns, number)| Numbered { stamp_ns, number: number.cast_unsigned() });
    Ok(packets.collect())
}
