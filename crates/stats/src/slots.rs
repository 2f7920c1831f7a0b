//! Counts of rare events by the time at which they happened.

use super::long_run::{Blocks, Dependence};
use std::ops::Range;

/// Neighbouring slots are merged when there would be more.
const MAX_SLOTS: usize = 256;

/// Events by slots of time, in bounded memory and whatever the order in which they are told.
///
/// There are at most 256 slots of equal width. A slot is 1 ms wide at first; when an event lies behind the last slot,
/// neighbours are merged and the width doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    counts: Vec<u64>,
    width_ms: u64,
}

impl Default for SlotCounts {
    fn default() -> Self {
        Self { counts: Vec::new(), width_ms: 1 }
    }
}

impl SlotCounts {
    /// Records `n` events of the same millisecond since the beginning; what was before it counts as its first.
    pub fn record(&mut self, millisecond: i64, n: u64) {
        let at_ms = u64::try_from(millisecond).unwrap_or(0);
        self.widen(at_ms);
        let slot = (at_ms / self.width_ms) as usize;
        if self.counts.len() <= slot {
            self.counts.resize(slot + 1, 0);
        }
        self.counts[slot] += n;
    }

    /// Clusters of the events (see [`BlockCounts::dependence`](super::BlockCounts::dependence)). `packets` were met by them
    /// or not, in these milliseconds since the beginning.
    #[must_use]
    pub fn dependence(&self, packets: u64, milliseconds: Range<u64>) -> Dependence {
        let mut slots = self.clone();
        slots.widen(milliseconds.end.saturating_sub(1));
        // Slots at the ends are whole or not counted.
        let until = (milliseconds.end / slots.width_ms) as usize;
        let from = milliseconds.start.div_ceil(slots.width_ms) as usize;
        slots.counts.resize(until.max(from), 0);
        let counts: Vec<f64> = slots.counts[from..].iter().map(|&count| count as f64).collect();
        let length = packets as f64 / counts.len() as f64;
        Blocks { counts, chance: 0.0, length }.dependence()
    }

    /// The millisecond since the beginning before which all events were, and in how many stretches they came: runs of slots
    /// that follow each other. `None` without events.
    #[must_use]
    pub fn reach(&self) -> Option<(u64, u32)> {
        let last = self.counts.iter().rposition(|&count| count > 0)?;
        let begins = |at: usize| self.counts[at] > 0 && (at == 0 || self.counts[at - 1] == 0);
        let stretches = (0..=last).filter(|&at| begins(at)).count();
        Some(((last as u64 + 1) * self.width_ms, u32::try_from(stretches).unwrap_or(u32::MAX)))
    }

    fn widen(&mut self, at_ms: u64) {
        while at_ms / self.width_ms >= MAX_SLOTS as u64 {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_ms *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probability;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_of_events_makes_no_difference(
            mut events in prop::collection::vec((-5..100_000_i64, 1..9_u64), 0..200),
        ) {
            let told = |events: &[(i64, u64)]| {
                let mut slots = SlotCounts::default();
                events.iter().for_each(|&(at, n)| slots.record(at, n));
                slots
            };
            let as_told = told(&events);
            prop_assert!(as_told.counts.len() <= MAX_SLOTS);
            prop_assert_eq!(as_told.counts.iter().sum::<u64>(), events.iter().map(|event| event.1).sum::<u64>());
            events.sort_unstable();
            prop_assert_eq!(told(&events), as_told);
        }
    }

    #[test]
    fn any_time_ends_in_a_slot() {
        let mut slots = SlotCounts::default();
        for at in [i64::MAX, i64::MIN, 0] {
            slots.record(at, 1);
        }
        assert_eq!(slots.counts.iter().sum::<u64>(), 3);
        assert!(slots.dependence(3, 0..u64::MAX).raised(Probability::P95) >= 1.0);
        assert_eq!(SlotCounts::default().dependence(1_000, 0..3_000).raised(Probability::P95), 1.0);
        assert_eq!(
            SlotCounts::default()
                .dependence(0, Range { start: 5, end: 0 })
                .raised(Probability::P95),
            1.0
        );
    }

    #[test]
    fn bursts_of_twenty_have_an_effect_of_twenty() {
        let scattered = |bursts: u64, each: u64| {
            let mut slots = SlotCounts::default();
            for burst in 0..bursts {
                // Weyl's sequence of the golden ratio, twice: as good as random for this.
                let place = (burst * burst).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                slots.record(1_000 + (place % 3_000) as i64, each);
            }
            slots.dependence(30_000, 1_000..4_000).raised(Probability::P95)
        };
        let (alone, together) = (scattered(600, 1), scattered(30, 20));
        assert!(alone < 2.0, "{alone}");
        assert!((14.0..40.0).contains(&together), "{together}");
    }
}
