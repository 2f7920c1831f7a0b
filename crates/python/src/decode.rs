//! Captures in, packets by bucket of their signature out.

use crate::analysis::{failed, signing, stamp_source};
use crate::errors::{TailtrimError, invalid, raise_capture};
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tailtrim_reading::source::{self, Extent, Reading};
use tailtrim_tables::batches;
use tailtrim_tail::analysis::{Checkpoint, Decoding, Packet};
use tailtrim_tail::capture::CaptureError;

/// Packets between two looks at whether the user wants to stop.
const CHECK: usize = 1 << 20;

/// A capture being decoded.
#[pyclass(name = "NativeDecoder", module = "tailtrim._native")]
pub(crate) struct NativeDecoder(Mutex<State>);

/// Behind a lock because Python may share objects between threads and a capture's source may not be.
struct State {
    decoding: Option<Decoding>,
    extent: Extent,
    buckets: Vec<Vec<Packet>>,
    batch: Vec<Packet>,
    /// The first packet of the batch that was not dealt out yet.
    next: usize,
    ended: bool,
}

#[pymethods]
impl NativeDecoder {
    /// Opens a capture and looks at its first records. With a checkpoint it is the next file of the
    /// capture that the checkpoint is of.
    #[new]
    #[pyo3(signature = (path, *, signature, masks, x552_trailer, salvage, nanoseconds = false, checkpoint = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        signature: Option<String>,
        masks: Vec<String>,
        x552_trailer: bool,
        salvage: bool,
        nanoseconds: bool,
        checkpoint: Option<&str>,
    ) -> PyResult<Self> {
        let options = signing(signature.as_deref(), &masks)?;
        let checkpoint: Option<Checkpoint> =
            checkpoint.map(serde_json::from_str).transpose().map_err(invalid)?;
        let stamps = stamp_source(x552_trailer, nanoseconds);
        let opened = py.detach(|| {
            let source = source::open(&path, Reading { stamps, salvage, only: None })?;
            let capture = Box::new(source.capture);
            let decoding = match checkpoint {
                Some(checkpoint) => Decoding::resume(capture, &options, checkpoint)?,
                None => Decoding::new(capture, &options)?,
            };
            Ok::<_, CaptureError>((decoding, source.extent))
        });
        let (decoding, extent) = opened.map_err(|error| raise_capture(py, &error))?;
        Ok(Self(Mutex::new(State {
            decoding: Some(decoding),
            extent,
            buckets: Vec::new(),
            batch: Vec::new(),
            next: 0,
            ended: false,
        })))
    }

    /// Bytes after the L2 header that can be signed.
    #[getter]
    fn signable(&mut self) -> PyResult<usize> {
        Ok(self.state().decoding()?.signable())
    }

    /// Stamp (ns), length and signature of the first packet of this file, `None` of an empty one.
    #[getter]
    fn first(&mut self) -> PyResult<Option<(i64, u32, i64, i64)>> {
        let first = self.state().decoding()?.first();
        Ok(first.map(|first| {
            let signature = first.signature;
            (first.stamp_ns, first.length, signature.high, signature.low)
        }))
    }

    /// Signs at most so many bytes and deals the packets out to so many buckets, a power of two.
    fn start(&mut self, signed: usize, buckets: usize) -> PyResult<()> {
        if !buckets.is_power_of_two() {
            return Err(PyValueError::new_err(format!(
                "{buckets} buckets: expected a power of two"
            )));
        }
        let state = self.state();
        state.decoding = state.decoding.take().map(|decoding| decoding.limit_to(signed));
        state.buckets = vec![Vec::new(); buckets];
        Ok(())
    }

    /// Reads so many packets, or as many as there are. Returns how many.
    fn read(&mut self, py: Python<'_>, packets: usize) -> PyResult<usize> {
        let state = self.state();
        for bucket in &mut state.buckets {
            bucket.clear();
        }
        let mut count = 0;
        while count < packets && !state.ended {
            let until = packets.min(count + CHECK);
            let read = py.detach(|| state.read_until(&mut count, until));
            read.map_err(|error| raise_capture(py, &error))?;
            py.check_signals()?;
        }
        Ok(count)
    }

    /// Packets of this bucket from the last read. Threads may call it at the same time.
    fn bucket(&self, py: Python<'_>, bucket: usize) -> PyResult<PyArrowType<RecordBatch>> {
        let batch = py.detach(|| {
            let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            batches::packets(state.buckets.get(bucket).map_or(&[][..], Vec::as_slice))
        });
        batch.map(PyArrowType).map_err(failed)
    }

    /// The share of the capture that is read (0 to 1), `None` where it cannot be known.
    fn done(&mut self) -> PyResult<Option<f64>> {
        let state = self.state();
        Ok(state.extent.done(state.decoding()?.offset()))
    }

    /// Where this stands, as JSON, for the next file of this capture; to be asked at the end of this one.
    fn checkpoint_json(&mut self) -> PyResult<String> {
        serde_json::to_string(&self.state().decoding()?.checkpoint())
            .map_err(|error| TailtrimError::new_err(error.to_string()))
    }

    /// Facts of the capture besides its packets, as JSON; complete at its end.
    fn facts_json(&mut self) -> PyResult<String> {
        serde_json::to_string(&self.state().decoding()?.facts())
            .map_err(|error| TailtrimError::new_err(error.to_string()))
    }
}

impl NativeDecoder {
    fn state(&mut self) -> &mut State {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn decoding(&self) -> PyResult<&Decoding> {
        self.decoding.as_ref().ok_or_else(|| PyValueError::new_err("the decoder is closed"))
    }

    fn read_until(&mut self, count: &mut usize, until: usize) -> Result<(), CaptureError> {
        let Some(decoding) = &mut self.decoding else { return Ok(()) };
        let mask = self.buckets.len() as u64 - 1;
        while *count < until && !self.ended {
            if self.next == self.batch.len() {
                self.batch.clear();
                self.next = 0;
                self.ended = !decoding.read(&mut self.batch)?;
            }
            let rest = &self.batch[self.next..];
            let taken = &rest[..rest.len().min(until - *count)];
            for packet in taken {
                // Either half alone is constant in some formats.
                let mixed = packet.signature.high ^ packet.signature.low;
                self.buckets[(mixed.cast_unsigned() & mask) as usize].push(*packet);
            }
            self.next += taken.len();
            *count += taken.len();
        }
        Ok(())
    }
}
