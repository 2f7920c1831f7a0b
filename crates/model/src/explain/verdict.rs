//! The causes of each late packet, and the tail without each cause.

use super::absence;
use super::hidden;
use super::queue::{Passage, Service, passages};
use super::replay::{Taken, replay, taken};
use super::serving;
use super::signatures::{self, Signature};
use super::timeline::{Slice, timeline};
use super::usual;
use crate::stats::{Histogram, Probability, Ranked};
use crate::trace::{Event, Kind, Sender};
use serde::Serialize;
use std::collections::BTreeMap;

/// A trace and how far its times may be from the packets'.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// Its events.
    pub events: &'a [Event],
    /// The CPU that serves the packets.
    pub cpu: u32,
    /// Error bound of its times on the packets' axis.
    pub error_ns: i64,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
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
    /// How often it took the CPU in the run.
    pub events: u64,
    /// Late packets that it made later.
    pub late_packets: u64,
    /// Its part of the late packets' excess.
    pub excess_ns: i64,
    /// That part, in millionths.
    pub share_ppm: i64,
    /// What an event of it costs beyond the time that the trace shows: the way in and out of an interrupt, and the
    /// hypervisor's part of it.
    pub hidden_ns: i64,
    /// The asked quantiles without it.
    pub without_ns: Vec<i64>,
    /// Who sent it most often, and how often.
    pub sender: Option<(Sender, u64)>,
    /// What it is, if that is recognised.
    pub signature: Option<Signature>,
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
    /// Causes (as an index of the verdict's) with their part of it.
    pub causes: Vec<(usize, i64)>,
    /// Part spent behind other packets that needed no more than their own service.
    pub queue_ns: i64,
    /// Part that nothing in the trace accounts for.
    pub unknown_ns: i64,
}

/// Why packets were late.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The service process behind the stamps.
    pub service: Service,
    /// The thread that serves packets; its time is no theft. None where the kernel itself does.
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
    /// The late packets, in the order in which they left.
    pub late: Vec<Late>,
}

/// What events are one cause.
type Key = (Kind, String, Option<String>);

fn key(event: &Event) -> Key {
    (event.kind, event.name.clone(), event.detail.clone())
}

/// Names the causes of the late packets among samples (ingress stamp, egress stamp).
#[must_use]
pub fn verdict(samples: &[(i64, i64)], trace: Trace<'_>, asked: &Asked) -> Verdict {
    let (service, passages) = passages(samples);
    let egress_ns = samples.iter().map(|(_, egress_ns)| *egress_ns);
    let serving = serving::serving(trace.events, trace.cpu, egress_ns, trace.error_ns);
    let events = match &serving {
        Some(thread) => absence::others(trace.events, trace.cpu, thread, samples.len()),
        None => trace.events.to_vec(),
    };
    let trace = Trace { events: &events, ..trace };
    let slices = timeline(trace.events, trace.cpu);
    let mut keys: BTreeMap<Key, usize> = BTreeMap::new();
    for slice in &slices {
        let next = keys.len();
        keys.entry(key(&trace.events[slice.event])).or_insert(next);
    }
    let cause_of = |event: usize| keys.get(&key(&trace.events[event])).copied().unwrap_or(0);
    let slices = usual::beyond(slices, &passages, &service, keys.len(), cause_of);
    // The same, too, for the null: what packets met by chance has no cost of its own.
    let raw = slices;
    let hidden = hidden::costs(&passages, &raw, trace.events, keys.len(), cause_of);
    let slices = hidden::widened(&raw, trace.events, &hidden, cause_of);
    let found = taken(&passages, &service, &slices, trace.error_ns);
    let ranked = ranked(passages.iter().map(Passage::latency_ns));
    let late_from_ns = ranked.quantile(asked.late_from).unwrap_or(0);
    let whole = Split::of(&passages, &service, &found, keys.len(), cause_of, late_from_ns);
    let mut told: Vec<(usize, Cause)> = keys
        .clone()
        .into_iter()
        .map(|(key, index)| {
            let of_key = cause(key, index, &whole, &raw, trace, asked, &passages);
            (index, Cause { hidden_ns: hidden[index], ..of_key })
        })
        .collect();
    told.sort_by_key(|(_, cause)| std::cmp::Reverse(cause.excess_ns));
    let mut place = vec![0; told.len()];
    for (position, (index, _)) in told.iter().enumerate() {
        place[*index] = position;
    }
    let causes: Vec<Cause> = told.into_iter().map(|(_, cause)| cause).collect();
    let hole_ns = causes.iter().filter(|c| c.kind == Kind::Hole).map(|c| c.excess_ns).sum();
    let mut late = whole.late;
    for packet in &mut late {
        for (index, _) in &mut packet.causes {
            *index = place[*index];
        }
    }
    let sum = |part: fn(&Late) -> i64| late.iter().map(part).sum::<i64>();
    let (excess_ns, queue_ns, unknown_ns) =
        (sum(|l| l.excess_ns), sum(|l| l.queue_ns), sum(|l| l.unknown_ns));
    Verdict {
        service,
        serving: serving.map(|(name, _)| name),
        error_ns: trace.error_ns,
        quantiles_ns: asked.quantiles.iter().filter_map(|p| ranked.quantile(*p)).collect(),
        late_from_ns,
        excess_ns,
        queue_ns,
        unknown_ns,
        hole_ns,
        explained_ppm: ppm(excess_ns - queue_ns - unknown_ns, excess_ns),
        null_ppm: null_ppm(
            &passages,
            &service,
            &raw,
            trace,
            asked,
            late_from_ns,
            keys.len(),
            cause_of,
        ),
        causes,
        late,
    }
}

/// The excess of late packets split among causes, queue and unknown.
struct Split {
    late: Vec<Late>,
    /// Latencies without each cause.
    without: Vec<Ranked>,
}

impl Split {
    fn of(
        passages: &[Passage],
        service: &Service,
        found: &[Taken],
        causes: usize,
        cause_of: impl Fn(usize) -> usize,
        late_from_ns: i64,
    ) -> Self {
        let mut all_less = vec![0; passages.len()];
        for taken in found {
            all_less[taken.packet] += taken.ns;
        }
        let none = replay(passages, service, &all_less);
        let ideal = ideal(passages, service);
        let late: Vec<usize> =
            (0..passages.len()).filter(|n| passages[*n].latency_ns() >= late_from_ns).collect();
        let mut savings: Vec<Vec<(usize, i64)>> = vec![Vec::new(); late.len()];
        let mut without = Vec::with_capacity(causes);
        // One cause at a time: a run has millions of packets, and a trace hundreds of causes.
        let mut less = vec![0; passages.len()];
        for cause in 0..causes {
            let of_cause = || found.iter().filter(|taken| cause_of(taken.event) == cause);
            of_cause().for_each(|taken| less[taken.packet] += taken.ns);
            let departures = replay(passages, service, &less);
            of_cause().for_each(|taken| less[taken.packet] = 0);
            for (savings, n) in savings.iter_mut().zip(&late) {
                let saved_ns = passages[*n].departure_ns - departures[*n];
                if saved_ns > 0 {
                    savings.push((cause, saved_ns));
                }
            }
            let latencies = departures.iter().zip(passages);
            without.push(ranked(latencies.map(|(left_ns, passage)| left_ns - passage.arrival_ns)));
        }
        let late = late
            .iter()
            .zip(&savings)
            .map(|(n, savings)| split(&passages[*n], service, savings, none[*n], ideal[*n]))
            .collect();
        Self { late, without }
    }
}

/// Departures when each packet takes the base service at most: what is left is the load's own queue.
fn ideal(passages: &[Passage], service: &Service) -> Vec<i64> {
    let less: Vec<i64> =
        passages.iter().map(|passage| (passage.taken_ns() - service.service_ns).max(0)).collect();
    replay(passages, service, &less)
}

/// One packet's excess: to causes what the replay without any of them saves, in proportion to what each
/// saves alone (two that overlap in effect share it); to the load what is left at base service; the rest
/// is unknown.
fn split(
    passage: &Passage,
    service: &Service,
    savings: &[(usize, i64)],
    none_ns: i64,
    ideal_ns: i64,
) -> Late {
    let excess_ns = (passage.latency_ns() - service.base_ns).max(0);
    let queue_ns = (ideal_ns - passage.arrival_ns - service.base_ns).clamp(0, excess_ns);
    let explained_ns = (passage.departure_ns - none_ns).clamp(0, excess_ns - queue_ns);
    let all = savings.iter().map(|(_, ns)| i128::from(*ns)).sum::<i128>().max(1);
    let mut causes: Vec<(usize, i64)> = Vec::new();
    let (mut before, mut given_ns) = (0_i128, 0);
    for (cause, saved_ns) in savings {
        // Cumulated and rounded down, so that the parts add up to the whole.
        before += i128::from(*saved_ns);
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

fn cause(
    (kind, name, detail): Key,
    index: usize,
    split: &Split,
    slices: &[Slice],
    trace: Trace<'_>,
    asked: &Asked,
    passages: &[Passage],
) -> Cause {
    let parts =
        || split.late.iter().flat_map(|late| &late.causes).filter(|(cause, _)| *cause == index);
    let excess_ns = parts().map(|(_, ns)| ns).sum();
    let all_ns: i64 = split.late.iter().map(|late| late.excess_ns).sum();
    let ranked = &split.without[index];
    let events: Vec<&Event> = trace
        .events
        .iter()
        .filter(|event| event.cpu == trace.cpu)
        .filter(|event| event.kind == kind && event.name == name && event.detail == detail)
        .collect();
    let net_ns: Vec<i64> = slices
        .iter()
        .filter(|slice| {
            let event = &trace.events[slice.event];
            event.kind == kind && event.name == name && event.detail == detail
        })
        .map(|slice| slice.end_ns - slice.start_ns)
        .collect();
    Cause {
        signature: signatures::at_start(&events, run(passages))
            .or_else(|| signatures::recognise(&events, &net_ns)),
        events: events.len() as u64,
        late_packets: parts().count() as u64,
        excess_ns,
        share_ppm: ppm(excess_ns, all_ns),
        hidden_ns: 0,
        without_ns: asked.quantiles.iter().filter_map(|p| ranked.quantile(*p)).collect(),
        sender: sender(&events),
        kind,
        name,
        detail,
    }
}

/// Who sent most of the events.
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

/// How much the trace explains when it is shifted in time, around the ends of what it covers: the mean
/// of the shifts. What chance explains.
fn null_ppm(
    passages: &[Passage],
    service: &Service,
    slices: &[Slice],
    trace: Trace<'_>,
    asked: &Asked,
    late_from_ns: i64,
    causes: usize,
    cause_of: impl Fn(usize) -> usize + Copy,
) -> Option<i64> {
    let (first_ns, last_ns) = (slices.first()?.start_ns, slices.last()?.end_ns);
    let span_ns = (last_ns - first_ns).max(1);
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
            let hidden = hidden::costs(passages, &shifted, trace.events, causes, cause_of);
            let shifted = hidden::widened(&shifted, trace.events, &hidden, cause_of);
            let found = taken(passages, service, &shifted, trace.error_ns);
            let split = Split::of(passages, service, &found, 1, |_| 0, late_from_ns);
            let part = |of: fn(&Late) -> i64| split.late.iter().map(of).sum::<i64>();
            let causes_ns = part(|late| late.causes.iter().map(|(_, ns)| ns).sum());
            ppm(causes_ns, part(|late| late.excess_ns))
        })
        .collect();
    let count = i64::try_from(runs.len()).unwrap_or(i64::MAX);
    (count > 0).then(|| runs.iter().sum::<i64>() / count)
}

fn ranked(latencies: impl Iterator<Item = i64>) -> Ranked {
    let mut histogram = Histogram::new();
    latencies.for_each(|ns| histogram.record(ns));
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
