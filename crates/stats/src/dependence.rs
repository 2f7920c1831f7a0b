//! How much the tail clusters: one stall delays many packets in a row.

use std::fmt;

use super::Probability;
use super::long_run::Blocks;

/// Resolution of the latency levels: 64 per octave, so that a level is at most 1.6 % wide and
/// latencies up to 127 ns have a level each.
const SUB_BITS: u32 = 6;
/// Latencies from 2^33 ns (8.6 s) on share the last level.
const MAX_BITS: u32 = 33;
const LEVELS: usize = (((MAX_BITS - SUB_BITS) as usize) << SUB_BITS) + (1 << SUB_BITS) + 1;

/// Blocks are merged in pairs when there are so many. 128 to 256 give a relative standard error of the variance of 9 to
/// 13 % (√(2 / (blocks − 1)) for normal counts), and so of 4 to 6 % of an interval's width.
const MAX_BLOCKS: usize = 256;
/// Counts of latencies per level and block of consecutive samples, in bounded memory.
///
/// Samples are recorded in the order of arrival. There are always 128 to 256 complete blocks of
/// equal length (fewer before the 128th sample): when there are 256, neighbours are merged and
/// the block length doubles. Memory is 1.9 MB whatever the length of the trace, allocated with the
/// first sample. A counter that would exceed `u32::MAX` stays there; that takes 5·10^11 samples.
#[derive(Clone, Default)]
pub struct BlockCounts {
    /// One row of `LEVELS` counters for each block.
    counts: Vec<u32>,
    /// Blocks begun, the last of which lacks `left` samples.
    blocks: usize,
    length: u64,
    left: u64,
    /// Where the current block's row starts in `counts`.
    row: usize,
}

impl BlockCounts {
    /// So many samples above a latency make its design effect worth reading.
    ///
    /// The variance of the number of n independent ones in 128 blocks is estimated with the relative variance
    /// 2 / 127 + 1 / n. So the design effect has a standard error of 22 % for 30, and an interval's width one of
    /// 11 %; for 10 it is 34 %, and however many there are at least 13 %.
    pub const TELLING: u64 = 30;

    /// Counts of no samples.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the next samples' latencies in nanoseconds; negative ones count as zero.
    #[inline]
    pub fn record_all(&mut self, values_ns: &[i64]) {
        let mut rest = values_ns;
        while !rest.is_empty() {
            if self.left == 0 {
                self.begin_block();
            }
            let now = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
            let (block, later) = rest.split_at(now);
            self.left -= now as u64;
            let row = &mut self.counts[self.row..][..LEVELS];
            for &value_ns in block {
                let count = &mut row[level(value_ns)];
                *count = count.saturating_add(1);
            }
            rest = later;
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_block(&mut self) {
        if self.counts.is_empty() {
            self.counts = vec![0; MAX_BLOCKS * LEVELS];
            self.length = 1;
        }
        if self.blocks == MAX_BLOCKS {
            self.merge_neighbours();
        }
        self.row = self.blocks * LEVELS;
        self.counts[self.row..][..LEVELS].fill(0);
        self.blocks += 1;
        self.left = self.length;
    }

    fn merge_neighbours(&mut self) {
        self.blocks /= 2;
        self.length *= 2;
        for block in 0..self.blocks {
            let (first, second) = (2 * block * LEVELS, (2 * block + 1) * LEVELS);
            self.counts.copy_within(first..second, block * LEVELS);
            let (sums, rest) = self.counts.split_at_mut(second);
            let sums = &mut sums[block * LEVELS..][..LEVELS];
            for (sum, count) in sums.iter_mut().zip(&rest[..LEVELS]) {
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// The factor D >= 1 by which clustering inflates the variance of the number of samples above
    /// `threshold_ns`; [`ranks`](super::ranks) takes it for an interval of this confidence. `above` of all samples lie
    /// above the threshold.
    ///
    /// It is the long-run variance of that number divided by the binomial one, from the counts of the blocks, raised as
    /// Student's t widens an interval of this confidence where it is known from little (the `long_run` module says
    /// how; the table of docs/intervals.md measures the coverage it leads to).
    ///
    /// The threshold lies inside a level. Which of the level's samples are above it is taken as chance, with the share
    /// that `above` leaves for them: a level is 1.6 % wide, and within it order is rarely more than noise.
    ///
    /// What remains unseen is what the run does not hold several times: a regime that it met once or never, one long
    /// stall. With fewer than 16 samples, with none or all above the threshold, and for tails more regular than chance
    /// (a periodic cause), D is 1.
    #[must_use]
    pub fn design_effect(&self, threshold_ns: i64, above: u64, confidence: Probability) -> f64 {
        let bucket = level(threshold_ns);
        let from = self.at_or_above(bucket);
        let within: Vec<u64> = self.rows().map(|row| u64::from(row[bucket])).collect();
        let blocks = from.len() as f64;
        let all = (self.length * self.blocks as u64 - self.left) as f64;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        let (mean_from, mean_within) = (sum(&from) / blocks, sum(&within) / blocks);
        let below = mean_from - above as f64 / all * self.length as f64;
        let share = 1.0 - (below / mean_within).clamp(0.0, 1.0);
        let share = if share.is_nan() { 0.0 } else { share };
        let counts = from.iter().zip(&within);
        let counts =
            counts.map(|(&from, &within)| from as f64 - (1.0 - share) * within as f64).collect();
        let chance = share * (1.0 - share) * mean_within;
        Blocks { counts, chance, length: self.length as f64 }.inflation(confidence)
    }

    /// The complete blocks' counters.
    fn rows(&self) -> impl Iterator<Item = &[u32]> {
        let complete = self.blocks - usize::from(self.left > 0);
        self.counts.chunks_exact(LEVELS).take(complete)
    }

    /// How many samples of each complete block lie at or above `level`.
    fn at_or_above(&self, level: usize) -> Vec<u64> {
        let sum = |row: &[u32]| row[level..].iter().map(|&n| u64::from(n)).sum();
        self.rows().map(sum).collect()
    }

    /// Records `n` equal samples in a row, so that simulations need not loop over the body.
    #[cfg(test)]
    pub(super) fn record_n(&mut self, value_ns: i64, mut n: u64) {
        while n > 0 {
            if self.left == 0 {
                self.begin_block();
            }
            let now = n.min(self.left);
            self.left -= now;
            n -= now;
            self.counts[self.row + level(value_ns)] += u32::try_from(now).unwrap();
        }
    }
}

impl fmt::Debug for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCounts")
            .field("blocks", &self.blocks)
            .field("length", &self.length)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// The level of a latency: linear below 64 ns, then 64 levels per octave.
#[inline]
fn level(value_ns: i64) -> usize {
    let value = value_ns.max(0).cast_unsigned();
    // Setting bit 6 makes the first octaves linear without a branch.
    let shift = 63 - SUB_BITS - (value | (1 << SUB_BITS)).leading_zeros();
    let level = (u64::from(shift) << SUB_BITS) + (value >> shift);
    (level as usize).min(LEVELS - 1)
}

/// How many runs of consecutive numbers an ascending list of sample indices consists of: the
/// number of clusters that the worst packets came in. Repeated indices count once.
#[must_use]
pub fn runs(sorted_indices: &[u64]) -> u64 {
    let same_run = |a: &u64, b: &u64| b.saturating_sub(*a) <= 1;
    sorted_indices.chunk_by(same_run).count() as u64
}

#[cfg(test)]
mod tests;
