//! One side of a comparison: how much the number of late packets varies.

use super::repetition::{BLOCKS, Repetition};
use super::result::{Group, Resampling};
use super::student::both_tails;
use crate::stats::{Probability, Ranked};

/// Blocks are merged until so few are left, where dependence is longer than one.
const FEWEST: usize = 8;
/// With fewer units than this, resampling them says too little of how they vary.
const TELLING: usize = 16;
/// A run drifts where its halves differ by more than its blocks let expect but once in a hundred.
const DRIFTS: f64 = 0.01;
/// An edge whose odds are more than so many times the asked ones is not that quantile's.
const FAR: f64 = 2.0;

/// Exceedances of one latency per unit, less what is expected of a unit of its size.
#[derive(Debug, Clone, Default)]
pub(super) struct Excess {
    /// The share of all samples beyond.
    pub(super) share: f64,
    /// Per unit; they add up to zero.
    pub(super) of: Vec<f64>,
    /// Variance of the number beyond over the binomial one.
    pub(super) effect: f64,
    /// Whether units are too few for resampling them.
    pub(super) few: bool,
    /// Whether the units are the halves of a run that drifts.
    pub(super) drifts: bool,
}

impl Excess {
    /// The relative variance of the effect, from the kurtosis of the units: few large clusters say
    /// little of how large clusters are. No less than that of normal units.
    pub(super) fn uncertainty(&self) -> f64 {
        let units = self.of.len() as f64;
        let power = |k| self.of.iter().map(|one| one.powi(k)).sum::<f64>();
        let (squares, fourths) = (power(2), power(4));
        let normal = 2.0 / (units - 1.0).max(1.0);
        if squares <= 0.0 {
            return normal;
        }
        ((fourths * units / (squares * squares) - 1.0) / units).max(normal)
    }

    /// The effect that a distance is measured with. A tail that is more regular than chance has a
    /// periodic cause, whose phase will be another one next time: it counts as chance.
    pub(super) fn studentising(&self) -> f64 {
        let regular = 1.0 - 2.0 * (2.0 / self.of.len().max(1) as f64).sqrt();
        if !self.few && self.effect < regular { 1.0 } else { self.effect }
    }

    /// Whether successive units are alike by more than the standard error of their correlation.
    /// `runs` follow each other at unknown distances: pairs across them do not count.
    fn alike(&self, runs: usize) -> bool {
        let units = self.of.len() as f64;
        let within = self.of.chunks(self.of.len().div_ceil(runs).max(1));
        let pairs: f64 = within.flat_map(|run| run.windows(2)).map(|pair| pair[0] * pair[1]).sum();
        let squares: f64 = self.of.iter().map(|one| one * one).sum();
        // Deviations from a common mean are correlated by −1 / units when nothing else is.
        pairs > squares * (1.0 / units.sqrt() - 1.0 / units)
    }

    /// The halves of a run, if they differ by more than its blocks let expect, or if even its
    /// longest blocks are alike. As a random walk goes on, the level of one run differs from that
    /// of the next with the variance that the halves of both have together.
    fn drift(&self) -> Option<[f64; 2]> {
        let units = self.of.len();
        let halves = self.of.chunks(units.div_ceil(2).max(1));
        let sum = |half: &[f64]| half.iter().sum::<f64>();
        let around = |half: &[f64]| {
            let mean = sum(half) / half.len() as f64;
            half.iter().map(|one| (one - mean).powi(2)).sum::<f64>()
        };
        let rest: f64 = halves.clone().map(around).sum();
        let early = halves.clone().next().map_or(0.0, sum);
        let freedom = units as f64 - 2.0;
        let error = (units as f64 * rest / freedom).sqrt();
        let differ = rest > 0.0 && both_tails(2.0 * early / error, freedom) < DRIFTS;
        let endless = units <= FEWEST && self.alike(1);
        (differ || endless).then_some([2.0 * early, -2.0 * early])
    }
}

/// The repetitions of a side.
pub(super) struct Side<'a> {
    repetitions: &'a [Repetition],
    pooled: Ranked,
    by: Resampling,
    /// Blocks in a unit.
    merged: usize,
}

impl<'a> Side<'a> {
    /// Merges neighbouring blocks as far as dependence at any of the quantiles asks for.
    pub(super) fn new(repetitions: &'a [Repetition], by: Resampling, ps: &[Probability]) -> Self {
        let pooled = Ranked::merged(repetitions.iter().flat_map(Repetition::blocks));
        let mut side = Self { repetitions, pooled, by, merged: 1 };
        if by == Resampling::Blocks {
            side.merged = ps.iter().map(|&p| side.wanted(p)).max().unwrap_or(1);
        }
        side
    }

    pub(super) fn by(&self) -> Resampling {
        self.by
    }

    pub(super) fn samples(&self) -> u64 {
        self.pooled.count()
    }

    pub(super) fn quantile(&self, p: Probability) -> Option<i64> {
        self.pooled.quantile(p)
    }

    pub(super) fn distribution(&self) -> &Ranked {
        &self.pooled
    }

    pub(super) fn group(&self) -> Group {
        let blocks = self.repetitions.len() * BLOCKS / self.merged;
        let units = if self.by == Resampling::Blocks { blocks } else { self.repetitions.len() };
        let entries = self.pooled.entries();
        Group {
            repetitions: self.repetitions.len(),
            samples: self.samples(),
            units,
            min_ns: entries.first().map(|entry| entry.0),
            max_ns: entries.last().map(|entry| entry.0),
        }
    }

    /// The excess per resampled unit at the quantile `p`; per half where the run drifts.
    pub(super) fn excess(&self, p: Probability) -> Excess {
        let mut excess = match self.by {
            Resampling::Blocks => self.widest(p, self.merged),
            Resampling::Repetitions => self.widest(p, BLOCKS),
        };
        let single = self.by == Resampling::Blocks && self.repetitions.len() == 1;
        if let Some(halves) = excess.drift().filter(|_| single) {
            let effect = effect(&halves, excess.share, self.samples() as f64);
            excess = Excess { of: halves.to_vec(), effect, few: true, drifts: true, ..excess };
        }
        excess
    }

    /// The excess per block, whatever is resampled: what the samples within runs are worth.
    pub(super) fn within(&self, p: Probability) -> Excess {
        let merged = if self.by == Resampling::Blocks { self.merged } else { 1 };
        self.widest(p, merged)
    }

    /// How many blocks to merge: twice as many as long as successive ones are alike by more than
    /// the standard error of their correlation. Merging too often costs a little power, merging too
    /// seldom hides that samples are worth less.
    fn wanted(&self, p: Probability) -> usize {
        let mut merged = 1;
        while BLOCKS / merged > FEWEST {
            if !self.widest(p, merged).alike(self.repetitions.len()) {
                break;
            }
            merged *= 2;
        }
        merged
    }

    /// The quantile is a latency that several packets may have: of its two edges, packets beyond it
    /// and packets at or beyond it, the one that varies more, as long as both are near `p`.
    fn widest(&self, p: Probability, merged: usize) -> Excess {
        let odds = p.complement_f64() / p.as_f64();
        let far = |excess: &Excess| (excess.share / (1.0 - excess.share) / odds).ln().abs();
        let value_ns = self.quantile(p).unwrap_or(0);
        let edges = [value_ns.saturating_sub(1), value_ns].map(|edge| self.beyond(edge, merged));
        let near = |excess: &&Excess| far(excess) <= FAR.ln();
        let most = |x: &&Excess, y: &&Excess| x.effect.total_cmp(&y.effect);
        let least = |x: &&Excess, y: &&Excess| far(x).total_cmp(&far(y));
        let chosen = edges.iter().filter(near).max_by(most);
        let chosen = chosen.or_else(|| edges.iter().min_by(least));
        chosen.cloned().unwrap_or_default()
    }

    /// Excess over `value_ns` per unit of so many blocks.
    fn beyond(&self, value_ns: i64, merged: usize) -> Excess {
        let samples = self.samples().max(1) as f64;
        let share = self.pooled.count_above(value_ns) as f64 / samples;
        let unit = |blocks: &[Ranked]| {
            let beyond: u64 = blocks.iter().map(|block| block.count_above(value_ns)).sum();
            let size: u64 = blocks.iter().map(Ranked::count).sum();
            beyond as f64 - share * size as f64
        };
        let blocks = self.repetitions.iter().flat_map(|run| run.blocks().chunks(merged));
        let of: Vec<f64> = blocks.map(unit).collect();
        let effect = effect(&of, share, samples);
        let few = self.by == Resampling::Repetitions || of.len() < TELLING;
        Excess { share, of, effect, few, drifts: false }
    }
}

/// The variance of a sum over units, from their deviations, over the binomial one.
pub(super) fn effect(deviations: &[f64], share: f64, samples: f64) -> f64 {
    let binomial = samples * share * (1.0 - share);
    let units = deviations.len() as f64;
    if binomial <= 0.0 || units < 2.0 {
        return 1.0;
    }
    let squares: f64 = deviations.iter().map(|excess| excess * excess).sum();
    // Counts are whole: equal ones in two repetitions do not mean that nothing varies.
    (squares * units / (units - 1.0)).max(0.25) / binomial
}
