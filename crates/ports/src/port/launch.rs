//! AF_XDP with metadata for sent frames: stamps of the NIC, or of the kernel where that copies, and sending at a time
//! (launch time) by a NIC that can. It only sends.

use super::{
    Capabilities, Counters, Departed, Departing, Fate, Port, PortError, PortName, Received,
    Stamping,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tailtrim_sys::xdp::{Shape, Socket};
use tailtrim_sys::{clock, interface};
use tailtrim_tracer::clock::Phc;
use tailtrim_wire::traffic::Builder;

/// Most frames in one call.
const BATCH: usize = 64;
/// Bytes of an Ethernet header, and of the VLAN tag that the MTU does not count either.
const HEADERS: usize = 14 + 4;
const CHUNK: usize = 4_096;
/// Time from one reading of the NIC's clock to the next: two clocks that drift by 100 ppm are 10 µs apart by then, which
/// the rate between the last two readings makes up for.
const READING_NS: i64 = 100_000_000;
const HINT: &str = " (needs root, Linux 6.11 and CONFIG_XDP_SOCKETS)";

/// A queue of an interface to which frames are sent with metadata.
#[derive(Debug)]
pub struct LaunchPort {
    name: String,
    socket: Socket,
    departing: Departing,
    clock: Option<Clock>,
    most_bytes: usize,
    counters: Counters,
}

impl LaunchPort {
    /// Opens one. With `departing.timed`, frames are sent at their time by `phc`, the NIC's clock such as `ptp0`.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub fn open(
        name: &PortName,
        departing: Departing,
        phc: Option<&str>,
    ) -> Result<Self, PortError> {
        let failed =
            |what, source| PortError::Open { port: name.to_string(), what, source, hint: HINT };
        let index = interface::index(&name.interface)
            .map_err(|source| failed("no such interface", source))?;
        let mtu = interface::mtu(&name.interface)
            .map_err(|source| failed("asking for the MTU", source))?;
        let mut shape = Shape {
            interface: index,
            queue: name.queue.unwrap_or(0),
            receive_slots: 0,
            chunk_bytes: CHUNK,
            pieces: false,
            copy: false,
            metadata: true,
        };
        let socket = Socket::open(&shape).or_else(|_| {
            shape.copy = true;
            Socket::open(&shape)
        });
        let socket = socket.map_err(|(what, source)| failed(what, source))?;
        let clock = phc.map(Clock::open).transpose();
        let clock = clock.map_err(|source| failed("reading the NIC's clock", source))?;
        let most_bytes = (mtu + HEADERS).min(socket.longest_stamped());
        // The kernel's own stamps are those of frames that it copies.
        let departing = Departing {
            kernel_stamps: !socket.zero_copy(),
            singly: false,
            nic_stamps: socket.zero_copy(),
            ..departing
        };
        let (name, counters) = (name.to_string(), Counters::default());
        Ok(Self { name, socket, departing, clock, most_bytes, counters })
    }

    fn broken(&self, what: &'static str) -> impl FnOnce(io::Error) -> PortError {
        let port = self.name.clone();
        move |source| PortError::Broken { port, what, source }
    }

    fn queue(&mut self, frames: &[&[u8]], at_ns: Option<&[i64]>) -> Result<usize, PortError> {
        let offered = frames.len().min(BATCH);
        let mut sent = 0;
        for (place, frame) in frames[..offered].iter().enumerate() {
            if frame.len() > self.most_bytes {
                return Err(self.broken("sending")(io::Error::from_raw_os_error(libc::EMSGSIZE)));
            }
            let mut launch_ns = None;
            if let (Some(clock), Some(at_ns)) = (&mut self.clock, at_ns) {
                let ns = clock.of(at_ns[place]).map_err(io::Error::other);
                let port = &self.name;
                let failed = |source| PortError::Broken {
                    port: port.clone(),
                    what: "reading the NIC's clock",
                    source,
                };
                launch_ns = Some(ns.map_err(failed)?.cast_unsigned());
            }
            if !self.socket.queue_stamped(frame, launch_ns) {
                break;
            }
            self.counters.sent_bytes += frame.len() as u64;
            sent += 1;
        }
        self.counters.sent += sent as u64;
        self.counters.refused += (offered - sent) as u64;
        if sent > 0 {
            self.socket.publish();
            self.counters.discarded += self.socket.kick().map_err(self.broken("sending"))?;
        }
        Ok(sent)
    }
}

impl Port for LaunchPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            stamping: Stamping::Process,
            most_bytes: self.most_bytes,
            most_frames: BATCH,
            xdp: None,
        }
    }

    fn departing(&self) -> Departing {
        self.departing
    }

    fn receive(&mut self, _: usize, _: &mut dyn FnMut(Received<'_>)) -> Result<usize, PortError> {
        Ok(0)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError> {
        self.queue(frames, None)
    }

    fn send_at(&mut self, frames: &[&[u8]], at_ns: &[i64]) -> Result<usize, PortError> {
        self.queue(frames, Some(at_ns))
    }

    fn departed(&mut self, take: &mut dyn FnMut(Departed)) -> Result<usize, PortError> {
        let by_nic = self.departing.nic_stamps;
        // A kernel that copies stamps by CLOCK_TAI.
        let tai_ns = if by_nic { 0 } else { clock::tai_offset_ns() };
        Ok(self.socket.reclaim_stamped(&mut |bytes, stamp| {
            if let (Some(probe), Some(ns)) = (Builder::probe(bytes), stamp) {
                let ns = ns.cast_signed();
                let fate = if by_nic { Fate::Nic(ns) } else { Fate::Kernel(ns - tai_ns) };
                take(Departed { probe, fate });
            }
        }))
    }

    fn wait(&mut self, _: Duration) -> Result<bool, PortError> {
        Ok(false)
    }

    fn is_pressed(&self) -> bool {
        false
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(self.counters)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }
}

/// The NIC's clock, which is read again and again.
#[derive(Debug)]
struct Clock {
    phc: Phc,
    read_ns: i64,
    offset_ns: i64,
    /// Growth of the offset in ns for each ns.
    rate: f64,
}

impl Clock {
    fn open(device: &str) -> io::Result<Self> {
        let phc = Phc::open(device)?;
        let first = phc.offset().map_err(io::Error::other)?;
        Ok(Self { phc, read_ns: first.at_ns, offset_ns: first.offset_ns, rate: 0.0 })
    }

    /// A time of `CLOCK_REALTIME` by this clock.
    fn of(&mut self, at_ns: i64) -> Result<i64, String> {
        if clock::realtime_ns() - self.read_ns >= READING_NS {
            let next = self.phc.offset()?;
            let grown_ns = next.offset_ns - self.offset_ns;
            self.rate = grown_ns as f64 / (next.at_ns - self.read_ns).max(1) as f64;
            (self.read_ns, self.offset_ns) = (next.at_ns, next.offset_ns);
        }
        let since_ns = at_ns - self.read_ns;
        Ok(at_ns + self.offset_ns + (since_ns as f64 * self.rate) as i64)
    }
}
