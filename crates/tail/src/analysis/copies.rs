//! Copies of a mirror port: one packet that its capture has several times.
//!
//! A switch that mirrors a port, or several on the way of a packet, writes it down each time: with another VLAN tag, TTL or
//! MAC address, or as it was. Matching would take all of them for duplicates. That they are copies shows in the first
//! records, so that it is known from the first packet on:
//!
//! * at least a tenth of the signatures come again, since some ports or VLANs may be mirrored once more than others, but
//!   packets that are sent again are fewer; and nearly none of them more than [`MOST`] times: frames that are all alike, or
//!   a few that are sent in turn, come again and again;
//! * all but some come again within a time that is an [`EIGHTH`](PARTS) of the time looked at, or less: a recording that is
//!   sent several times comes again only when it is over;
//! * the frames of one signature differ in their L2 header, TTL or length, as what a generator sends twice does not; or the
//!   egress capture has nearly each of them once.

use crate::capture::Record;
use crate::signature::Signature;
use std::collections::{HashMap, HashSet, VecDeque};

/// Fewer signatures that come again say nothing.
const FEWEST: usize = 32;

/// Ports that are mirrored at once: four on the way through a switch and back.
const MOST: usize = 4;

/// See above.
const PARTS: i64 = 8;

/// Signatures of which one comes again.
const SHARE: usize = 10;

/// Copies may come this many times as late as nearly all of the first records do: behind a device, some packets wait.
const SLACK: i64 = 64;

/// Least time within which a copy may come: interrupts are moderated by some microseconds.
const LEAST_NS: i64 = 10_000;

/// Time within which a packet's signature that comes again is a copy of it; `None` where none are. `forms` tells in what
/// else the frames of `first` differ, one value for each.
pub(super) fn within_ns(
    first: &[Record],
    second: &[Record],
    forms: impl FnOnce() -> Vec<u64>,
) -> Option<i64> {
    let mut places: HashMap<Signature, Vec<usize>> = HashMap::with_capacity(first.len());
    let stamped = || first.iter().enumerate().filter(|(_, record)| record.stamped);
    for (place, record) in stamped() {
        places.entry(record.signature).or_default().push(place);
    }
    let again: Vec<&Vec<usize>> = places.values().filter(|places| places.len() > 1).collect();
    let many = again.iter().filter(|places| places.len() > MOST).count();
    if again.len() < FEWEST || again.len() * SHARE < places.len() || many * 100 > again.len() {
        return None;
    }
    let stamp_ns = |place: &usize| first[*place].stamp_ns;
    let mut reaches: Vec<i64> = again
        .iter()
        .filter_map(|places| {
            Some(stamp_ns(places.last()?).saturating_sub(stamp_ns(places.first()?)))
        })
        .collect();
    reaches.sort_unstable();
    let reach_ns = reaches[(reaches.len() - 1) * 99 / 100].max(0);
    let stamps = || stamped().map(|(_, record)| record.stamp_ns);
    let span_ns = stamps().max()?.saturating_sub(stamps().min()?);
    if reach_ns.saturating_mul(PARTS) > span_ns {
        return None;
    }
    let forms = forms();
    let unlike = |places: &&&Vec<usize>| {
        let form = |place: &usize| (forms.get(*place), first[*place].length);
        places.iter().any(|place| form(place) != form(&places[0]))
    };
    let nearly_all = |count: usize, of: usize| count * 20 >= of * 19;
    if !nearly_all(again.iter().filter(unlike).count(), again.len()) {
        let mut left: HashMap<Signature, usize> = HashMap::new();
        for record in second.iter().filter(|record| places.contains_key(&record.signature)) {
            *left.entry(record.signature).or_default() += 1;
        }
        let once = left.values().filter(|count| **count == 1).count();
        if left.len() < FEWEST || !nearly_all(once, left.len()) {
            return None;
        }
    }
    Some(reach_ns.saturating_mul(SLACK).max(LEAST_NS))
}

/// The signatures of a time, and how many were copies.
#[derive(Debug)]
pub(super) struct Copies {
    within_ns: i64,
    recent: HashSet<Signature>,
    order: VecDeque<(i64, Signature)>,
    pub(super) count: u64,
}

impl Copies {
    pub(super) fn new(within_ns: i64) -> Self {
        Self { within_ns, recent: HashSet::new(), order: VecDeque::new(), count: 0 }
    }

    /// Leaves out the copies among the next packets.
    pub(super) fn leave_out(&mut self, batch: &mut Vec<Record>) {
        batch.retain(|record| {
            while let Some(&(stamp_ns, signature)) = self.order.front()
                && record.stamp_ns.saturating_sub(stamp_ns) > self.within_ns
            {
                self.order.pop_front();
                self.recent.remove(&signature);
            }
            let new = self.recent.insert(record.signature);
            if new {
                self.order.push_back((record.stamp_ns, record.signature));
            }
            self.count += u64::from(!new);
            new
        });
    }
}
