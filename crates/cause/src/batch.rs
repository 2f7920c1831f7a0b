//! Devices that take several packets at once: they leave together, after a service time for each.
//!
//! After a stall, packets leave close together, too, and the longer it was, the more of them. What tells the two
//! apart: a batch takes the same time for each of its packets, however many they are, while what precedes a queue that
//! is worked off is as long as the stall happened to be.

use super::queue::Passage;

/// Departures that are at most so many times the usual spacing apart are of one batch.
const TOGETHER: i64 = 4;
/// Fewer batches say nothing.
const ENOUGH: usize = 20;
/// Batches take one time for each packet if the second quarter of them differ by this part of it at most: what is
/// longer may have been stalled.
const ALIKE: i64 = 12;

/// What batches take for each packet, from samples in the order in which they left, given the usual spacing of
/// packets that queued. None of a device that sends each packet alone.
pub(super) fn service_ns(ordered: &[(i64, i64)], spacing_ns: i64) -> Option<i64> {
    let together = |a: &(i64, i64), b: &(i64, i64)| b.1 - a.1 <= spacing_ns * TOGETHER;
    let mut each_ns = Vec::new();
    let mut left_ns = i64::MIN;
    for batch in ordered.chunk_by(together) {
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        // One that waited for those ahead began when they left.
        if count > 1 && batch[0].0 < left_ns {
            each_ns.push((batch[0].1 - left_ns) / count);
        }
        left_ns = batch[batch.len() - 1].1;
    }
    if each_ns.len() < ENOUGH {
        return None;
    }
    each_ns.sort_unstable();
    let quarter = |number: usize| each_ns[each_ns.len() * number / 4];
    let middle_ns = quarter(2);
    let alike = (middle_ns - quarter(1)) * ALIKE <= middle_ns;
    (alike && middle_ns > spacing_ns * TOGETHER).then_some(middle_ns)
}

/// Gives the first of each batch the time of all of its packets. Returns the median length of batches of several.
pub(super) fn share(passages: &mut [Passage], spacing_ns: i64, service_ns: i64) -> u64 {
    let together = |a: &Passage, b: &Passage| {
        b.queued() && b.departure_ns - a.departure_ns <= spacing_ns * TOGETHER
    };
    let mut lengths = Vec::new();
    for batch in passages.chunk_by_mut(together) {
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        batch.iter_mut().for_each(|passage| passage.own_ns = 0);
        batch[0].own_ns = service_ns * count;
        lengths.extend((count > 1).then_some(batch.len()));
    }
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).map_or(1, |length| *length as u64)
}
