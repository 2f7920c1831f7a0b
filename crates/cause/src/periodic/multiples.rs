//! Multiples, fractions and sums of a comb's frequency that explain the same stalls.

use super::capture::{Capture, Level};
use super::cluster::FEWEST;
use super::comb::{self, Comb, SURE};
use super::limits;
use super::met;
use super::spectrum;

/// Highest multiple of a period at which the true one is looked for.
const HIGHEST_MULTIPLE: i64 = 40;

/// By how much a multiple or fraction has more merit, so that rounding does not decide.
pub(super) const BETTER: f64 = 1.02;

/// The multiple or fraction of a comb's period that is likeliest.
pub(super) fn fundamental(capture: &Capture, levels: &[Level], comb: Comb) -> Comb {
    let mut best = comb;
    loop {
        let slower = slower(capture, levels, &best);
        let faster = faster(capture, levels, &best);
        let merit = |one: &Comb| one.merit(capture.run_ns);
        let better = slower
            .into_iter()
            .chain(faster)
            .filter(|one| merit(one) > BETTER * merit(&best))
            .max_by(|a, b| merit(a).total_cmp(&merit(b)));
        match better {
            Some(better) => best = better,
            None => return best,
        }
    }
}

/// Combs of a multiple of the period, where the hits have numbers of one residue.
fn slower(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<Comb> {
    let hits = comb.hits(&levels[comb.level]);
    let mut found = Vec::new();
    for multiple in 2..=HIGHEST_MULTIPLE {
        let period_ns = comb.period_ns * multiple as f64;
        if period_ns * 4.0 > capture.run_ns as f64 {
            break;
        }
        let mut counts = vec![0_usize; multiple as usize];
        for (number, _) in &hits {
            counts[number.rem_euclid(multiple) as usize] += 1;
        }
        let Some((residue, most)) = counts.iter().enumerate().max_by_key(|(_, count)| **count)
        else {
            continue;
        };
        let chance = hits.len() as f64 / multiple as f64;
        if *most < FEWEST || (*most as f64 - chance) < 3.0 * libm::sqrt(chance) {
            continue;
        }
        let at_ns = comb.phase_ns + residue as f64 * comb.period_ns;
        let tried = comb::unscored(comb.level, period_ns, at_ns, comb.width_ns);
        found.extend(
            comb::scored(capture, &levels[comb.level], &tried)
                .and_then(|one| comb::polished(capture, levels, &one)),
        );
    }
    found
}

/// Combs of a fraction of the period, where that finds more stalls.
fn faster(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<Comb> {
    let level = &levels[comb.level];
    let tried = |divisor: i64| {
        comb::unscored(comb.level, comb.period_ns / divisor as f64, comb.phase_ns, comb.width_ns)
    };
    let ends: Vec<f64> = level.open().map(|stall| stall.end_ns as f64).collect();
    let within =
        |comb: &Comb| ends.iter().filter(|end| comb.off(**end).1.abs() <= comb.width_ns).count();
    let own = within(comb);
    (2..=HIGHEST_MULTIPLE)
        .take_while(|divisor| 1e9 * *divisor as f64 / comb.period_ns <= spectrum::SEARCHED_HZ.1)
        .map(tried)
        .filter(|one| within(one) * 10 > own * 13)
        .filter_map(|one| comb::scored(capture, level, &one))
        .filter_map(|one| comb::polished(capture, levels, &one))
        .collect()
}

/// Ends vary by more at lower thresholds.
const WIDE_NS: f64 = 5_000.0;

/// The multiple of a comb's frequency that delays packets each time, if less than those that are late at its threshold: two
/// clocks that meet delay some packets for longer.
pub(super) fn across(capture: &Capture, levels: &[Level], comb: &Comb) -> Option<Comb> {
    let threshold_ns = levels[comb.level].threshold_ns;
    let lower = (0..levels.len()).filter(|level| levels[*level].threshold_ns < threshold_ns);
    lower
        .flat_map(|level| (1..=HIGHEST_MULTIPLE).map(move |divisor| (level, divisor)))
        .filter(|(_, divisor)| 1e9 * *divisor as f64 / comb.period_ns <= spectrum::SEARCHED_HZ.1)
        .filter_map(|(level, divisor)| {
            let period_ns = comb.period_ns / divisor as f64;
            let width_ns = comb.width_ns.max(WIDE_NS);
            let one = comb::unscored(level, period_ns, comb.phase_ns, width_ns);
            let one = comb::scored(capture, &levels[level], &one)?;
            comb::polished(capture, levels, &one)
        })
        .filter(|one| 2.0 * one.reach_ns > comb.longest_ns)
        .filter(|one| {
            one.purity() >= SURE && one.merit(capture.run_ns) > 2.0 * comb.merit(capture.run_ns)
        })
        .max_by(|a, b| a.merit(capture.run_ns).total_cmp(&b.merit(capture.run_ns)))
}

/// Combs of other frequencies of which the packets tell as much: multiples and fractions whose other occurrences meet no
/// packet, and sums with multiples of the rate of packets or bursts. Of a clock that does not wander.
pub(super) fn aliases(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<Comb> {
    let level = &levels[comb.level];
    let hz = 1e9 / comb.period_ns;
    // Only few hits can have further fractions in common.
    let lowest = if comb.hit < FEW { FEWEST_FRACTION } else { 1 };
    let fractions = (1..=lowest).flat_map(|denominator| {
        (1..=HIGHEST_MULTIPLE).map(move |numerator| hz * numerator as f64 / f64::from(denominator))
    });
    let parts = (2..=HIGHEST_MULTIPLE).map(|denominator| hz / denominator as f64);
    let pattern_hz = capture.pattern_hz.unwrap_or(0.0);
    let sums = (-8..=8).map(|times| (hz + f64::from(times) * pattern_hz).abs());
    let mut tried: Vec<f64> = fractions
        .chain(parts)
        .chain(sums)
        .filter(|other_hz| (other_hz / hz - 1.0).abs() > 1e-6)
        .filter(|hz| (spectrum::SEARCHED_HZ.0..=spectrum::SEARCHED_HZ.1).contains(hz))
        .collect();
    tried.sort_by(f64::total_cmp);
    tried.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-9);
    let ends: Vec<f64> = level
        .open()
        .map(|stall| stall.end_ns as f64)
        .filter(|end| comb.off(*end).1.abs() <= comb.width_ns)
        .collect();
    let Some(middle_ns) = ends.get(ends.len() / 2) else { return Vec::new() };
    // Where the others meet as many packets at the same ends, they have the same likelihood from here.
    let at_ns = comb.end_ns(comb.off(*middle_ns).0);
    tried
        .into_iter()
        .map(|hz| comb::unscored(comb.level, 1e9 / hz, at_ns, 2.0 * comb.width_ns))
        .filter(|one| {
            let within = ends.iter().filter(|end| one.off(**end).1.abs() <= one.width_ns);
            within.count() * 10 >= ends.len() * 9
        })
        .filter_map(|wide| {
            let same = Comb { width_ns: comb.width_ns, ..wide };
            [same, wide]
                .iter()
                .filter_map(|one| comb::scored(capture, level, one))
                .filter_map(|one| comb::polished(capture, levels, &one))
                .max_by(|a, b| a.nats.total_cmp(&b.nats))
        })
        .filter(|one| one.nats > comb.nats - ALIKE_NATS && one.purity() > ALIKE * comb.purity())
        .collect()
}

/// All frequencies that the hits of a comb fit and at which packets were missed about as rarely, until more than so many:
/// a whole number of their periods goes into the time that hits are multiples of. Few hits fit some by chance, more of
/// them only if that time has several periods of the comb.
pub(super) fn all_aliases(capture: &Capture, level: &Level, comb: &Comb, most: usize) -> Vec<f64> {
    let hz = 1e9 / comb.period_ns;
    let hits = comb.hits(level);
    let Some((middle, _)) = hits.get(hits.len() / 2).filter(|_| comb.track.is_none()) else {
        return Vec::new();
    };
    let fits = |times: &i64| {
        let mut others = hits.iter().filter(|(number, _)| (number - middle) % times != 0);
        others.nth(hits.len() / 10).is_none()
    };
    let slowest = (capture.run_ns as f64 / comb.period_ns) as i64 / FEWEST as i64;
    let times = (1..=slowest).rev().find(fits).unwrap_or(1);
    if times == 1 && comb.hit >= FEW {
        return Vec::new();
    }
    let base_hz = hz / times as f64;
    let misses = (comb.hit as f64 / (ALIKE * comb.purity()) - comb.hit as f64) as usize;
    let (low_hz, high_hz) = spectrum::SEARCHED_HZ;
    ((low_hz / base_hz) as i64 + 1..=(high_hz / base_hz) as i64)
        .filter(|multiple| *multiple != times)
        .map(|multiple| base_hz * multiple as f64)
        .filter(|hz| {
            let other = comb::unscored(comb.level, 1e9 / hz, comb.end_ns(*middle), 0.0);
            let other = Comb { width_ns: comb.width_ns, reach_ns: comb.reach_ns, ..other };
            met::misses_at_most(capture, level, &other, misses)
        })
        .take(most + 1)
        .collect()
}

/// Of a comb and its aliases the one of a usual clock; else the likeliest. One that has the frequency of a told comb is
/// rather a multiple of it, if the told one hides the other occurrences.
pub(super) fn preferred(capture: &Capture, levels: &[Level], comb: &Comb, told: &[Comb]) -> Comb {
    let likeliest = |a: &Comb, b: &Comb| a.nats.total_cmp(&b.nats);
    if let Some(hidden) = half_hidden(capture, levels, comb, told).max_by(likeliest) {
        return hidden;
    }
    if usual(comb) {
        return *comb;
    }
    let all = [&[*comb][..], &aliases(capture, levels, comb)].concat();
    let best = all.iter().find(|one| usual(one)).copied();
    best.or_else(|| all.into_iter().max_by(likeliest)).unwrap_or(*comb)
}

/// Multiples of the frequency of a comb, of whose other occurrences packets tell nothing, since a told one accounts for them.
fn half_hidden<'a>(
    capture: &'a Capture,
    levels: &'a [Level],
    comb: &'a Comb,
    told: &'a [Comb],
) -> impl Iterator<Item = Comb> + 'a {
    let hiding = told.iter().filter(|other| comb.is_same(other, capture.run_ns));
    let multiples = move |other: &'a Comb| {
        (2..=HIGHEST_MULTIPLE).filter_map(move |times| {
            let period_ns = comb.period_ns / times as f64;
            let one = comb::unscored(comb.level, period_ns, comb.phase_ns, comb.width_ns);
            let near_ns = other.before_ns() + comb.longest_ns;
            (1e9 / period_ns <= spectrum::SEARCHED_HZ.1
                && one.off(other.phase_ns).1.abs() < near_ns)
                .then_some(one)
        })
    };
    hiding
        .flat_map(multiples)
        .filter_map(|one| comb::scored(capture, &levels[comb.level], &one))
        .filter_map(|one| comb::polished(capture, levels, &one))
        .filter(|one| one.hit * 10 >= comb.hit * 9 && one.purity() > ALIKE * comb.purity())
}

/// Whether a comb has the frequency of a usual clock.
pub(super) fn usual(comb: &Comb) -> bool {
    limits::CLOCKS_HZ.iter().any(|hz| (1e9 / comb.period_ns / hz - 1.0).abs() < limits::SAME)
}

/// With fewer hits, fractions of a frequency are tried, too.
pub(super) const FEW: usize = 40;
const FEWEST_FRACTION: i32 = 30;

/// Combs of other frequencies whose likelihood is lower by less than this tell as much.
const ALIKE_NATS: f64 = 6.0;

/// Those that delay at least this part of the share of packets that the comb delays are alike.
const ALIKE: f64 = 0.8;
