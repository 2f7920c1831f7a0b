//! Ports: where frames enter and leave.
//!
//! One trait for all of them, in batches, never waiting but in [`Port::wait`].

mod departing;
mod launch;
mod name;
mod packet;
mod stamps;
mod wait;
mod xdp;

use departing::Numbered;
pub use departing::{Departed, Departing, Fate, Timed};
pub use launch::LaunchPort;
pub use name::{PortKind, PortName, PortNameError};
pub use packet::{PacketPort, Receiving, mac};
pub use stamps::HardwareStamps;
pub use wait::wait_either;
pub use xdp::{Attached, XdpMode, XdpPort};

use serde::Serialize;
use std::ops::AddAssign;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use tailtrim_sys::interface;
use tailtrim_wire::frame::Link;

/// Point at which a stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamping {
    /// By the kernel when it received the frame: `CLOCK_REALTIME`.
    Kernel,
    /// By the NIC, in its own clock.
    Hardware,
    /// By the XDP program of the port, the first that sees the frame: `CLOCK_REALTIME`, by way of
    /// `CLOCK_TAI`.
    Program,
    /// By this process.
    Process,
}

/// When a frame was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since the epoch of the clock.
    pub ns: i64,
    /// Point at which it was taken, which determines the clock.
    pub stamping: Stamping,
}

/// A received frame, there until the callback returns.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The frame without FCS, as far as it was captured.
    pub bytes: &'a [u8],
    /// Its bytes on the wire, without FCS.
    pub length: usize,
    /// When it came; `None` if unknown.
    pub stamp: Option<Stamp>,
}

/// Capabilities of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Where its stamps are taken.
    pub stamping: Stamping,
    /// The largest frame without FCS that it sends; four bytes of it are for a VLAN tag.
    pub most_bytes: usize,
    /// Most frames that one call of [`Port::send`] takes.
    pub most_frames: usize,
    /// Mode of an AF_XDP port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpMode>,
}

impl Capabilities {
    /// Whether the port sends this frame: an MTU leaves room for a VLAN tag only in frames that have one.
    #[must_use]
    pub fn carries(&self, frame: &[u8]) -> bool {
        const TAG_BYTES: usize = 4;
        frame.len() <= self.most_bytes - if Link::is_tagged(frame) { 0 } else { TAG_BYTES }
    }
}

/// Frames by outcome since the port was opened. Every frame is counted: a frame that was handed to [`Port::send`] was
/// sent or refused; one that reached the interface was received or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Frames handed out.
    pub received: u64,
    /// Their bytes on the wire, without FCS.
    pub received_bytes: u64,
    /// Received frames that came without a stamp. They were handed out without one, or with a stamp of
    /// [`Stamping::Process`].
    pub unstamped: u64,
    /// Of those, frames for which the driver had no stamp of the NIC (AF_XDP), by its answer.
    #[serde(skip_serializing_if = "Hints::is_none")]
    pub hints: Hints,
    /// Frames that the kernel dropped because this process did not fetch them in time, or that did not
    /// fit.
    pub dropped: u64,
    /// Of those, frames that found the ring full (AF_XDP).
    pub ring_full: u64,
    /// Number of times at which the driver found no memory to receive into (AF_XDP). In copy mode each of them is one
    /// of the dropped frames. With zero-copy the driver waits, and only the NIC counts the frames that it drops
    /// meanwhile.
    pub fill_empty: u64,
    /// Frames that came to another queue of the interface and went to the kernel (AF_XDP).
    pub elsewhere: u64,
    /// Frames that the port took to send.
    pub sent: u64,
    /// Their bytes, without FCS.
    pub sent_bytes: u64,
    /// Frames that it did not take: no room.
    pub refused: u64,
    /// Frames among `sent` that the driver threw away at once, as far as it reports them (AF_XDP).
    pub discarded: u64,
}

/// Answers of a driver that was asked for the NIC's stamp of a frame and had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Hints {
    /// `EOPNOTSUPP`: it has none of any frame.
    pub unsupported: u64,
    /// `ENODATA`: it has none of this frame.
    pub no_data: u64,
    /// A stamp of 0.
    pub zero: u64,
}

impl Hints {
    /// Whether there were none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Hints {
    fn add_assign(&mut self, other: Self) {
        self.unsupported += other.unsupported;
        self.no_data += other.no_data;
        self.zero += other.zero;
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.unstamped += other.unstamped;
        self.hints += other.hints;
        self.dropped += other.dropped;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.refused += other.refused;
        self.discarded += other.discarded;
        self.ring_full += other.ring_full;
        self.fill_empty += other.fill_empty;
        self.elsewhere += other.elsewhere;
    }
}

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// No such interface, no permission, or the kernel lacks something.
    #[error("{port}: {what}: {source}{hint}")]
    Open {
        /// The port as it was named.
        port: String,
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
        /// Advice for the user, if there is any.
        hint: &'static str,
    },
    /// An operation failed on a port that had worked.
    #[error("{port}: {what}: {source}")]
    Broken {
        /// The port as it was named.
        port: String,
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// Where frames enter and leave. No call waits but [`wait`](Self::wait).
pub trait Port: Send {
    /// Capabilities of the port.
    fn capabilities(&self) -> Capabilities;

    /// Hands at most `most` frames that have come to `take`. Returns their number.
    ///
    /// # Errors
    /// [`PortError::Broken`], for example when the interface is gone.
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError>;

    /// Sends frames from the front of the list. Returns the number that the port took; the others are counted as
    /// refused, and the caller gives them up or offers them again.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError>;

    /// Departures of its frames.
    fn departing(&self) -> Departing {
        Departing::default()
    }

    /// Sends frames as [`send`](Self::send), each when its time of `CLOCK_REALTIME` has come, for which a port that can
    /// ([`Departing::timed`]) is given them ahead.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn send_at(&mut self, frames: &[&[u8]], at_ns: &[i64]) -> Result<usize, PortError> {
        let _ = at_ns;
        self.send(frames)
    }

    /// Hands stamps of sent probes, and probes that were dropped late, to `take`. Returns their number, 0 if none has come.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn departed(&mut self, take: &mut dyn FnMut(Departed)) -> Result<usize, PortError> {
        let _ = take;
        Ok(0)
    }

    /// Waits until a frame has come, at most so long. Returns whether one has.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError>;

    /// Whether so much has come that it must be fetched soon, or frames will be dropped.
    fn is_pressed(&self) -> bool;

    /// Frames so far, by outcome.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn counters(&mut self) -> Result<Counters, PortError>;

    /// Descriptors on which poll(2) can wait for a frame; none where only [`wait`](Self::wait) can.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;
}

/// Opens a port that only sends.
///
/// # Errors
/// [`PortError::Open`].
pub fn sender(name: &PortName, departing: Departing) -> Result<Box<dyn Port>, PortError> {
    Ok(match name.kind {
        PortKind::Packet => Box::new(PacketPort::sender(name, departing)?),
        PortKind::Xdp => Box::new(XdpPort::open(name, None)?),
    })
}

/// Opens a port: to send, and if `receiving` is given also to receive.
///
/// # Errors
/// [`PortError::Open`].
pub fn open(name: &PortName, receiving: Option<Receiving>) -> Result<Box<dyn Port>, PortError> {
    Ok(match (name.kind, receiving) {
        (_, None) => sender(name, Departing::default())?,
        (PortKind::Packet, Some(receiving)) => Box::new(PacketPort::receiver(name, receiving)?),
        (PortKind::Xdp, receiving) => Box::new(XdpPort::open(name, receiving)?),
    })
}

/// Bytes without FCS of the longest frame that an interface carries: its MTU, the Ethernet header, and
/// two VLAN tags.
///
/// # Errors
/// [`PortError::Open`] when there is no such interface.
pub fn longest(name: &PortName) -> Result<usize, PortError> {
    const HEADERS: usize = 14 + 2 * 4;
    let mtu = interface::mtu(&name.interface).map_err(|source| PortError::Open {
        port: name.to_string(),
        what: "asking for the MTU",
        source,
        hint: "",
    })?;
    Ok(mtu + HEADERS)
}
