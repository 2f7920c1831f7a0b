//! Steps of `CLOCK_REALTIME`: people and time daemons set it, and stamps on both sides of that cannot be subtracted.

use super::TRIES;
use serde::Serialize;
use tailtrim_sys::clock;

/// Nanoseconds by which the clocks may differ without a step: each counts in whole ones.
const RESOLUTION_NS: i64 = 2;

/// A step of `CLOCK_REALTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockStep {
    /// When it was noticed, in ns of the clock behind the step; it was stepped after it was looked at before.
    pub at_ns: i64,
    /// By how much, in ns; negative: it was set back.
    pub by_ns: i64,
}

/// `CLOCK_REALTIME` compared with `CLOCK_MONOTONIC`, which is slewed with it and is never stepped.
#[derive(Debug)]
pub struct ClockSteps {
    first_ns: i64,
    last: Offset,
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, within a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Offset {
    within_ns: i64,
    ns: i64,
}

impl Offset {
    /// Several readings are made: an interrupt may come between, and most do not.
    fn read() -> Self {
        let once = || {
            let before = clock::realtime_ns();
            let monotonic = clock::monotonic_ns();
            let after = clock::realtime_ns();
            // Stepped meanwhile.
            let within_ns = if after < before { i64::MAX } else { (after - before + 1) / 2 };
            Self { within_ns, ns: before.midpoint(after) - monotonic }
        };
        (1..TRIES).map(|_| once()).fold(once(), Self::min)
    }

    /// The distance to another one, if it is more than the errors of both readings.
    fn step_to(self, other: Self) -> Option<i64> {
        let by_ns = other.ns - self.ns;
        let within_ns =
            self.within_ns.saturating_add(other.within_ns).saturating_add(RESOLUTION_NS);
        (by_ns.abs() > within_ns).then_some(by_ns)
    }
}

impl ClockSteps {
    /// Begins to watch.
    #[must_use]
    pub fn watch() -> Self {
        let last = Offset::read();
        Self { first_ns: last.ns, last }
    }

    /// The step since it was looked at last, if there was one.
    pub fn look(&mut self) -> Option<ClockStep> {
        let now = Offset::read();
        let by_ns = self.last.step_to(now)?;
        self.last = now;
        Some(ClockStep { at_ns: clock::realtime_ns(), by_ns })
    }

    /// By how many ns the clock was stepped in all.
    pub fn sum_ns(&mut self) -> i64 {
        self.look();
        self.last.ns - self.first_ns
    }
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, now.
#[must_use]
pub fn realtime_offset_ns() -> i64 {
    Offset::read().ns
}

/// `CLOCK_REALTIME` as it is without steps from now on.
#[derive(Debug, Clone, Copy)]
pub struct Unstepped {
    ahead_ns: i64,
}

impl Unstepped {
    /// Follows `CLOCK_MONOTONIC` from the present realtime on.
    pub fn from_now() -> Self {
        Self { ahead_ns: Offset::read().ns }
    }

    /// Returns the time now, in ns.
    #[must_use]
    #[inline]
    pub fn now_ns(self) -> i64 {
        clock::monotonic_ns() + self.ahead_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_no_reading_explains() {
        let before = Offset { within_ns: 40, ns: 1_000 };
        let after = |within_ns, ns| before.step_to(Offset { within_ns, ns });
        assert_eq!(after(40, 1_082), None);
        assert_eq!(after(40, 1_083), Some(83));
        assert_eq!(after(40, 917), Some(-83));
        assert_eq!(after(i64::MAX, 5_000_000_000), None);
    }

    #[test]
    fn a_clock_that_nobody_sets_has_no_steps() {
        let mut steps = ClockSteps::watch();
        assert!((0..100).all(|_| steps.look().is_none()));
        assert_eq!(steps.sum_ns(), 0);
        assert!((Unstepped::from_now().now_ns() - clock::realtime_ns()).abs() < 1_000_000_000);
    }
}
