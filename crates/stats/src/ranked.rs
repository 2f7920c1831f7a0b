//! The frozen histogram that answers quantiles.

use super::{Histogram, Probability};

/// A histogram frozen for questions about ranks. Rank 1 is the smallest value, rank
/// [`count`](Self::count) the largest; every answer is a value that was recorded, never an
/// interpolation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranked {
    entries: Vec<(i64, u64)>,
    /// `cumulative[i]` values are at or below `entries[i].0`.
    cumulative: Vec<u64>,
}

impl From<&Histogram> for Ranked {
    fn from(histogram: &Histogram) -> Self {
        let entries = histogram.sorted();
        let add = |sum: &mut u64, &(_, n): &(i64, u64)| {
            *sum = sum.saturating_add(n);
            Some(*sum)
        };
        let cumulative = entries.iter().scan(0, add).collect();
        Self { entries, cumulative }
    }
}

impl Ranked {
    /// Freezes `histogram` as it is now.
    #[must_use]
    pub fn new(histogram: &Histogram) -> Self {
        Self::from(histogram)
    }

    /// Counts values in nanoseconds, which are put in order.
    #[must_use]
    pub fn from_values(values_ns: &mut [i64]) -> Self {
        values_ns.sort_unstable();
        let same = values_ns.chunk_by(|a, b| a == b);
        let mut counted = 0;
        let (mut entries, mut cumulative) = (Vec::new(), Vec::new());
        for run in same {
            let count = run.len() as u64;
            counted += count;
            entries.extend(run.first().map(|&value_ns| (value_ns, count)));
            cumulative.push(counted);
        }
        Self { entries, cumulative }
    }

    /// All values of several.
    #[must_use]
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all: Vec<(i64, u64)> =
            parts.into_iter().flat_map(|part| part.entries.iter().copied()).collect();
        all.sort_unstable();
        let (mut entries, mut cumulative): (Vec<(i64, u64)>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut counted = 0_u64;
        for (value_ns, count) in all {
            counted = counted.saturating_add(count);
            match (entries.last_mut(), cumulative.last_mut()) {
                (Some(last), Some(below)) if last.0 == value_ns => {
                    last.1 = last.1.saturating_add(count);
                    *below = counted;
                }
                _ => {
                    entries.push((value_ns, count));
                    cumulative.push(counted);
                }
            }
        }
        Self { entries, cumulative }
    }

    /// Number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// The value in nanoseconds at a 1-based rank; `None` for rank 0 and above the count.
    ///
    /// For a delivery-adjusted quantile ask for `p.rank(count + lost)`: a rank beyond the delivered
    /// packets is that of a lost one, which is infinitely late, and answers `None`.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<i64> {
        if rank == 0 {
            return None;
        }
        let index = self.cumulative.partition_point(|&below| below < rank);
        self.entries.get(index).map(|&(value_ns, _)| value_ns)
    }

    /// The quantile in nanoseconds by nearest rank: the value at rank ⌈p·count⌉. `None` if there
    /// is not a value.
    #[must_use]
    pub fn quantile(&self, p: Probability) -> Option<i64> {
        self.at_rank(p.rank(self.count()))
    }

    /// Number of values larger than `value_ns`.
    #[must_use]
    pub fn count_above(&self, value_ns: i64) -> u64 {
        let index = self.entries.partition_point(|&(v, _)| v <= value_ns);
        let below = index.checked_sub(1).map_or(0, |i| self.cumulative[i]);
        self.count() - below
    }

    /// All `(value_ns, count)` pairs, ascending by value.
    #[must_use]
    pub fn entries(&self) -> &[(i64, u64)] {
        &self.entries
    }

    /// The interquartile range in nanoseconds, p75 − p25 by nearest rank: the jitter of
    /// HiPerConTracer. `None` if there is no value.
    #[must_use]
    pub fn iqr(&self) -> Option<i64> {
        let low = self.quantile(Probability::P25)?;
        let high = self.quantile(Probability::P75)?;
        Some(high.saturating_sub(low))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(
            mut values in prop::collection::vec(prop_oneof![
                8 => -20..40_i64,
                1 => any::<i64>(),
                1 => Just(i64::MIN),
                1 => Just(i64::MAX),
            ], 0..200),
            thousandths in 1..=1000_u64,
        ) {
            let ranked = Ranked::new(&Histogram::from_pairs(values.iter().map(|&v| (v, 1))));
            values.sort_unstable();
            let n = values.len() as u64;
            prop_assert_eq!(ranked.count(), n);
            prop_assert_eq!(ranked.entries().iter().map(|e| e.1).sum::<u64>(), n);
            prop_assert!(ranked.entries().is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(ranked.at_rank(0), None);
            prop_assert_eq!(ranked.at_rank(n + 1), None);
            for (&v, rank) in values.iter().zip(1..) {
                prop_assert_eq!(ranked.at_rank(rank), Some(v));
                let above = values.iter().filter(|&&w| w > v).count();
                prop_assert_eq!(ranked.count_above(v), above as u64);
            }
            prop_assert_eq!(ranked.count_above(i64::MAX), 0);

            let p = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            let index = (n * thousandths).div_ceil(1000).max(1) - 1;
            let want = values.get(index as usize).copied();
            prop_assert_eq!(ranked.quantile(p.parse().unwrap()), want);

            // However the values are cut and put together again.
            let half = values.len() / 2;
            let parts = [&values[..half], &values[half..]];
            let parts = parts.map(|part| Ranked::from_values(&mut part.to_vec()));
            prop_assert_eq!(&Ranked::merged(&parts), &ranked);
        }
    }

    #[test]
    fn nearest_rank_never_interpolates() {
        let ranked = Ranked::new(&Histogram::from_pairs((1..=100).map(|v| (v * 10, 1))));
        let quantile = |p: &str| ranked.quantile(p.parse().unwrap());
        assert_eq!(quantile("0.07"), Some(70));
        assert_eq!(quantile("0.55"), Some(550));
        assert_eq!(quantile("0.999"), Some(1000));
        assert_eq!(quantile("1"), Some(1000));
        assert_eq!(ranked.iqr(), Some(500));
        assert_eq!(Ranked::default().iqr(), None);
    }

    #[test]
    fn lost_packets_are_infinitely_late() {
        let delivered = Ranked::new(&Histogram::from_pairs([(10, 98)]));
        assert_eq!(delivered.at_rank(Probability::P90.rank(98 + 2)), Some(10));
        assert_eq!(delivered.at_rank(Probability::P99.rank(98 + 2)), None);
    }

    #[test]
    fn saturated_counts_still_rank() {
        let ranked = Ranked::new(&Histogram::from_pairs([(1, u64::MAX), (-3, 7)]));
        assert_eq!(ranked.at_rank(7), Some(-3));
        assert_eq!(ranked.at_rank(8), Some(1));
        assert_eq!(ranked.count(), u64::MAX);
    }
}
