//! By how much dependence inflates the variance of a sum, seen in the counts of successive blocks.

use super::Probability;
use super::student;

/// With fewer blocks the variance between them says too little. Eight to ten batches are the fewest that widen an
/// interval by little, and beyond thirty nothing is gained (Schmeiser 1982, *Operations Research* 30, p. 556); of the
/// powers of two that merging leads to, 16 is the only one between.
const MIN_BLOCKS: usize = 16;

/// Counts, by block of successive samples, of the samples that belong to a share of all.
pub(crate) struct Blocks {
    /// The numbers, or what is expected of them.
    pub(crate) counts: Vec<f64>,
    /// The variance that chance adds to each number, on top of what is seen.
    pub(crate) chance: f64,
    /// Samples in a block.
    pub(crate) length: f64,
}

/// Estimates from one length of blocks.
struct Scale {
    /// The long-run variance of the counts divided by that of independent samples.
    effect: f64,
    /// The degrees of freedom of that estimate.
    freedom: f64,
}

impl Blocks {
    /// The design effect D >= 1: the variance of the sum of the counts divided by the binomial variance.
    ///
    /// * Blocks that are not much longer than the dependence are alike themselves. Their correlation is taken as that of
    ///   a first-order autoregression with the lag-1 correlation φ of the blocks, which raises the variance of the sum by
    ///   (1 + φ) / (1 − φ) (as N-Skart does: Tafazzoli, Steiger and Wilson 2011, *INFORMS Journal on Computing* 23). The
    ///   estimate of φ is too low by (1 + 3 φ) / blocks (Kendall 1954, *Biometrika* 41), which is added. One below three
    ///   standard errors, 3 / √blocks, is taken as 0: with two, chance gave one independent run in a hundred a D of 4,
    ///   with three one of 2.
    /// * D is raised as Student's t widens an interval of this confidence. Its degrees of freedom are 2 over its relative
    ///   variance: that of the variance between blocks, (kurtosis − 1) / blocks and more where they are alike (Bartlett's
    ///   (1 + φ²) / (1 − φ²)), and that of the correction, 4 / (blocks (1 − φ²)).
    /// * Blocks merged 2, 4, 8 and for 256 blocks 16 at a time are tried too, since an autoregression has a single
    ///   correlation time. They are believed where they raise D by more than a standard error: independent samples
    ///   then have a D of 1.05 (median), and 98 of 100 runs one below 2. Which are believed does not depend on the
    ///   confidence.
    ///
    /// 1 with fewer than 16 blocks, and for counts more regular than chance.
    pub(crate) fn inflation(mut self, confidence: Probability) -> f64 {
        let (mut best, mut believed) = (1.0_f64, 1.0_f64);
        let mut finest = true;
        while self.counts.len() >= MIN_BLOCKS {
            let Some(Scale { effect, freedom }) = self.scale() else { break };
            let comparable = effect * student::widening(Probability::P95, freedom);
            let error = (2.0 / self.counts.len() as f64).sqrt();
            if finest || comparable > best * (1.0 + error) {
                best = best.max(comparable);
                believed = believed.max(effect * student::widening(confidence, freedom));
            }
            finest = false;
            self.merge_neighbours();
        }
        believed
    }

    fn merge_neighbours(&mut self) {
        self.counts = self.counts.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        self.chance *= 2.0;
        self.length *= 2.0;
    }

    /// `None` where all blocks have the same count.
    fn scale(&self) -> Option<Scale> {
        let blocks = self.counts.len() as f64;
        let mean = self.counts.iter().sum::<f64>() / blocks;
        let binomial = mean * (1.0 - mean / self.length);
        let deviations: Vec<f64> = self.counts.iter().map(|count| count - mean).collect();
        let squares: f64 = deviations.iter().map(|d| d * d).sum();
        if binomial <= 0.0 || squares <= 0.0 {
            return None;
        }
        let variance = squares / (blocks - 1.0) + self.chance;
        let fourths: f64 = deviations.iter().map(|d| d.powi(4)).sum();
        let kurtosis = fourths * blocks / (squares * squares);
        let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let seen = products / (squares + blocks * self.chance);
        // Beyond 0.98 a run of 256 blocks holds three correlation times: whatever is added is a guess.
        let alike = (seen + (1.0 + 3.0 * seen.max(0.0)) / blocks).min(0.98);
        if alike < 3.0 / blocks.sqrt() {
            let freedom = 2.0 * blocks / (kurtosis - 1.0);
            return Some(Scale { effect: variance / binomial, freedom });
        }
        let square = alike * alike;
        let spread = ((kurtosis.max(3.0) - 1.0) * (1.0 + square) + 4.0) / (blocks * (1.0 - square));
        let raised = (1.0 + alike) / (1.0 - alike);
        Some(Scale { effect: variance * raised / binomial, freedom: 2.0 / spread })
    }
}
