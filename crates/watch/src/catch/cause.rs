//! Causes of a delay in this host, by the trace of its CPUs.

use super::parts::{Part, Share};
use super::seen::Record;
use serde::Serialize;
use std::collections::BTreeMap;
use tailtrim_cause::explanation::{Explanation, ExplanationOptions, Late, Trace, explain};
use tailtrim_stats::Probability;
use tailtrim_trace::{Event, Kind};
use tailtrim_tracer::trace::Around;

/// Parts of this host that take less of a delay, in millionths, are not explained but the network is: the kernel may have
/// taken the packet late from the driver.
const LEAST_PPM: i64 = 100_000;

/// So many probes before and behind the late one tell what is usual; with more, a busy host's trace takes long.
const BEFORE: usize = 400;
const BEHIND: usize = 100;

/// An explanation, as in a run's `worst.json`.
#[derive(Debug, Serialize)]
pub(super) struct Host {
    cpu: u32,
    holes: usize,
    missing: Vec<String>,
    quantiles: [&'static str; 0],
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
struct Verdict {
    #[serde(flatten)]
    explanation: Explanation,
    late: Vec<Late>,
}

/// The part of a late round trip that the trace is asked about.
pub(super) fn part_of(shares: &[Share]) -> Option<Part> {
    let own = |share: &&Share| {
        matches!(share.name, Part::OwnHostBefore | Part::OwnHostBehind)
            && share.share_ppm >= LEAST_PPM
    };
    let network = |share: &&Share| share.name == Part::Network && share.share_ppm >= LEAST_PPM;
    let found = shares.iter().find(own).or_else(|| shares.iter().find(network));
    found.map(|share| share.name)
}

/// Explains a part of a late round trip. `of_target` are all probes of its target around it, of which `usual_ns` is what
/// the network usually takes; `all` those of all targets. `sender` is the thread that sends and receives.
pub(super) fn explained(
    part: Part,
    late: &Record,
    all: &[Record],
    usual_ns: Option<i64>,
    around: &Around,
    sender: u32,
) -> Option<Host> {
    let error_ns = around.header.error_ns;
    let name = format!("pid {sender}");
    let serves = |event: &&Event| match part {
        Part::Network => event.kind == Kind::Softirq && event.name == "NET_RX",
        _ => event.kind == Kind::Thread && event.detail.as_deref() == Some(&name),
    };
    let mut serving: BTreeMap<i64, &Event> = BTreeMap::new();
    for event in around.events.iter().filter(serves) {
        serving.insert(event.start_ns, event);
    }
    // The kernel's times and those of the trace differ by the error bound.
    let at = |ns: i64| {
        let (_, event) = serving.range(..=ns + error_ns).next_back()?;
        (event.end_ns + error_ns >= ns).then_some(event.cpu)
    };
    let (begin_ns, end_ns) = passage(part, late, usual_ns)?;
    let cpu = at(end_ns)?;
    let same_target = |record: &&Record| part != Part::Network || record.place == late.place;
    let mut samples: Vec<(i64, i64)> = all
        .iter()
        .filter(same_target)
        .filter_map(|record| passage(part, record, usual_ns))
        .filter(|(_, end_ns)| at(*end_ns) == Some(cpu))
        .collect();
    samples.sort_unstable();
    let place = samples.partition_point(|sample| *sample < (begin_ns, end_ns));
    let samples = &samples[place.saturating_sub(BEFORE)..samples.len().min(place + BEHIND)];
    let from_ns = samples.iter().map(|(begin_ns, _)| *begin_ns).min()?;
    let until_ns = samples.iter().map(|(_, end_ns)| *end_ns).max()?;
    // No thread keeps the kernel from taking packets from the driver.
    let in_the_way = |event: &&Event| {
        event.cpu == cpu
            && event.end_ns >= from_ns - error_ns
            && event.start_ns <= until_ns + error_ns
            && (part != Part::Network || event.kind != Kind::Thread)
    };
    let events: Vec<Event> = around.events.iter().filter(in_the_way).cloned().collect();
    let trace = Trace { events: &events, cpu, error_ns, throttled: &around.header.throttled };
    let options = ExplanationOptions {
        late_from: Probability::P50,
        quantiles: Vec::new(),
        shifts_ns: Vec::new(),
    };
    let mut explanation = explain(samples, trace, &options);
    let (all_causes, all_late) =
        (std::mem::take(&mut explanation.causes), std::mem::take(&mut explanation.late));
    let mut told: Vec<Late> =
        all_late.into_iter().filter(|one| one.arrival_ns == begin_ns).take(1).collect();
    // Causes of others that were around it are left out.
    let mut causes = Vec::new();
    for (index, _) in told.iter_mut().flat_map(|one| &mut one.causes) {
        causes.push(all_causes[*index].clone());
        *index = causes.len() - 1;
    }
    explanation.causes = causes;
    Some(Host {
        cpu,
        holes: events.iter().filter(|event| event.kind == Kind::Hole).count(),
        missing: around.header.missing.clone(),
        quantiles: [],
        verdict: Verdict { explanation, late: told },
    })
}

/// When a part of a round trip began and ended in this host. Of the network it is the time that it took longer than
/// usual, at the end of which the kernel had the reply.
fn passage(part: Part, record: &Record, usual_ns: Option<i64>) -> Option<(i64, i64)> {
    let stamps = record.stamps();
    match part {
        Part::OwnHostBefore => Some((stamps.app_send_ns, stamps.sent_ns?)),
        Part::OwnHostBehind => Some((stamps.received_ns?, stamps.app_receive_ns?)),
        Part::Network => {
            let parts = super::parts::Parts::of(&stamps)?;
            let more_ns = parts.of_part(Part::Network)? - usual_ns?;
            let received_ns = stamps.received_ns?;
            Some((received_ns - more_ns.max(1), received_ns))
        }
        Part::Residence => None,
    }
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
