//! The worst packets, one by one.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem;

/// Number of items that [`Worst::default`] keeps: the scatter plots of the published artifacts show 5000.
const DEFAULT_CAPACITY: usize = 5000;

/// Keeps the items with the largest latencies.
///
/// Among equal latencies the earlier offered stay, so that the outcome does not depend on how the
/// heap happens to be laid out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Worst<T> {
    /// The item to be given up first is on top.
    heap: BinaryHeap<Entry<T>>,
    capacity: usize,
    /// Latencies below this cannot enter: beside other items of this heap, or of the one to which they are to be moved.
    floor_ns: i64,
    offered: u64,
}

impl<T> Default for Worst<T> {
    /// Keeps 5000 items.
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

impl<T> Worst<T> {
    /// Keeps up to `capacity` items; with a capacity of 0 it only counts the offers.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let floor_ns = if capacity == 0 { i64::MAX } else { i64::MIN };
        Self { heap: BinaryHeap::new(), capacity, floor_ns, offered: 0 }
    }

    /// Moves the items that follow to these. Then those are ready for items that follow here: of these they keep none that
    /// is not among the worst.
    pub fn append(&mut self, later: &mut Self) {
        // They come in any order: of equal latencies, an earlier one may come behind a later one.
        let floor_ns = self.floor_ns;
        for Entry { latency_ns, sequence, item } in later.heap.drain() {
            if latency_ns >= floor_ns {
                self.enter(latency_ns, self.offered + sequence, || item);
            }
        }
        self.offered += mem::take(&mut later.offered);
        later.floor_ns = self.floor_ns;
    }

    /// Offers items in their order with their latencies in nanoseconds, none of them longer than `longest_ns`. `make` is
    /// called with an item's index if the item enters, which becomes rare after the first `capacity` offers.
    #[inline]
    pub fn offer_all(
        &mut self,
        latencies_ns: &[i64],
        longest_ns: i64,
        mut make: impl FnMut(usize) -> T,
    ) {
        let offered = self.offered;
        self.offered += latencies_ns.len() as u64;
        if longest_ns < self.floor_ns {
            return;
        }
        for (index, &latency_ns) in latencies_ns.iter().enumerate() {
            if latency_ns >= self.floor_ns {
                self.enter(latency_ns, offered + index as u64, || make(index));
            }
        }
    }

    #[cold]
    fn enter(&mut self, latency_ns: i64, sequence: u64, make: impl FnOnce() -> T) {
        if self.heap.len() < self.capacity {
            let item = make();
            self.heap.push(Entry { latency_ns, sequence, item });
        } else if let Some(mut top) = self.heap.peek_mut()
            && (top.latency_ns, sequence) < (latency_ns, top.sequence)
        {
            let item = make();
            *top = Entry { latency_ns, sequence, item };
        }
        if self.heap.len() >= self.capacity {
            let least = self.heap.peek().map_or(i64::MAX, |top| top.latency_ns);
            self.floor_ns = self.floor_ns.max(least.saturating_add(1));
        }
    }

    /// Number of offered items.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// The largest number of items that are kept.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of items that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no item is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The kept items as (latency in nanoseconds, 0-based number of the offer, item), the largest
    /// latency first and among equal latencies the earliest offer first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<(i64, u64, T)> {
        let entries = self.heap.into_sorted_vec().into_iter();
        entries.map(|e| (e.latency_ns, e.sequence, e.item)).collect()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry<T> {
    latency_ns: i64,
    sequence: u64,
    item: T,
}

impl<T> Ord for Entry<T> {
    /// The greatest entry is the first to be given up: the smallest latency, of those the latest.
    fn cmp(&self, other: &Self) -> Ordering {
        let latency = other.latency_ns.cmp(&self.latency_ns);
        latency.then(self.sequence.cmp(&other.sequence))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_what_sorting_everything_would(
            latencies in prop::collection::vec(prop_oneof![
                8 => -5..20_i64,
                1 => Just(i64::MIN),
                1 => Just(i64::MAX),
            ], 0..200),
            capacity in 0..30_usize,
        ) {
            let mut worst = Worst::new(capacity);
            let mut made = 0;
            for &latency in &latencies {
                worst.offer_all(&[latency], latency, |_| { made += 1; latency });
            }
            let mut all: Vec<(i64, u64, i64)> =
                latencies.iter().zip(0..).map(|(&l, i)| (l, i, l)).collect();
            all.sort_by_key(|&(latency, sequence, _)| (std::cmp::Reverse(latency), sequence));
            all.truncate(capacity);
            prop_assert_eq!(worst.offered(), latencies.len() as u64);
            prop_assert_eq!(worst.len(), all.len());
            prop_assert_eq!(worst.is_empty(), all.is_empty());
            prop_assert!(made >= all.len() && (capacity > 0 || made == 0));
            prop_assert_eq!(worst.into_sorted(), all);
        }
    }

    proptest! {
        #[test]
        fn stretches_add_up(
            latencies in prop::collection::vec(-5..20_i64, 0..200),
            cut in any::<prop::sample::Index>(),
            capacity in 0..30_usize,
        ) {
            let offered = |mut worst: Worst<usize>, range: std::ops::Range<usize>| {
                worst.offer_all(&latencies[range.clone()], 20, |index| range.start + index);
                worst
            };
            let cut = cut.index(latencies.len() + 1);
            let mut worst = offered(Worst::new(capacity), 0..cut);
            let later = Worst::new(capacity);
            let mut later = offered(later, cut..latencies.len());
            worst.append(&mut later);
            prop_assert!(later.is_empty());
            let whole = offered(Worst::new(capacity), 0..latencies.len());
            prop_assert_eq!(worst.floor_ns, whole.floor_ns);
            prop_assert_eq!(worst.offered(), whole.offered());
            prop_assert_eq!(worst.into_sorted(), whole.into_sorted());
        }
    }

    #[test]
    fn makes_no_item_that_does_not_enter() {
        let mut worst = Worst::new(2);
        for latency in [7, 9, 7, 7, 3] {
            worst.offer_all(&[latency], latency, |_| latency);
        }
        worst.offer_all(&[7], 7, |_| unreachable!("7 ns does not beat what is kept"));
        assert_eq!(worst.into_sorted(), [(9, 1, 9), (7, 0, 7)]);
        assert_eq!(Worst::<()>::default().into_sorted(), []);
    }
}
