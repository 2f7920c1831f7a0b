//! Outcomes of the last decided probes, which distinguish late replies from duplicates.

use super::RoundTrip;

/// Number of remembered probes.
pub(super) const MEMORY: u64 = 1 << 16;

/// Outcome of a decided probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Replied,
    Lost,
    Altered,
    Undelivered,
}

/// A decided probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decided {
    pub(super) fate: Fate,
    /// The number that the far host gave the reply.
    pub(super) far: u32,
    /// T1 of the probe.
    pub(super) sender_stamp: u64,
}

/// The last [`MEMORY`] probes that were decided, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<Decided>);

impl Memory {
    /// Adds the probe that comes after the last one.
    pub(super) fn add(&mut self, fate: Fate, trip: &RoundTrip) {
        let far = trip.far_number.unwrap_or(0) as u32;
        let decided = Decided { fate, far, sender_stamp: trip.sender_stamp };
        match self.0.get_mut((trip.number % MEMORY) as usize) {
            Some(place) => *place = decided,
            None => self.0.push(decided),
        }
    }

    /// The probe of this number, which must be one of those.
    pub(super) fn of(&mut self, number: u64) -> &mut Decided {
        &mut self.0[(number % MEMORY) as usize]
    }

    /// Whether the probe of this number, which must be one of those, was lost.
    pub(super) fn is_lost(&self, number: u64) -> bool {
        self.0[(number % MEMORY) as usize].fate == Fate::Lost
    }
}
