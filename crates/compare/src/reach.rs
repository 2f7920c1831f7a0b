//! Prediction, from a pilot run, of the distance between a quantile and the ends of its interval, and of its variance.
//!
//! The logarithm of this reach varies because of
//!
//! * the samples of the run: of n independent ones, the shares that lie above two of them have a ratio that is beta
//!   distributed (David and Nagaraja 2003, *Order Statistics*, section 2.5), and its logarithm, to which the reach in an
//!   exponential tail is proportional, has the variance 1 / E₂ − 1 / E₁, where E₁ and E₂ samples lie above them;
//! * the samples of the pilot, by the same;
//! * the design effects that the run and the pilot estimate: the reach is proportional to their square roots.
//!
//! Where samples depend on one another, E samples count as E / D.

use std::f64::consts::SQRT_2;
use tailtrim_stats::{BlockCounts, Probability, Ranked};

/// Towards the end of the tail, the slope is read up to where this part of the samples beyond the quantile is left:
/// (1 / r − 1) / ln² r, the variance of its logarithm, is smallest for r = 0.203.
const LEFT: f64 = 0.2;

/// The variance of the logarithm of a design effect that is estimated from so many effective samples.
///
/// The largest of the estimates from several lengths of blocks is believed, and the longest leave 16 to 31 of them: 2 / 31,
/// 0.065, where each block has many samples. Simulated: 0.05 to 0.08 for p50 and p99 of 2,000 to 400,000 independent and
/// dependent samples, and about 2 / k more for k effective samples beyond (0.12 for 21, 0.37 for 6).
pub(super) fn estimated(beyond: f64) -> f64 {
    2.0 / 31.0 + 2.0 / beyond
}

/// The probability that the interval of `p` between these `shares` of `samples` reaches no further from the quantile than
/// `precision`, relatively. Where the pilot ends before the interval, it is 0.
pub(super) fn within(
    pilot: &Ranked,
    p: Probability,
    shares: [f64; 2],
    precision: f64,
    samples: u64,
    effect: f64,
) -> f64 {
    let Some(value) = pilot.quantile(p).filter(|value| *value != 0) else { return 0.0 };
    let rare_is_above = p.as_f64() >= 0.5;
    let rare = |share: f64| if rare_is_above { 1.0 - share } else { share };
    let (known, measured) = (pilot.count() as f64, samples as f64);
    let rarer = p.as_f64().min(p.complement_f64());
    let of_effects = [known, measured].map(|n| estimated(rarer * n / effect) / 4.0);
    let of_side = |share: f64| {
        let wide = slope_until(rarer, rare(share), known, effect)?;
        let rank = libm::ceil((if rare_is_above { 1.0 - wide } else { wide }) * known) as u64;
        // The pilot's largest latency stands for all that it has not seen.
        let at = if rank >= pilot.count() { None } else { pilot.at_rank(rank.max(1)) }?;
        let narrower = (rare(share) / rarer).ln() / (wide / rarer).ln();
        let reach = at.abs_diff(value) as f64 * narrower / value.unsigned_abs() as f64;
        let variance = spacing(rarer * known / effect, wide * known / effect)
            + spacing(rarer * measured / effect, rare(share) * measured / effect)
            + of_effects.iter().sum::<f64>();
        Some(normal_below((precision / reach).ln() / variance.sqrt()))
    };
    // Both sides have to be narrow enough.
    shares.map(|share| of_side(share).unwrap_or(0.0)).iter().product()
}

/// The share beyond, up to which the pilot's slope from the share `rarer` to the share `until` is read: further where too
/// few samples lie between. `None` where the pilot has no sample beyond.
fn slope_until(rarer: f64, until: f64, known: f64, effect: f64) -> Option<f64> {
    let telling = BlockCounts::TELLING as f64 * effect / known;
    if until < rarer {
        let wide = until.min((rarer - telling).max(LEFT * rarer));
        (wide * known >= 1.0).then_some(wide)
    } else {
        Some(until.max((rarer + telling).min(1.0 - rarer)))
    }
}

/// The relative variance of the distance between two latencies beyond which so many effective samples lie.
fn spacing(one: f64, other: f64) -> f64 {
    (1.0 / one - 1.0 / other).abs() / (one / other).ln().powi(2)
}

/// The probability that a standard normal deviate is smaller.
fn normal_below(deviate: f64) -> f64 {
    libm::erfc(-deviate / SQRT_2) / 2.0
}
