//! Distribution of gaps or of late timers, exact or by buckets.

use super::{Bucket, Column};
use serde::Serialize;
use tailtrim_stats::{Histogram, Ranked};

/// Thresholds from which gaps are counted, so that tools with other buckets can be compared.
const STEPS_NS: [i64; 10] =
    [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Numbers that tailtrim's and other tools' results have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// Gaps from the threshold up, or timers.
    pub gaps: u64,
    /// Median; `None` without a distribution.
    pub p50_ns: Option<i64>,
    /// 99 %.
    pub p99_ns: Option<i64>,
    /// 99.9 %.
    pub p999_ns: Option<i64>,
    /// The longest.
    pub longest_ns: Option<i64>,
    /// Counts of gaps or timers above thresholds.
    pub at_least: Vec<AtLeast>,
    /// Gaps or timers beyond the table of another tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<Beyond>,
}

/// Gaps or timers of which only the number is known, and that they are as long as the end of the table and at most as
/// the longest. Quantiles among them are the longest: a bound, and nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Beyond {
    /// End of the table, or of its last row in the file.
    pub from_ns: i64,
    /// Their number.
    pub gaps: u64,
}

/// Count of gaps or timers that were at least so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AtLeast {
    /// The threshold.
    pub ns: i64,
    /// The count; `None` where the threshold is within a bucket.
    pub gaps: Option<u64>,
}

impl Distribution {
    /// The distribution of known values. `not_kept` more are only counted, and the longest of all is `longest_ns`.
    #[must_use]
    pub fn exact(histogram: &Histogram, not_kept: u64, longest_ns: i64, threshold_ns: i64) -> Self {
        let pairs = histogram.sorted();
        let from = |ns: i64| pairs.iter().filter(|(value, _)| *value >= ns).map(|(_, n)| n).sum();
        Self::new(histogram, not_kept, (longest_ns > 0).then_some(longest_ns), threshold_ns, |ns| {
            // Those that were not kept are only known to be at most as long as the longest.
            if ns > longest_ns { Some(0) } else { (not_kept == 0).then(|| from(ns)) }
        })
    }

    fn new(
        histogram: &Histogram,
        others: u64,
        longest_ns: Option<i64>,
        threshold_ns: i64,
        from: impl Fn(i64) -> Option<u64>,
    ) -> Self {
        let ranked = Ranked::new(histogram);
        let quantile = |p: &str| p.parse().ok().and_then(|p| ranked.quantile(p));
        let steps = STEPS_NS.into_iter().filter(|step| *step >= threshold_ns);
        Self {
            gaps: histogram.count() + others,
            p50_ns: quantile("0.5"),
            p99_ns: quantile("0.99"),
            p999_ns: quantile("0.999"),
            longest_ns,
            at_least: steps.map(|ns| AtLeast { ns, gaps: from(ns) }).collect(),
            beyond: None,
        }
    }
}

impl Column {
    /// The upper ends of the buckets from the threshold up, and that threshold: where the next bucket begins.
    #[must_use]
    pub fn bounds(&self, threshold_ns: i64) -> (Histogram, i64) {
        let counted = self.from(threshold_ns);
        let from_ns = counted.first().map_or(threshold_ns, |bucket| bucket.from_ns);
        let bounds = counted.iter().map(|bucket| (bucket.to_ns, bucket.count));
        (Histogram::from_pairs(bounds), from_ns.max(threshold_ns))
    }

    fn from(&self, threshold_ns: i64) -> &[Bucket] {
        let below = self.buckets.partition_point(|bucket| bucket.from_ns < threshold_ns);
        &self.buckets[below..]
    }

    /// The distribution from the threshold up. Quantiles are upper bounds; the true ones are less than a bucket
    /// smaller, or anything from [`Beyond::from_ns`] up.
    #[must_use]
    pub fn distribution(&self, threshold_ns: i64) -> Distribution {
        let (histogram, _) = self.bounds(threshold_ns);
        // Without buckets only the count and the extremes are known.
        let others = if self.buckets.is_empty() { self.count } else { 0 };
        let last = self.from(threshold_ns).last().filter(|_| self.open_end);
        Distribution {
            beyond: last.map(|last| Beyond { from_ns: last.from_ns, gaps: last.count }),
            ..Distribution::new(&histogram, others, self.max_ns, threshold_ns, |ns| {
                self.at_least(ns)
            })
        }
    }

    fn at_least(&self, ns: i64) -> Option<u64> {
        if self.max_ns.is_some_and(|max_ns| max_ns <= ns) {
            return Some(0);
        }
        let split = |bucket: &Bucket| bucket.from_ns < ns && ns < bucket.to_ns;
        if self.buckets.is_empty() || self.buckets.iter().any(split) {
            return None;
        }
        Some(self.from(ns).iter().map(|bucket| bucket.count).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::*;
    use proptest::prelude::*;

    /// Values in whole µs, as all these tools keep them.
    fn column(values_ns: &[i64]) -> Column {
        let whole = values_ns.iter().map(|ns| (ns / 1_000 * 1_000, 1));
        let buckets = Histogram::from_pairs(whole).sorted();
        let bucket = |(from_ns, count)| Bucket { from_ns, to_ns: from_ns + 1_000, count };
        Column {
            cpu: Some(1),
            thread: None,
            what: What::Gap,
            count: values_ns.len() as u64,
            min_ns: None,
            max_ns: values_ns.iter().max().map(|ns| ns / 1_000 * 1_000 + 1_000),
            buckets: buckets.into_iter().map(bucket).collect(),
            open_end: false,
        }
    }

    fn exact(values_ns: &[i64], threshold_ns: i64) -> Distribution {
        let mut histogram = Histogram::new();
        histogram.record_all(values_ns.iter().copied().filter(|ns| *ns >= threshold_ns));
        let longest_ns = values_ns.iter().copied().max().unwrap_or(0);
        Distribution::exact(&histogram, 0, longest_ns, threshold_ns)
    }

    #[test]
    fn what_a_bucket_hides_is_not_made_up() {
        let mut column = column(&[1_500, 3_000, 40_100]);
        column.buckets[2] = Bucket { from_ns: 10_000, to_ns: 41_000, count: 1 };
        let steps = column.distribution(1_000).at_least;
        let told: Vec<_> = steps.iter().map(|step| step.gaps).take(6).collect();
        assert_eq!(told, [Some(3), Some(2), Some(1), Some(1), None, Some(0)]);
        column.buckets.clear();
        let told = column.distribution(1_000);
        assert_eq!((told.gaps, told.p50_ns, told.longest_ns), (3, None, Some(41_000)));
        assert_eq!((told.at_least[0].gaps, told.at_least[5].gaps), (None, Some(0)));
    }

    #[test]
    fn gaps_that_were_only_counted() {
        let histogram = Histogram::from_pairs([(2_500, 2)]);
        let told = Distribution::exact(&histogram, 5, 70_000, 1_000);
        assert_eq!((told.gaps, told.longest_ns), (7, Some(70_000)));
        assert_eq!((told.at_least[0].gaps, told.at_least[6].gaps), (None, Some(0)));
    }

    proptest! {
        /// The same by buckets, up to the width of a bucket.
        #[test]
        fn buckets_bound_what_is_exact(values in proptest::collection::vec(0_i64..3_000_000, 1..60), step in 0_usize..8) {
            let threshold_ns = STEPS_NS[step];
            let (known, bound) = (exact(&values, threshold_ns), column(&values).distribution(threshold_ns));
            prop_assert_eq!(known.gaps, bound.gaps);
            prop_assert_eq!(&known.at_least, &bound.at_least);
            for (known, bound) in [(known.p50_ns, bound.p50_ns), (known.p99_ns, bound.p99_ns)] {
                prop_assert_eq!(known.map(|ns| ns / 1_000 * 1_000 + 1_000), bound);
            }
        }
    }
}
