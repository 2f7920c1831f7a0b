//! Length of a measurement that gives a quantile with a wanted precision.
//!
//! The width of an interval varies from run to run: with a length planned for its expected width, about half of the
//! runs have a wider one. So the length is the one at which the interval is narrow enough with an *assurance*, a
//! probability, as Graybill (1958, *Annals of Mathematical Statistics* 29) and Kupper and Hafner (1989, *The American
//! Statistician* 43) ask for means. The logarithm of the width is taken as normal; `reach` has its variance.

use crate::reach::{estimated, within};
use serde::Serialize;
use tailtrim_stats::{Probability, Ranked, normal_deviate, ranks, samples_needed};

/// Nobody measures more packets: at 100 million a second, four months.
const MOST: u64 = 1_000_000_000_000_000;
/// So many effective late packets of the pilot make its curve worth reading: the share of packets beyond a latency is then
/// known to a third (√(1 / 10) = 32 %). Counted without their clusters, plans of pilots with three episodes were long enough
/// in 69 % of the cases instead of 80 %.
const KNOWN: u64 = 10;

/// A run that was measured already: what it tells about the next one.
#[derive(Debug, Clone, Copy)]
pub struct Pilot<'a> {
    /// Its latencies.
    pub latencies: &'a Ranked,
}

/// Planned number of samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Length {
    /// The quantile.
    pub p: Probability,
    /// Its interval lies within so much of it on either side, relatively.
    pub precision: f64,
    /// In so many of the runs of this length.
    pub assurance: f64,
    /// Whether that is a precision of the latency (a pilot tells how steep the tail is) or, without
    /// one, of the share of packets beyond it.
    pub of_latency: bool,
    /// Samples that support the quantile.
    pub bounded_from: u64,
    /// Samples for the precision.
    pub samples: u64,
    /// Number of samples that are worth one independent sample.
    pub design_effect: f64,
}

/// Why no length can be told.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LengthError {
    /// The precision makes no sense.
    #[error("invalid precision {0}, expected more than 0 and less than 1 (100 %)")]
    Precision(f64),
    /// The assurance makes no sense.
    #[error("invalid assurance {0}, expected 0.5 (50 %) or more and less than 1 (100 %)")]
    Assurance(f64),
    /// The maximum has no interval.
    #[error("invalid quantile 1: the maximum has no confidence interval")]
    Maximum,
    /// The pilot ends before the quantile.
    #[error(
        "the run has {samples} samples, too few beyond p{percent} to estimate how steep the tail is; expected \
         {needed} or more"
    )]
    Pilot {
        /// Samples of the run.
        samples: u64,
        /// Samples that reach far enough.
        needed: u64,
        /// The quantile.
        percent: String,
    },
    /// No number of samples that can be measured is enough.
    #[error("no run of 10^15 packets or fewer gives p{percent} within {precision}")]
    Unreachable {
        /// The quantile.
        percent: String,
        /// The precision asked for.
        precision: f64,
    },
}

/// The smallest number of samples whose interval for `p` lies within `precision` of it on either side with the probability
/// `assurance`, where `design_effect` samples are worth one independent one.
///
/// # Errors
/// The precision or the assurance is out of range, the precision is out of reach, or the pilot does not know the tail.
pub fn length(
    p: Probability,
    precision: f64,
    confidence: Probability,
    assurance: Probability,
    design_effect: f64,
    pilot: Option<Pilot<'_>>,
) -> Result<Length, LengthError> {
    if !(precision > 0.0 && precision < 1.0) {
        return Err(LengthError::Precision(precision));
    }
    if !(0.5..1.0).contains(&assurance.as_f64()) {
        return Err(LengthError::Assurance(assurance.as_f64()));
    }
    if p == Probability::ONE {
        return Err(LengthError::Maximum);
    }
    let effect = design_effect.max(1.0);
    let rarer = p.as_f64().min(p.complement_f64());
    if let Some(pilot) = pilot {
        let samples = pilot.latencies.count();
        let needed = (KNOWN as f64 / rarer * effect).ceil() as u64;
        if samples < needed {
            return Err(LengthError::Pilot { samples, needed, percent: p.percent_text() });
        }
    }
    let bounded_from = (samples_needed(p, confidence) as f64 * effect).ceil() as u64;
    let shares = |samples: u64, effect: f64| {
        let interval = ranks(p, samples, confidence, effect);
        let share = |rank: u64| rank as f64 / samples as f64;
        interval.low.zip(interval.high).map(|(low, high)| [share(low), share(high)])
    };
    let deviate = normal_deviate(assurance.complement_f64()).max(0.0);
    let precise = |samples: u64| match pilot {
        Some(pilot) => shares(samples, effect).is_some_and(|shares| {
            within(pilot.latencies, p, shares, precision, samples, effect) >= assurance.as_f64()
        }),
        None => {
            // Of the shares, only the run's own estimate of the design effect is chance.
            let spread = estimated(rarer * samples as f64 / effect).sqrt();
            shares(samples, effect * (deviate * spread).exp()).is_some_and(|shares| {
                shares.iter().all(|share| {
                    ((if p.as_f64() < 0.5 { *share } else { 1.0 - share }) / rarer - 1.0).abs()
                        <= precision
                })
            })
        }
    };
    let samples = smallest(bounded_from.max(2), precise)
        .ok_or_else(|| LengthError::Unreachable { percent: p.percent_text(), precision })?;
    let of_latency = pilot.is_some();
    let assurance = assurance.as_f64();
    Ok(Length { p, precision, assurance, of_latency, bounded_from, samples, design_effect: effect })
}

/// The smallest number, to a thousandth, for which `test` holds from there on.
pub(super) fn smallest(from: u64, test: impl Fn(u64) -> bool) -> Option<u64> {
    if test(from) {
        return Some(from);
    }
    let (mut below, mut above) = (from, from);
    while !test(above) {
        below = above;
        above = above.checked_mul(2).filter(|above| *above <= MOST)?;
    }
    while above - below > above / 1_000 + 1 {
        let middle = below.midpoint(above);
        if test(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some(above)
}
