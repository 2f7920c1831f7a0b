//! The late packets of a capture by cause: each is in exactly one row, with its whole excess, so that rows add up.
//!
//! The device is one queue, as in the explanation with a trace: a cause takes time from the packet whose turn it is, and the
//! packets behind it inherit what is left of that ([`Backlog`]). A packet is in the row of the cause that has more than half
//! of its excess: in that of the packets whose turn the cause prolonged, or in that of the packets which queue behind them.
//! If causes have more than half of it together, but none alone, it is in the row of several.

use super::backlog::{Backlog, Passing};
use super::queue::passages_with;
use serde::Serialize;

/// A late packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatePacket {
    /// Its number among the samples, in order of the ingress stamps.
    pub packet: usize,
    /// Its latency beyond the median.
    pub excess_ns: i64,
    /// Its row.
    pub row: usize,
}

/// Relation of the packets of a row to a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A cause prolonged their turns.
    Cause,
    /// They queue behind packets whose turns a cause prolonged.
    Behind,
    /// Several causes delayed them, none of which has more than half of the excess.
    Several,
    /// Causes that were found have at most half of their excess.
    NotPeriodic,
}

/// A row: late packets and their sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Their relation to the cause.
    pub kind: Kind,
    /// The cause, as an index of the causes that were given.
    pub cause: Option<usize>,
    /// The number of late packets.
    pub packets: u64,
    /// Stalls that began with one of them.
    pub stalls: u64,
    /// Sum of their excess.
    pub excess_ns: i64,
}

/// A cause as it struck.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Struck {
    /// When its occurrences ended, in order of time: departures less the median latency, after the first arrival.
    pub ends_ns: Vec<f64>,
    /// The longest time from the begin of an occurrence to its end.
    pub before_ns: f64,
    /// By how much ends vary in both directions.
    pub within_ns: f64,
    /// Packets whose turns it prolonged by up to `longest_ns`, whenever it ended: numbers of samples, ascending.
    pub packets: Vec<usize>,
    /// The longest time that it took from one of these.
    pub longest_ns: i64,
}

/// The late packets of a run.
#[derive(Debug, Clone, Copy)]
pub struct LatePackets<'a> {
    /// Ingress stamp and egress stamp of all packets, in order of the ingress stamp.
    pub samples: &'a [(i64, i64)],
    /// The median latency, from which the excess is counted.
    pub median_ns: i64,
    /// Packets with a higher latency than this are late.
    pub threshold_ns: i64,
}

/// The late packets and their rows: of each cause those whose turns it prolonged and those behind, then those of several
/// causes and of none. `stalls` are the numbers of the packets with which stalls began.
#[must_use]
pub fn rows(
    late: LatePackets<'_>,
    causes: &[Struck],
    stalls: impl Iterator<Item = usize>,
) -> (Vec<Row>, Vec<LatePacket>) {
    let row = |kind, cause| Row { kind, cause, packets: 0, stalls: 0, excess_ns: 0 };
    let mut rows: Vec<Row> = (0..causes.len())
        .flat_map(|cause| [row(Kind::Cause, Some(cause)), row(Kind::Behind, Some(cause))])
        .chain([row(Kind::Several, None), row(Kind::NotPeriodic, None)])
        .collect();
    let mut packets = attributed(late, causes);
    packets.sort_unstable_by_key(|one| one.packet);
    for one in &packets {
        let row = &mut rows[one.row];
        row.packets += 1;
        row.excess_ns += one.excess_ns;
    }
    for stall in stalls {
        if let Ok(place) = packets.binary_search_by_key(&stall, |one| one.packet) {
            rows[packets[place].row].stalls += 1;
        }
    }
    (rows, packets)
}

/// A packet that has left, for those that came behind it.
struct Passed {
    arrival_ns: i64,
    served_ns: i64,
    backlog: Backlog,
}

/// The late packets with the row of each, in the order in which they left.
fn attributed(late: LatePackets<'_>, causes: &[Struck]) -> Vec<LatePacket> {
    let LatePackets { samples, median_ns, threshold_ns } = late;
    let first_ns = samples.first().map_or(0, |sample| sample.0);
    let turns = Turns::new(causes);
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by_key(|packet| (samples[*packet].1, samples[*packet].0));
    let (_, passages) = passages_with(samples, median_ns);
    // The earliest arrival of those that are still to leave.
    let mut earliest_ns: Vec<i64> = passages.iter().map(|passage| passage.arrival_ns).collect();
    for packet in (1..earliest_ns.len()).rev() {
        earliest_ns[packet - 1] = earliest_ns[packet - 1].min(earliest_ns[packet]);
    }
    let mut found = Vec::new();
    let mut ahead: Vec<Passed> = Vec::new();
    for ((packet, passage), earliest_ns) in order.into_iter().zip(&passages).zip(earliest_ns) {
        if ahead.last().is_some_and(|one| one.served_ns <= earliest_ns) {
            ahead.clear();
        }
        // A packet that came later and left earlier was not ahead of this one: it took another way.
        while ahead.last().is_some_and(|one| one.arrival_ns > passage.arrival_ns) {
            ahead.pop();
        }
        let before = ahead.last().filter(|one| one.served_ns > passage.arrival_ns);
        let begin_ns = before.map_or(passage.arrival_ns, |one| one.served_ns);
        let longer_ns = passage.served_ns - begin_ns - passage.own_ns;
        let excess_ns = passage.latency_ns() - median_ns;
        let turn = ((begin_ns - first_ns) as f64, (passage.served_ns - first_ns) as f64);
        let taken = turns.taken(packet, turn, longer_ns);
        let queued = before.is_some();
        let mut backlog = before.map(|one| one.backlog.clone()).unwrap_or_default();
        let parts = backlog.pass(&Passing {
            queued,
            longer_ns,
            taken: &taken,
            excess_ns: excess_ns.max(0),
        });
        if passage.latency_ns() > threshold_ns {
            let row = place(parts, &taken, excess_ns, causes.len());
            found.push(LatePacket { packet, excess_ns, row });
        }
        let (arrival_ns, served_ns) = (passage.arrival_ns, passage.served_ns);
        ahead.push(Passed { arrival_ns, served_ns, backlog });
    }
    found
}

/// The row of a late packet, given the parts of its excess and those of them that were taken from its own turn.
fn place(
    parts: &[(Option<usize>, i64)],
    taken: &[(usize, i64)],
    excess_ns: i64,
    causes: usize,
) -> usize {
    let of_causes = || parts.iter().filter_map(|(cause, ns)| cause.map(|cause| (cause, *ns)));
    let together_ns: i64 = of_causes().map(|(_, ns)| ns).sum();
    match of_causes().max_by_key(|(_, ns)| *ns) {
        Some((cause, ns)) if 2 * ns > excess_ns => {
            let own_ns: i64 = taken.iter().filter(|(of, _)| *of == cause).map(|(_, ns)| *ns).sum();
            2 * cause + usize::from(2 * own_ns < ns)
        }
        _ => 2 * causes + usize::from(2 * together_ns <= excess_ns),
    }
}

/// Which turns of packets the causes prolonged.
struct Turns<'a> {
    causes: &'a [Struck],
    /// Packets that are named, each with its cause.
    named: Vec<(usize, usize)>,
}

impl<'a> Turns<'a> {
    fn new(causes: &'a [Struck]) -> Self {
        let of = |(cause, one): (usize, &Struck)| {
            one.packets.iter().map(|packet| (*packet, cause)).collect::<Vec<_>>()
        };
        let mut named: Vec<(usize, usize)> = causes.iter().enumerate().flat_map(of).collect();
        named.sort_unstable();
        Self { causes, named }
    }

    /// The time that each cause took from a packet whose turn was so much longer than its service. Where causes overlap,
    /// all get less, in proportion.
    fn taken(&self, packet: usize, turn: (f64, f64), longer_ns: i64) -> Vec<(usize, i64)> {
        if longer_ns <= 0 {
            return Vec::new();
        }
        let from = self.named.partition_point(|one| one.0 < packet);
        let named: Vec<usize> =
            self.named[from..].iter().take_while(|one| one.0 == packet).map(|one| one.1).collect();
        let mut taken: Vec<(usize, i64)> = Vec::new();
        for (cause, one) in self.causes.iter().enumerate() {
            let named_ns = if named.contains(&cause) { one.longest_ns } else { 0 };
            let ns = named_ns.max(one.within(turn)).min(longer_ns);
            if ns > 0 {
                taken.push((cause, ns));
            }
        }
        let all_ns: i64 = taken.iter().map(|(_, ns)| ns).sum();
        if all_ns > longer_ns {
            let part = longer_ns as f64 / all_ns as f64;
            taken.iter_mut().for_each(|(_, ns)| *ns = (*ns as f64 * part) as i64);
        }
        taken
    }
}

impl Struck {
    /// Time of a turn, from and until, that its occurrences may have taken. One that ends behind the turn kept another packet.
    fn within(&self, (from_ns, until_ns): (f64, f64)) -> i64 {
        let first = self.ends_ns.partition_point(|end_ns| *end_ns < from_ns - self.within_ns);
        let ends = self.ends_ns[first..].iter();
        ends.take_while(|end_ns| **end_ns <= until_ns + self.within_ns)
            .map(|end_ns| {
                let latest_ns = (end_ns + self.within_ns).min(until_ns);
                (latest_ns - (end_ns - self.before_ns).max(from_ns)).max(0.0) as i64
            })
            .sum()
    }
}
