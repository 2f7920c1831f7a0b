//! Clocks of one frequency that differ in phase, such as the ticks of a host and of its guest.

use super::periodic::PeriodicCause;
use serde::Serialize;

/// Two causes of one frequency, and by how much the second one comes later.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseDifference {
    /// The causes, as indices of those that were given.
    pub causes: (usize, usize),
    /// From the end of an occurrence of the first one to that of the second one, in the middle of the run.
    pub apart_ns: f64,
    /// By how much that changes over the run, within the error of the frequencies.
    pub moved_ns: f64,
}

/// A run cannot tell frequencies apart by which phases move by less than this part of a period.
const SAME: f64 = 0.1;

/// The pairs of causes of one frequency, each with the other causes behind it.
#[must_use]
pub fn differences(causes: &[PeriodicCause], run_ns: i64) -> Vec<PhaseDifference> {
    let mut found = Vec::new();
    for (first, one) in causes.iter().enumerate() {
        for (second, other) in causes.iter().enumerate().skip(first + 1) {
            let periods = run_ns as f64 / one.period_ns;
            let moved_ns = (other.period_ns - one.period_ns).abs() * periods;
            let clocks = one.every == 1 && other.every == 1 && one.source != other.source;
            if clocks && moved_ns < SAME * one.period_ns {
                let half = libm::floor(periods / 2.0);
                let at_ns = |cause: &PeriodicCause| cause.phase_ns + half * cause.period_ns;
                let turns = (at_ns(other) - at_ns(one)) / one.period_ns;
                let apart_ns = (turns - libm::floor(turns)) * one.period_ns;
                found.push(PhaseDifference { causes: (first, second), apart_ns, moved_ns });
            }
        }
    }
    found
}
