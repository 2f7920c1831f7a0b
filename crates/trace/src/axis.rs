//! From ticks of the time-stamp counter to nanoseconds of a clock, with an error bound.

/// One reading of counter, clock, and counter again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The middle of the two ticks.
    pub ticks: u64,
    /// The clock between them.
    pub ns: i64,
    /// Half of the difference between the two ticks, rounded up.
    pub half_ticks: u64,
}

impl Reading {
    /// From the counter before, the clock, and the counter after.
    #[must_use]
    pub fn between(before: u64, ns: i64, after: u64) -> Self {
        let width = after.saturating_sub(before);
        Self { ticks: before + width / 2, ns, half_ticks: width.div_ceil(2) }
    }
}

/// The line through a reading before and one after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    start: Reading,
    /// Ticks from the reading before to the one after; positive.
    span_ticks: u64,
    /// The same in ns; positive.
    span_ns: i64,
    /// Error bound of a converted time, either way.
    pub error_ns: i64,
    /// Largest distance of the readings in between from the line, beyond the width of their own brackets: the clock was
    /// slewed meanwhile.
    pub drift_ns: i64,
}

/// Reason why there is no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// The counter did not advance.
    #[error(
        "the time-stamp counter went from {before} to {after}; expected it to advance: it is not usable on this machine"
    )]
    Counter {
        /// In the reading before.
        before: u64,
        /// In the one after.
        after: u64,
    },
    /// The clock went back or stood.
    #[error(
        "the clock went {0} ns while recording; expected it to advance: it was set meanwhile, record again"
    )]
    Clock(i64),
}

impl Axis {
    /// Fits the line; the readings in between give its error.
    ///
    /// # Errors
    /// The counter or the clock did not advance.
    pub fn fit(before: Reading, after: Reading, between: &[Reading]) -> Result<Self, AxisError> {
        let span_ticks = after.ticks.checked_sub(before.ticks).filter(|span| *span > 0);
        let span_ticks =
            span_ticks.ok_or(AxisError::Counter { before: before.ticks, after: after.ticks })?;
        let span_ns = after.ns - before.ns;
        if span_ns <= 0 {
            return Err(AxisError::Clock(span_ns));
        }
        let mut axis = Self { start: before, span_ticks, span_ns, error_ns: 0, drift_ns: 0 };
        let bracket = |reading: &Reading| axis.duration_ns(reading.half_ticks) + 1;
        let ends_ns = bracket(&before).max(bracket(&after));
        let off =
            |reading: &Reading| (axis.ns(reading.ticks) - reading.ns).abs() - bracket(reading);
        let drift_ns = between.iter().map(off).max().unwrap_or(0).max(0);
        axis.drift_ns = drift_ns;
        // The division rounds down by less than 1 ns.
        axis.error_ns = ends_ns + drift_ns + 1;
        Ok(axis)
    }

    /// The time at a tick, also outside the two readings.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> i64 {
        let from = i128::from(ticks) - i128::from(self.start.ticks);
        let ns = (from * i128::from(self.span_ns)).div_euclid(i128::from(self.span_ticks));
        i64::try_from(ns + i128::from(self.start.ns)).unwrap_or(if ns < 0 {
            i64::MIN
        } else {
            i64::MAX
        })
    }

    /// Length of so many ticks, in ns.
    #[must_use]
    pub fn duration_ns(&self, ticks: u64) -> i64 {
        let ns = i128::from(ticks) * i128::from(self.span_ns) / i128::from(self.span_ticks);
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// Number of ticks in so much time.
    #[must_use]
    pub fn ticks_of(&self, ns: i64) -> u64 {
        let ticks = i128::from(ns.max(0)) * i128::from(self.span_ticks) / i128::from(self.span_ns);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Ticks a second.
    #[must_use]
    pub fn frequency_hz(&self) -> u64 {
        self.ticks_of(1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A counter of 2.5 GHz whose readings are `width` ticks apart.
    fn reading(ns: i64, width: u64) -> Reading {
        let middle = (ns as u64 - 1_000) * 5 / 2;
        Reading::between(middle - width / 2, ns, middle + width / 2)
    }

    #[test]
    fn the_line_and_its_error() {
        let axis = Axis::fit(reading(2_000, 100), reading(1_000_002_000, 50), &[]).unwrap();
        assert_eq!(axis.frequency_hz(), 2_500_000_000);
        assert_eq!(axis.ns(2_500 + 2_500_000), 1_002_000);
        assert_eq!(axis.ns(0), 1_000);
        assert_eq!((axis.error_ns, axis.drift_ns), (20 + 1 + 1, 0));
    }

    #[test]
    fn a_clock_that_was_slewed_widens_the_error() {
        let mut middle = reading(500_000_000, 100);
        middle.ns += 900;
        let axis = Axis::fit(reading(2_000, 100), reading(1_000_002_000, 100), &[middle]).unwrap();
        assert_eq!(axis.drift_ns, 900 - 21);
        assert_eq!(axis.error_ns, 21 + axis.drift_ns + 1);
    }

    #[test]
    fn what_stands_or_goes_back_is_refused() {
        let (early, late) = (reading(2_000, 10), reading(9_000, 10));
        assert!(matches!(Axis::fit(late, early, &[]), Err(AxisError::Counter { .. })));
        let back = Reading { ns: 1_000, ..late };
        assert_eq!(Axis::fit(early, back, &[]), Err(AxisError::Clock(-1_000)));
    }

    proptest! {
        #[test]
        fn order_is_kept(a: u64, b: u64, span in 1_u64..1 << 50, ns in 1_i64..1 << 50) {
            let start = Reading { ticks: 1 << 40, ns: 1 << 60, half_ticks: 9 };
            let end = Reading { ticks: start.ticks + span, ns: start.ns + ns, half_ticks: 9 };
            let axis = Axis::fit(start, end, &[]).unwrap();
            prop_assert_eq!(axis.ns(a.min(b)) <= axis.ns(a.max(b)), true);
            prop_assert_eq!(axis.ns(start.ticks), start.ns);
            prop_assert_eq!(axis.ns(end.ticks), end.ns);
        }
    }
}
