//! Metrics of devices that are tapped.

use super::{
    Buckets, Counter, Family, Histogram, Metrics, OfOutcome, OfTarget, Real, RealCounter, Registry,
    TargetMetrics,
};
use crate::exemplar::ProbeCounter;
use crate::objective::Objective;
use crate::state::Share;
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTap {
    target: String,
    tap: &'static str,
}

const ENTERED: [&str; 8] =
    ["matched", "disturbed", "lost", "beyond_window", "duplicate", "copy", "unstamped", "cut"];

const LEFT: [&str; 5] = ["matched", "unmatched", "copy", "unstamped", "cut"];

const TAPS: [&str; 2] = ["ingress", "egress"];

/// Metrics of all devices.
pub(super) struct TapFamilies {
    entered: Family<OfOutcome, Counter>,
    left: Family<OfOutcome, Counter>,
    latencies: Family<OfTarget, Histogram, Buckets>,
    foreign: Family<OfTarget, Counter>,
    dropped: Family<OfTap, Counter>,
    tapped: Family<OfTarget, RealCounter>,
}

/// The metrics of one device, looked up once.
pub(crate) struct TapMetrics {
    entered: [Counter; ENTERED.len()],
    left: [Counter; LEFT.len()],
    latencies: Histogram,
    foreign: Counter,
    dropped: [Counter; 2],
    tapped: RealCounter,
    objectives: Vec<(ProbeCounter, Counter)>,
}

impl TapFamilies {
    pub(super) fn new(edges: Vec<f64>) -> Self {
        Self {
            entered: Family::default(),
            left: Family::default(),
            latencies: Family::new_with_constructor(Buckets(edges)),
            foreign: Family::default(),
            dropped: Family::default(),
            tapped: Family::default(),
        }
    }

    pub(super) fn register(&self, add: &mut Registry) {
        add.register("packets", "Packets that entered a device, by outcome", self.entered.clone());
        add.register("egress_packets", "Packets that left it, by outcome", self.left.clone());
        add.register(
            "latency_seconds",
            "Latencies of the packets that passed it",
            self.latencies.clone(),
        );
        add.register(
            "foreign",
            "Frames that the filter of its taps did not take",
            self.foreign.clone(),
        );
        add.register(
            "meter_tap_dropped",
            "Frames that the kernel dropped at a tap",
            self.dropped.clone(),
        );
        add.register(
            "meter_tapped_seconds",
            "Time in which both taps recorded",
            self.tapped.clone(),
        );
    }

    pub(super) fn forget(&self, name: &str) {
        let target = || name.to_owned();
        for outcome in ENTERED {
            self.entered.remove(&OfOutcome { target: target(), outcome });
        }
        for outcome in LEFT {
            self.left.remove(&OfOutcome { target: target(), outcome });
        }
        for tap in TAPS {
            self.dropped.remove(&OfTap { target: target(), tap });
        }
        let label = OfTarget { target: target() };
        self.latencies.remove(&label);
        self.foreign.remove(&label);
        self.tapped.remove(&label);
    }
}

impl Metrics {
    /// The metrics of a device that are told with its minutes; of the others only the states of its objectives.
    pub(crate) fn tap(&self, name: &str, objectives: &[Objective]) -> TargetMetrics {
        let label = OfTarget { target: name.to_owned() };
        TargetMetrics {
            outcomes: Vec::new(),
            replies: Vec::new(),
            round_trips: self.taps.latencies.get_or_create(&label).clone(),
            // Nothing departs.
            lateness: Real::default(),
            objectives: self.objectives(name, objectives),
        }
    }

    /// The metrics of a device that are told with its packets.
    pub(crate) fn packets(&self, name: &str, objectives: &[Objective]) -> TapMetrics {
        let (taps, target) = (&self.taps, || name.to_owned());
        let entered =
            |outcome| taps.entered.get_or_create(&OfOutcome { target: target(), outcome }).clone();
        let left =
            |outcome| taps.left.get_or_create(&OfOutcome { target: target(), outcome }).clone();
        let dropped = |tap| taps.dropped.get_or_create(&OfTap { target: target(), tap }).clone();
        let label = OfTarget { target: target() };
        let objectives = self.objectives(name, objectives).into_iter();
        TapMetrics {
            entered: ENTERED.map(entered),
            left: LEFT.map(left),
            latencies: taps.latencies.get_or_create(&label).clone(),
            foreign: taps.foreign.get_or_create(&label).clone(),
            dropped: TAPS.map(dropped),
            tapped: taps.tapped.get_or_create(&label).clone(),
            objectives: objectives.map(|objective| (objective.bad, objective.counted)).collect(),
        }
    }
}

impl TapMetrics {
    /// Counts packets that entered.
    pub(crate) fn entered(&self, outcome: &str, packets: u64) {
        count(&self.entered, &ENTERED, outcome, packets);
    }

    /// Counts packets that left.
    pub(crate) fn left(&self, outcome: &str, packets: u64) {
        count(&self.left, &LEFT, outcome, packets);
    }

    /// Counts the latency of a packet.
    pub(crate) fn observe(&self, latency_ns: i64) {
        self.latencies.observe(latency_ns as f64 / 1e9);
    }

    /// Counts bad packets, and those that count, of each objective.
    pub(crate) fn judged(&self, shares: &[Share]) {
        for ((bad, counted), share) in self.objectives.iter().zip(shares) {
            bad.count(share.bad);
            counted.inc_by(share.packets);
        }
    }

    /// Counts frames that were not taken, and those that each tap dropped.
    pub(crate) fn lost(&self, foreign: u64, dropped: [u64; 2]) {
        self.foreign.inc_by(foreign);
        self.dropped.iter().zip(dropped).for_each(|(counter, frames)| {
            counter.inc_by(frames);
        });
    }

    /// Counts time in which both taps recorded.
    pub(crate) fn tapped(&self, ns: i64) {
        self.tapped.inc_by(ns.max(0) as f64 / 1e9);
    }
}

fn count(counters: &[Counter], names: &[&str], name: &str, packets: u64) {
    for (counter, _) in counters.iter().zip(names).filter(|(_, of)| **of == name) {
        counter.inc_by(packets);
    }
}
