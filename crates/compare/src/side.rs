//! One side of a comparison: how much the number of late packets varies.

use super::dealt::regular;
use super::drift::{drifts, half_waves};
use super::few::LogQuantile;
use super::repetition::{BLOCKS, Repetition};
use super::result::{Group, Resampling};
use tailtrim_stats::{Band, Probability, Ranked};

/// Blocks are merged until so few of a run are left, where dependence is longer than one. Eight of
/// each side are dealt in 12,870 ways, more than are drawn; four would be in 70, of which the least
/// likely has p = 0.03. Eight are also the fewest batches that lengthen an interval by little (Schmeiser
/// 1982, *Operations Research* 30, p. 556).
const FEWEST: usize = 8;
/// An edge whose odds are more than so many times the asked ones is not that quantile's. So both
/// edges count where at most half of the packets at the quantile or beyond tie with it.
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

    /// The effect that a distance is measured with: what is more regular than chance counts as
    /// chance (see [`Dealt`](super::dealt)).
    pub(super) fn studentising(&self) -> f64 {
        if self.effect < regular(self.of.len() as f64) { 1.0 } else { self.effect }
    }

    /// The correlation of successive units. `runs` follow each other at unknown distances: pairs
    /// across them do not count.
    fn correlation(&self, runs: usize) -> f64 {
        let units = self.of.len() as f64;
        let within = self.of.chunks(self.of.len().div_ceil(runs).max(1));
        let pairs: f64 = within.flat_map(|run| run.windows(2)).map(|pair| pair[0] * pair[1]).sum();
        let squares: f64 = self.of.iter().map(|one| one * one).sum();
        // Deviations from a common mean are correlated by −1 / units when nothing else is.
        if squares > 0.0 { pairs / squares + 1.0 / units } else { 0.0 }
    }
}

/// Whether successive units of both sides are alike by more than the standard error of that.
fn alike(sides: &[Side<'_>; 2], p: Probability) -> bool {
    let excess = [0, 1].map(|side| sides[side].within(p));
    let runs = [0, 1].map(|side| sides[side].repetitions.len());
    let units: usize = excess.iter().map(|one| one.of.len()).sum();
    let correlation: f64 = excess.iter().zip(runs).map(|(one, runs)| one.correlation(runs)).sum();
    // That of the mean of two correlations of half as many units each (Bartlett 1946). One standard
    // error merges independent units in 16 % of cases: that costs a little power, the contrary errs.
    correlation / 2.0 > 1.0 / (units as f64).sqrt()
}

/// Worth of the runs of a side at a quantile.
pub(super) struct Worth {
    /// Independent episodes beyond it.
    pub(super) episodes: f64,
    /// Independent samples.
    pub(super) samples: f64,
}

/// The repetitions of a side.
pub(super) struct Side<'a> {
    repetitions: &'a [Repetition],
    pooled: Ranked,
    bands: Vec<Band>,
    by: Resampling,
    /// Blocks in a unit.
    merged: usize,
    drifts: bool,
}

impl<'a> Side<'a> {
    /// Both sides, neighbouring blocks merged as long as those of both are alike at any of the
    /// quantiles. Merging too often costs a little power, merging too seldom hides that samples are
    /// worth less.
    pub(super) fn both(
        repetitions: [&'a [Repetition]; 2],
        by: Resampling,
        ps: &[Probability],
        confidence: Probability,
    ) -> [Self; 2] {
        let mut sides = repetitions.map(|repetitions| {
            let pooled = Ranked::merged(repetitions.iter().flat_map(Repetition::blocks));
            let bands = repetitions.iter().map(|run| run.band(confidence)).collect();
            Self { repetitions, pooled, bands, by, merged: 1, drifts: false }
        });
        if by == Resampling::Blocks {
            while sides[0].blocks_left() > FEWEST && ps.iter().any(|&p| alike(&sides, p)) {
                sides.iter_mut().for_each(|side| side.merged *= 2);
            }
            if drifts(&sides, ps) {
                sides.iter_mut().for_each(|side| side.drifts = true);
            }
        }
        sides
    }

    /// Blocks of a run after merging.
    fn blocks_left(&self) -> usize {
        BLOCKS / self.merged
    }

    /// Whether a run of either side drifts.
    pub(super) fn drifts(&self) -> bool {
        self.drifts
    }

    pub(super) fn by(&self) -> Resampling {
        self.by
    }

    pub(super) fn runs(&self) -> u64 {
        self.repetitions.len() as u64
    }

    /// Sums up the worth of the runs at a quantile.
    pub(super) fn worth(&self, p: Probability) -> Worth {
        let mut worth = Worth { episodes: 0.0, samples: 0.0 };
        for (band, run) in self.bands.iter().zip(self.repetitions) {
            let bounds = band.at(p);
            worth.episodes += bounds.episodes;
            worth.samples += run.samples() as f64 / bounds.effect;
        }
        worth
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

    /// The level of few units at the quantile `p`: of repetitions, or where runs drift what tells how
    /// a next one may differ. `None` where blocks tell it, and where a quantile is not a latency.
    pub(super) fn level(&self, p: Probability) -> Option<LogQuantile> {
        if self.by == Resampling::Blocks && !self.drifts {
            return None;
        }
        let value_ns = self.quantile(p)?;
        let log = |ns: i64| (ns > 0).then(|| libm::log(ns as f64));
        let resolution = libm::log1p(self.gap(value_ns) / value_ns as f64);
        let all = |of: &[Ranked]| log(Ranked::merged(of).quantile(p)?);
        if self.repetitions.len() > 1 {
            let levels: Option<Vec<f64>> =
                self.repetitions.iter().map(|run| all(run.blocks())).collect();
            return Some(LogQuantile::repetitions(&levels?, resolution));
        }
        let blocks = self.repetitions.iter().flat_map(Repetition::blocks);
        let levels: Option<Vec<f64>> = blocks.map(|block| log(block.quantile(p)?)).collect();
        let levels = levels?;
        let half_wave = half_waves(&levels, 1) / levels.len() as f64;
        Some(LogQuantile::walk(log(value_ns)?, half_wave, resolution))
    }

    /// From a latency to the nearest other one.
    fn gap(&self, value_ns: i64) -> f64 {
        let entries = self.pooled.entries();
        let at = entries.partition_point(|entry| entry.0 < value_ns);
        let above = entries.get(at + 1).map(|entry| entry.0.abs_diff(value_ns));
        let below = at.checked_sub(1).map(|below| entries[below].0.abs_diff(value_ns));
        let nearest = above.into_iter().chain(below).min();
        nearest.map_or(0.0, |gap| gap as f64)
    }

    /// The excess per block, unmerged, of a side that has one run.
    pub(super) fn single(&self, p: Probability) -> Option<Excess> {
        (self.repetitions.len() == 1).then(|| self.widest(p, 1))
    }

    /// The excess per block, whatever is resampled: what the samples within runs are worth.
    pub(super) fn within(&self, p: Probability) -> Excess {
        let merged = if self.by == Resampling::Blocks { self.merged } else { 1 };
        self.widest(p, merged)
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
        Excess { share, of, effect }
    }

    /// The share beyond `value` in each block that has samples, and how many samples those have on
    /// average. Samples that tie with it count half.
    pub(super) fn shares(&self, value: f64) -> (Vec<f64>, f64) {
        let (from, to) = (libm::ceil(value) as i64, libm::floor(value) as i64);
        let unit = |blocks: &[Ranked]| {
            let count = |of: &dyn Fn(&Ranked) -> u64| blocks.iter().map(of).sum::<u64>() as f64;
            let size = count(&Ranked::count);
            let beyond = count(&|block| block.count_above(to));
            let at_least = count(&|block| block.count_above(from.saturating_sub(1)));
            (size > 0.0).then(|| beyond.midpoint(at_least) / size)
        };
        let blocks = self.repetitions.iter().flat_map(|run| run.blocks().chunks(self.merged));
        let shares: Vec<f64> = blocks.filter_map(unit).collect();
        let size = self.samples() as f64 / shares.len().max(1) as f64;
        (shares, size)
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
    // Counts are whole: equal ones in two repetitions do not mean that nothing varies. Half a packet
    // is the largest deviation that rounding hides.
    (squares * units / (units - 1.0)).max(0.25) / binomial
}

#[cfg(test)]
mod tests {
    use super::FEWEST;
    use crate::Options;

    #[test]
    fn the_fewest_blocks_are_dealt_in_more_ways_than_are_drawn() {
        let ways = |blocks: u64| (1..=blocks).fold(1, |ways, n| ways * (blocks + n) / n);
        assert_eq!(ways(FEWEST as u64), 12_870);
        let draws = u64::from(Options::default().draws);
        assert!(ways(FEWEST as u64) > draws && ways(FEWEST as u64 / 2) < draws);
    }
}
