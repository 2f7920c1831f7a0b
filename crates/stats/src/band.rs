//! Bounds of all quantiles of a run, as one band, and which quantiles the run supports.
//!
//! A quantile's bounds are the latencies beyond which so many samples lie that their number could be that of the quantile
//! ([`ranks`]). For a number K with the variance V these are about K ± z √V, so bounds that agree with each other need two
//! things of V on the way from the median to either end of the tail:
//!
//! * V does not grow. Samples beyond a quantile are beyond the ones nearer to the median, too, and the same clusters vary
//!   their number. So the near bounds never step back.
//! * The independent episodes that K is worth, E = K² / V up to 1 − K / N, do not grow either: an episode beyond a quantile
//!   is one beyond those nearer to the median. The far bounds, near K (1 − z / √E), never step back.
//!
//! Estimates from the blocks of a run obey neither, since each has an error of its own. The variance at a quantile is the
//! largest one that is estimated from there to the end, and its episodes are the fewest from there to the median: both
//! correct estimates that are too small. What rounding to ranks leaves is removed from the bounds themselves.
//!
//! A quantile is supported if ten episodes tell its bounds: as many that the number beyond is worth, and as many
//! degrees of freedom of its own variance. With fewer, the runs whose variance is estimated too small by chance
//! would be supported more often than others, and their intervals hold too seldom (docs/intervals.md).

use super::dependence::Cumulated;
use super::{BlockCounts, Dependence, Interval, Probability, Ranked, ranks};

/// So many independent episodes are needed: their number is then known to a third (√(1 / 10)).
const EPISODES: u64 = 10;
/// A variance is raised by so many E-ths for E episodes, by half at most. Those of runs that are supported are too small by
/// chance where their episodes are few; with five, these intervals hold as often as others (simulated with 0, 3, 5 and 10).
const CHOSEN: f64 = 5.0;

/// Bounds of a quantile, and what they rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The ranks between which the quantile lies.
    pub interval: Interval,
    /// The design effect of these bounds: those of independent samples that are so many times fewer.
    pub effect: f64,
    /// Independent episodes from which they are known.
    pub episodes: f64,
    /// Whether those [support](supports) the quantile.
    pub supported: bool,
}

/// Independent episodes that support a quantile: ten, and as many as bound it, since it is likelier than
/// (1 − confidence) / 2 that none of fewer than ln (2 / (1 − confidence)) expected ones is seen.
#[must_use]
pub fn episodes_needed(confidence: Probability) -> u64 {
    EPISODES.max((2.0 / confidence.complement_f64()).ln().ceil() as u64)
}

/// Whether so many independent episodes support a quantile. Those of several runs add up.
#[must_use]
pub fn supports(episodes: f64, confidence: Probability) -> bool {
    episodes >= episodes_needed(confidence) as f64
}

/// Packets that were lost: later than any latency.
#[derive(Debug, Clone, Copy)]
pub struct Undelivered {
    /// Their number.
    pub count: u64,
    /// Their clusters.
    pub dependence: Dependence,
}

impl Undelivered {
    /// No such packet.
    pub const NONE: Self = Self { count: 0, dependence: Dependence::NONE };
}

/// The bounds of all quantiles of a run.
#[derive(Debug, Clone)]
pub struct Band {
    samples: u64,
    confidence: Probability,
    knots: Vec<Knot>,
}

/// A quantile at which the dependence of samples is looked at.
#[derive(Debug, Clone, Copy)]
struct Knot {
    p: Probability,
    /// Samples beyond it, on the side where they are fewer.
    rare: f64,
    /// Variance of their number, raised as far as it is uncertain.
    variance: f64,
    /// Degrees of freedom of that.
    freedom: f64,
    episodes: f64,
    /// Ranks of the lower and the upper bound. Without a bound: 0, and the number of samples plus one.
    bounds: [u64; 2],
}

impl Band {
    /// The band of a run.
    #[must_use]
    pub fn new(
        latencies: &Ranked,
        blocks: &BlockCounts,
        undelivered: Undelivered,
        confidence: Probability,
    ) -> Self {
        let samples = latencies.count() + undelivered.count;
        let blocks = blocks.cumulated();
        let knot = |p| Knot::new(p, latencies, &blocks, undelivered, confidence);
        let mut knots: Vec<Knot> = near_zero(samples).chain(decades(samples)).map(knot).collect();
        knots.sort_unstable_by_key(|knot| knot.p);
        let middle = knots.partition_point(|knot| knot.p < Probability::P50);
        agree(&mut knots, middle, samples as f64);
        let mut band = Self { samples, confidence, knots };
        for at in 0..band.knots.len() {
            let knot = band.knots[at];
            let own = ranks(knot.p, samples, confidence, knot.effect(samples as f64));
            band.knots[at].bounds = band.open(own);
        }
        for at in 1..band.knots.len() {
            band.knots[at].bounds[1] = band.knots[at].bounds[1].max(band.knots[at - 1].bounds[1]);
        }
        for at in (1..band.knots.len()).rev() {
            band.knots[at - 1].bounds[0] =
                band.knots[at].bounds[0].min(band.knots[at - 1].bounds[0]);
        }
        band
    }

    /// The bounds of a quantile. They are those of the nearest knot farther from the median as to dependence, and lie
    /// between those of the two knots beside it.
    #[must_use]
    pub fn at(&self, p: Probability) -> Bounds {
        let above = self.knots.partition_point(|knot| knot.p < p);
        let below = self.knots.partition_point(|knot| knot.p <= p);
        let [below, above] = [below.checked_sub(1), Some(above)].map(|at| self.knots.get(at?));
        let farther = if p < Probability::P50 { below } else { above };
        let effect =
            farther.or(below).or(above).map_or(1.0, |knot| knot.effect(self.samples as f64));
        let (none, all) = ([0; 2], [self.samples + 1; 2]);
        let from = below.map_or(none, |knot| knot.bounds);
        let to = above.map_or(all, |knot| knot.bounds);
        // They are those of a knot, or to be computed, which takes long.
        let [low, high] = if from == to {
            from
        } else {
            let own = self.open(ranks(p, self.samples, self.confidence, effect));
            [0, 1].map(|end| own[end].clamp(from[end], to[end]))
        };
        let low = Some(low).filter(|low| *low > 0);
        let high = Some(high).filter(|high| *high <= self.samples);
        // Beyond the last knot, less than a sample is expected.
        let rare = self.samples as f64 * p.as_f64().min(p.complement_f64());
        let episodes = farther.map_or(rare / effect, |knot| knot.episodes);
        let supported = supports(episodes, self.confidence);
        Bounds { interval: Interval { low, high }, effect, episodes, supported }
    }

    fn open(&self, interval: Interval) -> [u64; 2] {
        [interval.low.unwrap_or(0), interval.high.unwrap_or(self.samples + 1)]
    }
}

/// Makes knots agree with each other, and says from how many episodes they are known.
fn agree(knots: &mut [Knot], middle: usize, samples: f64) {
    if middle == knots.len() {
        return;
    }
    let sides: [Vec<usize>; 2] = [(middle..knots.len()).collect(), (0..=middle).rev().collect()];
    sides.iter().for_each(|outward| isotone(knots, outward, samples));
    for knot in knots.iter_mut() {
        let worth = knot.worth(samples);
        knot.episodes = worth.min(knot.freedom);
        knot.variance *= 1.0 + CHOSEN / worth.max(EPISODES as f64);
    }
    sides.iter().for_each(|outward| isotone(knots, outward, samples));
}

/// Makes the variances and the episodes of knots fall that follow each other outward from the median.
fn isotone(knots: &mut [Knot], outward: &[usize], samples: f64) {
    for pair in outward.windows(2).rev() {
        let [near, far] = [knots[pair[0]], knots[pair[1]]];
        knots[pair[0]].variance = near.variance.max(far.variance);
    }
    for pair in outward.windows(2) {
        let [near, far] = [pair[0], pair[1]].map(|at| knots[at].worth(samples));
        if far > near {
            knots[pair[1]].variance *= far / near;
        }
    }
}

impl Knot {
    fn new(
        p: Probability,
        latencies: &Ranked,
        blocks: &Cumulated<'_>,
        undelivered: Undelivered,
        confidence: Probability,
    ) -> Self {
        let (delivered, all) = (latencies.count(), latencies.count() + undelivered.count);
        let (rank, n) = (p.rank(all).min(delivered), all as f64);
        let (edge_ns, above) =
            edge(latencies, rank, p.complement_f64() / p.as_f64(), undelivered.count);
        let beyond = (above + undelivered.count) as f64;
        let mut knot = Self {
            p,
            rare: n * p.as_f64().min(p.complement_f64()),
            variance: n * p.as_f64() * p.complement_f64(),
            freedom: f64::INFINITY,
            episodes: f64::INFINITY,
            bounds: [0; 2],
        };
        // Equal latencies cannot cluster.
        if beyond > 0.0 && beyond < n {
            knot.rare = beyond.min(n - beyond);
            // Fewer samples do not tell how they cluster: they do as those nearer to the median.
            let telling = BlockCounts::TELLING.min(delivered / 2);
            let told = rank.clamp(telling, delivered - telling);
            let (told_ns, told_above) = if told == rank {
                (edge_ns, above)
            } else {
                edge(latencies, told, (delivered - told) as f64 / told as f64, 0)
            };
            let dependence = blocks.dependence(told_ns, told_above);
            let clusters = [dependence, undelivered.dependence];
            let chance = variances(n, above as f64, undelivered.count as f64);
            let parts = [0, 1].map(|part| chance[part] * clusters[part].raised(confidence));
            knot.variance = parts.iter().sum();
            knot.freedom = clusters[usize::from(parts[1] > parts[0])].freedom;
        }
        knot
    }

    /// Independent samples that those beyond are worth.
    fn worth(&self, samples: f64) -> f64 {
        self.rare * self.rare * (1.0 - self.rare / samples) / self.variance
    }

    fn effect(&self, samples: f64) -> f64 {
        self.rare / self.worth(samples)
    }
}

/// A latency, and how many others lie above. A quantile is a latency that several packets may have: of its two edges, the
/// one with the nearer odds is taken.
fn edge(latencies: &Ranked, rank: u64, odds: f64, undelivered: u64) -> (i64, u64) {
    let value_ns = latencies.at_rank(rank).unwrap_or(0);
    let apart = |above: u64| {
        let beyond = (above + undelivered) as f64;
        let below = (latencies.count() - above) as f64;
        (beyond / below / odds).ln().abs()
    };
    let edges = [value_ns, value_ns.saturating_sub(1)].map(|ns| (ns, latencies.count_above(ns)));
    if apart(edges[1].1) < apart(edges[0].1) { edges[1] } else { edges[0] }
}

/// The variance of the number of packets that lie above a threshold or were not delivered, without clusters: the part of
/// the delivered ones, and that of the others.
///
/// Of n packets L are not delivered, and each delivered one is above with probability s, whatever L is. So the number is
/// L + Bin(n − L, s), with the variance s (1 − s) (n − E L) + (1 − s)² Var L; both parts are inflated by their own
/// clusters. Latencies that rise where packets are lost would inflate it further: that is not seen.
fn variances(n: f64, above: f64, lost: f64) -> [f64; 2] {
    let share = if n > lost { above / (n - lost) } else { 0.0 };
    [share * (1.0 - share) * (n - lost), (1.0 - share).powi(2) * lost * (1.0 - lost / n)]
}

/// Nine probabilities to a decade of 1 − p (0.1 … 0.9, 0.91 … 0.99 …), as long as a sample lies above.
pub fn decades(samples: u64) -> impl Iterator<Item = Probability> {
    digits("9").take_while(move |p| p.rank(samples) < samples)
}

/// Nine probabilities to a decade below 0.1, as long as a sample lies below.
fn near_zero(samples: u64) -> impl Iterator<Item = Probability> {
    digits("0").skip(9).take_while(move |p| p.rank(samples) > 1)
}

/// 0.1 … 0.9, and the same behind one more digit each.
fn digits(before: &str) -> impl Iterator<Item = Probability> {
    (0..18)
        .flat_map(move |count| {
            (1..=9).map(move |digit| format!("0.{}{digit}", before.repeat(count)))
        })
        .filter_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests;
