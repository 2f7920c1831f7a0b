//! Confidence intervals of quantiles from order statistics.

use serde::{Deserialize, Serialize};

use super::binomial::{beta, power};
use super::{Probability, episodes_needed};

/// Probabilities are compared to this relative precision, so that a bound that holds with equality
/// is not lost to the rounding of the last digit. Tails are computed to about 10⁻¹² (the tests of
/// `binomial`), and a confidence of 95 % changes by 10⁻¹³.
const PRECISION: f64 = 1e-11;

/// The 1-based ranks between which a quantile lies with the asked confidence.
///
/// `None` is a result, not a failure: so few samples cannot bound the quantile on that side, and
/// any number printed for it would be an invention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The true quantile is at least the sample of this rank.
    pub low: Option<u64>,
    /// The true quantile is at most the sample of this rank.
    pub high: Option<u64>,
}

/// The distribution-free, equal-tailed confidence interval of the quantile `p` among `n` samples.
///
/// The number of samples at or below the quantile follows Bin(n, p) whatever the latencies'
/// distribution, so each end errs with at most (1 − `confidence`) / 2; where latencies tie it
/// errs less. With independent samples (`design_effect` 1) the ranks are exact.
///
/// Dependent samples carry less information. `design_effect` is the factor D >= 1 by which the
/// variance of that number exceeds the binomial one ([`BlockCounts::design_effect`] estimates it;
/// smaller values and NaN count as 1). The bounds are those of n / D independent samples, with the
/// rarer side's count (exceedances for p >= 0.5) scaled back as D·(count ∓ ½) ± ½ and rounded
/// outward. That has the mean and the variance of the dependent count and the skewness of clusters
/// of D samples, and is the identity at D = 1. The halves are the continuity correction of steps
/// of D replaced by that of steps of 1: D·count alone would add half a cluster to each side.
/// Where n / D cannot bound the quantile, neither can these samples, and the end is `None`.
///
/// Takes 10 to 50 µs for up to 10^12 samples; milliseconds for confidences below one half, whose
/// bounds lie next to the mean where the tail sums converge slowly.
///
/// [`BlockCounts::design_effect`]: super::BlockCounts::design_effect
#[must_use]
pub fn ranks(p: Probability, n: u64, confidence: Probability, design_effect: f64) -> Interval {
    let tail = confidence.complement_f64() / 2.0;
    // `max` also turns NaN into 1.
    let effect = design_effect.max(1.0);
    let trials = n as f64 / effect;
    if trials < 1.0 || tail == 0.0 {
        return Interval::default();
    }
    if p == Probability::ONE {
        // Nothing exceeds the true maximum, so it is at least the largest sample.
        return Interval { low: Some(n), high: None };
    }

    // The rarer side: near p = 1 the exceedances keep the digits that p has lost.
    let (above, below) = (p.complement_f64(), p.as_f64());
    let rare_is_above = above <= below;
    let (hit, miss) = if rare_is_above { (above, below) } else { (below, above) };
    let rare = Rare { trials, effect, hit, miss, tail: tail * (1.0 + PRECISION) };
    let many = rare.too_many().filter(|count| *count <= n);
    let few = rare.too_few().filter(|count| *count < n);
    if rare_is_above {
        // With `many` exceedances or more refuted, fewer lie above: rank n − many + 1 is below.
        Interval { low: many.map(|count| n - count + 1), high: few.map(|count| n - count) }
    } else {
        Interval { low: few.map(|count| count + 1), high: many }
    }
}

/// The smallest number of independent samples that supports the quantile `p`: so many that the
/// [episodes needed](super::episodes_needed) lie beyond it. `u64::MAX` where no number does, that is for p = 1 and for a
/// confidence of 1.
#[must_use]
pub fn samples_needed(p: Probability, confidence: Probability) -> u64 {
    if p == Probability::ONE || confidence == Probability::ONE {
        return u64::MAX;
    }
    let needed = episodes_needed(confidence) as f64 / p.as_f64().min(p.complement_f64());
    (needed * (1.0 - PRECISION)).ceil() as u64
}

/// The count of rare events, X ~ Bin(`trials`, `hit`), scaled up by `effect`.
struct Rare {
    trials: f64,
    effect: f64,
    hit: f64,
    miss: f64,
    /// The probability with which either bound may err.
    tail: f64,
}

impl Rare {
    fn at_least(&self, count: f64) -> f64 {
        beta(count, self.trials - count + 1.0, self.hit, self.miss)
    }

    fn at_most(&self, count: f64) -> f64 {
        beta(self.trials - count, count + 1.0, self.miss, self.hit)
    }

    /// The smallest count with P(X >= count) <= tail; `None` if even all trials are likelier.
    fn too_many(&self) -> Option<u64> {
        if power(self.hit, self.miss, self.trials) > self.tail {
            return None;
        }
        let refuted = |count: f64| self.at_least(count) <= self.tail;
        let mut count = 1.0;
        if !refuted(count) {
            count = self.crossing(1.0, 1.0, self.trials, refuted).0;
        }
        if self.effect > 1.0 {
            return Some((self.effect * (count - 0.5) + 0.5).ceil() as u64);
        }
        let whole = count.ceil();
        Some(if refuted(whole) { whole as u64 } else { whole as u64 + 1 })
    }

    /// The largest count with P(X <= count) <= tail; `None` if even zero is likelier.
    fn too_few(&self) -> Option<u64> {
        if power(self.miss, self.hit, self.trials) > self.tail {
            return None;
        }
        let possible = |count: f64| self.at_most(count) > self.tail;
        let count = self.crossing(-1.0, 0.0, self.trials - 1.0, possible).1;
        if self.effect > 1.0 {
            return Some((self.effect * (count + 0.5) - 0.5).floor() as u64);
        }
        let whole = count.floor();
        Some(if possible(whole) { whole as u64 - 1 } else { whole as u64 })
    }

    /// Where `test` turns from false (at `low`) to true (at `high`), as a bracket narrower than
    /// what rounding to a rank could notice. `side` is 1 for the upper tail, −1 for the lower.
    fn crossing(&self, side: f64, low: f64, high: f64, test: impl Fn(f64) -> bool) -> (f64, f64) {
        // Cornish and Fisher: normal, corrected for skewness. Usually right within one count.
        let z = normal_deviate(self.tail);
        let deviation = (self.trials * self.hit * self.miss).sqrt();
        let skew = (z * z - 1.0) * (self.miss - self.hit) / 6.0;
        let guess = self.trials * self.hit + side * (z * deviation + 0.5) + skew;

        let mut step = 0.01 * deviation + 0.5;
        let (mut below, mut above) = (guess.clamp(low, high), guess.clamp(low, high));
        while below > low && test(below) {
            above = below;
            below = (below - step).max(low);
            step *= 2.0;
        }
        while above < high && !test(above) {
            below = above;
            above = (above + step).min(high);
            step *= 2.0;
        }
        while above - below > 1e-7 {
            let middle = below.midpoint(above);
            if middle <= below || middle >= above {
                break;
            }
            if test(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        (below, above)
    }
}

/// The standard normal deviate that is exceeded with probability `tail` <= ½, to three decimals
/// (Abramowitz and Stegun 26.2.23).
#[must_use]
pub fn normal_deviate(tail: f64) -> f64 {
    let s = (-2.0 * tail.ln()).sqrt();
    let top = 2.515_517 + s * (0.802_853 + s * 0.010_328);
    let bottom = 1.0 + s * (1.432_788 + s * (0.189_269 + s * 0.001_308));
    s - top / bottom
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::binomial::logarithm;

    fn p(text: &str) -> Probability {
        text.parse().unwrap()
    }

    fn iid(quantile: &str, n: u64) -> (Option<u64>, Option<u64>) {
        let interval = ranks(p(quantile), n, Probability::P95, 1.0);
        (interval.low, interval.high)
    }

    /// The definition, by adding up all terms.
    fn naive(p: Probability, n: u64, confidence: Probability) -> Interval {
        let (x, y) = (p.as_f64(), p.complement_f64());
        let tail = confidence.complement_f64() / 2.0 * (1.0 + PRECISION);
        let mut terms = Vec::new();
        for k in 0..=n {
            let mut log = k as f64 * logarithm(x, y) + (n - k) as f64 * logarithm(y, x);
            for i in 0..k {
                log += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
            }
            terms.push(log.exp());
        }
        let below = |l: u64| terms[..l as usize].iter().sum::<f64>();
        let at_or_above = |u: u64| terms[u as usize..].iter().rev().sum::<f64>();
        Interval {
            low: (1..=n).rev().find(|&l| below(l) <= tail),
            high: (1..=n).find(|&u| at_or_above(u) <= tail),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn equals_the_definition(
            thousandths in 1..1000_u32,
            n in 1..=400_u64,
            confidence in prop_oneof![Just("0.95"), Just("0.5"), Just("0.9"), Just("0.999")],
        ) {
            let quantile = p(&format!("0.{thousandths:03}"));
            let want = naive(quantile, n, p(confidence));
            prop_assert_eq!(ranks(quantile, n, p(confidence), 1.0), want);
        }

        #[test]
        fn dependence_only_widens(
            thousandths in 1..1000_u32,
            n in 1..=1_000_000_u64,
            effect in 1.0..100.0_f64,
        ) {
            let quantile = p(&format!("0.{thousandths:03}"));
            let plain = ranks(quantile, n, Probability::P95, 1.0);
            let wide = ranks(quantile, n, Probability::P95, effect);
            // One rank of slack: the two sides round to their own lattices.
            if let (Some(a), Some(b)) = (plain.low, wide.low) {
                prop_assert!(b <= a + 1, "{plain:?} {wide:?}");
            }
            if let (Some(a), Some(b)) = (plain.high, wide.high) {
                prop_assert!(b + 1 >= a, "{plain:?} {wide:?}");
            }
            prop_assert!(wide.low.is_none() || plain.low.is_some());
            prop_assert!(wide.high.is_none() || plain.high.is_some());
            prop_assert!(wide.low.is_none_or(|l| (1..=n).contains(&l)));
            prop_assert!(wide.high.is_none_or(|h| (1..=n).contains(&h)));
        }
    }

    #[test]
    fn equality_with_the_tail_counts() {
        // P(no exceedance of the median in two samples) is exactly one quarter.
        let interval = ranks(Probability::P50, 2, Probability::P50, 1.0);
        assert_eq!(interval, Interval { low: Some(1), high: Some(2) });
    }

    #[test]
    fn published_ranks() {
        assert_eq!(iid("0.99999", 300_000), (Some(299_993), None));
        assert_eq!(iid("0.99999", 3_000_000), (Some(2_999_959), Some(2_999_981)));
        assert_eq!(iid("0.5", 100), (Some(40), Some(61)));
    }

    #[test]
    fn a_bound_appears_exactly_where_it_is_proved() {
        for (quantile, fewest) in
            [("0.999", 3_688), ("0.9999", 36_887), ("0.99999", 368_887), ("0.999999", 3_688_878)]
        {
            assert_eq!(iid(quantile, fewest - 1).1, None, "{quantile}");
            assert_eq!(iid(quantile, fewest).1, Some(fewest), "{quantile}");
        }
    }

    #[test]
    fn ten_samples_beyond_are_needed_or_as_many_as_bound_a_quantile() {
        for (quantile, needed) in [("0.5", 20), ("0.999", 10_000), ("0.999999", 10_000_000)] {
            assert_eq!(samples_needed(p(quantile), Probability::P95), needed);
        }
        assert_eq!(samples_needed(p("0.001"), Probability::P95), 10_000);
        // ln(2·10⁶) = 14.5 episodes.
        assert_eq!(samples_needed(Probability::P99_9, p("0.999999")), 15_000);
        assert_eq!(samples_needed(Probability::ONE, Probability::P95), u64::MAX);
        assert_eq!(samples_needed(Probability::P99, Probability::ONE), u64::MAX);
    }

    #[test]
    fn low_and_high_quantiles_mirror_each_other() {
        for n in [50, 1000, 123_457, 1_000_000_000_000] {
            for (low, high) in [("0.001", "0.999"), ("0.2", "0.8"), ("0.499", "0.501")] {
                for effect in [1.0, 3.7] {
                    let a = ranks(p(low), n, Probability::P95, effect);
                    let b = ranks(p(high), n, Probability::P95, effect);
                    assert_eq!(a.low, b.high.map(|rank| n + 1 - rank), "{n} {low}");
                    assert_eq!(a.high, b.low.map(|rank| n + 1 - rank), "{n} {low}");
                }
            }
        }
    }

    #[test]
    fn huge_counts_agree_with_the_normal_limit() {
        for (quantile, q) in [("0.5", 0.5), ("0.999", 1e-3), ("0.999999999", 1e-9)] {
            let n = 1_000_000_000_000_u64;
            let interval = ranks(p(quantile), n, Probability::P95, 1.0);
            let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
            let width = 2.0 * 1.959_964 * (n as f64 * q * (1.0 - q)).sqrt();
            let got = (high - low) as f64;
            assert!((got - width).abs() < 1.5 + 1e-5 * width, "{quantile}: {got} {width}");
            assert!((low..=high).contains(&p(quantile).rank(n)));
        }
    }

    #[test]
    fn nothing_is_claimed_from_nothing() {
        let none = Interval::default();
        assert_eq!(ranks(Probability::P99, 0, Probability::P95, 1.0), none);
        assert_eq!(ranks(Probability::P99, 1000, Probability::ONE, 1.0), none);
        assert_eq!(ranks(Probability::P99, 1000, Probability::P95, f64::INFINITY), none);
        let plain = ranks(Probability::P99, 1000, Probability::P95, 1.0);
        assert_eq!(ranks(Probability::P99, 1000, Probability::P95, f64::NAN), plain);
        assert_eq!(ranks(Probability::P99, 1000, Probability::P95, 0.1), plain);
        let maximum = ranks(Probability::ONE, 1000, Probability::P95, 1.0);
        assert_eq!(maximum, Interval { low: Some(1000), high: None });
    }

    #[test]
    fn clusters_can_take_the_upper_bound_away() {
        // 10,000 samples bound p99.9 if independent, not if they come ten at a time.
        let bounded = |effect| ranks(Probability::P99_9, 10_000, Probability::P95, effect).high;
        assert!(bounded(1.0).is_some() && bounded(2.7).is_some());
        assert_eq!(bounded(2.8), None);
    }
}
