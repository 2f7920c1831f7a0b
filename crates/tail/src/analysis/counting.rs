//! Pairs of a stretch that are counted apart from those before them, and added in their turn.

use super::latencies::Latencies;
use super::sent_latencies::SentLatencies;
use crate::matching::Pair;
use crate::signature::Signature;
use serde::{Deserialize, Serialize};

/// Pairs that are counted at a time: they stay in the first-level cache.
pub(super) const AT_A_TIME: usize = 256;

/// Pairs to be counted.
pub struct Uncounted {
    pub(super) latencies: Latencies,
    pub(super) pairs: Vec<Pair>,
}

/// Counts of the pairs of a stretch.
pub struct Counted {
    pub(super) latencies: Latencies,
    /// Where the pairs were, to be used again: new memory for so many takes as long as to match them.
    pub(super) room: Room,
}

/// Memory for the pairs of a stretch.
#[derive(Debug, Default)]
pub struct Room(pub(super) Vec<Pair>);

/// Parameters for counting the pairs of a stretch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Samples before them.
    pub(super) behind: u64,
    /// The end of the trim, and the first egress stamp that matched.
    pub(super) begin_ns: (i64, i64),
    /// Signatures of packets that wait since before the stretch. A pair with one of them would have been decided
    /// otherwise.
    pub(super) older: Vec<Signature>,
}

/// Statistics of the pairs of a stretch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counts(pub(super) SentLatencies);

impl Uncounted {
    /// Counts the pairs.
    #[must_use]
    pub fn count(self) -> Counted {
        let Self { mut latencies, mut pairs } = self;
        for pairs in pairs.chunks(AT_A_TIME) {
            latencies.record_without_sink(pairs);
        }
        pairs.clear();
        Counted { latencies, room: Room(pairs) }
    }
}
