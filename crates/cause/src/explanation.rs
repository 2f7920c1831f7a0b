//! The causes of each late packet, and the tail without each cause.

use super::absence;
use super::groups::Groups;
use super::hidden;
use super::known::{self, KnownCause};
use super::queue::{Passage, Service, passages, passages_with};
use super::replay::{Taken, taken};
use super::serving;
use super::split::{Replayed, Split};
use super::timeline::{Slice, timeline};
use super::usual;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tailtrim_stats::{Histogram, Probability, Ranked};
use tailtrim_trace::lines::Throttled;
use tailtrim_trace::{Event, Kind, Sender};

/// A trace and how far its times may be from the packets'.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// Its events.
    pub events: &'a [Event],
    /// The CPU that serves the packets.
    pub cpu: u32,
    /// Error bound of its times on the packets' axis.
    pub error_ns: i64,
    /// Between which looks the group of who serves them was throttled.
    pub throttled: &'a [Throttled],
}

/// Parameters of an explanation.
#[derive(Debug, Clone)]
pub struct ExplanationOptions {
    /// Packets at or above this quantile of latency are late.
    pub late_from: Probability,
    /// Quantiles that are told with and without each cause.
    pub quantiles: Vec<Probability>,
    /// By how much the trace is shifted for the null, each giving one run.
    pub shifts_ns: Vec<i64>,
}

/// A cause and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Its kind.
    pub kind: Kind,
    /// Vector, handler, softirq or thread.
    pub name: String,
    /// Function or reason, where known.
    pub detail: Option<String>,
    /// Number of times that it took the CPU in the run.
    pub events: u64,
    /// Late packets that it made later.
    pub late_packets: u64,
    /// Its part of the late packets' excess.
    pub excess_ns: i64,
    /// That part, in millionths.
    pub share_ppm: i64,
    /// Cost of one of its events beyond the time that the trace shows: entry to and exit from an interrupt, and the
    /// hypervisor's part of it.
    pub hidden_ns: i64,
    /// The asked quantiles without it.
    pub without_ns: Vec<i64>,
    /// The sender of most of its events, and the number of those.
    pub sender: Option<(Sender, u64)>,
    /// The known cause that it is recognised as, if any.
    pub signature: Option<KnownCause>,
}

/// A late packet: where its excess over the base latency went. The parts add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Late {
    /// When it came.
    pub arrival_ns: i64,
    /// Its latency.
    pub latency_ns: i64,
    /// Its latency less that of a packet that does not wait.
    pub excess_ns: i64,
    /// Causes (as an index of the explanation's) with their part of it.
    pub causes: Vec<(usize, i64)>,
    /// Part spent behind other packets that needed no more than their own service.
    pub queue_ns: i64,
    /// Part that nothing in the trace accounts for.
    pub unknown_ns: i64,
}

/// Why packets were late.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The service process behind the stamps.
    pub service: Service,
    /// The thread that serves packets; its time is not theft. None where the kernel itself does.
    pub serving: Option<String>,
    /// Error bound of the trace's times on the packets' axis.
    pub error_ns: i64,
    /// The asked quantiles.
    pub quantiles_ns: Vec<i64>,
    /// Packets with at least this latency are late.
    pub late_from_ns: i64,
    /// Excess of the late packets.
    pub excess_ns: i64,
    /// Part of it spent behind other packets' own service.
    pub queue_ns: i64,
    /// Part of it that the trace does not account for.
    pub unknown_ns: i64,
    /// Part of it that falls into holes of the trace; counted as a cause too.
    pub hole_ns: i64,
    /// Share of the excess that causes account for, in millionths; with the trace shifted in time.
    pub explained_ppm: i64,
    /// The same with the trace shifted: what chance explains. None without shifts.
    pub null_ppm: Option<i64>,
    /// The causes, costliest first.
    pub causes: Vec<Cause>,
    /// The late packets, in the order in which they left. They are many: in JSON they come last, behind what is
    /// added to the explanation.
    #[serde(skip)]
    pub late: Vec<Late>,
}

impl Explanation {
    /// The checks of the audit that concern the causes which made packets late, each once, in the order of the causes.
    #[must_use]
    pub fn checks(&self) -> Vec<&'static str> {
        let mut told = BTreeSet::new();
        self.causes
            .iter()
            .filter(|cause| cause.late_packets > 0)
            .filter_map(|cause| cause.signature.as_ref())
            .flat_map(|signature| signature.checks)
            .copied()
            .filter(|id| told.insert(*id))
            .collect()
    }
}

/// Names the causes of the late packets among samples (ingress stamp, egress stamp).
#[must_use]
pub fn explain(
    samples: &[(i64, i64)],
    trace: Trace<'_>,
    asked: &ExplanationOptions,
) -> Explanation {
    let (service, passages) = passages(samples);
    let egress_ns = samples.iter().map(|(_, egress_ns)| *egress_ns);
    let serving = serving::serving(trace.events, trace.cpu, egress_ns, trace.error_ns);
    let events = match &serving {
        Some(thread) => absence::others(&trace, thread, samples.len()),
        None => trace.events.to_vec(),
    };
    let groups = Groups::new(&events, trace.cpu);
    let slices = usual::beyond(timeline(&events, trace.cpu), &passages, &service, &groups);
    // In a batch, the latency of a packet depends on the packets that it is sent with: there, the median says nothing of
    // the service.
    let (service, passages) = match usual::latency_ns(&passages, &slices, &events) {
        Some(usual_ns) if service.batch == 1 => passages_with(samples, usual_ns),
        _ => (service, passages),
    };
    let all = ranked(passages.iter().map(Passage::latency_ns));
    let late_from_ns = all.quantile(asked.late_from).unwrap_or(0);
    let replayed = Replayed { service: &service, passages: &passages, late_from_ns };
    let (costs, found) = met(&replayed, &slices, &events, &groups, trace.error_ns);
    let split = Split::of(&replayed, &found, &groups, &asked.quantiles);
    let null_ppm = null_ppm(&replayed, &slices, &events, &groups, trace.error_ns, asked);
    let mut told: Vec<(usize, Cause)> = causes(&split, &slices, &events, &groups, &passages)
        .zip(&costs)
        .map(|(cause, cost)| Cause { hidden_ns: cost.median_ns, ..cause })
        .enumerate()
        .collect();
    told.sort_by_key(|(_, cause)| std::cmp::Reverse(cause.excess_ns));
    let mut place = vec![0; told.len()];
    for (position, (index, _)) in told.iter().enumerate() {
        place[*index] = position;
    }
    let causes: Vec<Cause> = told.into_iter().map(|(_, cause)| cause).collect();
    let hole_ns = causes.iter().filter(|c| c.kind == Kind::Hole).map(|c| c.excess_ns).sum();
    let mut late = split.late;
    for packet in &mut late {
        for (index, _) in &mut packet.causes {
            *index = place[*index];
        }
    }
    let sum = |part: fn(&Late) -> i64| late.iter().map(part).sum::<i64>();
    let (excess_ns, queue_ns, unknown_ns) =
        (sum(|l| l.excess_ns), sum(|l| l.queue_ns), sum(|l| l.unknown_ns));
    Explanation {
        serving: serving.map(|(name, _)| name),
        error_ns: trace.error_ns,
        quantiles_ns: asked.quantiles.iter().filter_map(|p| all.quantile(*p)).collect(),
        late_from_ns,
        excess_ns,
        queue_ns,
        unknown_ns,
        hole_ns,
        explained_ppm: ppm(excess_ns - queue_ns - unknown_ns, excess_ns),
        null_ppm,
        service,
        causes,
        late,
    }
}

/// The hidden cost of each cause beyond its slices, and the time that slices took from each packet. Computed in the
/// same way for the trace as it is and for the null: causes that packets met by chance have no hidden cost of their
/// own.
fn met(
    replayed: &Replayed<'_>,
    slices: &[Slice],
    events: &[Event],
    groups: &Groups,
    error_ns: i64,
) -> (Vec<hidden::Cost>, Vec<Taken>) {
    let costs = hidden::costs(replayed.passages, slices, events, groups);
    let wide = hidden::widened(slices, events, &costs, groups);
    let found = taken(replayed.passages, &wide, error_ns);
    (costs, found)
}

/// The causes in their order.
fn causes<'a>(
    split: &'a Split,
    slices: &[Slice],
    events: &'a [Event],
    groups: &'a Groups,
    passages: &'a [Passage],
) -> impl Iterator<Item = Cause> + 'a {
    let mut net_ns = vec![Vec::new(); groups.len()];
    for slice in slices {
        net_ns[groups.of(slice.event)].push(slice.end_ns - slice.start_ns);
    }
    let all_ns: i64 = split.late.iter().map(|late| late.excess_ns).sum();
    let of_causes = groups.events(events).into_iter().zip(net_ns);
    of_causes.enumerate().map(move |(index, (of_cause, net_ns))| {
        let (late_packets, excess_ns) = split.parts[index];
        let (kind, name, detail) = groups.key(index).clone();
        Cause {
            signature: known::at_start(&of_cause, run(passages))
                .or_else(|| known::recognise(&of_cause, &net_ns)),
            events: of_cause.len() as u64,
            late_packets,
            excess_ns,
            share_ppm: ppm(excess_ns, all_ns),
            hidden_ns: 0,
            without_ns: split.without_ns[index].clone(),
            sender: sender(&of_cause),
            kind,
            name,
            detail,
        }
    })
}

/// The sender of most of the events, with its number of events.
fn sender(events: &[&Event]) -> Option<(Sender, u64)> {
    let mut counts: BTreeMap<(u32, &str, Option<&str>), u64> = BTreeMap::new();
    for sender in events.iter().filter_map(|event| event.sender.as_ref()) {
        let key = (sender.pid, sender.comm.as_str(), sender.function.as_deref());
        *counts.entry(key).or_default() += 1;
    }
    let ((pid, comm, function), count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let function = function.map(ToOwned::to_owned);
    Some((Sender { pid, comm: comm.to_owned(), function, sent_ns: None }, count))
}

/// Share of the excess, in millionths, that the trace explains by chance: the mean over copies of the trace that are
/// shifted in time, cyclically within the span that it covers.
fn null_ppm(
    replayed: &Replayed<'_>,
    slices: &[Slice],
    events: &[Event],
    groups: &Groups,
    error_ns: i64,
    asked: &ExplanationOptions,
) -> Option<i64> {
    let (first_ns, last_ns) = (slices.first()?.start_ns, slices.last()?.end_ns);
    let span_ns = (last_ns - first_ns).max(1);
    let all = groups.as_one();
    let runs: Vec<i64> = asked
        .shifts_ns
        .iter()
        .map(|shift_ns| {
            let mut shifted: Vec<Slice> = slices
                .iter()
                .map(|slice| {
                    let moved_ns = (slice.start_ns - first_ns + shift_ns).rem_euclid(span_ns);
                    let start_ns = first_ns + moved_ns;
                    Slice { start_ns, end_ns: start_ns + slice.end_ns - slice.start_ns, ..*slice }
                })
                .collect();
            shifted.sort_by_key(|slice| slice.start_ns);
            let (_, found) = met(replayed, &shifted, events, groups, error_ns);
            let split = Split::of(replayed, &found, &all, &[]);
            let excess_ns = split.late.iter().map(|late| late.excess_ns).sum();
            ppm(split.parts.iter().map(|(_, ns)| ns).sum(), excess_ns)
        })
        .collect();
    let count = i64::try_from(runs.len()).unwrap_or(i64::MAX);
    (count > 0).then(|| runs.iter().sum::<i64>() / count)
}

fn ranked(latencies: impl Iterator<Item = i64>) -> Ranked {
    let mut histogram = Histogram::new();
    histogram.record_all(latencies);
    Ranked::new(&histogram)
}

fn ppm(part: i64, whole: i64) -> i64 {
    let ppm = i128::from(part) * 1_000_000 / i128::from(whole.max(1));
    i64::try_from(ppm).unwrap_or(i64::MAX)
}

/// From the first arrival to the last departure.
fn run(passages: &[Passage]) -> (i64, i64) {
    let first_ns = passages.iter().map(|passage| passage.arrival_ns).min().unwrap_or(0);
    (first_ns, passages.last().map_or(first_ns, |passage| passage.departure_ns))
}
