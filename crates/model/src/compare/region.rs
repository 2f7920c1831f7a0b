//! Which ratios of a quantile two sides leave possible.

use super::bootstrap::Statistic;
use super::side::{Excess, Side};
use crate::stats::{Probability, Ranked};

/// Directions in which the edge of the region is walked.
const ANGLES: u32 = 256;
/// Fewer clusters beyond a quantile do not tell their size.
const FEW_CLUSTERS: f64 = 10.0;
/// Latencies between two quantiles that are tried as the common one.
const TRIED: usize = 4_096;

/// A quantile of both sides with the standard errors of its ranks.
pub(super) struct Region {
    p: Probability,
    excess: [Excess; 2],
    within: [f64; 2],
    samples: [f64; 2],
    /// Standard deviation, in samples, of the number beyond the quantile.
    deviations: [f64; 2],
}

impl Region {
    pub(super) fn new(sides: &[Side<'_>; 2], p: Probability) -> Self {
        let excess = [0, 1].map(|side| sides[side].excess(p));
        let within = [0, 1].map(|side| sides[side].within(p).careful_effect());
        let samples = [0, 1].map(|side| sides[side].samples() as f64);
        let binomial = samples.map(|count| count * p.as_f64() * p.complement_f64());
        let own = [0, 1].map(|side| studentising(&excess[side], &sides[side]));
        let clusters = [0, 1].map(|side| binomial[side] / own[side]);
        let deviations = [0, 1].map(|side| {
            // What a handful of clusters says of their size is luck: if the other side has seen
            // more of them and found them larger, that counts.
            let few = clusters[side] < FEW_CLUSTERS.min(clusters[1 - side]);
            let effect = if few && !sides[side].has_few() { own[0].max(own[1]) } else { own[side] };
            (effect * binomial[side]).sqrt()
        });
        Self { p, excess, within, samples, deviations }
    }

    pub(super) fn statistic(&self) -> Statistic {
        Statistic { excess: self.excess.clone(), samples: self.samples }
    }

    /// The design effect within the runs of a side, at least one.
    pub(super) fn within_effect(&self, side: usize) -> f64 {
        self.within[side]
    }

    /// How many standard errors B / A is above `1 + margin`, or (negative) below its inverse; zero
    /// in between, and where one latency is clearly the quantile of both.
    pub(super) fn distance(&self, sides: &[Side<'_>; 2], margin: f64) -> f64 {
        let above = self.distance_from(sides, 1.0 + margin);
        if above > 0.0 || margin == 0.0 {
            return above;
        }
        self.distance_from(sides, 1.0 / (1.0 + margin)).min(0.0)
    }

    /// How many standard errors B's quantile is above `ratio` times that of A.
    ///
    /// The pair of latencies of that ratio which fits both sides best stands for the hypothesis;
    /// there, the shares beyond are compared.
    fn distance_from(&self, sides: &[Side<'_>; 2], ratio: f64) -> f64 {
        let [a, b] = [0, 1].map(|side| sides[side].quantile(self.p));
        let (Some(a), Some(b)) = (a, b) else { return 0.0 };
        let (a, b) = (a as f64, b as f64 / ratio);
        let misses = |value: f64| {
            [self.misses(sides, 0, value), self.misses(sides, 1, nearly_whole(value * ratio))]
        };
        // Where the pull of both sides towards their own quantiles is in balance. Choosing by the
        // distance itself would look for the pair that differs least.
        let pull = |value: &f64| {
            let [a, b] = misses(*value);
            let weight = |side: usize| self.samples[side] / self.deviations[side].powi(2);
            (a * weight(0) + b * weight(1)).abs()
        };
        let of_a = between(&sides[0], a.min(b), a.max(b), 1.0);
        let candidates = of_a.chain(between(&sides[1], a.min(b), a.max(b), ratio));
        let nearest = candidates.min_by(|x, y| pull(x).total_cmp(&pull(y)));
        let [a, b] = nearest.map_or([0.0, 0.0], misses);
        let error = (self.deviations[0] / self.samples[0]).powi(2)
            + (self.deviations[1] / self.samples[1]).powi(2);
        let apart = a / self.samples[0] - b / self.samples[1];
        if apart == 0.0 { 0.0 } else { apart / error.sqrt() }
    }

    /// By how many samples a latency misses being a side's quantile, negative where too few are
    /// below it. Half of the samples that tie with it count as below. Only where they are so many
    /// that their ranks reach beyond a standard error, any of them may be the quantile.
    fn misses(&self, sides: &[Side<'_>; 2], side: usize, value: f64) -> f64 {
        let of = sides[side].distribution();
        let rank = self.p.as_f64() * self.samples[side];
        let up_to = (of.count() - of.count_above(libm::floor(value) as i64)) as f64;
        let below =
            (of.count() - of.count_above((libm::ceil(value) as i64).saturating_sub(1))) as f64;
        if (up_to - below) / 2.0 <= self.deviations[side] {
            below.midpoint(up_to) - rank
        } else if up_to < rank {
            up_to - rank
        } else {
            (below - rank).max(0.0)
        }
    }

    /// Between which ratios B / A lies, where the statistic may reach `below` and `above` zero.
    /// `None` where the samples give no bound, and where latencies are not positive.
    pub(super) fn interval(
        &self,
        sides: &[Side<'_>; 2],
        below: f64,
        above: f64,
    ) -> (Option<f64>, Option<f64>) {
        // A statistic far below zero is what a ratio above the true one leads to.
        let high = self.farthest(sides, below, [-1.0, 1.0]);
        let low = self.farthest(sides, above, [1.0, -1.0]);
        let (low, high) = (low.map(|(a, b)| b / a), high.map(|(a, b)| b / a));
        (low, high)
    }

    /// The pair of latencies whose ratio is farthest in a direction, among those within `reach`
    /// standard errors of the quantiles.
    fn farthest(
        &self,
        sides: &[Side<'_>; 2],
        reach: f64,
        direction: [f64; 2],
    ) -> Option<(f64, f64)> {
        let mut best: Option<(f64, f64)> = None;
        for step in 0..=ANGLES {
            let angle = std::f64::consts::FRAC_PI_2 * f64::from(step) / f64::from(ANGLES);
            let parts = [libm::sin(angle), libm::cos(angle)];
            let [a, b] = [0, 1].map(|side| {
                let away = direction[side] * parts[side] * reach * self.deviations[side];
                let distribution = sides[side].distribution();
                reached(distribution, self.p.as_f64() * self.samples[side], away)
            });
            let (a, b) = (a.filter(|ns| *ns > 0)? as f64, b.filter(|ns| *ns > 0)? as f64);
            let farther = best.is_none_or(|(x, y)| (b / a - y / x) * direction[1] > 0.0);
            if farther {
                best = Some((a, b));
            }
        }
        best
    }
}

/// The effect that a distance is measured with. A tail that is more regular than chance has a
/// periodic cause, whose phase will be another one next time: it counts as chance.
fn studentising(excess: &Excess, side: &Side<'_>) -> f64 {
    let regular = 1.0 - 2.0 * (2.0 / excess.of.len().max(1) as f64).sqrt();
    if !side.has_few() && excess.effect < regular { 1.0 } else { excess.effect }
}

/// The last latency that misses the quantile by no more than `away` samples, upwards or (negative)
/// downwards. `None` where all do not.
fn reached(of: &Ranked, rank: f64, away: f64) -> Option<i64> {
    // A sample stands in the middle of its rank.
    let to = rank + away + 0.5;
    let rank = if away < 0.0 { libm::ceil(to) } else { libm::floor(to) };
    if rank < 1.0 { None } else { of.at_rank(rank as u64) }
}

/// Latencies of a side over `ratio`, from `low` to `high`, thinned evenly where there are many.
fn between<'a>(
    side: &'a Side<'_>,
    low: f64,
    high: f64,
    ratio: f64,
) -> impl Iterator<Item = f64> + 'a {
    let entries = side.distribution().entries();
    let scaled = move |entry: &(i64, u64)| entry.0 as f64 / ratio;
    let from = entries.partition_point(|entry| scaled(entry) < low);
    let to = entries.partition_point(|entry| scaled(entry) <= high);
    let within = &entries[from..to];
    let step = within.len().div_ceil(TRIED).max(1);
    within.iter().step_by(step).chain(within.last()).map(scaled)
}

/// A latency that division and multiplication have brought back, to the nanosecond that it was.
fn nearly_whole(value: f64) -> f64 {
    let whole = libm::round(value);
    if (value - whole).abs() < 1e-6 { whole } else { value }
}
