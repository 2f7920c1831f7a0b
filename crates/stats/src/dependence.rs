//! How much the tail clusters: one stall delays many packets in a row.

use std::fmt;

use super::Probability;
use super::interval::student_raise;

/// Resolution of the latency levels: 64 per octave, so that a level is at most 1.6 % wide and
/// latencies up to 127 ns have a level each.
const SUB_BITS: u32 = 6;
/// Latencies from 2^33 ns (8.6 s) on share the last level.
const MAX_BITS: u32 = 33;
const LEVELS: usize = (((MAX_BITS - SUB_BITS) as usize) << SUB_BITS) + (1 << SUB_BITS) + 1;

/// Blocks are merged in pairs when there are so many. 128 to 256 give a relative standard error of the variance of 9 to
/// 13 % (√(2 / (blocks − 1)) for normal counts), and so of 4 to 6 % of an interval's width.
const MAX_BLOCKS: usize = 256;
/// With fewer blocks the variance between them says too little. Eight to ten batches are the fewest that widen an
/// interval by little, and beyond thirty nothing is gained (Schmeiser 1982, *Operations Research* 30, p. 556); of the
/// powers of two that merging leads to, 16 is the only one between. Student's t of its 15 degrees of freedom is 9 %
/// above the normal deviate.
const MIN_BLOCKS: usize = 16;

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
    /// `threshold_ns`; [`ranks`](super::ranks) takes it for an interval of this confidence.
    ///
    /// It is the variance of that number over blocks divided by the binomial variance m·q·(1 − q),
    /// with m samples in a block of which the fraction q lies above. Three corrections, each on the
    /// side of wider intervals (the tests measure the coverage they lead to):
    ///
    /// * The threshold lies inside a level. The larger D of the level's two edges counts, except
    ///   an upper edge with fewer than 30 samples above it, which is too few to tell; and except a
    ///   lower edge in the body (half of the samples above it), whose slow drift is not the tail's,
    ///   if the upper edge tells.
    /// * A variance from few clusters is itself uncertain: D is raised as Student's t widens an
    ///   interval of this confidence ([`student_raise`]), by the uncertainty seen in the blocks'
    ///   kurtosis.
    /// * Dependence longer than a block hides from it. Blocks merged 2, 4, 8 (and for 256 blocks
    ///   16) at a time are tried too, and believed where they raise D by more than twice its
    ///   standard error, which chance does in 2.3 % of normal ones: independent samples are hardly
    ///   punished. Which are believed does not depend on the confidence.
    ///
    /// What remains unseen is dependence over more than a sixteenth of the samples, such as one
    /// slow drift or a single long stall. With fewer than 16 samples, with none or all above the
    /// threshold, and for tails more regular than chance (a periodic cause), D is 1.
    #[must_use]
    pub fn design_effect(&self, threshold_ns: i64, confidence: Probability) -> f64 {
        let raise = student_raise(confidence);
        let bucket = level(threshold_ns);
        let from = self.at_or_above(bucket);
        let within = self.rows().map(|row| u64::from(row[bucket]));
        let beyond: Vec<u64> = from.iter().zip(within).map(|(n, within)| n - within).collect();

        let samples = self.length * from.len() as u64;
        let body = |counts: &[u64]| counts.iter().sum::<u64>() > samples / 2;
        if beyond.iter().sum::<u64>() < Self::TELLING {
            self.inflation(from, raise)
        } else if body(&from) && !body(&beyond) {
            self.inflation(beyond, raise)
        } else {
            self.inflation(from, raise).max(self.inflation(beyond, raise))
        }
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

    /// The design effect from the number of samples above an edge in each block, raised by this part of
    /// its relative variance.
    fn inflation(&self, mut above: Vec<u64>, raise: f64) -> f64 {
        let usual = student_raise(Probability::P95);
        let (mut best, mut believed) = (1.0_f64, 1.0_f64);
        let mut length = self.length as f64;
        let mut finest = true;
        while above.len() >= MIN_BLOCKS {
            let blocks = above.len() as f64;
            let mean = above.iter().sum::<u64>() as f64 / blocks;
            let binomial = mean * (1.0 - mean / length);
            let power = |k| above.iter().map(|&n| (n as f64 - mean).powi(k)).sum::<f64>();
            let (squares, fourths) = (power(2), power(4));
            if binomial <= 0.0 || squares <= 0.0 {
                break;
            }
            // The relative variance of a variance is (kurtosis − 1) / blocks.
            let uncertainty = (fourths * blocks / (squares * squares) - 1.0) / blocks;
            let effect = squares / (blocks - 1.0) / binomial;
            let comparable = effect * (1.0 + usual * uncertainty);
            if finest || comparable > best * (1.0 + 2.0 * (2.0 / blocks).sqrt()) {
                best = best.max(comparable);
                believed = believed.max(effect * (1.0 + raise * uncertainty));
            }
            finest = false;
            length *= 2.0;
            above = above.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        }
        believed
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
