//! From what an analysis found to its summary.

use super::findings::Findings;
use super::seconds::millisecond;
use super::warnings::warnings;
use super::{Options, WorstPacket};
use crate::summary::{self, Quantile, Summary};
use std::collections::BTreeMap;
use std::ops::Range;
use tailtrim_stats::{
    Band, Bounds, Dependence, Histogram, Probability, Ranked, Spread, Undelivered, decades, runs,
    samples_needed,
};

/// Quantiles up to this many nines are always given, with more where the samples support them.
const FEWEST_NINES: u32 = 6;

/// The summary, and the quantiles along the whole curve.
pub(super) fn summarize(
    run: &Findings,
    options: &Options,
    latencies: &Ranked,
    worst: &[WorstPacket],
) -> (Summary, Vec<Quantile>) {
    let probabilities = probabilities(latencies.count(), options);
    let count = run.ingress.lost + run.ingress.beyond_window;
    let undelivered = Undelivered { count, dependence: bursts(run, latencies, count) };
    let quantiles = |undelivered| {
        let band = Band::new(latencies, &run.latencies.blocks, undelivered, options.confidence);
        Quantiles {
            band,
            confidence: options.confidence,
            latencies,
            undelivered,
            left_out: run.ingress.duplicate,
            worst,
        }
    };
    let delivered = quantiles(Undelivered::NONE);
    // Both are the same where every packet was delivered.
    let adjusted = (count > 0).then(|| quantiles(undelivered));
    let adjusted = adjusted.as_ref().unwrap_or(&delivered);
    let curve = decades(latencies.count()).map(|p| delivered.of(p)).collect();
    let summary = Summary {
        schema: summary::SCHEMA,
        ingress: run.ingress,
        egress: run.egress,
        samples: latencies.count(),
        trim_ns: options.trim_ns,
        window_ns: options.window.window_ns,
        correction_ns: options.correction_ns,
        resolution_ps: run.resolutions_ps().into_iter().fold(1_000, u64::max),
        clock_fit: Some(&options.clock_fit).filter(|fit| fit.corrects()).cloned(),
        clock_error_ns: 0,
        signature: run.signature.clone(),
        taps: run.taps.clone(),
        latency_ns: summary::Latency {
            min: latencies.at_rank(1),
            max: latencies.at_rank(latencies.count()),
            mean: run.latencies.means.mean(options.confidence),
            iqr: latencies.iqr(),
            confidence: options.confidence,
            quantiles: probabilities.iter().map(|&p| delivered.of(p)).collect(),
        },
        delivery_adjusted_ns: probabilities.iter().map(|&p| adjusted.of(p)).collect(),
        gap_ns: summary::Gaps {
            ingress: Spread::of(&Ranked::new(&run.ingress_gaps)),
            egress: Spread::of(&Ranked::new(&run.egress_gaps)),
        },
        delay_variation_ns: Spread::of(&Ranked::new(&run.latencies.delay_variation)),
        worst: summary::WorstPackets {
            count: worst.len() as u64,
            clusters: clusters(worst),
            from_ns: worst.last().map(|packet| packet.sample.latency_ns()),
        },
        bursts: run.latencies.bursts.as_ref().map(|bursts| summary::Bursts {
            gap_ns: bursts.gap_ns,
            positions: bursts.positions.iter().enumerate().map(position).collect(),
        }),
        departed_late: departed_late(run, options, latencies, &probabilities),
        warnings: warnings(run, options, latencies),
    };
    (summary, curve)
}

/// 0.5, 0.9, 0.99 … as far as the samples support them and at least to [`FEWEST_NINES`], and what the
/// user asked for.
fn probabilities(samples: u64, options: &Options) -> Vec<Probability> {
    let supported = |p: &Probability| samples >= samples_needed(*p, options.confidence);
    let mut probabilities = vec![Probability::P50];
    probabilities.extend((1..=FEWEST_NINES).filter_map(Probability::nines));
    probabilities.extend((FEWEST_NINES + 1..).map_while(Probability::nines).take_while(supported));
    probabilities.extend(&options.quantiles);
    probabilities.sort_unstable();
    probabilities.dedup();
    probabilities
}

/// Latency without the samples that departed late, where late departures are known.
fn departed_late(
    run: &Findings,
    options: &Options,
    latencies: &Ranked,
    probabilities: &[Probability],
) -> Option<summary::DepartedLate> {
    if options.departures.are_well() {
        return None;
    }
    let late: BTreeMap<i64, u64> = run.latencies.late.sorted().into_iter().collect();
    let others = latencies.entries().iter().map(|&(ns, count)| {
        let late = late.get(&ns).copied().unwrap_or(0);
        (ns, count.saturating_sub(late))
    });
    let others = Ranked::new(&Histogram::from_pairs(others.filter(|(_, count)| *count > 0)));
    let value = |&p: &Probability| summary::QuantileValue { p, value: others.quantile(p) };
    Some(summary::DepartedLate {
        samples: run.latencies.late.count(),
        without_ns: probabilities.iter().map(value).collect(),
    })
}

/// Clusters of packets that were not delivered. Those of a run without samples are taken as independent: their times were
/// not kept.
fn bursts(run: &Findings, latencies: &Ranked, undelivered: u64) -> Dependence {
    if latencies.count() == 0 {
        return Dependence::NONE;
    }
    run.undelivered.dependence(latencies.count() + undelivered, counted_ms(run))
}

/// Milliseconds since the first ingress stamp in which packets count.
pub(super) fn counted_ms(run: &Findings) -> Range<u64> {
    let from_ns = run.latencies.trimmed_until_ns().unwrap_or(i64::MIN);
    let tap = &run.taps.ingress;
    let (first_ns, last_ns) = (tap.first_ns.unwrap_or(0), tap.last_ns.unwrap_or(0));
    let at_ms = |stamp_ns| u64::try_from(millisecond(stamp_ns, first_ns)).unwrap_or(0);
    at_ms(from_ns)..at_ms(last_ns) + 1
}

/// Takes quantiles with their intervals, where undelivered packets lie above all samples.
struct Quantiles<'a> {
    band: Band,
    confidence: Probability,
    latencies: &'a Ranked,
    undelivered: Undelivered,
    /// Packets whose latency is unknown.
    left_out: u64,
    worst: &'a [WorstPacket],
}

impl Quantiles<'_> {
    /// The quantile and its bounds. Packets that are in no pair because they could not be told apart may lie anywhere: they
    /// move the rank of the quantile among the samples by (1 − p) of their number if all were the fastest, and by p of it
    /// if all were the slowest.
    fn of(&self, p: Probability) -> Quantile {
        let count = self.latencies.count() + self.undelivered.count;
        let value = if count == 0 { None } else { self.latencies.at_rank(p.rank(count)) };
        let Bounds { interval, effect, episodes, supported } = self.band.at(p);
        let [below, above] = [p.complement_f64(), p.as_f64()]
            .map(|part| (part * self.left_out as f64).ceil() as u64);
        let low = interval.low.and_then(|rank| rank.checked_sub(below));
        let high = interval.high.map(|rank| rank + above).filter(|rank| *rank <= count);
        let at = |rank: u64| self.latencies.at_rank(rank);
        Quantile {
            p,
            value,
            low: low.and_then(at),
            high: high.and_then(at),
            supported: supported && high.is_some(),
            samples_needed: samples_needed(p, self.confidence),
            effective_samples: (count as f64 / effect) as u64,
            episodes: episodes as u64,
            clusters: value.and_then(|value_ns| self.clusters_above(value_ns)),
        }
    }

    fn clusters_above(&self, value_ns: i64) -> Option<u64> {
        let above = usize::try_from(self.latencies.count_above(value_ns)).ok()?;
        self.worst.get(..above).map(clusters)
    }
}

fn clusters(worst: &[WorstPacket]) -> u64 {
    let mut indices: Vec<u64> = worst.iter().map(|packet| packet.index).collect();
    indices.sort_unstable();
    runs(&indices)
}

fn position((index, latencies): (usize, &Histogram)) -> summary::Position {
    summary::Position {
        position: index as u64 + 1,
        samples: latencies.count(),
        latency_ns: Spread::of(&Ranked::new(latencies)),
    }
}
