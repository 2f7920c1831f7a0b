//! Pairs of a stretch that are counted apart from those before them, and added in their turn.

use super::latencies::Latencies;
use crate::matching::Pair;

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
