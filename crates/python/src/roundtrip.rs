//! Round trips that were measured elsewhere: stamps in, the same result as of `analyze` out.

use crate::analysis::{NativeAnalysis, output_failed};
use crate::errors::raise;
use crate::rows::columns;
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use std::iter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tailtrim_tables::SampleSink;
use tailtrim_tail::analysis::{AnalysisError, Numbered, Numbers, Options, analyze};
use tailtrim_tail::matching::Window;

/// Analyses round trips: what was sent enters, what was received leaves. Both sides have the columns
/// `stamp_ns`, which ascends, and `number`, which is the same for a probe and its reply. `names` are what the
/// summary calls the sides, `length` is that of a frame in bytes. Samples are streamed to `sample.parquet` in
/// `directory`.
#[pyfunction]
#[pyo3(signature = (sent, received, *, names, length, window_ns, directory))]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
pub(crate) fn analyze_round_trips(
    py: Python<'_>,
    sent: PyArrowType<RecordBatch>,
    received: PyArrowType<RecordBatch>,
    names: [String; 2],
    length: u32,
    window_ns: i64,
    directory: PathBuf,
) -> PyResult<NativeAnalysis> {
    let window = Window { window_ns, ..Window::default() };
    let options = Options { window, ..Options::default() }.for_round_trips();
    let [sent_name, received_name] = names;
    let mut ingress = side(sent_name, length, &sent.0)?;
    let mut egress = side(received_name, length, &received.0)?;
    let mut sink = SampleSink::new(false, Some(&directory))
        .map_err(|error| output_failed(&directory, &error))?;
    let result = py.detach(|| {
        let progress = |_, _| ControlFlow::Continue(());
        analyze(&mut ingress, &mut egress, &options, &mut sink, progress)
            .and_then(|analysis| sink.close().map(|()| analysis).map_err(AnalysisError::Sink))
    });
    match result {
        Ok(analysis) => Ok(NativeAnalysis { analysis, samples: None }),
        Err(error) => Err(raise(py, &error)),
    }
}

fn side(
    name: String,
    length: u32,
    batch: &RecordBatch,
) -> PyResult<Numbers<iter::Once<Vec<Numbered>>>> {
    let [stamps_ns, numbers] = columns(batch, ["stamp_ns", "number"])?;
    let packets = stamps_ns
        .iter()
        .zip(numbers)
        .map(|(&stamp_ns, number)| Numbered { stamp_ns, number: number.cast_unsigned() });
    Ok(Numbers::new(name, length, iter::once(packets.collect())))
}
