//! Outcomes of the last decided probes, which distinguish late replies from duplicates.

use super::RoundTrip;

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

/// The last probes that were decided, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Memory {
    decided: Vec<Decided>,
    room: u64,
}

impl Memory {
    pub(super) fn new(room: usize) -> Self {
        Self { decided: Vec::new(), room: room.max(1) as u64 }
    }

    /// Number of probes that it remembers at most.
    pub(super) fn room(&self) -> u64 {
        self.room
    }

    fn place(&self, number: u64) -> usize {
        (number % self.room) as usize
    }

    /// Adds the probe that comes after the last one.
    pub(super) fn add(&mut self, fate: Fate, trip: &RoundTrip) {
        let far = trip.far_number.unwrap_or(0) as u32;
        let decided = Decided { fate, far, sender_stamp: trip.sender_stamp };
        let place = self.place(trip.number);
        match self.decided.get_mut(place) {
            Some(place) => *place = decided,
            None => self.decided.push(decided),
        }
    }

    /// The probe of this number, which must be one of those.
    pub(super) fn of(&mut self, number: u64) -> &mut Decided {
        let place = self.place(number);
        &mut self.decided[place]
    }

    /// Whether the probe of this number, which must be one of those, was lost.
    pub(super) fn is_lost(&self, number: u64) -> bool {
        self.decided[self.place(number)].fate == Fate::Lost
    }
}
