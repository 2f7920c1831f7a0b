//! From what an analysis found to its summary.

use super::findings::Findings;
use super::seconds::millisecond;
use super::warnings::warnings;
use super::{Options, WorstPacket};
use crate::summary::{self, Quantile, Summary};
use std::collections::BTreeMap;
use tailtrim_stats::{
    Histogram, Probability, Ranked, Spread, effect_with_bound, ranks, runs, samples_needed,
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
    let quantile = Quantiles { run, options, latencies, worst };
    let curve = curve(latencies.count()).map(|p| quantile.of(p, 0)).collect();
    let undelivered = run.ingress.lost + run.ingress.beyond_window;
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
        signature: run.signature.clone(),
        taps: run.taps.clone(),
        latency_ns: summary::Latency {
            min: latencies.at_rank(1),
            max: latencies.at_rank(latencies.count()),
            mean: run.latencies.means.mean(options.confidence),
            iqr: latencies.iqr(),
            confidence: options.confidence,
            quantiles: probabilities.iter().map(|&p| quantile.of(p, 0)).collect(),
        },
        delivery_adjusted_ns: probabilities.iter().map(|&p| quantile.of(p, undelivered)).collect(),
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

/// Nine probabilities to a decade of 1 − p (0.1 … 0.9, 0.91 … 0.99 …), as long as a sample lies above.
fn curve(samples: u64) -> impl Iterator<Item = Probability> {
    (0..18)
        .flat_map(|nines: usize| {
            (1..=9).map(move |digit| format!("0.{}{digit}", "9".repeat(nines)))
        })
        .filter_map(|text| text.parse().ok())
        .take_while(move |p: &Probability| p.rank(samples) < samples)
}

/// Takes quantiles with their intervals.
struct Quantiles<'a> {
    run: &'a Findings,
    options: &'a Options,
    latencies: &'a Ranked,
    worst: &'a [WorstPacket],
}

impl Quantiles<'_> {
    /// The quantile when `undelivered` packets lie above all samples. Packets that are in no pair because they could not be
    /// told apart may lie anywhere: its interval holds whether all of them were the fastest or the slowest.
    fn of(&self, p: Probability, undelivered: u64) -> Quantile {
        let count = self.latencies.count() + undelivered;
        let value = if count == 0 { None } else { self.latencies.at_rank(p.rank(count)) };
        // Quantiles among the lost packets have no threshold to look at; the highest one is the nearest.
        let threshold_ns = value.or_else(|| self.latencies.at_rank(self.latencies.count()));
        let confidence = self.options.confidence;
        let blocks = &self.run.latencies.blocks;
        let above = threshold_ns.map_or(0, |ns| self.latencies.count_above(ns));
        let delivered = threshold_ns.map_or(1.0, |ns| blocks.design_effect(ns, above, confidence));
        // A run without samples has no threshold, and the times of its losses were not kept.
        let effect = if undelivered == 0 || threshold_ns.is_none() {
            delivered
        } else {
            self.with_undelivered(undelivered, above, delivered)
        };
        let episodes = ((above + undelivered) as f64 / effect) as u64;
        let effect = effect_with_bound(p, count, confidence, effect);
        let left_out = self.run.ingress.duplicate;
        let interval = ranks(p, count + left_out, confidence, effect);
        let low = interval.low.and_then(|rank| rank.checked_sub(left_out));
        let high = interval.high.filter(|rank| *rank <= count);
        let at = |rank: u64| self.latencies.at_rank(rank);
        Quantile {
            p,
            value,
            low: low.and_then(at),
            high: high.and_then(at),
            supported: high.is_some(),
            samples_needed: samples_needed(p, confidence),
            effective_samples: (count as f64 / effect) as u64,
            episodes,
            clusters: value.and_then(|value_ns| self.clusters_above(value_ns)),
        }
    }

    /// The design effect of the number of packets that lie above a threshold or were not delivered.
    ///
    /// Of N packets L are not delivered, and each delivered one is above with probability s, whatever L is. So the
    /// number is L + Bin(N − L, s), with the variance s (1 − s) (N − E L) + (1 − s)² Var L; both parts are inflated by
    /// their own clusters. Latencies that rise where packets are lost would inflate it further: that is not seen.
    fn with_undelivered(&self, undelivered: u64, above: u64, delivered: f64) -> f64 {
        let (all, lost) = (self.latencies.count() + undelivered, undelivered as f64);
        let n = all as f64;
        let share = above as f64 / (n - lost).max(1.0);
        let from_ns = self.run.latencies.trimmed_until_ns().unwrap_or(i64::MIN);
        let tap = &self.run.taps.ingress;
        let (first_ns, last_ns) = (tap.first_ns.unwrap_or(0), tap.last_ns.unwrap_or(0));
        let at_ms = |stamp_ns| u64::try_from(millisecond(stamp_ns, first_ns)).unwrap_or(0);
        let times = at_ms(from_ns)..at_ms(last_ns) + 1;
        let bursts = self.run.undelivered.design_effect(all, times, self.options.confidence);
        let variance = delivered * share * (1.0 - share) * (n - lost)
            + bursts * (1.0 - share).powi(2) * lost * (1.0 - lost / n);
        let beyond = (above as f64 + lost) / n;
        let effect = variance / (n * beyond * (1.0 - beyond));
        if effect.is_finite() { effect } else { bursts }
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
