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

/// Dependence of successive samples, as the blocks of a run show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependence {
    /// The design effect: the long-run variance of a number of samples divided by that of independent ones.
    pub effect: f64,
    /// The degrees of freedom of that estimate: about the number of clusters that it rests on.
    pub freedom: f64,
}

impl Dependence {
    /// Dependence of independent samples: a design effect of 1.
    pub const NONE: Self = Self { effect: 1.0, freedom: f64::INFINITY };

    /// Dependence of the samples that belong to a share of all, from their number in each of successive blocks of
    /// `length` samples.
    #[must_use]
    pub fn of_blocks(numbers: impl IntoIterator<Item = u64>, length: u64) -> Self {
        let counts = numbers.into_iter().map(|number| number as f64).collect();
        Blocks { counts, chance: 0.0, length: length as f64 }.dependence()
    }

    /// The design effect D >= 1 that an interval of this confidence takes: raised as Student's t widens it.
    #[must_use]
    pub fn raised(self, confidence: Probability) -> f64 {
        (self.effect * student::widening(confidence, self.freedom)).max(1.0)
    }
}

impl Blocks {
    /// The design effect: the variance of the sum of the counts divided by the binomial variance.
    ///
    /// * Blocks that are not much longer than the dependence are alike themselves. Their correlation is taken as that of
    ///   a first-order autoregression with the lag-1 correlation φ of the blocks, which raises the variance of the sum by
    ///   (1 + φ) / (1 − φ) (as N-Skart does: Tafazzoli, Steiger and Wilson 2011, *INFORMS Journal on Computing* 23). The
    ///   estimate of φ is too low by (1 + 3 φ) / blocks (Kendall 1954, *Biometrika* 41), which is added. One below three
    ///   standard errors, 3 / √blocks, is taken as 0: with two, chance gave one independent run in a hundred a D of 4,
    ///   with three one of 2.
    /// * The degrees of freedom of D are 2 over its relative variance: that of the variance between blocks,
    ///   (kurtosis − 1) / blocks, times (1 + ψ) / (1 − ψ) where squared deviations have the lag-1 correlation ψ, since few
    ///   long clusters are many blocks that are alike; and that of the correction, 4 / (blocks (1 − φ²)).
    /// * Blocks merged 2, 4, 8 and for 256 blocks 16 at a time are tried too, since an autoregression has a single
    ///   correlation time. They are believed where they raise D by more than a standard error: independent samples
    ///   then have a D of 1.05 (median), and 98 of 100 runs one below 2.
    ///
    /// None with fewer than 16 blocks, and for counts more regular than chance.
    pub(crate) fn dependence(mut self) -> Dependence {
        let raised =
            |one: Dependence| one.effect * student::widening(Probability::P95, one.freedom);
        let mut believed: Option<Dependence> = None;
        while self.counts.len() >= MIN_BLOCKS {
            let Some(scale) = self.scale() else { break };
            let error = (2.0 / self.counts.len() as f64).sqrt();
            if believed.is_none_or(|best| raised(scale) > raised(best).max(1.0) * (1.0 + error)) {
                believed = Some(scale);
            }
            self.merge_neighbours();
        }
        believed.filter(|one| raised(*one) > 1.0).unwrap_or(Dependence::NONE)
    }

    fn merge_neighbours(&mut self) {
        self.counts = self.counts.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        self.chance *= 2.0;
        self.length *= 2.0;
    }

    /// The estimate from blocks of this length; `None` where all have the same count.
    fn scale(&self) -> Option<Dependence> {
        let blocks = self.counts.len() as f64;
        let mean = self.counts.iter().sum::<f64>() / blocks;
        let binomial = mean * (1.0 - mean / self.length);
        let deviations: Vec<f64> = self.counts.iter().map(|count| count - mean).collect();
        let squares: f64 = deviations.iter().map(|d| d * d).sum();
        if binomial <= 0.0 || squares <= 0.0 {
            return None;
        }
        let variance = squares / (blocks - 1.0) + self.chance;
        let seen = products(&deviations) / (squares + blocks * self.chance);
        // Beyond 0.98 a run of 256 blocks holds three correlation times: whatever is added is a guess.
        let alike = (seen + (1.0 + 3.0 * seen.max(0.0)) / blocks).min(0.98);
        let excess: Vec<f64> = deviations.iter().map(|d| d * d - squares / blocks).collect();
        let fourths: f64 = excess.iter().map(|e| e * e).sum();
        let kurtosis_less_one = fourths * blocks / (squares * squares);
        let long = if fourths > 0.0 { (products(&excess) / fourths).clamp(0.0, 0.98) } else { 0.0 };
        let clusters = (1.0 + long) / (1.0 - long);
        let (raised, spread) = if alike >= 3.0 / blocks.sqrt() {
            let of_the_correction = 4.0 / (1.0 - alike * alike);
            let raised = (1.0 + alike) / (1.0 - alike);
            (raised, kurtosis_less_one.max(2.0) * clusters + of_the_correction)
        } else {
            (1.0, kurtosis_less_one * clusters)
        };
        Some(Dependence { effect: variance * raised / binomial, freedom: 2.0 * blocks / spread })
    }
}

/// The sum of the products of neighbours.
fn products(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| pair[0] * pair[1]).sum()
}
