//! Departure lateness of probes: its histogram and summary.

use super::{Histogram, Probability, Ranked};
use serde::Serialize;

/// From here on lateness is counted in whole microseconds.
const COARSE_NS: i64 = 1_000_000;

/// The quantiles that are told.
const QUANTILES: [Probability; 5] =
    [Probability::P50, Probability::P90, Probability::P99, Probability::P99_9, Probability::P99_99];

/// Departure lateness, counted: actual minus intended departure in ns.
#[derive(Debug, Clone, Default)]
pub struct DepartureLateness(Histogram);

impl DepartureLateness {
    /// Counts one departure.
    ///
    /// From 1 ms on in whole microseconds: a generator that cannot keep up would fill the memory with values that are
    /// all different, and be slower for it (a tenth, measured).
    pub fn record(&mut self, lateness_ns: i64) {
        let coarse_ns = lateness_ns - lateness_ns % 1_000;
        self.0.record(if lateness_ns < COARSE_NS { lateness_ns } else { coarse_ns });
    }

    /// Adds the departures of another sender.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// Its quantiles and its largest value.
    #[must_use]
    pub fn summary(&self) -> LatenessSummary {
        let ranked = Ranked::new(&self.0);
        let quantile = |p| LatenessQuantile { p, value: ranked.quantile(p) };
        LatenessSummary { quantiles: QUANTILES.map(quantile).into(), max: self.0.max() }
    }
}

/// Actual minus intended departure, in ns; from 1 ms on in whole microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LatenessSummary {
    /// The quantiles by nearest rank.
    pub quantiles: Vec<LatenessQuantile>,
    /// The largest; `None` if nothing departed.
    pub max: Option<i64>,
}

/// A quantile of departure lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LatenessQuantile {
    /// Which.
    pub p: Probability,
    /// The value in ns; `None` if nothing departed.
    pub value: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_written_as_quantiles_by_nearest_rank_and_the_largest() {
        let (mut one, mut other) = (DepartureLateness::default(), DepartureLateness::default());
        (1..=50).for_each(|ns| one.record(ns));
        (51..=100).for_each(|ns| other.record(ns));
        one.merge(&other);
        let json = serde_json::to_string(&one.summary()).unwrap();
        let expected = concat!(
            r#"{"quantiles":[{"p":"0.5","value":50},{"p":"0.9","value":90},{"p":"0.99","value":99},"#,
            r#"{"p":"0.999","value":100},{"p":"0.9999","value":100}],"max":100}"#
        );
        assert_eq!(json, expected);
        let nothing = DepartureLateness::default().summary();
        assert_eq!((nothing.max, nothing.quantiles[0].value), (None, None));
    }

    #[test]
    fn lateness_beyond_a_millisecond_is_counted_in_microseconds() {
        let kept = |ns| {
            let mut lateness = DepartureLateness::default();
            lateness.record(ns);
            lateness.summary().max.unwrap()
        };
        assert_eq!(
            [-1_500, 999_999, 1_000_999, 2_345_678].map(kept),
            [-1_500, 999_999, 1_000_000, 2_345_000]
        );
    }
}
