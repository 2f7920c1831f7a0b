//! Ports: where frames enter and leave.
//!
//! One trait for all of them, in batches, never waiting but in [`Port::wait`]. What wraps a port, for
//! example to record or to spoil what passes, is a port itself.

mod memory;
mod packet;
mod stamps;

pub use memory::{MemoryPort, memory_pair};
pub use packet::{PacketPort, Receiving, mac};
pub use stamps::HardwareStamps;

use serde::Serialize;
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::time::Duration;

/// Where a stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamping {
    /// By the kernel when it received the frame: `CLOCK_REALTIME`.
    Kernel,
    /// By the NIC, in its own clock.
    Hardware,
    /// By this process.
    Process,
}

/// When a frame was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since the epoch of the clock.
    pub ns: i64,
    /// Where it was taken, which says which clock.
    pub stamping: Stamping,
}

/// A received frame, there until the callback returns.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The frame without FCS, as far as it was captured.
    pub bytes: &'a [u8],
    /// Its bytes on the wire, without FCS.
    pub length: usize,
    /// When it came; `None` where nobody knows.
    pub stamp: Option<Stamp>,
}

/// What a port can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Where its stamps are taken.
    pub stamping: Stamping,
    /// The largest frame without FCS that it sends.
    pub most_bytes: usize,
    /// Most frames that one call of [`Port::send`] takes.
    pub most_frames: usize,
}

/// What passed a port since it was opened. Nothing is left out: a frame that was handed to
/// [`Port::send`] was sent or refused; one that reached the interface was received or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Frames handed out.
    pub received: u64,
    /// Their bytes on the wire, without FCS.
    pub received_bytes: u64,
    /// Received frames without a stamp.
    pub unstamped: u64,
    /// Frames that the kernel dropped because this process did not fetch them in time.
    pub dropped: u64,
    /// Frames that the port took to send.
    pub sent: u64,
    /// Their bytes, without FCS.
    pub sent_bytes: u64,
    /// Frames that it did not take: no room.
    pub refused: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.unstamped += other.unstamped;
        self.dropped += other.dropped;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.refused += other.refused;
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
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: std::io::Error,
        /// What to do, if that is known.
        hint: &'static str,
    },
    /// It worked before.
    #[error("{port}: {what}: {source}")]
    Broken {
        /// The port as it was named.
        port: String,
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: std::io::Error,
    },
}

/// Where frames enter and leave. No call waits but [`wait`](Self::wait).
pub trait Port: Send {
    /// What the port can do.
    fn capabilities(&self) -> Capabilities;

    /// Hands at most `most` frames that have come to `take`. Returns how many.
    ///
    /// # Errors
    /// [`PortError::Broken`], for example when the interface is gone.
    fn receive(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError>;

    /// Sends frames from the front of the list. Returns how many the port took; the others are counted
    /// as refused and the caller's to give up or to offer again.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, PortError>;

    /// Waits until a frame has come, at most so long. Returns whether one has.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn wait(&mut self, timeout: Duration) -> Result<bool, PortError>;

    /// Whether so much has come that it must be fetched soon, or frames will be dropped.
    fn is_pressed(&self) -> bool;

    /// What passed so far.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    fn counters(&mut self) -> Result<Counters, PortError>;
}

/// A port as it is named on the command line: `packet:IFACE`, or just the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortName {
    /// The network interface.
    pub interface: String,
}

/// A name that is none of a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("port {0:?}: expected an interface such as eth1 or packet:eth1")]
pub struct PortNameError(String);

impl FromStr for PortName {
    type Err = PortNameError;

    fn from_str(text: &str) -> Result<Self, PortNameError> {
        let interface = text.strip_prefix("packet:").unwrap_or(text);
        // IFNAMSIZ is 16 with the zero byte at the end.
        let fits = (1..16).contains(&interface.len())
            && !interface.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
        if fits {
            Ok(Self { interface: interface.to_owned() })
        } else {
            Err(PortNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet:{}", self.interface)
    }
}
