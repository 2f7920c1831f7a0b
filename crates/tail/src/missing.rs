//! Packets that are missing together: while a capture has none at all, as whole flows, or because they come later than the window.

use crate::clock::SampledSide;
use crate::clock::words::{moment, size};
use crate::matching::Window;
use crate::signature::{Signature, Signer};
use crate::summary::{Summary, Tap, Warning, grouped};
use crate::unmatched::{Frame, Kept};
use std::collections::HashMap;
use tailtrim_stats::Histogram;
use tailtrim_wire::flow::Flow;

/// A tap that is restarted lacks a second, about.
const HOLE_NS: i64 = 1_000_000_000;

/// A hole is so many times longer than the other gaps on average: of packets that come at random times, one gap in e¹⁰⁰ is.
const UNUSUAL: i64 = 100;

/// Fewest packets that are missing in a hole: half of the packets are lost, 32 in a row are by chance once in 4 billion times.
const FEWEST: u64 = 32;

/// Fewest packets of a flow that is missing as a whole.
const OF_FLOW: u64 = 4;

/// Flows that are missing as a whole are so many times more than chance makes.
const OVER_CHANCE: f64 = 10.0;

/// Part of the lost packets that matters.
const MATTERS: u64 = 10;

/// Fewest packets beyond the window: one may be one of those that are sent again and again.
const FEW: usize = 2;

/// Times at which a capture has no packet.
#[derive(Debug, Default)]
pub struct Holes {
    last_ns: Option<i64>,
    begun_ns: i64,
    packets: i64,
    long: Vec<[i64; 2]>,
}

impl Holes {
    /// Whether a capture with these gaps may have some, where the other one has so many packets that it lacks.
    #[must_use]
    pub fn are_likely(gaps: &Histogram, lacked: u64) -> bool {
        lacked >= FEWEST && gaps.max() >= Some(HOLE_NS)
    }

    /// Adds the next packet.
    pub fn add(&mut self, stamp_ns: i64) {
        let last_ns = self.last_ns.unwrap_or_else(|| {
            self.begun_ns = stamp_ns;
            stamp_ns
        });
        if stamp_ns.saturating_sub(last_ns) >= HOLE_NS {
            self.long.push([last_ns, stamp_ns]);
        }
        self.last_ns = Some(last_ns.max(stamp_ns));
        self.packets += 1;
    }

    /// Holes that are far longer than the other gaps, the longest one first.
    #[must_use]
    pub fn unusual(mut self) -> Vec<[i64; 2]> {
        let length = |hole: &[i64; 2]| hole[1].saturating_sub(hole[0]);
        let all_ns = self.last_ns.unwrap_or(0).saturating_sub(self.begun_ns);
        let others_ns = all_ns.saturating_sub(self.long.iter().map(length).sum());
        let others = self.packets - self.long.len() as i64;
        let mean_ns = others_ns / others.max(1);
        let are_few = self.long.len() as i64 * UNUSUAL <= others;
        self.long.retain(|hole| are_few && length(hole) > mean_ns.saturating_mul(UNUSUAL));
        self.long.sort_by_key(|hole| std::cmp::Reverse(length(hole)));
        self.long
    }
}

/// Says that the capture of a side (0: ingress) has no packets in these holes, where the other one has so many.
#[must_use]
pub fn of_holes(
    holes: &[[i64; 2]],
    side: usize,
    packets: u64,
    summary: &Summary,
) -> Option<Warning> {
    let longest = holes.first()?;
    let Summary { ingress, egress, taps, .. } = summary;
    let (lacked, tap, name, what) = if side == 1 {
        (ingress.lost, &taps.egress, "egress", ["entered", "lost"])
    } else {
        (egress.unmatched, &taps.ingress, "ingress", ["left", "unmatched"])
    };
    let missing = packets.min(lacked);
    if missing < FEWEST || missing * 10 < packets * 9 {
        return None;
    }
    let device = if side == 1 { "either the device forwarded nothing, or " } else { "" };
    let all = holes.len();
    let of = if all > 1 { format!(" (the longest of {all} holes)") } else { String::new() };
    let text = format!(
        "the {name} capture has no packet of any flow for {} from {}{of}: {} packets {} meanwhile, and {device}the {name} tap did \
         not record. {} of {} {} packets are these",
        size(longest[1].saturating_sub(longest[0])),
        moment(longest[0], first_ns(tap)),
        grouped(packets),
        what[0],
        grouped(missing),
        grouped(lacked),
        what[1],
    );
    Some(Warning { code: "hole", count: missing, text, invalidates: false })
}

fn first_ns(tap: &Tap) -> i64 {
    tap.first_ns.unwrap_or(0)
}

/// Packets of a flow, and how many of them left.
#[derive(Debug, Default, Clone, Copy)]
struct Passed {
    entered: u64,
    left: u64,
}

/// Packets of each capture by which flows are looked at, the first ones. More are read at egress, which they leave later.
pub const OF_FLOWS: [u64; 2] = [1 << 15, 1 << 16];

/// Says that some flows are missing as a whole, if chance would not have it so.
#[must_use]
pub fn of_flows(
    ingress: &SampledSide<Option<Flow>>,
    egress: &SampledSide<Option<Flow>>,
    summary: &Summary,
) -> Option<Warning> {
    let longest_ns = summary.latency_ns.max?.max(0);
    let (first_ns, last_ns) = egress.ends_ns()?;
    let recorded = first_ns..=last_ns.saturating_sub(longest_ns);
    let mut flows: HashMap<Flow, Passed> = HashMap::new();
    for (stamp_ns, flow, has_left) in ingress.passed(egress) {
        if let (Some(flow), true) = (flow, recorded.contains(&stamp_ns)) {
            let passed = flows.entry(flow).or_default();
            passed.entered += 1;
            passed.left += u64::from(has_left);
        }
    }
    let is_missing = |passed: &Passed| passed.left == 0 && passed.entered >= OF_FLOW;
    let mut missing: Vec<(&Flow, &Passed)> =
        flows.iter().filter(|(_, passed)| is_missing(passed)).collect();
    let others = || flows.values().filter(|passed| !is_missing(passed));
    let [entered, left]: [u64; 2] =
        [others().map(|flow| flow.entered).sum(), others().map(|flow| flow.left).sum()];
    let packets: u64 = missing.iter().map(|(_, passed)| passed.entered).sum();
    let lost = packets + entered - left;
    if packets < FEWEST || packets * MATTERS < lost || left == 0 {
        return None;
    }
    let loss = (entered - left) as f64 / entered as f64;
    let whole = |passed: &Passed| loss.powi(i32::try_from(passed.entered).unwrap_or(i32::MAX));
    let chance: f64 = flows.values().filter(|one| one.entered >= OF_FLOW).map(whole).sum();
    if (missing.len() as f64) < OVER_CHANCE * chance {
        return None;
    }
    missing.sort_unstable_by_key(|(flow, passed)| (std::cmp::Reverse(passed.entered), **flow));
    let text = format!(
        "{} of {} flows{} are missing as a whole at egress, such as {}: {} of {} packets that do not leave. The others lose {:.2} %. \
         Either something filters them (the device, or the capture), or they take another way (another link of LAG or ECMP)",
        grouped(missing.len() as u64),
        grouped(flows.len() as u64),
        if summary.ingress.packets > OF_FLOWS[0] { " of the first packets" } else { "" },
        missing[0].0,
        grouped(packets),
        grouped(lost),
        100.0 * loss,
    );
    Some(Warning { code: "missing_flows", count: packets, text, invalidates: false })
}

/// Says that packets in no pair came out later than the window, if frames of both sides are the same but for the time.
#[must_use]
pub fn of_window(
    kept: &Kept,
    signer: &Signer,
    window: Window,
    summary: &Summary,
) -> Option<Warning> {
    let [entered, left] = [&kept.lost, &kept.unmatched].map(|frames| once(frames, signer));
    let late = entered.into_iter().filter_map(|(signature, stamp_ns)| {
        let late_ns = left.get(&signature).copied()??.saturating_sub(stamp_ns?);
        (late_ns >= window.window_ns).then_some(late_ns)
    });
    let mut late: Vec<i64> = late.collect();
    late.sort_unstable();
    let (least_ns, most_ns) = (*late.first()?, *late.last()?);
    if late.len() < FEW {
        return None;
    }
    let (count, more) = (late.len() as u64, most_ns / 1_000_000_000 + 2);
    let text = format!(
        "{} of {} lost packets left after all, {} to {} after they entered, and are unmatched at egress: --window {more}s counts \
         their latency",
        grouped(count),
        grouped(summary.ingress.lost.max(count)),
        size(least_ns),
        size(most_ns),
    );
    Some(Warning { code: "left_after_all", count, text, invalidates: false })
}

/// The stamp of each packet; [`None`] of those whose signature comes again.
fn once(frames: &[Frame], signer: &Signer) -> HashMap<Signature, Option<i64>> {
    let mut found = HashMap::new();
    for frame in frames {
        let signature = signer.sign(frame.link, &frame.head).signature;
        found
            .entry(signature)
            .and_modify(|stamp_ns| *stamp_ns = None)
            .or_insert(Some(frame.stamp_ns));
    }
    found
}
