//! What the program and this process share: the clock one way, counters the other.

use crate::sys::bpf::SharedNumbers;
use crate::sys::clock;
use std::io;
use tailtrim_roundtrip::reflect::{Counters, Refusal};
use tailtrim_wire::{ErrorEstimate, TimeFormat};

/// Bytes from the start: `CLOCK_TAI` minus `CLOCK_REALTIME`, and the error estimate as a packet has it.
pub(super) const CLOCK_AT: i32 = 0;
pub(super) const ERROR_AT: i32 = 8;
const COUNTS_AT: i32 = 16;
const NUMBERS: usize = 8;

/// What the program counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Reflected,
    Passed,
    SourcePort,
    Address,
    NotAllowed,
    Rate,
}

impl Count {
    /// Bytes from the start.
    pub(super) fn at(self) -> i32 {
        COUNTS_AT + self as i32 * 8
    }
}

/// The numbers.
#[derive(Debug)]
pub(super) struct Shared(pub(super) SharedNumbers);

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        SharedNumbers::new(NUMBERS).map(Self)
    }

    /// Tells the program how its clock is off ours, and ours off the world's.
    pub(super) fn set_clock(&self) {
        let bound_ns = clock::synchronized_within_ns();
        let estimate = ErrorEstimate::of_bound(bound_ns, TimeFormat::Ntp).write();
        self.0.set(CLOCK_AT as usize / 8, clock::tai_offset_ns().cast_unsigned());
        // As a load of two bytes from a packet would give it.
        self.0.set(ERROR_AT as usize / 8, u64::from(u16::from_ne_bytes(estimate)));
    }

    fn count(&self, count: Count) -> u64 {
        self.0.get(count.at() as usize / 8)
    }

    /// Requests that went up to the sockets, which count them themselves.
    pub(super) fn passed(&self) -> u64 {
        self.count(Count::Passed)
    }

    /// Requests that came and were answered or refused here, so far.
    pub(super) fn seen(&self) -> u64 {
        let counters = self.counters();
        counters.reflected + counters.refused.total()
    }

    /// What the program did.
    pub(super) fn counters(&self) -> Counters {
        let reflected = self.count(Count::Reflected);
        let mut counters = Counters { reflected, ..Counters::default() };
        for (refusal, count) in [
            (Refusal::SourcePort, Count::SourcePort),
            (Refusal::Address, Count::Address),
            (Refusal::NotAllowed, Count::NotAllowed),
            (Refusal::Rate, Count::Rate),
        ] {
            counters.refused.add(refusal, self.count(count));
        }
        counters.received = counters.reflected + counters.refused.total();
        counters
    }
}
