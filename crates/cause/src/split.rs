//! The excess of each late packet split among causes, the load's own queue, and unknown.

use super::backlog::{Backlog, Passing};
use super::explanation::Late;
use super::groups::Groups;
use super::queue::{Passage, Service};
use super::replay::{Taken, replay, replay_touched};
use tailtrim_stats::{Histogram, Probability, Ranked};

/// Input of a replay.
pub(super) struct Replayed<'a> {
    pub(super) service: &'a Service,
    pub(super) passages: &'a [Passage],
    /// Packets with at least this latency are late.
    pub(super) late_from_ns: i64,
}

/// The late packets, and what each cause did.
pub(super) struct Split {
    /// In the order in which they left.
    pub(super) late: Vec<Late>,
    /// Of each cause, the late packets that it made later, and its part of their excess.
    pub(super) parts: Vec<(u64, i64)>,
    /// Of each cause, the asked quantiles without it.
    pub(super) without_ns: Vec<Vec<i64>>,
}

impl Split {
    pub(super) fn of(
        replayed: &Replayed<'_>,
        found: &[Taken],
        groups: &Groups,
        quantiles: &[Probability],
    ) -> Self {
        let Replayed { service, passages, .. } = *replayed;
        let mut by_cause: Vec<Vec<(usize, i64)>> = vec![Vec::new(); groups.len()];
        for taken in found {
            let of_cause = &mut by_cause[groups.of(taken.event)];
            match of_cause.last_mut() {
                Some((packet, ns)) if *packet == taken.packet => *ns += taken.ns,
                _ => of_cause.push((taken.packet, taken.ns)),
            }
        }
        let mut tail = Tail::new(passages, quantiles);
        let without_ns = by_cause
            .iter()
            .map(|touched| {
                // Only the packets behind one that it touched go earlier without it: a run has millions of packets.
                let mut earlier = Vec::new();
                replay_touched(passages, service, touched, |packet, departure_ns| {
                    let latency_ns = passages[packet].latency_ns();
                    let saved_ns = passages[packet].departure_ns - departure_ns;
                    if saved_ns > 0 {
                        earlier.push((latency_ns, latency_ns - saved_ns));
                    }
                });
                tail.changed(&earlier)
            })
            .collect();
        let late = late(replayed, found, groups);
        let mut parts = vec![(0, 0); groups.len()];
        for (cause, ns) in late.iter().flat_map(|packet| &packet.causes) {
            parts[*cause].0 += 1;
            parts[*cause].1 += ns;
        }
        Self { late, parts, without_ns }
    }
}

/// The asked quantiles, also when some packets had another latency.
struct Tail<'a> {
    latencies: Histogram,
    quantiles: &'a [Probability],
    measured_ns: Vec<i64>,
}

impl<'a> Tail<'a> {
    fn new(passages: &[Passage], quantiles: &'a [Probability]) -> Self {
        let mut latencies = Histogram::new();
        // The null asks for none.
        if !quantiles.is_empty() {
            latencies.record_all(passages.iter().map(Passage::latency_ns));
        }
        let mut tail = Self { latencies, quantiles, measured_ns: Vec::new() };
        tail.measured_ns = tail.at();
        tail
    }

    fn at(&self) -> Vec<i64> {
        let ranked = Ranked::new(&self.latencies);
        self.quantiles.iter().filter_map(|p| ranked.quantile(*p)).collect()
    }

    /// Given the latencies that change, from and to.
    fn changed(&mut self, latencies_ns: &[(i64, i64)]) -> Vec<i64> {
        if self.quantiles.is_empty() || latencies_ns.is_empty() {
            return self.measured_ns.clone();
        }
        for (from_ns, to_ns) in latencies_ns {
            self.latencies.remove(*from_ns);
            self.latencies.record(*to_ns);
        }
        let changed_ns = self.at();
        for (from_ns, to_ns) in latencies_ns {
            self.latencies.remove(*to_ns);
            self.latencies.record(*from_ns);
        }
        changed_ns
    }
}

/// Departures when each packet takes its own time at most: what is left is the load's own queue.
fn ideal(passages: &[Passage], service: &Service) -> Vec<i64> {
    let less: Vec<i64> =
        passages.iter().map(|passage| (passage.taken_ns() - passage.own_ns).max(0)).collect();
    replay(passages, service, &less)
}

/// The excess of each late packet: to the load what is left when each packet takes its own time; the rest to what
/// stood in its way, or unknown.
fn late(replayed: &Replayed<'_>, found: &[Taken], groups: &Groups) -> Vec<Late> {
    let Replayed { service, passages, late_from_ns } = *replayed;
    let ideal = ideal(passages, service);
    let mut found = found.iter().peekable();
    let mut backlog = Backlog::default();
    let mut late = Vec::new();
    for (packet, passage) in passages.iter().enumerate() {
        let latency_ns = passage.latency_ns();
        let excess_ns = (latency_ns - service.base_ns).max(0);
        let own_ns = ideal[packet] - passage.arrival_ns - service.base_ns;
        let queue_ns = own_ns.clamp(0, excess_ns);
        let mut taken = Vec::new();
        while let Some(of_packet) = found.next_if(|taken| taken.packet == packet) {
            taken.push((groups.of(of_packet.event), of_packet.ns));
        }
        let parts = backlog.pass(&Passing {
            queued: passage.queued(),
            longer_ns: passage.taken_ns() - passage.own_ns,
            taken: &taken,
            excess_ns: excess_ns - queue_ns,
        });
        if latency_ns >= late_from_ns {
            late.push(Late {
                arrival_ns: passage.arrival_ns,
                latency_ns,
                excess_ns,
                causes: parts.iter().filter_map(|(cause, ns)| cause.map(|c| (c, *ns))).collect(),
                queue_ns,
                unknown_ns: parts.iter().filter(|(c, _)| c.is_none()).map(|(_, ns)| ns).sum(),
            });
        }
    }
    late
}
