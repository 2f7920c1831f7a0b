//! Which ratios of a quantile two sides leave possible.

use super::dealt::Dealt;
use super::draws::Statistic;
use super::few::Few;
use super::repetition::LOST_NS;
use super::result::Resampling;
use super::side::{Excess, Side};
use tailtrim_stats::student::{both_tails, critical};
use tailtrim_stats::{Probability, Ranked};

/// Directions in which the edge of the region is walked: 0.35° apart, so that the edge is missed by
/// 5·10⁻⁶ of its distance at most (1 − cos of half a step).
const ANGLES: u32 = 256;
/// Fewer clusters beyond a quantile do not tell their size. Of clusters of exponential size, m give
/// the design effect with the relative variance 2 / m, as m + 1 blocks of normal counts do: fifteen
/// are worth the sixteen blocks that a design effect takes (`dependence` in `stats`).
const FEW_CLUSTERS: f64 = 15.0;
/// Design effects that differ by more than so many standard errors are not one and the same: by
/// chance 1.2 % of those that are, which costs them only the gain of pooling.
const ALIKE: f64 = 2.5;
/// Latencies between two quantiles that are tried as the common one. They are ranks, thinned evenly:
/// the chosen one is a rank off by a 4,096th of the distance between the quantiles at most.
const TRIED: usize = 4_096;

/// A quantile of both sides with the standard errors of its ranks.
pub(super) struct Region {
    p: Probability,
    few: Option<Few>,
    samples: [f64; 2],
    /// Standard deviation, in samples, of the number beyond the quantile.
    deviations: [f64; 2],
    /// Degrees of freedom of the distance.
    freedom: f64,
}

impl Region {
    pub(super) fn new(sides: &[Side<'_>; 2], p: Probability) -> Self {
        let few = match [0, 1].map(|side| sides[side].level(p)) {
            [Some(a), Some(b)] => Some(Few { sides: [a, b] }),
            _ => None,
        };
        let within = [0, 1].map(|side| sides[side].within(p));
        let samples = [0, 1].map(|side| sides[side].samples() as f64);
        let binomial = samples.map(|count| count * p.as_f64() * p.complement_f64());
        let effects = Effects::new(&within, binomial, sides[0].by() == Resampling::Blocks);
        let deviations = [0, 1].map(|side| (effects.of[side] * binomial[side]).sqrt());
        let freedom = effects.freedom(samples, binomial);
        Self { p, few, samples, deviations, freedom }
    }

    /// Few units, if there are: chance is then Student's, and otherwise that of dealing blocks.
    pub(super) fn few(&self) -> Option<&Few> {
        self.few.as_ref()
    }

    /// The standard errors that are exceeded with probability `alpha` where there is none.
    pub(super) fn critical(&self, alpha: f64) -> f64 {
        self.few.as_ref().map_or_else(|| critical(alpha, self.freedom), |few| few.critical(alpha))
    }

    /// The same of `runs` repetitions a side instead of `now`. One run does not show how much runs differ.
    pub(super) fn critical_of(&self, alpha: f64, now: u64, runs: u64) -> f64 {
        let freedom = 2.0 * (runs as f64 - 1.0);
        let few = self.few.as_ref().map(|few| few.critical_of(alpha, now, runs));
        few.unwrap_or_else(|| critical(alpha, freedom))
    }

    /// p-value of so many standard errors by Student's law, which the interval uses, too. A verdict that its own
    /// interval contradicts would not be believed. Dealing blocks alone is not enough where the packets of one side
    /// depend on each other much more than those of the other, or its blocks are much smaller: its few clusters make
    /// the difference skewed; dealt to both sides, they would cancel out. (Independent packets against an
    /// autocorrelation of 0.99: 13.5 % for 5 % at p99.)
    fn by_interval(&self, reach: f64) -> f64 {
        both_tails(reach, self.freedom)
    }

    /// The distance of B / A above `1 + margin`, or (negative) below its inverse, in standard errors; zero in between,
    /// and where one latency is clearly the quantile of both. Also the least p that this distance may have, and the
    /// statistic for the draws.
    pub(super) fn test(&self, sides: &[Side<'_>; 2], margin: f64) -> ((f64, f64), Statistic) {
        let above = self.put(sides, 1.0 + margin);
        let Put { at, apart, reach } = if above.apart > 0.0 || margin == 0.0 {
            above
        } else {
            let below = self.put(sides, 1.0 / (1.0 + margin));
            Put { apart: below.apart.min(0.0), ..below }
        };
        if let Some(few) = &self.few {
            let tie = self.put(sides, 1.0).apart == 0.0;
            let distance = if tie { 0.0 } else { few.distance(margin) };
            return ((distance, 0.0), Statistic::Few(few.clone()));
        }
        let [a, b] = [0, 1].map(|side| sides[side].shares(at[side]));
        let blocks = Dealt::new([a.0, b.0], [a.1, b.1]);
        let distance = if apart == 0.0 { 0.0 } else { apart / blocks.error() };
        ((distance, self.by_interval(reach)), Statistic::Blocks(blocks))
    }

    /// The pair of latencies of a ratio that fits both sides best stands for the hypothesis that
    /// this is B / A. There, the shares of packets beyond are compared.
    fn put(&self, sides: &[Side<'_>; 2], ratio: f64) -> Put {
        let [a, b] = [0, 1].map(|side| sides[side].quantile(self.p));
        let (Some(a), Some(b)) = (a, b) else { return Put::default() };
        let (a, b) = (a as f64, b as f64 / ratio);
        let pair = |value: f64| [value, nearly_whole(value * ratio)];
        let misses = |value: f64| {
            let pair = pair(value);
            [0, 1].map(|side| self.misses(sides, side, pair[side]))
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
        let Some(nearest) = candidates.min_by(|x, y| pull(x).total_cmp(&pull(y))) else {
            return Put { at: [a, b * ratio], ..Put::default() };
        };
        let [a, b] = misses(nearest);
        Put {
            at: pair(nearest),
            apart: a / self.samples[0] - b / self.samples[1],
            reach: libm::hypot(a / self.deviations[0], b / self.deviations[1]),
        }
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

    /// Between which ratios B / A lies, where the distance may be up to `reach` standard errors.
    /// `None` where the samples give no bound, and where latencies are not positive.
    pub(super) fn interval(&self, sides: &[Side<'_>; 2], reach: f64) -> (Option<f64>, Option<f64>) {
        if let Some(few) = &self.few {
            return self.around(sides, few.interval(reach));
        }
        let high = self.farthest(sides, reach, [-1.0, 1.0]);
        let low = self.farthest(sides, reach, [1.0, -1.0]);
        let (low, high) = (low.map(|(a, b)| b / a), high.map(|(a, b)| b / a));
        (low, high)
    }

    /// An interval of few units, and the ratio of all samples in it: both differ where repetitions
    /// do. `None` where that is no ratio.
    fn around(&self, sides: &[Side<'_>; 2], [low, high]: [f64; 2]) -> (Option<f64>, Option<f64>) {
        let quantiles = [0, 1].map(|side| sides[side].quantile(self.p).unwrap_or(LOST_NS));
        if quantiles.contains(&LOST_NS) {
            return (None, None);
        }
        let ratio = quantiles[1] as f64 / quantiles[0] as f64;
        (Some(low.min(ratio)), Some(high.max(ratio)))
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
            let known = |ns: &i64| *ns > 0 && *ns != LOST_NS;
            let (a, b) = (a.filter(known)? as f64, b.filter(known)? as f64);
            let farther = best.is_none_or(|(x, y)| (b / a - y / x) * direction[1] > 0.0);
            if farther {
                best = Some((a, b));
            }
        }
        best
    }
}

/// The latencies that stand for a ratio.
#[derive(Default)]
struct Put {
    at: [f64; 2],
    /// By how much the share of B's packets beyond is larger.
    apart: f64,
    /// The distance of the pair from the quantiles, in standard errors.
    reach: f64,
}

/// The design effects of both sides, and how well they are known.
#[derive(Clone, Copy)]
struct Effects {
    of: [f64; 2],
    /// Their relative variances.
    uncertainty: [f64; 2],
    pooled: bool,
}

impl Effects {
    /// Where both could be one and the same, they are, if blocks `may` tell that:
    /// clusters of both sides tell their size better than those of one, and a side that has seen
    /// few large ones by luck would be too sure.
    fn new(excess: &[Excess; 2], binomial: [f64; 2], may: bool) -> Self {
        let of = [0, 1].map(|side| excess[side].studentising());
        let uncertainty = [0, 1].map(|side| excess[side].uncertainty());
        let apart = libm::log(of[0] / of[1]).abs();
        let expected = ALIKE * (uncertainty[0] + uncertainty[1]).sqrt();
        if may && apart <= expected {
            let parts = [0, 1].map(|side| of[side] * binomial[side]);
            let whole = parts[0] + parts[1];
            let effect = whole / (binomial[0] + binomial[1]);
            let share = |side: usize| (parts[side] / whole).powi(2) * uncertainty[side];
            return Self { of: [effect; 2], uncertainty: [share(0) + share(1); 2], pooled: true };
        }
        // The size of clusters is uncertain where a side has only a handful: if the other side has seen more of them
        // and found them larger, the larger size counts.
        let clusters = [0, 1].map(|side| binomial[side] / of[side]);
        let few = |side: usize| clusters[side] < FEW_CLUSTERS.min(clusters[1 - side]);
        let of = [0, 1].map(|side| if few(side) { of[0].max(of[1]) } else { of[side] });
        Self { of, uncertainty, pooled: false }
    }

    /// Degrees of freedom of the difference: a variance with the relative variance v has 2 / v
    /// (Satterthwaite 1946, *Biometrics Bulletin* 2, p. 110).
    fn freedom(&self, samples: [f64; 2], binomial: [f64; 2]) -> f64 {
        let v = [0, 1].map(|side| self.of[side] * binomial[side] / samples[side].powi(2));
        let uncertain = if self.pooled {
            self.uncertainty[0]
        } else {
            let part = |side: usize| (v[side] / (v[0] + v[1])).powi(2) * self.uncertainty[side];
            part(0) + part(1)
        };
        let freedom = 2.0 / uncertain;
        if freedom.is_finite() { freedom } else { 1.0 }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_tell_their_size_as_well_as_blocks() {
        // The design effect of clusters of exponential size s is E s² / E s. The relative variance of
        // that ratio is, of each cluster, by the moments E sᵏ = k!: of s² 5, of s 1, and twice their
        // covariance 4.
        let of_cluster = 5.0 + 1.0 - 2.0 * 2.0;
        let of_blocks = |blocks: f64| 2.0 / (blocks - 1.0);
        assert_eq!(of_cluster / FEW_CLUSTERS, of_blocks(16.0));
    }

    #[test]
    fn design_effects_that_are_the_same_seldom_differ() {
        assert!((both_tails(ALIKE, 1e6) - 0.012_4).abs() < 1e-4);
    }

    #[test]
    fn the_edge_is_walked_closely() {
        let step = std::f64::consts::FRAC_PI_2 / f64::from(ANGLES);
        assert!(1.0 - libm::cos(step / 2.0) < 5e-6);
    }
}
