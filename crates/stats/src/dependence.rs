//! Clustering of late packets: one stall delays many packets in a row.

use std::fmt;

use super::Probability;
use super::grid::Grid;
use super::long_run::{Blocks, Dependence};
use serde::{Deserialize, Serialize};

/// Resolution of the latency levels: 64 per octave, so that a level is at most 1.6 % wide and
/// latencies up to 127 ns have a level each.
const SUB_BITS: u32 = 6;
/// Latencies from 2^33 ns (8.6 s) on share the last level.
const MAX_BITS: u32 = 33;
const LEVELS: usize = (((MAX_BITS - SUB_BITS) as usize) << SUB_BITS) + (1 << SUB_BITS) + 1;

/// Blocks are merged in pairs when there are so many. 128 to 256 give a relative standard error of the variance of 9 to
/// 13 % (√(2 / (blocks − 1)) for normal counts), and so of 4 to 6 % of an interval's width.
const MAX_BLOCKS: u64 = 256;
/// Counts of latencies per level and block of consecutive samples, in bounded memory.
///
/// Samples are recorded in the order of arrival. There are always 128 to 256 complete blocks of
/// equal length (fewer before the 128th sample): when there are 256, neighbours are merged and
/// the block length doubles. Memory is 1.9 MB whatever the length of the trace, allocated with the
/// first sample. A counter that would exceed `u32::MAX` stays there; that takes 5·10^11 samples.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCounts {
    /// One row of `LEVELS` counters for each block that is held; empty before the first sample.
    counts: Vec<u32>,
    grid: Grid,
}

impl Default for BlockCounts {
    fn default() -> Self {
        Self::behind(0)
    }
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

    /// Counts of the samples behind so many others, to be [added](Self::append) to the counts of those.
    #[must_use]
    pub fn behind(samples: u64) -> Self {
        Self { counts: Vec::new(), grid: Grid::behind(samples, MAX_BLOCKS) }
    }

    /// Records the next samples' latencies in nanoseconds; negative ones count as zero.
    #[inline]
    pub fn record_all(&mut self, values_ns: &[i64]) {
        let mut rest = values_ns;
        while !rest.is_empty() {
            let left = self.within_block();
            let now = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
            let (block, later) = rest.split_at(now);
            self.grid.left -= now as u64;
            let row = (self.grid.held - 1) * LEVELS;
            let row = &mut self.counts[row..][..LEVELS];
            for &value_ns in block {
                let count = &mut row[level(value_ns)];
                *count = count.saturating_add(1);
            }
            rest = later;
        }
    }

    /// Begins a block where the last one is complete. Returns how many samples it lacks.
    #[inline]
    fn within_block(&mut self) -> u64 {
        if self.grid.left == 0 || self.counts.is_empty() {
            self.begin_block();
        }
        self.grid.left
    }

    #[cold]
    #[inline(never)]
    fn begin_block(&mut self) {
        if self.counts.is_empty() {
            // All that there will be, so that rows are never moved to a larger place.
            self.counts.reserve_exact(MAX_BLOCKS as usize * LEVELS);
            self.counts.resize(self.grid.held * LEVELS, 0);
        }
        if self.grid.left == 0 {
            if self.grid.is_full() {
                self.double();
            }
            self.grid.begin();
            self.counts.resize(self.grid.held * LEVELS, 0);
        }
    }

    fn double(&mut self) {
        let mut last = None;
        for (place, into) in self.grid.double().enumerate() {
            let row = place * LEVELS..(place + 1) * LEVELS;
            if last == Some(into) {
                let (sums, rest) = self.counts.split_at_mut(row.start);
                let sums = &mut sums[into * LEVELS..][..LEVELS];
                add(sums, &rest[..LEVELS]);
            } else {
                self.counts.copy_within(row, into * LEVELS);
            }
            last = Some(into);
        }
        self.counts.resize(self.grid.held * LEVELS, 0);
    }

    /// Adds the samples that follow, which were recorded [behind](Self::behind) as many as were recorded here.
    pub fn append(&mut self, later: &Self) {
        if later.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            self.counts.resize(self.grid.held * LEVELS, 0);
        }
        while self.grid.length < later.grid.length {
            self.double();
        }
        let from = (later.grid.first - self.grid.first) as usize * LEVELS;
        self.counts.resize(from + later.counts.len(), 0);
        add(&mut self.counts[from..], &later.counts);
        self.grid.append(later.grid);
    }

    /// The factor D >= 1 by which clustering inflates the variance of the number of samples above `threshold_ns`, raised
    /// for an interval of this confidence. `above` of all samples lie above the threshold.
    #[must_use]
    pub fn design_effect(&self, threshold_ns: i64, above: u64, confidence: Probability) -> f64 {
        self.dependence(threshold_ns, above).raised(confidence)
    }

    /// Clusters of the samples above `threshold_ns`, `above` of all.
    ///
    /// It is the long-run variance of their number divided by the binomial one, from the counts of the blocks (the
    /// `long_run` module says how).
    ///
    /// The threshold lies inside a level. Which of the level's samples are above it is taken as chance, with the share
    /// that `above` leaves for them: a level is 1.6 % wide, and within it order is rarely more than noise.
    ///
    /// What remains unseen is what the run does not hold several times: a regime that it met once or never, one long
    /// stall. The result is [`Dependence::NONE`] with fewer than 16 samples, with none or all above the threshold, and for
    /// tails more regular than chance (a periodic cause).
    #[must_use]
    pub fn dependence(&self, threshold_ns: i64, above: u64) -> Dependence {
        let bucket = level(threshold_ns);
        let within = self.rows().map(|row| u64::from(row[bucket]));
        self.dependence_of(&self.at_or_above(bucket), &within.collect::<Vec<_>>(), above)
    }

    /// The same for many thresholds.
    pub(crate) fn cumulated(&self) -> Cumulated<'_> {
        let mut from = Vec::with_capacity(self.grid.complete() * (LEVELS + 1));
        for row in self.rows() {
            let begin = from.len();
            from.resize(begin + LEVELS + 1, 0);
            let mut sum = 0;
            for (from, &n) in from[begin..begin + LEVELS].iter_mut().zip(row).rev() {
                sum += u64::from(n);
                *from = sum;
            }
        }
        Cumulated { blocks: self, from }
    }

    /// Dependence from the number of samples of each complete block at or above a level, and within it.
    fn dependence_of(&self, from: &[u64], within: &[u64], above: u64) -> Dependence {
        let blocks = from.len() as f64;
        let all = (self.grid.length * self.grid.held as u64 - self.grid.left) as f64;
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        let (mean_from, mean_within) = (sum(from) / blocks, sum(within) / blocks);
        let below = mean_from - above as f64 / all * self.grid.length as f64;
        let share = 1.0 - (below / mean_within).clamp(0.0, 1.0);
        let share = if share.is_nan() { 0.0 } else { share };
        let counts = from.iter().zip(within);
        let counts =
            counts.map(|(&from, &within)| from as f64 - (1.0 - share) * within as f64).collect();
        let chance = share * (1.0 - share) * mean_within;
        Blocks { counts, chance, length: self.grid.length as f64 }.dependence()
    }

    /// The complete blocks' counters.
    fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.counts.chunks_exact(LEVELS).take(self.grid.complete())
    }

    /// Number of samples of each complete block at or above `level`.
    fn at_or_above(&self, level: usize) -> Vec<u64> {
        let sum = |row: &[u32]| row[level..].iter().map(|&n| u64::from(n)).sum();
        self.rows().map(sum).collect()
    }

    /// Records `n` equal samples in a row, so that simulations need not loop over the body.
    #[cfg(test)]
    pub(super) fn record_n(&mut self, value_ns: i64, mut n: u64) {
        while n > 0 {
            let now = n.min(self.within_block());
            self.grid.left -= now;
            n -= now;
            let row = (self.grid.held - 1) * LEVELS;
            self.counts[row + level(value_ns)] += u32::try_from(now).unwrap();
        }
    }
}

/// Blocks, with the number of samples at or above each level.
pub(crate) struct Cumulated<'a> {
    blocks: &'a BlockCounts,
    /// A row of `LEVELS + 1` numbers for each complete block.
    from: Vec<u64>,
}

impl Cumulated<'_> {
    /// See [`BlockCounts::dependence`].
    pub(crate) fn dependence(&self, threshold_ns: i64, above: u64) -> Dependence {
        let bucket = level(threshold_ns);
        let rows = self.from.chunks_exact(LEVELS + 1);
        let (from, within): (Vec<u64>, Vec<u64>) =
            rows.map(|row| (row[bucket], row[bucket] - row[bucket + 1])).unzip();
        self.blocks.dependence_of(&from, &within, above)
    }
}

/// Adds counters to others, which stay at their largest value.
fn add(sums: &mut [u32], counts: &[u32]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

impl fmt::Debug for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCounts").field("grid", &self.grid).finish_non_exhaustive()
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

/// Number of runs of consecutive numbers in an ascending list of sample indices: the number of clusters that the worst
/// packets came in. Repeated indices count once.
#[must_use]
pub fn runs(sorted_indices: &[u64]) -> u64 {
    let same_run = |a: &u64, b: &u64| b.saturating_sub(*a) <= 1;
    sorted_indices.chunk_by(same_run).count() as u64
}

#[cfg(test)]
mod tests;
