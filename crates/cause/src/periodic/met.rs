//! Occurrences of a comb that packets met, and the likelihood that they give it.

use super::capture::{Capture, Level};
use super::cluster::FEWEST;
use super::comb::Comb;

/// An occurrence that a packet met: how long before the end it arrived, and how far from the end it left.
pub(super) struct Met {
    until_ns: f64,
    off_ns: f64,
}

/// The occurrences that a packet met, by their reach: times before the end, ascending. One pass finds those of all, since
/// the packet of a shorter reach is that of a longer one or behind it.
pub(super) fn meet(
    capture: &Capture,
    level: &Level,
    comb: &Comb,
    reaches_ns: &[f64],
) -> Vec<Vec<Met>> {
    let Some(longest_ns) = reaches_ns.last() else { return Vec::new() };
    let mut waiting = reached(capture, level, comb, *longest_ns);
    let mut all: Vec<Vec<Met>> = Vec::with_capacity(reaches_ns.len());
    for reach_ns in reaches_ns.iter().rev() {
        let mut kept = 0;
        for number in 0..waiting.len() {
            let (end_ns, mut packet) = waiting[number];
            let until_ns = waits(capture, &mut packet, *reach_ns, end_ns);
            waiting[kept] = (end_ns, packet);
            kept += usize::from(until_ns > level.threshold_ns as f64);
        }
        waiting.truncate(kept);
        let met =
            waiting.iter().filter_map(|(end_ns, packet)| Met::of(capture, level, *packet, *end_ns));
        all.push(met.collect());
    }
    all.reverse();
    all
}

/// When the occurrences of a comb end.
fn ends<'a>(capture: &Capture, comb: &'a Comb) -> impl Iterator<Item = f64> + 'a {
    let count = ((capture.run_ns as f64 - comb.phase_ns) / comb.period_ns) as i64;
    (0..=count).map(|number| comb.end_ns(number))
}

/// The occurrences that a packet may have met, by their end, with the first packet that arrives so long before.
fn reached(capture: &Capture, level: &Level, comb: &Comb, reach_ns: f64) -> Vec<(f64, usize)> {
    let arrival_ns = |packet: usize| {
        capture.arrivals.get(packet).map_or(f64::INFINITY, |arrival| *arrival as f64)
    };
    let (mut found, mut kept) = (Vec::new(), 0);
    for end_ns in ends(capture, comb) {
        let packet = capture.at_or_after(end_ns - reach_ns);
        // Written in any case: the CPU foretells wrongly every other time whether it is kept.
        found.truncate(kept);
        found.push((end_ns, packet));
        kept += usize::from(end_ns - arrival_ns(packet) > level.threshold_ns as f64);
    }
    found.truncate(kept);
    found
}

/// Time from the arrival of the first packet within the reach of an occurrence that is not explained to the occurrence's
/// end; moves `packet` there.
fn waits(capture: &Capture, packet: &mut usize, reach_ns: f64, end_ns: f64) -> f64 {
    loop {
        let Some(at_ns) = capture.arrivals.get(*packet) else { return f64::NEG_INFINITY };
        let at_ns = *at_ns as f64;
        if at_ns >= end_ns - reach_ns && !(capture.explained[*packet] && at_ns < end_ns) {
            return end_ns - at_ns;
        }
        *packet += 1;
    }
}

impl Comb {
    /// Chance that a packet leaves as near to the end by chance.
    fn chance(&self, level: &Level, one: &Met) -> f64 {
        level.chance(one.until_ns - self.width_ns, one.until_ns + self.width_ns).min(HIGHEST)
    }
}

impl Met {
    /// The occurrence, unless the packet is in a stall that is explained.
    fn of(capture: &Capture, level: &Level, packet: usize, end_ns: f64) -> Option<Self> {
        let until_ns = end_ns - capture.arrivals[packet] as f64;
        let off_ns = match level.stall_of(capture, packet) {
            Some(stall) if level.explained[stall] => return None,
            Some(stall) => level.stalls[stall].end_ns as f64 - end_ns,
            None => f64::INFINITY,
        };
        Some(Self { until_ns, off_ns })
    }
}

/// Whether at most so many packets that a comb met were not delayed until its end.
pub(super) fn misses_at_most(capture: &Capture, level: &Level, comb: &Comb, most: usize) -> bool {
    let least_ns = least_ns(level, comb);
    ends(capture, comb)
        .filter_map(|end_ns| {
            let mut packet = capture.at_or_after(end_ns - comb.reach_ns);
            let until_ns = waits(capture, &mut packet, comb.reach_ns, end_ns);
            (until_ns > level.threshold_ns as f64).then_some(())?;
            Met::of(capture, level, packet, end_ns)
        })
        .filter(|one| one.until_ns >= least_ns && one.off_ns.abs() > comb.width_ns)
        .nth(most)
        .is_none()
}

/// Packets that arrive later before the end of an occurrence do not count.
fn least_ns(level: &Level, comb: &Comb) -> f64 {
    (level.threshold_ns as f64 + comb.width_ns).min(comb.reach_ns * 0.5)
}

/// The comb with what packets say of it if ends vary by its width, and with more nats than it has: the chances of those that
/// it missed are not looked at.
pub(super) fn at_most(level: &Level, comb: Comb, all: &[Met]) -> Option<Comb> {
    let least_ns = least_ns(level, &comb);
    let is_hit = |one: &&Met| (one.off_ns.abs() <= comb.width_ns) & (one.until_ns >= least_ns);
    let hit = all.iter().filter(is_hit).count();
    if hit < FEWEST {
        return None;
    }
    let met = all.iter().filter(|one| one.until_ns >= least_ns).count();
    let hits = all.iter().filter(is_hit).map(|one| (comb.chance(level, one), true));
    let (of_hits, by_chance) = logs(hits);
    // Each that it missed adds −ln(1 − chance), which is at most its chance by so many times as for the highest chance.
    let highest = level.late_share().min(HIGHEST);
    let missed = (0.5 * hit as f64 - by_chance).min((met - hit) as f64 * highest).max(0.0);
    let of_missed = -libm::log1p(-highest) / highest * missed;
    let nats = of_purity(hit, met) - of_hits + of_missed + ROUNDED;
    Some(Comb { met, hit, nats, ..comb })
}

/// The likelihood of a comb that has met and hit occurrences; `None` if it hit few more than chance would.
pub(super) fn likelihood(level: &Level, comb: Comb, all: &[Met]) -> Option<Comb> {
    let least_ns = least_ns(level, &comb);
    let counted = all.iter().filter(|one| one.until_ns >= least_ns);
    let is_hit = |one: &Met| one.off_ns.abs() <= comb.width_ns;
    let (logs, expected) = logs(counted.map(|one| (comb.chance(level, one), is_hit(one))));
    let nats = of_purity(comb.hit, comb.met) - logs;
    (comb.hit as f64 > 2.0 * expected).then_some(Comb { expected, nats, ..comb })
}

/// The logarithm of the likelihood of so many hits, each of which has the share of them.
fn of_purity(hit: usize, met: usize) -> f64 {
    let purity = (hit as f64 + 0.5) / (met as f64 + 1.0);
    hit as f64 * libm::log(purity) + (met - hit) as f64 * libm::log1p(-purity)
}

/// Chances are not higher.
const HIGHEST: f64 = 0.9;

/// Rounding changes likelihoods by less.
const ROUNDED: f64 = 1e-3;

/// The sum of the logarithms of chances, or of what they leave where they did not come true, and the sum of the chances.
fn logs(chances: impl Iterator<Item = (f64, bool)>) -> (f64, f64) {
    // The logarithm of many chances is that of their product, which takes a fifth of the time.
    let (mut sum, mut together, mut expected) = (0.0, 1.0, 0.0);
    for (chance, came) in chances {
        expected += chance;
        together *= if came { chance } else { 1.0 - chance };
        if together < SMALL {
            sum += libm::log(together);
            together = 1.0;
        }
    }
    (sum + libm::log(together), expected)
}

/// A product of chances that is larger than this leaves room for one more, however small.
const SMALL: f64 = 1e-200;

#[cfg(test)]
mod tests {
    use super::super::comb::unscored;
    use super::*;
    use proptest::prelude::*;

    const PERIOD_NS: i64 = 100_000;

    /// A capture with a clock that delays packets for up to 20 µs, except those of occurrences that it leaves out.
    fn capture(packets: &[(i64, bool, bool)], every: i64) -> (Capture, Level) {
        let mut at_ns = 0;
        let mut samples = Vec::new();
        for (gap_ns, late, _) in packets {
            at_ns += gap_ns;
            let (number, until_ns) = (at_ns / PERIOD_NS, PERIOD_NS - at_ns % PERIOD_NS);
            let struck = until_ns < 20_000 && number % every == 0;
            let other_ns = if *late { 9_000 } else { 1_000 };
            samples.push((at_ns, at_ns + if struck { until_ns.max(1_000) } else { other_ns }));
        }
        let mut capture = Capture::new(&samples, 1_000);
        capture.explained = packets.iter().map(|(_, _, explained)| *explained).collect();
        capture.explained_count = capture.explained.iter().filter(|one| **one).count();
        let level = Level::new(&capture, &samples, 2_000);
        (capture, level)
    }

    /// The occurrences that a packet met, found one reach at a time and without buckets.
    fn naive(capture: &Capture, level: &Level, comb: &Comb, reach_ns: f64) -> Vec<(f64, f64)> {
        let packet_of = |end_ns: f64| {
            let packets = capture.arrivals.iter().map(|at_ns| *at_ns as f64).enumerate();
            let mut reached = packets.skip_while(|(_, at_ns)| *at_ns < end_ns - reach_ns);
            reached.find(|(packet, at_ns)| *at_ns >= end_ns || !capture.explained[*packet])
        };
        let told = |end_ns: f64| {
            let (packet, at_ns) = packet_of(end_ns)?;
            let late = level.stall_of(capture, packet).map(|stall| level.stalls[stall].end_ns);
            let off_ns = late.map_or(f64::INFINITY, |ns| ns as f64 - end_ns);
            (end_ns - at_ns > level.threshold_ns as f64).then_some((end_ns - at_ns, off_ns))
        };
        ends(capture, comb).filter_map(told).collect()
    }

    proptest! {
        #[test]
        fn reaches_at_once_are_those_one_by_one_and_no_likelihood_is_above_its_bound(
            packets in prop::collection::vec(
                (1_i64..30_000, prop::bool::weighted(0.05), prop::bool::weighted(0.1)), 200..800,
            ),
            every in 1_i64..4,
            divisor in 1_i32..4,
        ) {
            let (capture, level) = capture(&packets, every);
            let first_ns = packets[0].0;
            let period_ns = PERIOD_NS as f64 / f64::from(divisor);
            let comb = unscored(0, period_ns, (PERIOD_NS - first_ns) as f64, 600.0);
            let reaches_ns = [5_000.0, 12_000.0, 19_000.0];
            let all = meet(&capture, &level, &comb, &reaches_ns);
            for (met, reach_ns) in all.iter().zip(reaches_ns) {
                let told: Vec<(f64, f64)> = met.iter().map(|one| (one.until_ns, one.off_ns)).collect();
                prop_assert_eq!(told, naive(&capture, &level, &comb, reach_ns));
                for width_ns in [300.0, 1_200.0, 4_800.0] {
                    let one = Comb { width_ns, reach_ns, ..comb };
                    if let Some(most) = at_most(&level, one, met)
                        && let Some(likely) = likelihood(&level, most, met)
                    {
                        prop_assert!(likely.nats <= most.nats, "{} {}", likely.nats, most.nats);
                    }
                }
            }
        }
    }
}
