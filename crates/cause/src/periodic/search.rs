//! The search for combs: one after the other, each refitted when the others are known.

use super::behind;
use super::capture::{Capture, Level};
use super::comb::{self, BELIEVED_NATS, Comb, SURE};
use super::marks::{belongs, mark};
use super::multiples::{FEW, across, fundamental, preferred, usual};
use super::proposals::Proposals;
use super::wander::{self, WANDERS};
use realfft::RealFftPlanner;

/// Combs that are found at most: a limit of time.
const MOST: usize = 8;

/// Candidates of a level that are looked at beyond the first that is believed: the first may be a multiple.
const COMPARED: usize = 6;

/// Combs that delay at least this share of the packets that they could have delayed are taken first. Multiples of two
/// clocks delay less.
pub(super) const PURE: f64 = 0.3;

/// Combs that delay a smaller share, down to this one, vary in length or come at some times only. They must be
/// likelier, and of a usual clock.
const LEAST_PURE: f64 = 0.05;
const IMPURE_NATS: f64 = 3.0 * BELIEVED_NATS;

/// Searches the levels from `first` on for combs beside those already `found`, and marks in the capture what all of them
/// explain. Combs that are `banned` are not looked for. Behind the first levels, only combs that delay nearly all packets that
/// they could have delayed are believed.
pub(super) fn search(
    capture: &mut Capture,
    levels: &mut [Level],
    first: usize,
    mut found: Vec<Comb>,
    banned: &[Comb],
) -> Vec<Comb> {
    let sure_only = first > 0;
    let mut plan = RealFftPlanner::new();
    let mut rejected: Vec<Comb> = Vec::new();
    let mut impure = Vec::new();
    for level in first..levels.len() {
        let (mut chance, mut proposed) = (None, None);
        while found.len() < MOST && rejected.len() < MOST {
            let known = Known { found: [&found[..], &rejected[..]].concat(), banned };
            let proposals =
                proposed.get_or_insert_with(|| Proposals::of(&mut plan, capture, levels, level));
            let next = next(capture, levels, proposals, &known);
            let Some(pure) = next.pure else {
                impure.extend(next.impure);
                break;
            };
            let pure =
                if pure.track.is_some() { wander::refined(capture, levels, &pure) } else { pure };
            if let Some(place) =
                found.iter().position(|one| is_one_clock(one, &pure, capture.run_ns))
            {
                // One clock that wanders: its phase is followed, or what is left of it is not told.
                let others = [&found[..place], &found[place + 1..]].concat();
                mark(capture, levels, &others);
                let one = found[place];
                proposals.fit_again();
                if let Some(followed) = wander::followed(capture, &levels[one.level], &one) {
                    found[place] = followed;
                    proposed = None;
                }
                rejected.push(pure);
                refit(capture, levels, &mut found);
                continue;
            }
            let mut is_likely = || {
                let chance = *chance
                    .get_or_insert_with(|| surrogate(&mut plan, capture, &levels[level], level));
                pure.net(capture.run_ns) >= chance + BELIEVED_NATS
            };
            let unsure =
                !sure_only && !pure.is_sure() && !folded(capture, &found, &pure) && is_likely();
            if !(pure.is_sure() || unsure) {
                rejected.push(pure);
                continue;
            }
            proposed = None;
            if !add(capture, levels, &mut found, pure) {
                break;
            }
        }
    }
    for one in impure {
        if sure_only
            || found.len() == MOST
            || told(&found, &one, capture.run_ns)
            || folded(capture, &found, &one)
        {
            continue;
        }
        let again = comb::scored(capture, &levels[one.level], &one)
            .filter(|again| again.net(capture.run_ns) >= IMPURE_NATS);
        if let Some(again) = again {
            add(capture, levels, &mut found, again);
        }
    }
    found
}

/// Whether two combs have frequencies that one clock has if it wanders, and that the run tells apart.
fn is_one_clock(one: &Comb, other: &Comb, run_ns: i64) -> bool {
    (one.period_ns / other.period_ns - 1.0).abs() < WANDERS && !one.is_same(other, run_ns)
}

/// The likelihood of the best comb in a surrogate of the capture, in which no clock keeps its phase: blocks of packets, with
/// what they waited, in another order.
fn surrogate(
    plan: &mut RealFftPlanner<f32>,
    capture: &Capture,
    level: &Level,
    number: usize,
) -> f64 {
    let shuffled = capture.shuffled();
    let mut levels = vec![level.of(&shuffled); number + 1];
    levels.truncate(number + 1);
    let proposals = Proposals::of(plan, &shuffled, &levels, number);
    let next = next(&shuffled, &levels, &proposals, &Known::default());
    let nets = next.pure.iter().chain(&next.impure).map(|one| one.net(capture.run_ns));
    nets.fold(0.0, f64::max)
}

/// Adds a comb and fits all once more. Whether there is one more then.
fn add(capture: &mut Capture, levels: &mut [Level], found: &mut Vec<Comb>, one: Comb) -> bool {
    let before = found.len();
    found.push(one);
    refit(capture, levels, found);
    for one in found.iter_mut() {
        one.behind_ns = behind::behind_ns(capture, one);
    }
    mark(capture, levels, found);
    found.len() > before
}

/// Whether a comb is told already: at nearly the same phase of a clock, or at another phase of one that delays packets
/// in part. A clock that wanders is found at several frequencies near its own, and at simple fractions of them.
fn told(found: &[Comb], one: &Comb, run_ns: i64) -> bool {
    found.iter().any(|other| {
        let near = other.off(one.phase_ns).1.abs() < 2.0 * (one.longest_ns + other.longest_ns);
        let halves = one.purity() < HALF || other.purity() < HALF;
        // Few stalls at several phases are rather those of a faster clock.
        let few = one.hit < FEW && other.hit < FEW;
        (one.is_same(other, run_ns) && (near || halves || few))
            || among(one, other, run_ns)
            || ((other.purity() < HALF || other.track.is_some()) && fraction(one, other))
    })
}

/// Whether the schedule folds a multiple of a told comb's frequency to one of another one's: 9 times 1,000 Hz comes back as
/// 999.93 Hz among 9,999.93 packets a second. Of bursts, which come rarely, only to the other one's frequency itself.
fn folded(capture: &Capture, found: &[Comb], one: &Comb) -> bool {
    let Some(pattern_hz) = capture.pattern_hz else { return false };
    let (hz, resolved_hz) = (1e9 / one.period_ns, 1e9 / capture.run_ns as f64);
    let own = if capture.bursts { 1 } else { HIGHEST_OWN };
    found.iter().any(|other| {
        let other_hz = 1e9 / other.period_ns;
        let wanders_hz = other_hz * other.track.map_or(0.0, |track| track.deviation());
        (1..=own).map(f64::from).any(|times| {
            (1..=HIGHEST_FOLDED).map(f64::from).any(|others| {
                let near_hz = (0.1 * (times + others)).max(1.0) * resolved_hz + others * wanders_hz;
                [others * other_hz, -others * other_hz].into_iter().any(|multiple_hz| {
                    let apart_hz = times * hz + multiple_hz;
                    let turns = libm::round(apart_hz / pattern_hz);
                    turns != 0.0 && (apart_hz - turns * pattern_hz).abs() < near_hz
                })
            })
        })
    })
}

/// Multiples of a told frequency that are looked at, and of the other one.
const HIGHEST_FOLDED: i32 = 16;
const HIGHEST_OWN: i32 = 8;

/// Occurrences that take longer than so many times the other occurrences are of another cause.
const LONGER: f64 = 1.5;

/// Whether each occurrence of a comb is one of a faster comb.
fn among(one: &Comb, other: &Comb, run_ns: i64) -> bool {
    let ratio = one.period_ns / other.period_ns;
    let times = libm::round(ratio);
    let periods = run_ns as f64 / one.period_ns;
    let near_ns = (2.0 * (one.width_ns + other.width_ns)).min(other.period_ns / 32.0);
    times >= 2.0
        && one.longest_ns < LONGER * other.longest_ns
        && (ratio - times).abs() * other.period_ns * periods < near_ns
        && other.off(one.phase_ns).1.abs() < near_ns
}

/// Whether periods have a simple ratio, within what a clock wanders.
fn fraction(one: &Comb, other: &Comb) -> bool {
    let ratio = one.period_ns / other.period_ns;
    (1..=12).any(|denominator| {
        let times = ratio * f64::from(denominator);
        let numerator = libm::round(times);
        numerator >= 1.0
            && (denominator == 1 || numerator == 1.0)
            && (times / numerator - 1.0).abs() < WANDERS
    })
}

/// Two sources of one frequency are told apart if they delay at least this share of the packets that they could have.
const HALF: f64 = 0.5;

/// Whether a comb recurs with packets instead of with time. A clock that delays all that it could, once in so many
/// packets, stands still against the schedule. If it recurs several times in as many packets and delays one of them, it is
/// believed only if it is a usual clock.
fn of_packets(capture: &Capture, levels: &[Level], comb: &Comb) -> bool {
    let (hz, sure) = (1e9 / comb.period_ns, comb.purity() >= SURE);
    let stalls = levels[comb.level].open().filter(|stall| belongs(comb, stall));
    let packets: Vec<usize> = stalls.map(|stall| stall.packet).collect();
    let several = |size: usize| hz * size as f64 > 1.5 * capture.pattern_hz.unwrap_or(f64::MAX);
    capture.locked(hz, sure)
        || capture.in_batches(&packets)
        || if sure {
            !usual(comb) && capture.numbered(&packets, NEARLY_ALL).is_some_and(several)
        } else {
            capture.numbered(&packets, HALF).is_some()
        }
}

/// Whether nearly all stalls of a comb are at one phase of a told clock, with which it has no simple ratio: what is left of
/// that clock, such as its shorter interrupts, comes as often as the schedule meets it. Of the published tick (Snort on hardware)
/// a dozen were told as 9.57 or 15.36 Hz, of which 26.125 and 16.273 ticks are a period.
fn rides(capture: &Capture, levels: &[Level], comb: &Comb, told: &Comb) -> bool {
    let stalls = levels[comb.level].open().filter(|stall| belongs(comb, stall));
    let offs: Vec<f64> = stalls.map(|stall| told.off(stall.end_ns as f64).1).collect();
    let Some(middle_ns) = offs.get(offs.len() / 2).filter(|_| told.track.is_none()) else {
        return false;
    };
    let near_ns = told.period_ns * NEAR;
    let apart_ns = |off_ns: &f64| {
        let apart_ns = off_ns - middle_ns;
        (apart_ns - libm::round(apart_ns / told.period_ns) * told.period_ns).abs()
    };
    let near = offs.iter().filter(|off_ns| apart_ns(off_ns) < near_ns).count();
    let ratio = comb.period_ns / told.period_ns;
    let simple = (1..=HIGHEST_PART).map(f64::from).any(|part| {
        let times = libm::round(ratio * part);
        let moved_ns = (ratio - times / part).abs() * capture.run_ns as f64 / ratio;
        let most = if part == 1.0 { MOST_TIMES } else { MOST_TIMES_OF_PARTS };
        times >= 1.0 && moved_ns < near_ns && (times <= most || part == 1.0 && usual(comb))
    });
    near as f64 >= NEARLY_ALL * offs.len() as f64 && !simple
}

/// A part of packets that is nearly all of them: the others are late by chance.
const NEARLY_ALL: f64 = 0.9;

/// Phases that differ by less than this part of a period are one. Five stalls of another clock have that by chance of 1.5·10⁻⁵.
const NEAR: f64 = 0.03125;

/// Simple ratios of the periods of a comb and a found clock: whole numbers up to this one, or any whole number if the
/// comb has the frequency of a usual clock; then the highest denominator of fractions, and their highest numerator.
const MOST_TIMES: f64 = 64.0;
const HIGHEST_PART: i32 = 4;
const MOST_TIMES_OF_PARTS: f64 = 6.0;

/// Combs that are not looked for again.
#[derive(Default)]
struct Known<'a> {
    found: Vec<Comb>,
    banned: &'a [Comb],
}

impl Known<'_> {
    fn has(&self, one: &Comb, run_ns: i64) -> bool {
        // At a lower level the same frequency may delay all that it could.
        let banned = |other: &Comb| one.purity() < HALF && one.is_same(other, run_ns);
        told(&self.found, one, run_ns) || self.banned.iter().any(banned)
    }
}

/// The best combs of what is not explained yet.
#[derive(Default)]
struct Next {
    pure: Option<Comb>,
    /// Best first, of different clocks.
    impure: Vec<Comb>,
}

fn next(capture: &Capture, levels: &[Level], proposals: &Proposals, known: &Known<'_>) -> Next {
    let mut next = Next::default();
    consider(&mut next, capture, levels, known, proposals.spectral(capture, levels));
    if next.pure.is_none() {
        consider(&mut next, capture, levels, known, proposals.of_pairs(capture, levels));
    }
    next.impure.sort_by(|a, b| b.merit(capture.run_ns).total_cmp(&a.merit(capture.run_ns)));
    next.impure.truncate(IMPURE);
    next
}

/// Takes note of the best combs among candidates, until enough are compared.
fn consider(
    next: &mut Next,
    capture: &Capture,
    levels: &[Level],
    known: &Known<'_>,
    candidates: impl Iterator<Item = Comb>,
) {
    let merit = |one: &Comb| one.merit(capture.run_ns);
    let mut compared = 0;
    for comb in candidates {
        if known.has(&comb, capture.run_ns) {
            continue;
        }
        if next.pure.is_none_or(|best| merit(&comb) > merit(&best)) {
            let fixed = comb.track.is_none();
            let comb = if fixed { preferred(capture, levels, &comb, &known.found) } else { comb };
            let faster = fixed.then(|| across(capture, levels, &comb)).flatten();
            let comb = faster.map_or(comb, |comb| fundamental(capture, levels, comb));
            if known.has(&comb, capture.run_ns)
                || of_packets(capture, levels, &comb)
                || known.found.iter().any(|other| rides(capture, levels, &comb, other))
            {
                continue;
            }
            if comb.purity() >= if capture.bursts { SURE } else { PURE } {
                next.pure = Some(comb);
            } else if usual(&comb)
                && comb.purity() >= LEAST_PURE
                && !told(&next.impure, &comb, capture.run_ns)
            {
                next.impure.push(comb);
            }
        }
        compared += usize::from(next.pure.is_some());
        if compared == COMPARED {
            break;
        }
    }
}

/// Impure combs of a level that are told at most.
const IMPURE: usize = 2;

/// Fits each comb to what the others leave, and drops those that are not needed any more. Marks what they explain.
fn refit(capture: &mut Capture, levels: &mut [Level], found: &mut Vec<Comb>) {
    let mut number = 0;
    while number < found.len() {
        if found.len() > 1 {
            let mut others = found.clone();
            let one = others.remove(number);
            mark(capture, levels, &others);
            let again = comb::scored(capture, &levels[one.level], &one)
                .and_then(|again| comb::polished(capture, levels, &again))
                .filter(|again| again.net(capture.run_ns) >= BELIEVED_NATS)
                .filter(|again| again.purity() >= LEAST_PURE)
                .filter(|again| !others.iter().any(|other| among(again, other, capture.run_ns)));
            match again {
                Some(again) => found[number] = Comb { behind_ns: one.behind_ns, ..again },
                None => {
                    found.remove(number);
                    continue;
                }
            }
        }
        number += 1;
    }
    mark(capture, levels, found);
}
