//! The queue replayed as if a stall had not been (Lindley's recursion).
//!
//! A packet is served when it has come, the one ahead has been served, and its own service has taken its
//! time. Taking a stall off one packet's time lets all behind it in the busy period go earlier.

use super::queue::{Passage, Service};
use super::timeline::Slice;

/// Which stall took how much of a packet's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The packet, as an index of the passages.
    pub packet: usize,
    /// The event, as an index of the trace's.
    pub event: usize,
    /// By how much it prolonged the packet's service.
    pub ns: i64,
}

/// Time that stalls took from packets. A moment of a stall counts for one packet only, the one whose turn it was. No
/// more is taken from a packet than the time by which its service was longer than the base. `error_ns` bounds the
/// distance between the clocks of trace and stamps: windows reach out by that.
#[must_use]
pub fn taken(passages: &[Passage], slices: &[Slice], error_ns: i64) -> Vec<Taken> {
    let mut found = Vec::new();
    let mut claimed_ns = i64::MIN;
    let mut first = 0;
    for (packet, passage) in passages.iter().enumerate() {
        let mut left_ns = passage.taken_ns() - passage.own_ns;
        if left_ns <= 0 {
            continue;
        }
        let start_ns = (passage.begin_ns - error_ns).max(claimed_ns);
        let end_ns = passage.departure_ns + error_ns;
        while slices.get(first).is_some_and(|slice| slice.end_ns <= start_ns) {
            first += 1;
        }
        for slice in slices[first..].iter().take_while(|slice| slice.start_ns < end_ns) {
            let overlap_ns = slice.end_ns.min(end_ns) - slice.start_ns.max(start_ns);
            let ns = overlap_ns.min(left_ns);
            if ns > 0 {
                found.push(Taken { packet, event: slice.event, ns });
                left_ns -= ns;
                claimed_ns = claimed_ns.max(slice.end_ns.min(end_ns));
            }
        }
    }
    found
}

/// Departures when each packet's service takes this much less. Without anything taken off, they are those
/// that were seen.
#[must_use]
pub fn replay(passages: &[Passage], service: &Service, less_ns: &[i64]) -> Vec<i64> {
    let mut before_ns = i64::MIN;
    passages
        .iter()
        .zip(less_ns)
        .map(|(passage, less_ns)| {
            before_ns = served(passage, service, *less_ns, before_ns);
            before_ns + passage.departure_ns - passage.served_ns
        })
        .collect()
}

/// The same when only some packets, in order, take less: hands over the departures of these and of those that came
/// before the ones ahead had been served. All others leave when they did.
pub fn replay_touched(
    passages: &[Passage],
    service: &Service,
    less_ns: &[(usize, i64)],
    mut left: impl FnMut(usize, i64),
) {
    let mut less_ns = less_ns.iter().peekable();
    while let Some((first, _)) = less_ns.peek() {
        let mut packet = *first;
        let ahead = packet.checked_sub(1).and_then(|ahead| passages.get(ahead));
        let mut before_ns = ahead.map_or(i64::MIN, |ahead| ahead.served_ns);
        while let Some(passage) = passages.get(packet) {
            let less_ns =
                less_ns.next_if(|(touched, _)| *touched == packet).map_or(0, |(_, ns)| *ns);
            before_ns = served(passage, service, less_ns, before_ns);
            left(packet, before_ns + passage.departure_ns - passage.served_ns);
            packet += 1;
            if !passages.get(packet).is_some_and(Passage::queued) {
                break;
            }
        }
    }
}

/// When a packet has been served if it takes that much less, and the one ahead has been at `before_ns`.
fn served(passage: &Passage, service: &Service, less_ns: i64, before_ns: i64) -> i64 {
    let begin_ns = if passage.queued() {
        passage.arrival_ns.max(before_ns)
    } else {
        passage.begin_ns.max(before_ns)
    };
    let mut taken_ns = passage.taken_ns() - less_ns;
    // Behind another one it may have left with it; alone it takes a service time.
    if passage.queued() && before_ns <= passage.arrival_ns {
        taken_ns = taken_ns.max(service.service_ns);
    }
    // Never later than it was: the device was idle or busy as it was, or less.
    (begin_ns + taken_ns).min(passage.served_ns)
}
