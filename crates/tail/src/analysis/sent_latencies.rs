//! Statistics of the samples behind others, as a value that can be sent.

use super::latencies::Latencies;
use super::sample::Sample;
use crate::clock::envelope::Envelope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailtrim_stats::{BatchMeans, BlockCounts, Histogram, Worst};

/// Statistics of the samples behind others, as a value that can be sent to another host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentLatencies {
    stalled: u64,
    late: Histogram,
    longest_ns: i64,
    not_positive: u64,
    histogram: Histogram,
    delay_variation: Histogram,
    ends_ns: Option<(i64, i64)>,
    means: BatchMeans,
    blocks: BlockCounts,
    worst: Worst<Sample>,
    bursts: Option<Vec<Histogram>>,
    envelope: Envelope,
    maxima: BTreeMap<i64, (u64, i64)>,
}

impl Latencies {
    /// Converts the statistics since this was [behind](Self::behind) others into a value.
    pub(super) fn into_value(mut self) -> SentLatencies {
        self.flush_second();
        SentLatencies {
            stalled: self.stalled,
            late: self.late,
            longest_ns: self.longest_ns,
            not_positive: self.not_positive,
            histogram: self.histogram,
            delay_variation: self.delay_variation,
            ends_ns: self.ends_ns,
            means: self.means,
            blocks: self.blocks,
            worst: self.worst,
            envelope: self.envelope,
            bursts: self.bursts.map(|bursts| bursts.positions),
            maxima: self.maxima,
        }
    }

    /// Statistics that were counted elsewhere, to be [added](Self::append) to these.
    pub(super) fn of_value(&self, value: SentLatencies) -> Self {
        let mut all = self.behind(0);
        all.stalled = value.stalled;
        all.late = value.late;
        all.longest_ns = value.longest_ns;
        all.not_positive = value.not_positive;
        all.histogram = value.histogram;
        all.delay_variation = value.delay_variation;
        all.ends_ns = value.ends_ns;
        all.means = value.means;
        all.blocks = value.blocks;
        all.worst = value.worst;
        if let Some((bursts, positions)) = all.bursts.as_mut().zip(value.bursts) {
            bursts.positions = positions;
        }
        all.envelope = value.envelope;
        all.maxima = value.maxima;
        all
    }
}
