//! Candidate frequencies where few stalls are left: two of a source are a few periods apart, and others at the same phase.
//!
//! The power of ten ends among hundreds is above noise at no frequency, though they are at one phase to a microsecond. So the
//! time between two ends is taken for up to so many periods, and the other ends that are at their phase tell how likely it is.

use super::capture::Level;
use super::spectrum::SEARCHED_HZ;

/// A candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) hz: f64,
    /// The part of a period by which the frequency may be wrong over the run.
    pub(super) smear: f64,
    /// One of its ends.
    at_ns: f64,
    /// Natural logarithm of one over the chance by which the other ends are at its phase, less its mean.
    nats: f64,
}

/// More stalls than these take too long; of so many, sources show in the spectrum.
const MOST_STALLS: usize = 512;

/// The second stall of a pair is one of so many behind the first one, and so many periods away at most. Of a source that a
/// packet meets once in 30 occurrences, and six times in the run, two are five periods apart.
const NEXT: usize = 64;
const PERIODS: u32 = 16;

/// Ends vary by so much, and by so much of what packets wait.
const VARIES_NS: f64 = 1_000.0;
const VARIES: f64 = 0.1;

/// A period is so many times as long as its ends vary.
const PERIOD: f64 = 32.0;

/// An end is at a phase by a lower chance than this, or it says nothing.
const CHANCE: f64 = 0.05;

/// Candidates of a level.
const MOST: usize = 16;

/// The candidates of the stalls that are not explained yet, best first.
pub(super) fn candidates(run_ns: i64, level: &Level) -> Vec<Candidate> {
    let stalls: Vec<(f64, f64)> =
        level.open().map(|stall| (stall.end_ns as f64, stall.delay_ns() as f64)).collect();
    let mut best: Vec<Candidate> = Vec::new();
    if stalls.len() > MOST_STALLS {
        return best;
    }
    let ends: Vec<f64> = stalls.iter().map(|(end_ns, _)| *end_ns).collect();
    // Threshold, in nats, that the best of so many pairs reaches by chance.
    let mut least = libm::log((ends.len().max(1) * NEXT) as f64 * f64::from(PERIODS));
    for pair in pairs(&stalls) {
        for periods in (1..=PERIODS).map(f64::from) {
            let period_ns = pair.apart_ns / periods;
            if period_ns < (1e9 / SEARCHED_HZ.1).max(PERIOD * pair.width_ns) {
                break;
            }
            if period_ns > 1e9 / SEARCHED_HZ.0 {
                continue;
            }
            let nats = nats(&ends, &pair, periods, least);
            if nats > least {
                let moved_ns = 2.0 * pair.width_ns / periods * run_ns as f64 / period_ns;
                let smear = (moved_ns / period_ns).min(0.25);
                add(&mut best, Candidate { hz: 1e9 / period_ns, smear, at_ns: pair.at_ns, nats });
                least = best.get(MOST - 1).map_or(least, |last| last.nats);
            }
        }
    }
    best
}

/// Two stalls.
struct Pair {
    /// When the first one ends.
    at_ns: f64,
    /// Time from the end of the first one to that of the second.
    apart_ns: f64,
    /// The largest distance of an end from its phase.
    width_ns: f64,
}

/// The pairs of stalls, given by end and delay.
fn pairs(stalls: &[(f64, f64)]) -> impl Iterator<Item = Pair> {
    stalls.iter().enumerate().flat_map(|(first, (at_ns, delay_ns))| {
        stalls[first + 1..].iter().take(NEXT).map(move |(end_ns, other_ns)| Pair {
            at_ns: *at_ns,
            apart_ns: end_ns - at_ns,
            width_ns: VARIES_NS + VARIES * delay_ns.max(*other_ns),
        })
    })
}

/// Sum of −ln(chance) over the ends at this phase, less its expectation: the larger, the less likely they are there by
/// chance. The period is known from a pair that is so many periods apart: the farther an end is from the pair, the less
/// it says. Where it is not more than `least`, anything that is not.
fn nats(ends: &[f64], pair: &Pair, periods: f64, least: f64) -> f64 {
    let period_ns = pair.apart_ns / periods;
    let width = pair.width_ns / period_ns;
    let chance = |off: f64| width * (1.0 + 2.0 * (off - 0.5 * periods).abs() / periods);
    let turns = |end_ns: &f64| (end_ns - pair.at_ns) * (1.0 / period_ns);
    let far = 0.5 * (CHANCE / width - 1.0) * periods;
    let from = ends.partition_point(|end_ns| turns(end_ns) < 0.5 * periods - far);
    let until = ends.partition_point(|end_ns| turns(end_ns) < 0.5 * periods + far);
    let near = &ends[from..until];
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return 0.0 };
    // The mean of chance times its logarithm, between the lowest and the highest one.
    let highest = chance(turns(first)).max(chance(turns(last)));
    let integral = |x: f64| x * x * (1.0 - 2.0 * libm::log(x)) / 4.0;
    let expected = (integral(highest) - integral(width)) / (highest - width);
    let nats = -expected * near.len() as f64;
    let off = |turns: f64| 2.0 * (turns - (turns + WHOLE - WHOLE)).abs();
    // Few pairs have enough ends at the phase, even if each says as much as the nearest.
    let may_hit = near.iter().filter(|end_ns| off(turns(end_ns)) < highest).count();
    let most = nats - libm::log(width) * may_hit as f64;
    if most + ROUNDED < least {
        return most;
    }
    let hits = near.iter().map(turns).filter(|turns| off(*turns) < chance(*turns));
    hits.fold(nats, |nats, turns| nats - libm::log(chance(turns)))
}

/// Larger numbers have no fractions: what a number is rounded by when this is added.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Rounding changes sums by less.
const ROUNDED: f64 = 1e-6;

/// Puts a candidate among the best ones, with one for each frequency and phase.
fn add(best: &mut Vec<Candidate>, one: Candidate) {
    let same = |other: &Candidate| {
        let turns = (one.at_ns - other.at_ns) * other.hz / 1e9;
        (one.hz / other.hz - 1.0).abs() < 1e-3 && (turns - libm::round(turns)).abs() < 1e-2
    };
    match best.iter_mut().find(|other| same(other)) {
        Some(other) if one.nats > other.nats => *other = one,
        Some(_) => {}
        None => best.push(one),
    }
    best.sort_by(|a, b| b.nats.total_cmp(&a.nats));
    best.truncate(MOST);
}
