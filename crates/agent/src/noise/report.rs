//! Result of `noise`, as JSON and as source of the table.

use super::{Mode, Noise, Seen};
use serde::Serialize;
use tailtrim_stats::Histogram;
use tailtrim_trace::blame::{Gap, GapCause, Own, blame};
use tailtrim_trace::lines::Source;
use tailtrim_trace::noise::Distribution;
use tailtrim_tracer::noise::{Delta, Measured, THREAD};
use tailtrim_tracer::trace::Counts;

/// The result.
#[derive(Serialize)]
pub(super) struct NoiseReport {
    pub(super) mode: &'static str,
    pub(super) seconds: f64,
    /// Of the polling loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold_ns: Option<i64>,
    /// Of timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interval_ns: Option<i64>,
    /// Of timers: whether the CPUs were kept from falling asleep, as cyclictest does (`/dev/cpu_dma_latency`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_awake: Option<bool>,
    /// Reason why they were not, although that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_kept_awake: Option<String>,
    pub(super) counter_hz: u64,
    pub(super) cpus: Vec<OfCpu>,
    /// The trace behind the causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<Traced>,
    /// Reason why there is none: causes are not named then, and counters only suggest them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_trace: Option<String>,
    #[serde(skip)]
    pub(super) histograms: Vec<Histogram>,
}

#[derive(Serialize)]
pub(super) struct Traced {
    /// Source of the trace; with counters causes are only likely.
    pub(super) source: Source,
    pub(super) error_ns: i64,
    pub(super) missing: Vec<String>,
    pub(super) counts: Counts,
}

/// One CPU.
#[derive(Serialize)]
pub(super) struct OfCpu {
    pub(super) cpu: u32,
    /// Turns of the loop, or timers.
    pub(super) turns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shortest_turn_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped_timers: Option<u64>,
    #[serde(flatten)]
    pub(super) distribution: Distribution,
    /// Number of gaps that were only counted; the longest is among the numbers all the same.
    pub(super) gaps_not_kept: u64,
    pub(super) total_ns: i64,
    pub(super) causes: Vec<GapCause>,
    pub(super) counters: Delta,
    pub(super) context_switches_voluntary: u64,
    pub(super) context_switches_involuntary: u64,
    /// Time for which the thread waited for the CPU while others had it, by the scheduler's own count.
    pub(super) waited_ns: Option<u64>,
    pub(super) fifo: bool,
    pub(super) refused: Vec<String>,
}

impl NoiseReport {
    pub(super) fn new(request: &Noise, seen: &Seen) -> Self {
        let poll = request.mode == Mode::Poll;
        let mut histograms = Vec::new();
        let mut cpus = Vec::new();
        for measured in &seen.measured {
            let (of_cpu, histogram) = of_cpu(poll.then_some(request.threshold), seen, measured);
            cpus.push(of_cpu);
            histograms.push(histogram);
        }
        let span_ns =
            |measured: &Measured| seen.axis.ns(measured.span.1) - seen.axis.ns(measured.span.0);
        let longest_ns = seen.measured.iter().map(span_ns).max().unwrap_or(0);
        let trace = seen.trace.as_ref().ok().map(|trace| Traced {
            source: trace.header.source,
            error_ns: trace.header.error_ns,
            missing: trace.header.missing.clone(),
            counts: trace.counts.clone(),
        });
        Self {
            mode: if poll { "poll" } else { "timer" },
            seconds: longest_ns as f64 / 1e9,
            threshold_ns: poll.then_some(request.threshold),
            interval_ns: (!poll).then_some(request.interval),
            kept_awake: (!poll).then_some(matches!(seen.awake, Some(Ok(())))),
            not_kept_awake: seen.awake.as_ref().and_then(|held| held.as_ref().err().cloned()),
            counter_hz: seen.axis.frequency_hz(),
            cpus,
            trace,
            no_trace: seen.trace.as_ref().err().cloned(),
            histograms,
        }
    }
}

/// `threshold_ns` is that of a polling loop.
fn of_cpu(threshold_ns: Option<i64>, seen: &Seen, measured: &Measured) -> (OfCpu, Histogram) {
    let poll = threshold_ns.is_some();
    let threshold_ns = threshold_ns.unwrap_or(0);
    let cpu = measured.cpu;
    let at_ns = |value: u64| {
        if poll { seen.axis.ns(value) } else { value.cast_signed() + seen.realtime_offset_ns }
    };
    let gap = |(start, end): &(u64, u64)| Gap { cpu, start_ns: at_ns(*start), end_ns: at_ns(*end) };
    let gaps: Vec<Gap> = measured.gaps.iter().map(gap).collect();
    let mut histogram = Histogram::new();
    histogram.record_all(gaps.iter().map(|gap| gap.end_ns - gap.start_ns));
    let length_ns =
        |value: u64| if poll { seen.axis.duration_ns(value) } else { value.cast_signed() };
    // Counters alone cannot explain any single gap.
    let traced = seen.trace.as_ref().ok().filter(|trace| trace.header.source != Source::Counters);
    let causes = traced.map(|trace| {
        blame(&gaps, &trace.events, Own { comm: THREAD, polls: poll }, trace.header.error_ns)
    });
    let of_cpu = OfCpu {
        cpu,
        turns: measured.turns,
        shortest_turn_ns: poll.then(|| length_ns(measured.shortest_turn)),
        skipped_timers: (!poll).then_some(measured.skipped),
        distribution: Distribution::exact(
            &histogram,
            measured.not_kept,
            length_ns(measured.longest),
            threshold_ns,
        ),
        gaps_not_kept: measured.not_kept,
        total_ns: gaps.iter().map(|gap| gap.end_ns - gap.start_ns).sum(),
        causes: causes.unwrap_or_default(),
        counters: seen.after.since(&seen.before, cpu),
        context_switches_voluntary: measured.context_switches.0,
        context_switches_involuntary: measured.context_switches.1,
        waited_ns: measured.waited_ns,
        fifo: measured.placement.fifo,
        refused: measured.placement.refused.clone(),
    };
    (of_cpu, histogram)
}
