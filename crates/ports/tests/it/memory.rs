//! Ports that end in each other, within one process.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tailtrim_ports::port::{Capabilities, Counters, Port, PortError, Received, Stamp, Stamping};

/// Bytes without FCS of the longest frame: an MTU of 9,000 with two VLAN tags.
const LONGEST: usize = 9_000 + 14 + 2 * 4;

/// A frame under way: when it was sent, and its bytes.
type Queued = (i64, Vec<u8>);

#[derive(Debug, Default)]
struct Lane {
    frames: Mutex<VecDeque<Queued>>,
    arrived: Condvar,
}

impl Lane {
    /// A panic of the other side leaves the queue as it was.
    fn frames(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end of a pair.
#[derive(Debug)]
pub(crate) struct MemoryPort {
    incoming: Arc<Lane>,
    outgoing: Arc<Lane>,
    room: usize,
    counters: Counters,
}

/// Two ports, each of which receives what the other sends. `room` frames may be under way in each direction.
pub(crate) fn memory_pair(room: usize) -> (MemoryPort, MemoryPort) {
    let (there, back) = (Arc::new(Lane::default()), Arc::new(Lane::default()));
    let port = |incoming: &Arc<Lane>, outgoing: &Arc<Lane>| MemoryPort {
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        room,
        counters: Counters::default(),
    };
    (port(&back, &there), port(&there, &back))
}

impl Port for MemoryPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            stamping: Stamping::Process,
            most_bytes: LONGEST,
            most_frames: self.room,
            xdp: None,
        }
    }

    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let mut count = 0;
        while count < most {
            let Some((ns, bytes)) = self.incoming.frames().pop_front() else { break };
            self.counters.received += 1;
            self.counters.received_bytes += bytes.len() as u64;
            let stamp = Some(Stamp { ns, stamping: Stamping::Process });
            take(Received { bytes: &bytes, length: bytes.len(), stamp });
            count += 1;
        }
        Ok(count)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        if let Some(frame) = frames.iter().find(|frame| frame.len() > LONGEST) {
            return Err(PortError::Broken {
                port: "memory".to_owned(),
                what: "sending",
                source: io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("a frame of {} bytes, at most {LONGEST}", frame.len()),
                ),
            });
        }
        let mut queue = self.outgoing.frames();
        let sent = frames.len().min(self.room.saturating_sub(queue.len()));
        for frame in &frames[..sent] {
            queue.push_back((now_ns(), frame.to_vec()));
            self.counters.sent_bytes += frame.len() as u64;
        }
        drop(queue);
        self.counters.sent += sent as u64;
        self.counters.refused += (frames.len() - sent) as u64;
        self.outgoing.arrived.notify_one();
        Ok(sent)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError> {
        let frames = self.incoming.frames();
        let waited =
            self.incoming.arrived.wait_timeout_while(frames, timeout, |frames| frames.is_empty());
        let (frames, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(!frames.is_empty())
    }

    fn is_pressed(&self) -> bool {
        self.incoming.frames().len() > self.room / 2
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(self.counters)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Nanoseconds of `CLOCK_REALTIME`.
#[expect(clippy::disallowed_methods, reason = "frames are stamped when they are sent")]
pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}
