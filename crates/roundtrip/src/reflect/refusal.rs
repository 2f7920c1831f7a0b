//! Reasons for requests without a reply, and their counts.

use serde::Serialize;
use serde::ser::SerializeMap;
use std::ops::AddAssign;

/// Reason why a request got no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Longer than the room for it.
    TooLong,
    /// From a port below 1024 or one of our own, where a service may answer the reply.
    SourcePort,
    /// From or to an address that no host has.
    Address,
    /// From a client that is not on the list.
    NotAllowed,
    /// More often than a client may.
    Rate,
    /// An echo that seems to go round between two reflectors: see [`Policy::repeats`](super::Policy::repeats).
    Loop,
    /// An echo without the cookie.
    Cookie,
    /// A test packet that is itself the reply of a reflector.
    Reply,
    /// Shorter than its reply would be.
    Short,
    /// The HMAC is wrong.
    Hmac,
    /// An authenticated request that was answered already.
    Replayed,
    /// A frame whose headers contradict each other or its length, for example by the length of UDP.
    Malformed,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::TooLong,
        Self::SourcePort,
        Self::Address,
        Self::NotAllowed,
        Self::Rate,
        Self::Loop,
        Self::Cookie,
        Self::Reply,
        Self::Short,
        Self::Hmac,
        Self::Replayed,
        Self::Malformed,
    ];

    /// As it is written in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::SourcePort => "source_port",
            Self::Address => "address",
            Self::NotAllowed => "not_allowed",
            Self::Rate => "rate",
            Self::Loop => "loop",
            Self::Cookie => "cookie",
            Self::Reply => "reply",
            Self::Short => "short",
            Self::Hmac => "hmac",
            Self::Replayed => "replayed",
            Self::Malformed => "malformed",
        }
    }
}

/// Requests without reply, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    pub(super) fn count(&mut self, refusal: Refusal) {
        self.add(refusal, 1);
    }

    /// Adds requests that another part has refused, such as a program in the kernel.
    pub fn add(&mut self, refusal: Refusal, count: u64) {
        self.0[refusal as usize] += count;
    }

    /// Number of requests that were refused for this reason.
    #[must_use]
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize]
    }

    /// Number of refused requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for Refusals {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for refusal in Refusal::ALL {
            map.serialize_entry(refusal.name(), &self.of(refusal))?;
        }
        map.end()
    }
}

/// Requests by outcome: `received` = `reflected` + `unsent` + all of `refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Requests.
    pub received: u64,
    /// Replies that were sent.
    pub reflected: u64,
    /// Replies that the kernel did not take.
    pub unsent: u64,
    /// Requests without reply.
    pub refused: Refusals,
    /// Clients whose limit was forgotten to make room for others.
    pub forgotten_clients: u64,
    /// Clients with repeated echoes (address and port) whose limit was forgotten to make room for others.
    pub forgotten_flows: u64,
    /// Payloads of echoes that were forgotten to make room for others: usual where each one differs.
    pub forgotten_payloads: u64,
    /// Sessions that were forgotten to make room for others.
    pub forgotten_sessions: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.reflected += other.reflected;
        self.unsent += other.unsent;
        for refusal in Refusal::ALL {
            self.refused.add(refusal, other.refused.of(refusal));
        }
        self.forgotten_clients += other.forgotten_clients;
        self.forgotten_flows += other.forgotten_flows;
        self.forgotten_payloads += other.forgotten_payloads;
        self.forgotten_sessions += other.forgotten_sessions;
    }
}

impl Counters {
    /// Whether every request is counted once.
    #[must_use]
    pub fn add_up(&self) -> bool {
        self.received == self.reflected + self.unsent + self.refused.total()
    }
}
