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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks_of(values: impl IntoIterator<Item = i64>) -> BlockCounts {
        let mut blocks = BlockCounts::new();
        blocks.record_all(&values.into_iter().collect::<Vec<_>>());
        blocks
    }

    /// Pseudo-random but fixed: above 1 µs with the given probability in thousandths.
    fn independent(n: u64, thousandths: u64) -> impl Iterator<Item = i64> {
        let hash = |i: u64| (i ^ (i >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = move |i| hash(hash(i) >> 17) >> 40;
        (0..n).map(move |i| if mixed(i) % 1000 < thousandths { 5000 } else { 500 })
    }

    #[test]
    fn levels_ascend_and_are_narrow() {
        let mut last = 0;
        for octave in 0..33 {
            for step in 0..256_i64 {
                let value = (1_i64 << octave) + ((step << octave) >> 8);
                let here = level(value);
                assert!(here >= last && here < LEVELS, "{value}");
                assert!(level(value + value / 60 + 1) > here, "{value}");
                last = here;
            }
        }
        for value in 0..127 {
            assert_eq!(level(value), value as usize);
        }
        assert_eq!(level(i64::MIN), 0);
        assert_eq!(level(-1), 0);
        assert_eq!(level((1 << 33) - 1), LEVELS - 2);
        assert_eq!(level(1 << 33), LEVELS - 1);
        assert_eq!(level(i64::MAX), LEVELS - 1);
    }

    #[test]
    fn memory_stays_within_two_megabytes() {
        assert_eq!(BlockCounts::new().counts.capacity(), 0);
        let blocks = blocks_of(0..100_000);
        assert!(blocks.counts.capacity() * size_of::<u32>() <= 2 << 20);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn blocks_are_consecutive_samples(values in prop::collection::vec(-5..300_i64, 0..3000)) {
            let blocks = blocks_of(values.iter().copied());
            let complete = blocks.rows().count();
            prop_assert!(complete <= MAX_BLOCKS && complete >= values.len().min(128));
            let edge = level(100);
            let length = blocks.length.max(1) as usize;
            let want: Vec<u64> = values
                .chunks_exact(length)
                .map(|block| block.iter().filter(|v| level(**v) >= edge).count() as u64)
                .collect();
            prop_assert_eq!(blocks.at_or_above(edge), want);
        }

        #[test]
        fn recording_many_is_recording_each(lengths in prop::collection::vec(0..700_u64, 0..12)) {
            let (mut bulk, mut single) = (BlockCounts::new(), BlockCounts::new());
            for (value, n) in lengths.into_iter().enumerate() {
                bulk.record_n(value as i64 * 90, n);
                single.record_all(&vec![value as i64 * 90; n as usize]);
            }
            prop_assert_eq!(bulk.left, single.left);
            prop_assert_eq!(bulk.counts, single.counts);
        }
    }

    #[test]
    fn independent_samples_have_no_effect() {
        for thousandths in [1, 20, 500] {
            let effect =
                blocks_of(independent(300_000, thousandths)).design_effect(1000, Probability::P95);
            assert!((1.0..1.35).contains(&effect), "{thousandths}: {effect}");
        }
    }

    #[test]
    fn clusters_of_k_have_an_effect_of_k() {
        for k in [3_usize, 10, 40] {
            let clustered = independent(60_000, 20).flat_map(|v| std::iter::repeat_n(v, k));
            let effect = blocks_of(clustered).design_effect(1000, Probability::P95);
            let ratio = effect / k as f64;
            assert!((0.8..1.4).contains(&ratio), "{k}: {effect}");
        }
    }

    #[test]
    fn more_confidence_raises_the_effect_of_few_clusters() {
        let clustered = independent(1_000, 20).flat_map(|v| std::iter::repeat_n(v, 40));
        let blocks = blocks_of(clustered);
        let effect = |confidence: &str| blocks.design_effect(1000, confidence.parse().unwrap());
        let [least, usual, most] = ["0.8", "0.95", "0.999"].map(effect);
        assert!(least < usual && usual < most, "{least} {usual} {most}");
    }

    #[test]
    fn clusters_longer_than_a_block_are_seen() {
        // 200 blocks of 16 samples; clusters of 64 samples span four blocks.
        let clustered = independent(50, 200).flat_map(|v| std::iter::repeat_n(v, 64));
        let blocks = blocks_of(clustered);
        assert_eq!(blocks.length, 16);
        let effect = blocks.design_effect(1000, Probability::P95);
        assert!((40.0..120.0).contains(&effect), "{effect}");
    }

    #[test]
    fn a_drifting_body_does_not_count_as_tail() {
        // The body alternates slowly inside the level of 4096..4160 and below it; the tail is
        // independent of that, and its quantile lies in the body's level.
        let tail = independent(200_000, 20).zip(0..);
        let drifting = tail.map(|(v, i)| match (v, i / 20_000 % 3) {
            (5000, _) => 5000,
            (_, 0) => 4090,
            _ => 4100,
        });
        let effect = blocks_of(drifting).design_effect(4100, Probability::P95);
        assert!(effect < 1.5, "{effect}");
    }

    #[test]
    fn one_burst_beyond_the_level_is_too_few_to_tell() {
        // Twenty in a row lie beyond the threshold's level, two thousand independent ones in it.
        let burst = std::iter::repeat_n(9000, 20);
        let blocks = blocks_of(independent(100_000, 20).chain(burst).chain(independent(999, 20)));
        let effect = blocks.design_effect(5000, Probability::P95);
        assert!(effect < 3.0, "{effect}");
    }

    /// The relative variance of the variance of a Poisson number per block, of so many in all.
    #[test]
    fn telling_samples_give_the_effect_to_a_quarter() {
        let error = |above: u64| (2.0 / 127.0 + 1.0 / above as f64).sqrt();
        assert!(error(BlockCounts::TELLING) < 0.25 && error(10) > 0.33);
        let (blocks, seeds, telling) = (128, 2_000_u64, BlockCounts::TELLING);
        let mut ratios = Vec::new();
        let mut state = 7_u64;
        for _ in 0..seeds {
            let mut counts = vec![0.0_f64; blocks];
            for _ in 0..telling {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                counts[(state >> 57) as usize] += 1.0;
            }
            let mean = telling as f64 / blocks as f64;
            let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
            ratios.push(squares / (blocks - 1) as f64 / mean);
        }
        let spread = ratios.iter().map(|ratio| (ratio - 1.0).powi(2)).sum::<f64>() / seeds as f64;
        assert!(spread.sqrt() < error(telling) + 0.01, "{}", spread.sqrt());
    }

    #[test]
    fn without_evidence_the_effect_is_one() {
        assert_eq!(BlockCounts::new().design_effect(5, Probability::P95), 1.0);
        assert_eq!(blocks_of(0..15).design_effect(5, Probability::P95), 1.0);
        assert_eq!(blocks_of([700; 5000]).design_effect(700, Probability::P95), 1.0);
        assert_eq!(blocks_of([700; 5000]).design_effect(i64::MAX, Probability::P95), 1.0);
        // One in ten, exactly periodic: more regular than chance.
        let periodic = (0..50_000).map(|i| if i % 10 == 0 { 9000 } else { 10 });
        assert_eq!(blocks_of(periodic).design_effect(5000, Probability::P95), 1.0);
    }

    #[test]
    fn runs_are_clusters() {
        assert_eq!(runs(&[]), 0);
        assert_eq!(runs(&[7]), 1);
        assert_eq!(runs(&[1, 2, 3, 7, 8, 20]), 3);
        assert_eq!(runs(&[1, 1, 2, u64::MAX - 1, u64::MAX]), 2);
    }
}
