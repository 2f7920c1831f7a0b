//! Outcomes of probes and of the datagrams that came for them. Everything adds up.

use serde::Serialize;
use std::collections::BTreeMap;

/// Outcomes of the probes of one stream. All but `due` add up to `due`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Probes {
    /// Probes that were to be sent.
    pub due: u64,
    /// A reply came in time.
    pub answered: u64,
    /// A reply came, but after the timeout.
    pub late: u64,
    /// No reply.
    pub lost: u64,
    /// Only replies came whose T1 is not the one that was sent.
    pub altered: u64,
    /// An ICMP message said that the probe does not arrive.
    pub undelivered: u64,
    /// This host did not send it.
    pub refused: u64,
    /// The end came before the timeout: unknown.
    pub cut: u64,
}

impl Probes {
    /// Probes that left.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.due - self.refused
    }

    /// Probes that left, whose end is known, and that got no reply in time.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.late + self.lost + self.altered + self.undelivered
    }
}

/// Directions in which probes were lost. All add up to the number of lost probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LostWays {
    /// They never got a reply: lost on the way there, or refused by the far host.
    pub there: u64,
    /// The far host's reply was lost on the way back.
    pub back: u64,
    /// Unknown: the far host does not number its replies itself, or none came later.
    pub unknown: u64,
}

/// Whether the far host reported when its reply really left. Both add up to the answered probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FollowUps {
    /// It did: its residence is exact.
    pub told: u64,
    /// It did not: its residence is the difference of the stamps that it wrote before it sent.
    pub untold: u64,
}

/// Received datagrams by kind. All but `datagrams` add up to `datagrams`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Replies {
    /// Datagrams that came.
    pub datagrams: u64,
    /// The first reply to a probe, in time.
    pub first: u64,
    /// The first reply to a probe, after the timeout.
    pub late: u64,
    /// A further reply to a probe.
    pub duplicate: u64,
    /// A reply to no probe of this session, or to one so old that it is forgotten.
    pub stray: u64,
    /// A reply to a probe, but its T1 is not the one that was sent: something changed it, or it is of another probe.
    pub altered: u64,
    /// No reply at all: too short, wrong, or cut.
    pub malformed: u64,
    /// A reply that is not signed with the key.
    pub unauthentic: u64,
}

/// Why a probe was not answered, or not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// An ICMP message of this type and code.
    Icmp(u8, u8),
    /// An ICMPv6 message of this type and code.
    Icmp6(u8, u8),
    /// An error of this host, by its number.
    Local(i32),
}

impl Obstacle {
    /// A name for people, and the key of the counters.
    #[must_use]
    pub fn name(self) -> String {
        let known = match self {
            // RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1.
            Self::Icmp(3, 0) | Self::Icmp6(1, 0) => "network unreachable",
            Self::Icmp(3, 1) | Self::Icmp6(1, 3) => "host unreachable",
            Self::Icmp(3, 2) => "protocol unreachable",
            Self::Icmp(3, 3) | Self::Icmp6(1, 4) => "port unreachable",
            Self::Icmp(3, 4) | Self::Icmp6(2, _) => "packet too big",
            Self::Icmp(3, 9 | 10 | 13) | Self::Icmp6(1, 1) => "prohibited by a filter",
            // RFC 4443 section 3.1.
            Self::Icmp6(1, 2) => "beyond the scope of the source address",
            Self::Icmp6(1, 5) => "source address refused",
            Self::Icmp6(1, 6) => "route rejected",
            Self::Icmp(11, _) | Self::Icmp6(3, _) => "time to live exceeded",
            Self::Icmp(kind, code) => return format!("ICMP type {kind} code {code}"),
            Self::Icmp6(kind, code) => return format!("ICMPv6 type {kind} code {code}"),
            // Linux, the same on every architecture that this runs on.
            Self::Local(1 | 13) => "not permitted here",
            Self::Local(11 | 12 | 105) => "no room in the send buffer",
            Self::Local(90) => "longer than the MTU",
            Self::Local(101) => "no route to the network",
            Self::Local(113) => "no route to the host",
            Self::Local(22 | 99) => "source address not usable",
            Self::Local(errno) => return format!("error {errno} of this host"),
        };
        known.to_owned()
    }

    /// The status that `HiPerConTracer` gives it (its manual page, "status").
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Self::Icmp(11, _) | Self::Icmp6(3, _) => 1,
            Self::Icmp6(1, 2) => 100,
            Self::Icmp(3, 0) | Self::Icmp6(1, 0) => 101,
            Self::Icmp(3, 1) | Self::Icmp6(1, 3) => 102,
            Self::Icmp(3, 2) => 103,
            Self::Icmp(3, 3) | Self::Icmp6(1, 4) => 104,
            Self::Icmp(3, 9 | 10 | 13) | Self::Icmp6(1, 1) => 105,
            Self::Icmp(..) | Self::Icmp6(..) => 110,
            Self::Local(1 | 13) => 211,
            Self::Local(101) => 212,
            Self::Local(113) => 213,
            Self::Local(99) => 214,
            Self::Local(90) => 215,
            Self::Local(11 | 12 | 105) => 216,
            Self::Local(_) => 210,
        }
    }
}

/// Outcome of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a reply in time.
    Answered,
    /// With one after the timeout.
    Late,
    /// With replies whose T1 is not the one that was sent.
    Altered,
    /// Without one.
    Lost,
    /// The end came before the timeout: unknown.
    Cut,
    /// With an ICMP message, or an error of this host.
    Undelivered(Obstacle),
}

impl Ending {
    /// The status that `HiPerConTracer` gives it.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Self::Answered => 255,
            Self::Late | Self::Altered | Self::Lost | Self::Cut => 200,
            Self::Undelivered(obstacle) => obstacle.status(),
        }
    }
}

/// All counts of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Outcomes of the probes.
    pub probes: Probes,
    /// Directions in which probes were lost; known at the end.
    pub lost_ways: LostWays,
    /// Telemetry of the far host, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUps>,
    /// Received datagrams.
    pub replies: Replies,
    /// First replies in time that came after one to a later probe (RFC 4737).
    pub reordered: u64,
    /// Why probes were undelivered or refused.
    pub obstacles: BTreeMap<String, u64>,
    /// ICMP messages that quote too little to find their probe.
    pub unattributed_errors: u64,
    /// Datagrams for which the socket had no room.
    pub overflowed: u64,
}

impl Counts {
    pub(super) fn obstacle(&mut self, obstacle: Obstacle, count: u64) {
        *self.obstacles.entry(obstacle.name()).or_default() += count;
    }
}
