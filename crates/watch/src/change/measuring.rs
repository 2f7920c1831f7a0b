//! Sizes of changes: the minutes since, beside the same hours of the baseline.

use super::days::read;
use super::followed::Change;
use crate::minute::MINUTE_NS;
use crate::state::{Share, dispersion};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tailtrim_stats::change::{Line, Quantity, Reference};
use tailtrim_stats::{Band, BlockCounts, Histogram, Interval, Probability, Ranked, Undelivered};

/// Minutes that are measured at most: the last ones.
const MOST: i64 = 1_440;

/// Ratios are counted in millionths.
const MILLION: f64 = 1e6;

/// Deviate of a confidence of 95 %.
const DEVIATE: f64 = 1.96;

/// Size of a change, with intervals of 95 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Size {
    /// Of a percentile.
    Latency {
        /// Minutes that were measured.
        minutes: u64,
        /// The percentile in the baseline, in the hour in which it was told.
        was_ns: i64,
        /// The percentile of the minutes.
        now_ns: i64,
        low_ns: Option<i64>,
        high_ns: Option<i64>,
        /// The percentile beside that of the same hours.
        ratio: f64,
        ratio_low: Option<f64>,
        ratio_high: Option<f64>,
    },
    /// Of loss.
    Loss { minutes: u64, was_share: f64, now_share: f64, low_share: f64, high_share: f64 },
}

/// Latencies in their order.
#[derive(Default)]
struct Measured {
    values: Histogram,
    blocks: BlockCounts,
}

impl Measured {
    fn record(&mut self, value: i64, count: u64) {
        self.values.record_n(value, count);
        (0..count).for_each(|_| self.blocks.record_all(&[value]));
    }

    /// The percentile with its interval, which is wider by so many ranks on each side.
    fn percentile(&self, p: Probability, wider: f64) -> Option<[Option<i64>; 3]> {
        let ranked = Ranked::new(&self.values);
        let band = Band::new(&ranked, &self.blocks, Undelivered::NONE, Probability::P95);
        let Interval { low, high } = band.at(p).interval;
        let low = low.and_then(|rank| rank.checked_sub(wider as u64));
        let high = high.map(|rank| rank + wider as u64);
        let at = |rank: Option<u64>| rank.and_then(|rank| ranked.at_rank(rank));
        Some([Some(ranked.quantile(p)?), at(low), at(high)])
    }
}

/// Measures a change beside its reference; `None` if its minutes have no probe.
pub(super) fn measure(folder: &Path, change: &Change, reference: &Reference) -> Option<Size> {
    let index = Line::all().position(|line| super::followed::name(line.of) == change.of)?;
    let Line { of, .. } = Line::all().nth(index)?;
    let until = change.ended_ns.unwrap_or(change.at_ns) / MINUTE_NS;
    let from = (change.since_ns / MINUTE_NS).max(until - MOST);
    match of {
        Quantity::Percentile(p) => {
            latency(folder, from, until, p, reference, reference.relative_error(index))
        }
        Quantity::Loss => loss(folder, from, until, reference),
    }
}

fn latency(
    folder: &Path,
    from: i64,
    until: i64,
    p: Probability,
    reference: &Reference,
    error: f64,
) -> Option<Size> {
    let (mut latencies, mut ratios) = (Measured::default(), Measured::default());
    let mut minutes = 0;
    read(folder, from, until, |minute| {
        let usual_ns = reference.edges().percentile_ns(minute.number, p).unwrap_or(1).max(1);
        minutes += 1;
        for (latency_ns, count) in minute.latencies_ns {
            latencies.record(latency_ns, count);
            ratios.record((latency_ns as f64 / usual_ns as f64 * MILLION) as i64, count);
        }
    });
    // The baseline's own share beyond may be off.
    let wider = DEVIATE * error * p.complement_f64() * ratios.values.count() as f64;
    let [now_ns, low_ns, high_ns] = latencies.percentile(p, 0.0)?;
    let [ratio, ratio_low, ratio_high] =
        ratios.percentile(p, wider)?.map(|ratio| ratio.map(|ratio| ratio as f64 / MILLION));
    let was_ns = reference.edges().percentile_ns(until - 1, p)?;
    Some(Size::Latency {
        minutes,
        was_ns,
        now_ns: now_ns?,
        low_ns,
        high_ns,
        ratio: ratio?,
        ratio_low,
        ratio_high,
    })
}

fn loss(folder: &Path, from: i64, until: i64, reference: &Reference) -> Option<Size> {
    let (mut shares, mut was) = (Vec::new(), 0.0);
    read(folder, from, until, |minute| {
        let answered: u64 = minute.latencies_ns.iter().map(|(_, count)| count).sum();
        shares.push(Share { bad: minute.lost, packets: minute.lost + answered });
        was += reference.edges().lost_share(minute.number);
    });
    let minutes = shares.len() as u64;
    let sum = |of: fn(&Share) -> u64| shares.iter().map(of).sum::<u64>() as f64;
    let (bad, packets) = (sum(|share| share.bad), sum(|share| share.packets));
    if packets == 0.0 {
        return None;
    }
    // Wilson's interval (1927), for as many independent probes as these are worth.
    let (share, worth) = (bad / packets, packets / dispersion(&shares));
    let z = DEVIATE * DEVIATE / worth;
    let middle = (share + z / 2.0) / (1.0 + z);
    let half = (z * (share * (1.0 - share) + z / 4.0)).sqrt() / (1.0 + z);
    Some(Size::Loss {
        minutes,
        was_share: was / minutes as f64,
        now_share: share,
        low_share: (middle - half).max(0.0),
        high_share: (middle + half).min(1.0),
    })
}
