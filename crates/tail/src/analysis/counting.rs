//! Pairs of a stretch, counted apart from those before them and added in their turn.

use super::latencies::Latencies;
use crate::matching::{EarlierPackets, Pair};
use crate::signature::Signature;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use tailtrim_stats::Histogram;

/// The begin of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Samples that left at or before this are trimmed. [`i64::MAX`] until the first match, which sets it; [`i64::MIN`]
    /// without a trim.
    pub(super) trimmed_until_ns: i64,
    /// The first egress stamp that matched, [`i64::MAX`] before.
    pub(super) first_egress_ns: i64,
}

/// Counts of a stretch, made before those of what comes before it are known. They are moved to those of an analysis when
/// the stretch is joined; then the memory is there for another stretch: new memory takes a tenth of the time of matching.
#[derive(Debug)]
pub struct Counted {
    pub(super) latencies: Latencies,
    /// Samples before it, if so many were expected.
    behind: Option<u64>,
    /// Otherwise, lower halves of the signatures of the pairs.
    signatures: Vec<i64>,
    /// Memory of the gaps at both taps.
    pub(super) gaps: [Histogram; 2],
}

/// Parameters for counting the pairs of a stretch before what comes before it is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Samples before them.
    pub(super) behind: u64,
    pub(super) begin: Begin,
    /// Signatures of packets that wait since before the stretch. A pair with one of them would have been decided
    /// otherwise.
    pub(super) older: Vec<Signature>,
}

/// Statistics of the pairs of a stretch, counted on another host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counts(pub(super) Latencies);

impl Begin {
    /// Whether the trim's end is known.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.trimmed_until_ns != i64::MAX
    }

    /// Samples that left until then are trimmed; [`i64::MIN`] without a trim, [`i64::MAX`] where its end is not known.
    #[must_use]
    pub fn trimmed_until_ns(self) -> i64 {
        self.trimmed_until_ns
    }
}

impl Counted {
    /// Counts of nothing.
    pub(super) fn new(latencies: Latencies) -> Self {
        Self { latencies, behind: None, signatures: Vec::new(), gaps: Default::default() }
    }

    /// Counts a stretch, in this order if one is expected.
    pub(super) fn begin(&mut self, begin: Begin, expected: Option<&Order>) {
        self.behind = expected.map(|order| order.behind);
        self.latencies.follow(begin, self.behind);
    }

    /// Counts pairs and empties the list.
    pub(super) fn take(&mut self, pairs: &mut Vec<Pair>) {
        self.latencies.record_without_sink(pairs);
        if self.behind.is_none() {
            self.signatures.extend(pairs.iter().map(|pair| pair.signature.low));
        }
        pairs.clear();
    }

    /// Whether the counts are those of a stretch behind so many samples, and its pairs have other signatures than the older
    /// packets that wait.
    pub(super) fn are_behind(&self, samples: u64, older: &EarlierPackets) -> bool {
        if let Some(behind) = self.behind {
            return behind == samples && older.is_empty();
        }
        let halves: HashSet<i64> = older.signatures().map(|signature| signature.low).collect();
        let is_older = |&low: &i64| older.may_hold(low) && halves.contains(&low);
        halves.is_empty() || !self.signatures.iter().any(is_older)
    }

    /// The same memory, behind a stretch that was joined.
    pub(super) fn emptied(mut self, gaps: [Histogram; 2]) -> Self {
        self.signatures.clear();
        Self { gaps, ..self }
    }
}
