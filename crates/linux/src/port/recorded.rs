//! A port of which every frame is kept on record.

use super::{Capabilities, Counters, Port, PortError, Received};
use crate::sys::clock;
use std::io::{self, BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::time::Duration;
use tailtrim_tail::capture::write::{NO_STAMP_NS, header, record_header};

/// Bytes of a frame that a record may have: more than any frame has.
const SNAP: u32 = 262_144;

/// A port, and two nanosecond pcaps: of what it received, with the stamps that it gave (or as frames without one where it gave
/// none), and of what it sent, with the time right before the frames were handed over.
#[derive(Debug)]
pub struct Recorded<P, W: Write> {
    port: P,
    received: Record<W>,
    sent: Record<W>,
}

#[derive(Debug)]
struct Record<W: Write> {
    name: &'static str,
    output: BufWriter<W>,
    frames: u64,
}

impl<P: Port, W: Write + Send> Recorded<P, W> {
    /// Begins the records.
    ///
    /// # Errors
    /// [`PortError::Record`].
    pub fn new(port: P, received: W, sent: W) -> Result<Self, PortError> {
        let received = Record::new("received", received)?;
        Ok(Self { port, received, sent: Record::new("sent", sent)? })
    }

    /// Ends the records. Returns the port, and the outputs of what was received and sent.
    ///
    /// # Errors
    /// [`PortError::Record`].
    pub fn finish(self) -> Result<(P, W, W), PortError> {
        Ok((self.port, self.received.finish()?, self.sent.finish()?))
    }
}

impl<W: Write> Record<W> {
    fn new(name: &'static str, output: W) -> Result<Self, PortError> {
        let mut output = BufWriter::new(output);
        output.write_all(&header(SNAP)).map_err(|source| PortError::Record {
            name,
            frames: 0,
            source,
        })?;
        Ok(Self { name, output, frames: 0 })
    }

    fn add(&mut self, stamp_ns: i64, bytes: &[u8], length: usize) -> Result<(), PortError> {
        let head = record_header(stamp_ns, bytes.len() as u32, length as u32);
        let written = self.output.write_all(&head).and_then(|()| self.output.write_all(bytes));
        written.map_err(|source| self.failed(source))?;
        self.frames += 1;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> PortError {
        PortError::Record { name: self.name, frames: self.frames, source }
    }

    fn finish(self) -> Result<W, PortError> {
        let (name, frames) = (self.name, self.frames);
        self.output.into_inner().map_err(|error| PortError::Record {
            name,
            frames,
            source: error.into_error(),
        })
    }
}

impl<P: Port, W: Write + Send> Port for Recorded<P, W> {
    fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let (mut written, record) = (Ok(()), &mut self.received);
        let count = self.port.receive(most, &mut |frame| {
            if written.is_ok() {
                let stamp_ns = frame.stamp.map_or(NO_STAMP_NS, |stamp| stamp.ns);
                written = record.add(stamp_ns, frame.bytes, frame.length);
            }
            take(frame);
        })?;
        written.map(|()| count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        let now_ns = clock::realtime_ns();
        let sent = self.port.send(frames)?;
        for frame in &frames[..sent] {
            self.sent.add(now_ns, frame, frame.len())?;
        }
        Ok(sent)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        self.port.wait(timeout)
    }

    fn is_pressed(&self) -> bool {
        self.port.is_pressed()
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        self.port.counters()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.port.descriptor()
    }
}
