//! Test of a promise: the share of bad packets keeps below a limit.

use super::length::smallest;
use serde::Serialize;
use tailtrim_stats::{Probability, binomial_tail, normal_deviate};

/// Packets of which some were bad.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// Lost, or later than the deadline.
    pub bad: u64,
    /// All whose end is known.
    pub packets: u64,
    /// Number of packets that are worth one independent packet, at least 1.
    pub design_effect: f64,
}

/// Verdict on a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Promise {
    /// The share is no larger.
    #[serde(rename = "met")]
    Met,
    /// The share is larger.
    #[serde(rename = "not met")]
    NotMet,
    /// Both could be.
    #[serde(rename = "not decided")]
    NotDecided,
}

/// Share of bad packets: its bounds, and the verdict on its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Promised {
    /// Whether it is within the limit.
    pub promise: Promise,
    /// It is at least this, with the confidence.
    pub low: f64,
    /// It is at most this, with the confidence.
    pub high: f64,
    /// So many more packets (to a thousandth of all) decide, with the assurance, if the share is what was observed; `None` where it is decided, or no
    /// number that can be measured would do.
    pub more: Option<u64>,
}

/// Holds the share of bad packets against a limit between 0 and 1.
///
/// The bounds are Clopper and Pearson's (1934, *Biometrika* 26), one-sided, of `packets` / D independent packets with `bad` / D
/// bad ones, where D is the design effect. A limit is either kept or not, so that one of the two errors is possible at a time,
/// and each is made with at most 1 − `confidence`: without a bad packet, a limit of 10⁻⁵ is met by 299,572 independent ones at
/// 95 %.
#[must_use]
pub fn promised(
    observed: Observed,
    limit: f64,
    confidence: Probability,
    assurance: Probability,
) -> Promised {
    let effect = observed.design_effect.max(1.0);
    let (bad, packets) = (observed.bad as f64, observed.packets as f64);
    let error = confidence.complement_f64();
    let kept = |bad: f64, packets: f64| at_most(bad / effect, packets / effect, limit) <= error;
    let broken = |bad: f64, packets: f64| at_least(bad / effect, packets / effect, limit) <= error;
    let promise = if observed.packets == 0 {
        Promise::NotDecided
    } else if kept(bad, packets) {
        Promise::Met
    } else if broken(bad, packets) {
        Promise::NotMet
    } else {
        Promise::NotDecided
    };
    let low = share_at(|share| at_least(bad / effect, packets / effect, share) > error);
    let high = share_at(|share| at_most(bad / effect, packets / effect, share) <= error);
    let more = (promise == Promise::NotDecided).then(|| {
        let ratio = bad / packets.max(1.0);
        let deviate = normal_deviate(assurance.complement_f64().min(0.5)).max(0.0);
        let decides = |total: u64| {
            let total = total as f64;
            let (mean, spread) = (ratio * total, deviate * (ratio * total * effect).sqrt());
            // So many, or more to the wrong side, with the probability 1 − assurance only.
            if ratio < limit {
                kept(mean + spread, total)
            } else {
                broken((mean - spread).max(0.0), total)
            }
        };
        let total = if ratio == limit { None } else { smallest(observed.packets.max(1), decides) };
        total.map(|total| total - observed.packets)
    });
    Promised { promise, low, high, more: more.flatten() }
}

/// P(X <= `bad`) for X ~ Bin(`packets`, `share`).
fn at_most(bad: f64, packets: f64, share: f64) -> f64 {
    if bad >= packets { 1.0 } else { 1.0 - at_least(bad + 1.0, packets, share) }
}

/// P(X >= `bad`).
fn at_least(bad: f64, packets: f64, share: f64) -> f64 {
    binomial_tail(bad, packets, share, 1.0 - share)
}

/// The smallest share for which `from_here` holds, by bisection of its logarithm.
fn share_at(from_here: impl Fn(f64) -> bool) -> f64 {
    let (mut below, mut above) = (-46.0_f64, -1e-15_f64);
    if from_here(below.exp()) {
        return 0.0;
    }
    if !from_here(above.exp()) {
        return 1.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(below, above);
        if from_here(middle.exp()) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above.exp()
}
