//! One run of a side, as counts per block.

use std::sync::Arc;
use tailtrim_stats::{Band, BlockCounts, Probability, Ranked, Undelivered};

/// Blocks of a repetition. So many that the variance between those of both sides is known to an
/// eighth (√(2 / 126) of normal counts), so few that clusters and slow changes up to a hundredth of
/// the run (a 64th is 1.6 of them) lie within one.
pub(super) const BLOCKS: usize = 64;

/// The latency that stands for a lost packet: later than any other. Ranks know what to do with it,
/// ratios with it are none.
pub const LOST_NS: i64 = i64::MAX;

/// The latencies of one run, counted per block of consecutive samples: a sparse histogram each, so
/// that memory is that of the distinct latencies of a block, not of the samples.
#[derive(Debug, Clone)]
pub struct Repetition {
    /// Always [`BLOCKS`]; some are empty where there are fewer samples.
    blocks: Vec<Ranked>,
    /// Clusters of its samples. 2 MB, which copies share.
    clusters: Arc<BlockCounts>,
}

impl Repetition {
    /// Counts latencies in nanoseconds, in the order of arrival and in pieces of any size.
    /// `samples` is how many there are in all of them: what exceeds it is put into the last block.
    #[must_use]
    pub fn new<'a>(samples: u64, pieces: impl IntoIterator<Item = &'a [i64]>) -> Self {
        let mut blocks = Vec::with_capacity(BLOCKS);
        let mut block: Vec<i64> = Vec::new();
        let mut clusters = BlockCounts::new();
        let ends_at = |index: usize| {
            let share = u128::from(samples) * (index as u128 + 1) / BLOCKS as u128;
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let mut seen = 0;
        for piece in pieces {
            clusters.record_all(piece);
            let mut rest = piece;
            while !rest.is_empty() {
                if blocks.len() + 1 < BLOCKS && seen >= ends_at(blocks.len()) {
                    blocks.push(Ranked::from_values(&mut block));
                    block.clear();
                    continue;
                }
                let last = blocks.len() + 1 == BLOCKS;
                let room = if last { u64::MAX } else { ends_at(blocks.len()) - seen };
                let now = usize::try_from(room).map_or(rest.len(), |room| room.min(rest.len()));
                block.extend_from_slice(&rest[..now]);
                seen += now as u64;
                rest = &rest[now..];
            }
        }
        blocks.push(Ranked::from_values(&mut block));
        blocks.resize(BLOCKS, Ranked::default());
        Self { blocks, clusters: Arc::new(clusters) }
    }

    /// Counts latencies in nanoseconds in the order of arrival.
    #[must_use]
    pub fn of(latencies_ns: &[i64]) -> Self {
        Self::new(latencies_ns.len() as u64, [latencies_ns])
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.blocks.iter().map(Ranked::count).sum()
    }

    pub(super) fn blocks(&self) -> &[Ranked] {
        &self.blocks
    }

    /// The bounds of its quantiles, as in its own analysis.
    pub(super) fn band(&self, confidence: Probability) -> Band {
        let all = Ranked::merged(&self.blocks);
        Band::new(&all, &self.clusters, Undelivered::NONE, confidence)
    }
}
