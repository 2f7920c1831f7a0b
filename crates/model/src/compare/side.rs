//! One side of a comparison: how much the number of late packets varies.

use super::repetition::{BLOCKS, Repetition};
use super::result::{Group, Resampling};
use crate::stats::{Probability, Ranked};

/// Blocks are merged until so few are left, where dependence is longer than one.
const FEWEST: usize = 4;
/// With fewer units than this, resampling them says too little of how they vary.
const TELLING: usize = 16;
/// An edge whose odds are more than so many times the asked ones is not that quantile's.
const FAR: f64 = 2.0;

/// Exceedances of one latency per unit, less what is expected of a unit of its size.
#[derive(Debug, Clone)]
pub(super) struct Excess {
    /// The share of all samples beyond.
    pub(super) share: f64,
    /// Per unit; they add up to zero.
    pub(super) of: Vec<f64>,
    /// Variance of the number beyond over the binomial one.
    pub(super) effect: f64,
}

impl Excess {
    /// The effect raised as Student's t raises a 95 % interval, since a variance from few clusters
    /// is uncertain itself: what samples are worth, as in the intervals of one run.
    pub(super) fn careful_effect(&self) -> f64 {
        let units = self.of.len() as f64;
        let power = |k| self.of.iter().map(|one| one.powi(k)).sum::<f64>();
        let (squares, fourths) = (power(2), power(4));
        if squares <= 0.0 {
            return self.effect.max(1.0);
        }
        let uncertainty = (fourths * units / (squares * squares) - 1.0) / units;
        (self.effect * (1.0 + (1.96 * 1.96 + 1.0) / 4.0 * uncertainty)).max(1.0)
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

    pub(super) fn samples(&self) -> u64 {
        self.pooled.count()
    }

    pub(super) fn quantile(&self, p: Probability) -> Option<i64> {
        self.pooled.quantile(p)
    }

    pub(super) fn distribution(&self) -> &Ranked {
        &self.pooled
    }

    /// Whether units are too few for resampling them.
    pub(super) fn has_few(&self) -> bool {
        self.by == Resampling::Repetitions || self.group().units < TELLING
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

    /// The excess per resampled unit at the quantile `p`.
    pub(super) fn excess(&self, p: Probability) -> Excess {
        match self.by {
            Resampling::Blocks => self.widest(p, self.merged),
            Resampling::Repetitions => self.widest(p, BLOCKS),
        }
    }

    /// The excess per block, whatever is resampled: what the samples within runs are worth.
    pub(super) fn within(&self, p: Probability) -> Excess {
        let merged = if self.by == Resampling::Blocks { self.merged } else { 1 };
        self.widest(p, merged)
    }

    /// How many blocks to merge: twice as many as long as successive ones are alike by more than
    /// twice the standard error of their correlation. A drift over the whole run leaves few.
    fn wanted(&self, p: Probability) -> usize {
        let mut merged = 1;
        while BLOCKS / merged > FEWEST {
            let of = self.widest(p, merged).of;
            let units = of.len() as f64;
            // Runs follow each other at unknown distances: pairs across them do not count.
            let within = of.chunks(BLOCKS / merged).flat_map(|run| run.windows(2));
            let alike: f64 = within.map(|pair| pair[0] * pair[1]).sum();
            let squares: f64 = of.iter().map(|one| one * one).sum();
            // Deviations from a common mean are correlated by −1 / units when nothing else is.
            if alike <= squares * (2.0 / units.sqrt() - 1.0 / units) {
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
        chosen.cloned().unwrap_or(Excess { share: 0.0, of: Vec::new(), effect: 1.0 })
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
        Excess { share, of, effect }
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
