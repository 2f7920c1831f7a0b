//! A round trip, and events that belong to it.

use super::super::outcome::Ending;
use super::super::split::Stamps;

/// Waiting times of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A reply that comes later after its probe left the application is late.
    pub timeout_ns: i64,
    /// Longest wait of an answered probe for its send stamps.
    pub stamps_ns: i64,
    /// Number of decided probes that are remembered: replies to earlier ones are strays.
    pub remembered: usize,
    /// Whether stamps of the kernel are expected for probes.
    pub software: bool,
    /// Whether stamps of the NIC are expected for probes.
    pub hardware: bool,
    /// Whether the far host is asked when its replies really left. The answer comes with a later reply, for which an
    /// answered probe waits no longer than for a reply.
    pub follow_up: bool,
}

/// A probe and all that is known of it by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Number of the probe in the session.
    pub number: u64,
    /// When it was to depart, `CLOCK_REALTIME`.
    pub intended_ns: i64,
    /// Times at the points that it passed.
    pub stamps: Stamps,
    /// Outcome.
    pub ending: Ending,
    /// Bytes of the reply's IP packet.
    pub reply_bytes: Option<u32>,
    /// TTL or hop limit that the reply came with.
    pub reply_hops: Option<u8>,
    /// TTL or hop limit with which the probe came to the far host, by its report.
    pub far_hops: Option<u8>,
    /// Largest difference of the two hosts' clocks, as reported by both.
    pub clock_bound_ns: Option<u64>,
    /// The number that the far host gave its reply.
    pub far_number: Option<u64>,
    /// T1 of the probe.
    pub sender_stamp: u64,
}

/// A reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reply {
    /// When the application had it.
    pub app_receive_ns: i64,
    /// When the kernel had it.
    pub received_ns: Option<i64>,
    /// When the NIC had it.
    pub nic_received_ns: Option<i64>,
    /// T1 in the reply.
    pub sender_stamp: u64,
    /// T2 and T3 of the far host.
    pub far_ns: Option<(i64, i64)>,
    /// Largest difference of the clocks.
    pub clock_bound_ns: Option<u64>,
    /// The number that the far host gave it.
    pub far_number: Option<u32>,
    /// Time at which an earlier reply really left, with its number.
    pub follow_up: Option<(u32, i64)>,
    /// Bytes of its IP packet.
    pub bytes: u32,
    /// TTL or hop limit that is left.
    pub hops: Option<u8>,
    /// TTL or hop limit with which the probe came to the far host, by its report.
    pub far_hops: Option<u8>,
}

/// Kind of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first in time.
    First,
    /// The first, after the timeout.
    Late,
    /// A further one.
    Duplicate,
    /// One whose T1 is not the one that was sent.
    Altered,
    /// A reply to no probe.
    Stray,
}

/// Point on the way out at which a probe was stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// Before the queueing discipline.
    Queued,
    /// By the driver.
    Driver,
    /// By the NIC, in its own clock.
    Nic,
}
