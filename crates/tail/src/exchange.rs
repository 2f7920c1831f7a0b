//! Requests and replies of one capture as the two sides of an analysis.

use crate::capture::{CaptureError, CaptureReader, Choice};
use crate::signature::{Rewrites, Signature, Signer};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tailtrim_wire::exchange::{Message, Part, Protocol};
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::Link;

/// Flows whose newest counters are remembered; messages of more are left out.
const MOST_FLOWS: usize = 1 << 20;

/// Newest counters of a flow that are remembered: a packet that was overtaken by packets of more counts as repeated.
const OVERTAKING: usize = 8;

/// Packets of one capture by what they are to an exchange. They add up to `packets`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Packets in the capture.
    pub packets: u64,
    /// Requests and replies of each protocol, in the order of [`Protocol::ALL`].
    pub messages: [[u64; 2]; Protocol::ALL.len()],
    /// TCP segments whose timestamp was on one before.
    pub repeated: u64,
    /// Packets of no such protocol.
    pub others: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
}

impl Found {
    /// Counts the messages of a capture, to its end.
    ///
    /// # Errors
    /// The errors of [`CaptureReader::read`].
    pub fn of(capture: &mut CaptureReader) -> Result<Self, CaptureError> {
        let (mut found, mut first) = (Self::default(), Firsts::default());
        let (signer, mut batch) = (Signer::new(Rewrites::default()), Vec::new());
        loop {
            let mut shown = 0;
            let more = capture.read_frames(&signer, &mut batch, |link, frame| {
                shown += 1;
                match Message::of_frame(link, frame) {
                    None => found.others += 1,
                    Some(message) if !first.is(&message) => found.repeated += 1,
                    Some(Message { protocol, part, .. }) => {
                        found.messages[protocol as usize][part as usize] += 1;
                    }
                }
            })?;
            if !more {
                return Ok(found);
            }
            let stamped = batch.iter().filter(|record| record.stamped).count() as u64;
            found.packets += batch.len() as u64;
            found.unstamped += batch.len() as u64 - stamped;
            // Formats without frames show none.
            found.others += stamped - shown;
        }
    }

    /// Requests and replies of a protocol.
    #[must_use]
    pub fn of_protocol(&self, protocol: Protocol) -> [u64; 2] {
        self.messages[protocol as usize]
    }

    /// The protocol of most exchanges; `None` where nothing has requests and replies.
    #[must_use]
    pub fn commonest(&self) -> Option<Protocol> {
        let exchanges = |protocol: &Protocol| self.of_protocol(*protocol).into_iter().min();
        Protocol::ALL.into_iter().max_by_key(exchanges).filter(|p| exchanges(p) > Some(0))
    }
}

/// The newest counters of each flow, by side.
#[derive(Debug, Clone, Default)]
struct Firsts(HashMap<(Flow, Part), Newest>);

impl Firsts {
    /// Whether a message is the first with its counter. One without a counter always is.
    fn is(&mut self, message: &Message) -> bool {
        let Some(counter) = message.counter() else { return true };
        let has_room = self.0.len() < MOST_FLOWS;
        match self.0.entry((message.flow, message.part)) {
            Entry::Occupied(mut newest) => newest.get_mut().add(counter),
            Entry::Vacant(place) => has_room && place.insert(Newest::default()).add(counter),
        }
    }
}

/// The newest counters of a flow, ascending modulo 2³².
#[derive(Debug, Clone, Copy, Default)]
struct Newest {
    counters: [u32; OVERTAKING],
    count: u8,
}

impl Newest {
    /// Adds a counter. Returns whether it is neither there nor too old to know.
    fn add(&mut self, counter: u32) -> bool {
        let count = usize::from(self.count);
        // Half of all counters are behind one.
        let is_older = |other: &u32| counter.wrapping_sub(*other).cast_signed() > 0;
        let known = &self.counters[..count];
        let place = known.iter().rposition(is_older).map_or(0, |older| older + 1);
        if known.get(place) == Some(&counter) || (place, count) == (0, OVERTAKING) {
            return false;
        }
        if count < OVERTAKING {
            self.counters.copy_within(place..count, place + 1);
            self.counters[place] = counter;
            self.count += 1;
        } else {
            self.counters.copy_within(1..place, 0);
            self.counters[place - 1] = counter;
        }
        true
    }
}

/// The requests, or the replies, of a protocol in a capture of which nothing was read.
#[must_use]
pub fn messages(capture: CaptureReader, protocol: Protocol, part: Part) -> CaptureReader {
    let side = if part == Part::Request { "requests" } else { "replies" };
    let (title, mut firsts) = (format!("{}, {side}", capture.name()), Firsts::default());
    let choose = move |frame: Option<(Link, &[u8])>| {
        let message = frame.and_then(|(link, frame)| Message::of_frame(link, frame));
        let wanted = message.filter(|one| one.protocol == protocol && one.part == part);
        let first = wanted.filter(|one| firsts.is(one));
        first.map_or(Choice::Leave, |one| Choice::TakeAs(Signature::of_bytes(&one.key())))
    };
    capture.titled(title).choosing(choose)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the TSval of a packet that was overtaken was taken for one that is repeated, and its request for lost.
    #[test]
    fn a_counter_is_new_once_also_where_packets_overtake_each_other() {
        let mut newest = Newest::default();
        assert_eq!(
            [5, 7, 7, 6, 6, 5].map(|counter| newest.add(counter)),
            [true, true, false, true, false, false]
        );
        // Over the end of the counter.
        let mut newest = Newest::default();
        assert_eq!(
            [u32::MAX, 1, 0, u32::MAX].map(|counter| newest.add(counter)),
            [true, true, true, false]
        );
        // Those that are older than all that are remembered are not known.
        let mut newest = Newest::default();
        assert!((100..120).step_by(2).all(|counter| newest.add(counter)));
        assert_eq!(
            [100, 101, 103, 105, 118].map(|counter| newest.add(counter)),
            [false, false, false, true, false]
        );
    }
}
