//! Detection limits: for usual clocks that were not found, the longest delay that would have been missed.

use super::capture::{Capture, Level};
use super::cause::PeriodicCause;
use super::comb::{BELIEVED_NATS, Comb};
use serde::Serialize;

/// Detection limit of a clock that was not found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// Its frequency.
    pub frequency_hz: f64,
    /// A cause that delays packets for so long would have been found; none if packets meet too few of the phases.
    pub longer_than_ns: Option<i64>,
    /// Share of the phases at which it would have been found; of causes of the longest length that is tried, where
    /// none is covered.
    pub covered: f64,
}

/// Ticks of kernels (Kconfig.hz), and the slow timers of kernels that have none.
pub(super) const CLOCKS_HZ: [f64; 7] = [1_000.0, 300.0, 250.0, 100.0, 10.0, 4.0, 1.0];

/// Clocks of hosts differ by less than this part; 250 Hz and 249.99 are one.
pub(super) const SAME: f64 = 0.001;

/// Lengths that are tried.
const LENGTHS_NS: [i64; 9] = [1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000];

/// A clock is covered if a cause would have been found at this share of its phases.
const COVERED: f64 = 0.9;

/// Variation of the ends of stalls, as in the published captures: 1 µs.
const WIDTH_NS: f64 = 1_000.0;

/// Bins of phases.
const BIN_NS: f64 = 500.0;

/// The limits of usual clocks that are not among the combs.
pub(super) fn limits(capture: &Capture, level: &Level, combs: &[Comb]) -> Vec<Limit> {
    let known = |hz: f64| combs.iter().any(|comb| (1e9 / comb.period_ns / hz - 1.0).abs() < SAME);
    CLOCKS_HZ
        .into_iter()
        .filter(|hz| !known(*hz) && capture.run_ns as f64 * hz > 8e9)
        .map(|hz| limit(capture, level, hz))
        .collect()
}

/// Usual clocks that are not among the causes, where nothing is known of others.
pub(super) fn unknown(run_ns: i64, causes: &[PeriodicCause]) -> Vec<Limit> {
    let told = |hz: f64| causes.iter().any(|one| (one.frequency_hz / hz - 1.0).abs() < SAME);
    CLOCKS_HZ
        .into_iter()
        .filter(|hz| !told(*hz) && run_ns as f64 * hz > 8e9)
        .map(|frequency_hz| Limit { frequency_hz, longer_than_ns: None, covered: 0.0 })
        .collect()
}

fn limit(capture: &Capture, level: &Level, hz: f64) -> Limit {
    let period_ns = 1e9 / hz;
    let bins = (period_ns / BIN_NS) as usize;
    let mut counts = vec![0_u32; bins];
    for (arrival, explained) in capture.arrivals.iter().zip(&capture.explained) {
        if !explained {
            let turns = *arrival as f64 / period_ns;
            let bin = ((turns - libm::floor(turns)) * bins as f64) as usize;
            counts[bin.min(bins - 1)] += 1;
        }
    }
    let mut covered = 0.0;
    for length_ns in LENGTHS_NS {
        let seen_ns = (length_ns - level.threshold_ns) as f64;
        if seen_ns < BIN_NS || length_ns as f64 > 0.25 * period_ns {
            continue;
        }
        let share = level.count() as f64 / capture.arrivals.len().max(1) as f64;
        let chance = (share * (2.0 * WIDTH_NS / seen_ns).min(1.0)).clamp(1e-9, 0.5);
        let price = libm::log(capture.run_ns as f64 / WIDTH_NS)
            + libm::log(period_ns / WIDTH_NS)
            + libm::log(100.0);
        let needed = libm::ceil((price + BELIEVED_NATS) / -libm::log(chance)).max(6.0);
        covered = phases(&counts, (seen_ns / BIN_NS) as usize, needed);
        if covered >= COVERED {
            return Limit { frequency_hz: hz, longer_than_ns: Some(length_ns), covered };
        }
    }
    Limit { frequency_hz: hz, longer_than_ns: None, covered }
}

/// Share of the windows of so many bins, around the end of the period too, that hold at least so many packets.
fn phases(counts: &[u32], length: usize, needed: f64) -> f64 {
    let bins = counts.len();
    let mut sum: u64 = counts.iter().cycle().take(length).map(|count| u64::from(*count)).sum();
    let mut enough = 0_usize;
    for start in 0..bins {
        enough += usize::from(sum as f64 >= needed);
        sum += u64::from(counts[(start + length) % bins]);
        sum -= u64::from(counts[start]);
    }
    enough as f64 / bins.max(1) as f64
}
