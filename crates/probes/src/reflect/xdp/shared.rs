//! Numbers that the program and this process share: the clock one way, counters the other.

use aya::Ebpf;
use std::io;
use tailtrim_ports::bpf;
use tailtrim_roundtrip::reflect::{Counters, Refusal};
use tailtrim_sys::clock;
use tailtrim_sys::numbers::SharedNumbers;
use tailtrim_wire::{ErrorEstimate, TimeFormat};

/// Places in `struct numbers` of `crates/ports/bpf/judge.h`.
const CLOCK: usize = 0;
const ERROR: usize = 1;
const REFLECTED: usize = 2;
const PASSED: usize = 3;
const REFUSED: [(Refusal, usize); 8] = [
    (Refusal::SourcePort, 4),
    (Refusal::Address, 5),
    (Refusal::NotAllowed, 6),
    (Refusal::Rate, 7),
    (Refusal::Loop, 8),
    (Refusal::Cookie, 9),
    (Refusal::Reply, 10),
    (Refusal::Malformed, 11),
];
const NUMBERS: usize = 12;

/// The numbers.
#[derive(Debug)]
pub(super) struct Shared(SharedNumbers);

impl Shared {
    pub(super) fn of(loaded: &mut Ebpf) -> io::Result<Self> {
        bpf::numbers(loaded, "numbers", NUMBERS).map(Self)
    }

    /// Gives the program the offset of its clock from ours, and the error bound of ours.
    pub(super) fn set_clock(&self) {
        let bound_ns = clock::synchronized_within_ns();
        let estimate = ErrorEstimate::of_bound(bound_ns, TimeFormat::Ntp).write();
        self.0.set(CLOCK, clock::tai_offset_ns().cast_unsigned());
        // As a load of two bytes from a packet would give it.
        self.0.set(ERROR, u64::from(u16::from_ne_bytes(estimate)));
    }

    /// Requests that went up to the sockets, which count them themselves.
    pub(super) fn passed(&self) -> u64 {
        self.0.get(PASSED)
    }

    /// Requests that came and were answered or refused here, so far.
    pub(super) fn seen(&self) -> u64 {
        self.counters().received
    }

    /// Reads the program's counters.
    pub(super) fn counters(&self) -> Counters {
        let reflected = self.0.get(REFLECTED);
        let mut counters = Counters { reflected, ..Counters::default() };
        for (refusal, place) in REFUSED {
            counters.refused.add(refusal, self.0.get(place));
        }
        counters.received = counters.reflected + counters.refused.total();
        counters
    }
}
