//! Metrics for Prometheus and others, by the official client library.

mod format;
mod taps;

use crate::change::Gauges;
use crate::exemplar::{Probe, ProbeCounter};
use crate::minute::{Arrivals, Health, Outcome};
use crate::objective::Objective;
use crate::state::Share;
use crate::subject::Subject;
pub(crate) use format::Format;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prometheus_client::encoding::{EncodeLabelSet, prometheus_protobuf, prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::AtomicU64;
use tailtrim_compare::{Promise, Promised};
use taps::TapFamilies;
pub(crate) use taps::TapMetrics;

/// Resolution of the native histograms: buckets grow by 2^(1/256), 0.27 %, the finest that there is.
const SCHEMA: i8 = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTarget {
    target: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    target: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    target: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfObjective {
    target: String,
    objective: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    target: String,
    objective: String,
    state: &'static str,
}

type Real = Gauge<f64, AtomicU64>;
type RealCounter = Counter<f64, AtomicU64>;

/// Edges of classic buckets, for those who cannot read native histograms: the deadlines of all objectives.
#[derive(Clone)]
struct Buckets(Vec<f64>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        let native = NativeHistogramConfig::with_schema(SCHEMA);
        Histogram::new_classic_and_native(self.0.iter().copied(), native)
    }
}

/// All metrics of a watch.
pub(crate) struct Metrics {
    registry: Registry,
    probes: Family<OfOutcome, ProbeCounter>,
    replies: Family<OfKind, Counter>,
    round_trips: Family<OfTarget, Histogram, Buckets>,
    bad: Family<OfObjective, ProbeCounter>,
    counted: Family<OfObjective, Counter>,
    limits: Family<OfObjective, Real>,
    states: Family<OfState, Gauge>,
    lateness: Family<OfTarget, Real>,
    taps: TapFamilies,
    catches: Family<OfResult, Counter>,
    pub(crate) changes: Gauges,
    pub(crate) meter: Meter,
}

/// Faults of the meter itself, so that alerts can leave them out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    pub(crate) clock_steps: Counter,
    pub(crate) stolen_seconds: RealCounter,
    pub(crate) lines_written: Counter,
    pub(crate) lines_unwritten: Counter,
    pub(crate) reloads_refused: Counter,
    pub(crate) last_minute: Gauge,
}

/// The metrics of one target, looked up once.
pub(crate) struct TargetMetrics {
    outcomes: Vec<(&'static str, ProbeCounter)>,
    replies: Vec<(&'static str, Counter)>,
    round_trips: Histogram,
    lateness: Real,
    objectives: Vec<ObjectiveMetrics>,
}

struct ObjectiveMetrics {
    bad: ProbeCounter,
    counted: Counter,
    states: [(Promise, Gauge); 3],
}

const OUTCOMES: [&str; 10] = [
    "answered",
    "unstamped",
    "disturbed",
    "late",
    "lost",
    "altered",
    "undelivered",
    "refused",
    "missed",
    "cut",
];

const KINDS: [&str; 8] = [
    "late",
    "duplicate",
    "stray",
    "altered",
    "malformed",
    "unauthentic",
    "reordered",
    "overflowed",
];

const STATES: [(Promise, &str); 3] =
    [(Promise::Met, "met"), (Promise::NotMet, "not met"), (Promise::NotDecided, "not decided")];

impl Metrics {
    /// Metrics without targets yet; `edges` are those of classic buckets, in seconds.
    pub(crate) fn new(edges: Vec<f64>) -> Self {
        let mut registry = Registry::with_prefix("tailtrim");
        let taps = TapFamilies::new(edges.clone());
        let round_trips = Family::new_with_constructor(Buckets(edges));
        let (probes, replies) = (Family::default(), Family::default());
        let (bad, counted, limits) = (Family::default(), Family::default(), Family::default());
        let (states, lateness, meter) = (Family::default(), Family::default(), Meter::default());
        let catches = Family::default();
        let mut add = registry.sub_registry_with_prefix("watch");
        let add = &mut add;
        add.register("probes", "Probes by outcome", Family::clone(&probes));
        add.register(
            "replies",
            "Datagrams beside first replies in time, by kind",
            Family::clone(&replies),
        );
        add.register(
            "round_trip_seconds",
            "Round trips of answered probes, without the far host's residence where it is known",
            Family::clone(&round_trips),
        );
        add.register("slo_bad", "Probes that were bad for an objective", Family::clone(&bad));
        add.register("slo", "Probes that counted for an objective", Family::clone(&counted));
        add.register("slo_limit_ratio", "Largest share of bad probes", Family::clone(&limits));
        add.register(
            "slo_state",
            "Whether the limit was kept in the last hour: 1 for one state",
            Family::clone(&states),
        );
        add.register(
            "meter_lateness_seconds",
            "Largest departure lateness of the last minute",
            Family::clone(&lateness),
        );
        taps.register(add);
        let told = "Probes beyond a limit, by what became of them";
        add.register("catches", told, Family::clone(&catches));
        let changes = Gauges::register(add);
        let of = &meter;
        add.register("meter_clock_steps", "Steps of this host's clock", of.clock_steps.clone());
        add.register(
            "meter_stolen_seconds",
            "CPU time that the hypervisor gave to others",
            of.stolen_seconds.clone(),
        );
        add.register("meter_lines_written", "Minutes of targets on disk", of.lines_written.clone());
        add.register(
            "meter_lines_unwritten",
            "Minutes of targets that found no room",
            of.lines_unwritten.clone(),
        );
        add.register(
            "meter_reloads_refused",
            "Files of targets with an error",
            of.reloads_refused.clone(),
        );
        add.register(
            "meter_last_minute_timestamp_seconds",
            "Begin of the last minute on disk",
            of.last_minute.clone(),
        );
        Self {
            registry,
            probes,
            replies,
            round_trips,
            bad,
            counted,
            limits,
            states,
            lateness,
            taps,
            catches,
            changes,
            meter,
        }
    }

    fn objectives(&self, name: &str, objectives: &[Objective]) -> Vec<ObjectiveMetrics> {
        let target = || name.to_owned();
        let of = objectives.iter().map(|objective| {
            let label = OfObjective { target: target(), objective: objective.to_string() };
            self.limits.get_or_create(&label).set(objective.limit());
            let states = STATES.map(|(promise, state)| {
                let objective = objective.to_string();
                let label = OfState { target: target(), objective, state };
                let gauge = self.states.get_or_create(&label).clone();
                gauge.set((promise == Promise::NotDecided).into());
                (promise, gauge)
            });
            ObjectiveMetrics {
                bad: self.bad.get_or_create(&label).clone(),
                counted: self.counted.get_or_create(&label).clone(),
                states,
            }
        });
        of.collect()
    }

    /// The metrics of a target, which begin at 0.
    pub(crate) fn target(&self, name: &str, objectives: &[Objective]) -> TargetMetrics {
        let target = || name.to_owned();
        let outcomes = OUTCOMES.map(|outcome| {
            let label = OfOutcome { target: target(), outcome };
            (outcome, self.probes.get_or_create(&label).clone())
        });
        let replies = KINDS.map(|kind| {
            let label = OfKind { target: target(), kind };
            (kind, self.replies.get_or_create(&label).clone())
        });
        let label = OfTarget { target: target() };
        TargetMetrics {
            outcomes: outcomes.into(),
            replies: replies.into(),
            round_trips: self.round_trips.get_or_create(&label).clone(),
            lateness: self.lateness.get_or_create(&label).clone(),
            objectives: self.objectives(name, objectives),
        }
    }

    /// Removes the metrics of a target, or of a device.
    pub(crate) fn forget(&self, plan: &Subject, tapped: bool) {
        let target = || plan.name.clone();
        if tapped {
            self.taps.forget(&plan.name);
        }
        for outcome in OUTCOMES {
            self.probes.remove(&OfOutcome { target: target(), outcome });
        }
        for kind in KINDS {
            self.replies.remove(&OfKind { target: target(), kind });
        }
        for objective in &plan.objectives {
            let label = OfObjective { target: target(), objective: objective.to_string() };
            self.bad.remove(&label);
            self.counted.remove(&label);
            self.limits.remove(&label);
            for (_, state) in STATES {
                let objective = objective.to_string();
                self.states.remove(&OfState { target: target(), objective, state });
            }
        }
        self.round_trips.remove(&OfTarget { target: target() });
        self.lateness.remove(&OfTarget { target: target() });
    }

    /// All metrics, as the library has them.
    pub(crate) fn families(&self) -> Result<Vec<MetricFamily>, fmt::Error> {
        prometheus_protobuf::encode(&self.registry)
    }

    /// Counts probes beyond a limit by what became of them.
    pub(crate) fn caught(&self, result: &'static str, probes: u64) {
        self.catches.get_or_create(&OfResult { result }).inc_by(probes);
    }

    /// All metrics in a format.
    pub(crate) fn encode(&self, format: Format) -> Result<Vec<u8>, fmt::Error> {
        let mut told = String::new();
        match format {
            Format::Protobuf => {
                return prometheus_protobuf::encode_to_vec(&self.registry).map_err(|_| fmt::Error);
            }
            Format::OpenMetrics => text::encode(&mut told, &self.registry)?,
            Format::Text => prometheus_text::encode(&mut told, &self.registry)?,
        }
        Ok(told.into_bytes())
    }
}

impl TargetMetrics {
    /// Counts a decided probe, due at a time of a minute, with its share in each objective.
    pub(crate) fn decided(&self, begin_ns: i64, due_us: i64, outcome: Outcome, shares: &[Share]) {
        let (at_us, latency_s) = match outcome {
            Outcome::Answered(sample) => {
                ((sample.begin_ns - begin_ns) / 1_000, sample.latency_ns as f64 / 1e9)
            }
            _ => (due_us, f64::INFINITY),
        };
        let probe = Probe { begin_ns, at_us, latency_s };
        for (name, counter) in &self.outcomes {
            if *name == outcome.name() {
                counter.add(probe);
            }
        }
        if matches!(outcome, Outcome::Answered(_)) {
            self.round_trips.observe(latency_s);
        }
        for (objective, share) in self.objectives.iter().zip(shares) {
            if share.bad > 0 {
                objective.bad.add(probe);
            }
            objective.counted.inc_by(share.packets);
        }
    }

    /// Counts other datagrams.
    pub(crate) fn arrived(&self, arrivals: &Arrivals) {
        let counts = [
            arrivals.late,
            arrivals.duplicate,
            arrivals.stray,
            arrivals.altered,
            arrivals.malformed,
            arrivals.unauthentic,
            arrivals.reordered,
            arrivals.overflowed,
        ];
        for ((_, counter), count) in self.replies.iter().zip(counts) {
            counter.inc_by(count);
        }
    }

    /// Ends a minute, with the verdict on each objective.
    pub(crate) fn minute(&self, health: &Health, verdicts: &[Promised]) {
        self.lateness.set(health.lateness_max_ns as f64 / 1e9);
        for (metrics, verdict) in self.objectives.iter().zip(verdicts) {
            for (of, gauge) in &metrics.states {
                gauge.set((*of == verdict.promise).into());
            }
        }
    }
}
