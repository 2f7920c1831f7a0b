//! The excess of each late packet split among causes, the load's own queue, and unknown.

use super::groups::Groups;
use super::queue::{Passage, Service};
use super::replay::{Taken, replay, replay_touched};
use super::verdict::Late;
use crate::stats::{Histogram, Probability, Ranked};

/// What is replayed.
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
        let Replayed { service, passages, late_from_ns } = *replayed;
        let late: Vec<usize> =
            (0..passages.len()).filter(|n| passages[*n].latency_ns() >= late_from_ns).collect();
        let mut all_less = vec![0; passages.len()];
        let mut by_cause: Vec<Vec<(usize, i64)>> = vec![Vec::new(); groups.len()];
        for taken in found {
            all_less[taken.packet] += taken.ns;
            let of_cause = &mut by_cause[groups.of(taken.event)];
            match of_cause.last_mut() {
                Some((packet, ns)) if *packet == taken.packet => *ns += taken.ns,
                _ => of_cause.push((taken.packet, taken.ns)),
            }
        }
        let mut took: Vec<Vec<(usize, i64)>> = vec![Vec::new(); late.len()];
        let mut tail = Tail::new(passages, quantiles);
        let mut without_ns = Vec::with_capacity(groups.len());
        for (cause, touched) in by_cause.iter().enumerate() {
            // Only the packets behind one that it touched go earlier without it: a run has millions of packets.
            let mut earlier = Vec::new();
            replay_touched(passages, service, touched, |packet, departure_ns, since_ns| {
                let latency_ns = passages[packet].latency_ns();
                let saved_ns = passages[packet].departure_ns - departure_ns;
                if saved_ns > 0 {
                    earlier.push((latency_ns, latency_ns - saved_ns));
                    if let Ok(place) = late.binary_search(&packet) {
                        took[place].push((cause, since_ns));
                    }
                }
            });
            without_ns.push(tail.changed(&earlier));
        }
        let none = replay(passages, service, &all_less);
        let ideal = ideal(passages, service);
        let late: Vec<Late> = late
            .iter()
            .zip(&took)
            .map(|(n, took)| split(&passages[*n], service, took, none[*n], ideal[*n]))
            .collect();
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

/// One packet's excess: to causes what the replay without any of them saves; to the load what is left when each
/// packet takes its own time; the rest is unknown. Among causes without each of which it would have left earlier, in
/// proportion to what they took since the device became busy: at the end of a queue, each alone may be as good as all.
fn split(
    passage: &Passage,
    service: &Service,
    took: &[(usize, i64)],
    none_ns: i64,
    ideal_ns: i64,
) -> Late {
    let excess_ns = (passage.latency_ns() - service.base_ns).max(0);
    let queue_ns = (ideal_ns - passage.arrival_ns - service.base_ns).clamp(0, excess_ns);
    let explained_ns = (passage.departure_ns - none_ns).clamp(0, excess_ns - queue_ns);
    let all = took.iter().map(|(_, ns)| i128::from(*ns)).sum::<i128>().max(1);
    let mut causes: Vec<(usize, i64)> = Vec::new();
    let (mut before, mut given_ns) = (0_i128, 0);
    for (cause, ns) in took {
        // Cumulated and rounded down, so that the parts add up to the whole.
        before += i128::from(*ns);
        let until_ns = i64::try_from(i128::from(explained_ns) * before / all).unwrap_or(i64::MAX);
        if until_ns > given_ns {
            causes.push((*cause, until_ns - given_ns));
            given_ns = until_ns;
        }
    }
    Late {
        arrival_ns: passage.arrival_ns,
        latency_ns: passage.latency_ns(),
        excess_ns,
        causes,
        queue_ns,
        unknown_ns: excess_ns - queue_ns - given_ns,
    }
}
