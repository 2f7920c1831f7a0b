//! Inter-packet gaps at a tap, right also where the capture is slightly out of order.

use crate::capture::Record;
use serde::{Deserialize, Serialize};
use std::mem;
use tailtrim_stats::Histogram;

/// Stamps kept to put a disordered one in its place.
const RECENT: usize = 256;

/// The exact histogram of the gaps between successive frames in order of their stamps.
#[derive(Debug)]
pub(super) struct Gaps {
    histogram: Histogram,
    /// The latest stamps in ascending order, as a ring that ends before `head`.
    recent: Box<[i64; RECENT]>,
    head: usize,
    /// Frames whose place was no longer known; their gaps are missing.
    misplaced: u64,
}

/// Gaps that were counted, as a value.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    histogram: Histogram,
    recent: Recent,
}

/// The latest stamps in ascending order, and how many came before them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recent {
    stamps_ns: Vec<i64>,
    oldest: usize,
    misplaced: u64,
}

impl Recent {
    /// The same places, of which nothing was counted.
    pub(super) fn uncounted(self) -> Self {
        Self { misplaced: 0, ..self }
    }
}

impl PartialEq for Recent {
    /// Whether what follows is put in the same places: how many came before is of no importance beyond whether any did.
    fn eq(&self, other: &Self) -> bool {
        let (few, other_few) = (self.oldest == 0, other.oldest == 0);
        self.stamps_ns == other.stamps_ns && few == other_few && self.misplaced == other.misplaced
    }
}

impl Eq for Recent {}

impl Gaps {
    pub(super) fn new() -> Self {
        Self { histogram: Histogram::new(), recent: Box::new([0; RECENT]), head: 0, misplaced: 0 }
    }

    /// Counts the gap before a frame. Gaps that begin at or before `after_ns` do not count.
    #[inline]
    pub(super) fn record(&mut self, stamp_ns: i64, after_ns: i64) {
        if self.head > 0 {
            let previous_ns = self.recent[(self.head - 1) % RECENT];
            if stamp_ns < previous_ns {
                self.insert(stamp_ns, after_ns);
                return;
            }
            if previous_ns > after_ns {
                self.histogram.record(stamp_ns - previous_ns);
            }
        }
        self.recent[self.head % RECENT] = stamp_ns;
        self.head += 1;
    }

    /// Counts the gaps before frames whose stamps ascend, from no earlier than the last one.
    pub(super) fn record_ordered(&mut self, records: &[Record], after_ns: i64) {
        let (Some((first, later)), Some(last)) = (records.split_first(), records.last()) else {
            return;
        };
        self.record(first.stamp_ns, after_ns);
        if last.stamp_ns <= after_ns {
            self.remember(later);
        } else if first.stamp_ns <= after_ns {
            for record in later {
                self.record(record.stamp_ns, after_ns);
            }
        } else {
            let gaps = records.windows(2).map(|pair| pair[1].stamp_ns - pair[0].stamp_ns);
            self.histogram.record_all(gaps);
            self.remember(later);
        }
    }

    /// Keeps the stamps of frames.
    fn remember(&mut self, records: &[Record]) {
        for records in records.chunks(RECENT) {
            let (start, end) = self.recent.split_at_mut(self.head % RECENT);
            let (first, rest) = records.split_at(records.len().min(end.len()));
            for (slot, record) in end.iter_mut().zip(first) {
                *slot = record.stamp_ns;
            }
            for (slot, record) in start.iter_mut().zip(rest) {
                *slot = record.stamp_ns;
            }
            self.head += records.len();
        }
    }

    /// Splits the gap that was counted without knowing of this frame.
    #[cold]
    fn insert(&mut self, stamp_ns: i64, after_ns: i64) {
        let oldest = self.head.saturating_sub(RECENT);
        let mut place = self.head;
        while place > oldest && self.recent[(place - 1) % RECENT] > stamp_ns {
            place -= 1;
        }
        if place == oldest && oldest > 0 {
            self.misplaced += 1;
            return;
        }
        let later_ns = self.recent[place % RECENT];
        if place > oldest {
            let earlier_ns = self.recent[(place - 1) % RECENT];
            if earlier_ns > after_ns {
                self.histogram.remove(later_ns - earlier_ns);
                self.histogram.record(stamp_ns - earlier_ns);
            }
        }
        if stamp_ns > after_ns {
            self.histogram.record(later_ns - stamp_ns);
        }
        for index in (place..self.head).rev() {
            self.recent[(index + 1) % RECENT] = self.recent[index % RECENT];
        }
        self.recent[place % RECENT] = stamp_ns;
        self.head += 1;
    }

    pub(super) fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// The places that are known, to go on from.
    pub(super) fn recent(&self) -> Recent {
        let oldest = self.head.saturating_sub(RECENT);
        let stamps_ns = (oldest..self.head).map(|place| self.recent[place % RECENT]).collect();
        Recent { stamps_ns, oldest, misplaced: self.misplaced }
    }

    /// Goes on from there, with an empty histogram.
    pub(super) fn resume(recent: &Recent) -> Self {
        let mut gaps = Self { misplaced: recent.misplaced, head: recent.oldest, ..Self::new() };
        for stamp_ns in recent.stamps_ns.iter().take(RECENT) {
            gaps.recent[gaps.head % RECENT] = *stamp_ns;
            gaps.head += 1;
        }
        gaps
    }

    /// The same places, counted in this histogram.
    pub(super) fn counted_in(self, histogram: Histogram) -> Self {
        Self { histogram, ..self }
    }

    /// Adds what was counted before the places that this went on from. Returns an empty histogram that has memory.
    pub(super) fn precede(&mut self, mut before: Self) -> Histogram {
        self.misplaced += before.misplaced;
        before.histogram.take_all(&mut self.histogram);
        mem::replace(&mut self.histogram, before.histogram)
    }

    pub(super) fn counted(&self) -> Counted {
        Counted { histogram: self.histogram.clone(), recent: self.recent() }
    }

    pub(super) fn of(counted: Counted) -> Self {
        Self { histogram: counted.histogram, ..Self::resume(&counted.recent) }
    }

    pub(super) fn into_histogram(self) -> Histogram {
        self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_of_a_disordered_capture_are_those_of_the_sorted_one(
            steps in prop::collection::vec((0_i64..1000, 0_i64..3000), 0..300),
            after_ns in prop::option::of(0_i64..100_000),
        ) {
            let after_ns = after_ns.unwrap_or(i64::MIN);
            let mut time_ns = 0;
            let stamps: Vec<i64> = steps
                .iter()
                .map(|(step_ns, back_ns)| {
                    time_ns += step_ns;
                    time_ns - if back_ns > &2500 { back_ns - 2500 } else { 0 }
                })
                .collect();
            let mut gaps = Gaps::new();
            for &stamp_ns in &stamps {
                gaps.record(stamp_ns, after_ns);
            }
            prop_assume!(gaps.misplaced() == 0);
            let mut sorted = stamps;
            sorted.sort_unstable();
            let mut expected: Vec<i64> = sorted
                .windows(2)
                .filter(|pair| pair[0] > after_ns)
                .map(|pair| pair[1] - pair[0])
                .collect();
            expected.sort_unstable();
            let counted: Vec<i64> = gaps
                .into_histogram()
                .sorted()
                .into_iter()
                .flat_map(|(gap, count)| std::iter::repeat_n(gap, count as usize))
                .collect();
            prop_assert_eq!(counted, expected);
        }
    }
}
