//! A round trip and what is told of it.

use super::super::outcome::Ending;
use super::super::split::Stamps;

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A reply that comes later after its probe left the application is late.
    pub timeout_ns: i64,
    /// How long an answered probe waits for its send stamps.
    pub stamps_ns: i64,
    /// Whether stamps of the kernel are expected for what is sent.
    pub software: bool,
    /// Whether those of the NIC are.
    pub hardware: bool,
    /// Whether the far host is asked when its replies really left: what it says of one comes with a later one, for
    /// which an answered probe waits no longer than for a reply.
    pub follow_up: bool,
}

/// A probe and what is known of it, at the end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Which probe of the session.
    pub number: u64,
    /// When it was to depart, `CLOCK_REALTIME`.
    pub intended_ns: i64,
    /// When it passed which point.
    pub stamps: Stamps,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of the reply's IP packet.
    pub reply_bytes: Option<u32>,
    /// TTL or hop limit that the reply came with.
    pub reply_hops: Option<u8>,
    /// How far the clocks of the two hosts may be apart, as both say.
    pub clock_bound_ns: Option<u64>,
    /// The number that the far host gave its reply.
    pub far_number: Option<u64>,
    /// T1 as the probe has it.
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
    /// T1 as the reply has it.
    pub sender_stamp: u64,
    /// T2 and T3 of the far host.
    pub far_ns: Option<(i64, i64)>,
    /// How far the clocks may be apart.
    pub clock_bound_ns: Option<u64>,
    /// The number that the far host gave it.
    pub far_number: Option<u32>,
    /// When an earlier reply really left, by its number.
    pub follow_up: Option<(u32, i64)>,
    /// Bytes of its IP packet.
    pub bytes: u32,
    /// TTL or hop limit that is left.
    pub hops: Option<u8>,
}

/// What a reply was.
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
    /// Nobody's.
    Stray,
}

/// Where on its way out a probe was stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// Before the queueing discipline.
    Queued,
    /// By the driver.
    Driver,
    /// By the NIC, in its own clock.
    Nic,
}
