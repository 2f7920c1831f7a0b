//! Packets and stalls that combs account for: packets in their windows, and stalls that end at them.

use super::PeriodicCause;
use super::behind;
use super::capture::{Capture, Level};
use super::comb::Comb;
use super::late::Stall;
use crate::rows::Struck;

/// Marks what combs explain: packets that arrive in their windows, and stalls that end at them.
pub(super) fn mark(capture: &mut Capture, levels: &mut [Level], combs: &[Comb]) {
    capture.explained.copy_from_slice(&capture.aside);
    for comb in combs {
        for packet in behind::packets(capture, comb) {
            capture.explained[packet] = true;
        }
    }
    // Where a stall begins with one of these, it is that.
    let behind = capture.explained.clone();
    for comb in combs {
        let (before_ns, after_ns) = reach(comb);
        let count = (capture.run_ns as f64 / comb.period_ns) as i64 + 1;
        for number in 0..=count {
            let end_ns = comb.end_ns(number);
            let from = capture.at_or_after(end_ns - before_ns);
            let mut packet = from;
            while capture.arrivals.get(packet).is_some_and(|at| (*at as f64) < end_ns + after_ns) {
                capture.explained[packet] = true;
                packet += 1;
            }
        }
    }
    capture.explained_count = capture.explained.iter().filter(|explained| **explained).count();
    for level in levels {
        for (stall, explained) in level.stalls.iter().zip(&mut level.explained) {
            *explained = behind[stall.packet] || combs.iter().any(|comb| belongs(comb, stall));
        }
        level.update(capture);
    }
}

/// Whether a stall is one of a comb: it began in its window, and ended near its end.
pub(super) fn belongs(comb: &Comb, stall: &Stall) -> bool {
    let (before_ns, _) = reach(comb);
    let (number, off_ns) = comb.off(stall.end_ns as f64);
    let end_ns = comb.end_ns(number);
    off_ns.abs() <= tolerance(comb) && stall.arrival_ns as f64 >= end_ns - before_ns
}

/// The largest distance between the end of a comb and the end of a stall of it: some stalls take longer.
fn tolerance(comb: &Comb) -> f64 {
    let wide_ns = (4.0 * comb.width_ns).max(0.6 * comb.longest_ns);
    // Between knots, a clock that wanders is elsewhere.
    let times = if comb.track.is_some() { 2.0 } else { 1.0 };
    times * wide_ns.min(comb.period_ns / 16.0).max(comb.width_ns)
}

/// The times before and after its end in which a comb accounts for packets.
fn reach(comb: &Comb) -> (f64, f64) {
    let before_ns = comb.before_ns();
    let after_ns = if comb.track.is_some() { tolerance(comb) } else { comb.width_ns };
    ((before_ns + after_ns - comb.width_ns).min(0.5 * comb.period_ns), after_ns)
}

/// The occurrences of a cause, one of several of its comb. Those that a longer cause of the comb has are that one's.
pub(super) fn struck(
    capture: &Capture,
    combs: &[Comb],
    causes: &[PeriodicCause],
    cause: &PeriodicCause,
) -> Struck {
    let comb = &combs[cause.source];
    let has = |one: &PeriodicCause, number: i64| {
        let first = libm::round((one.phase_ns - comb.phase_ns) / comb.period_ns) as i64;
        (number - first) % one.every as i64 == 0
    };
    let longer = |one: &&PeriodicCause| one.source == cause.source && one.every > cause.every;
    let is_its = |number: &i64| {
        has(cause, *number) && !causes.iter().filter(longer).any(|one| has(one, *number))
    };
    let (before_ns, _) = reach(comb);
    let count = (capture.run_ns as f64 / comb.period_ns) as i64 + 1;
    Struck {
        ends_ns: (0..=count).filter(is_its).map(|number| comb.end_ns(number)).collect(),
        before_ns,
        within_ns: tolerance(comb),
        packets: if cause.every == 1 { behind::packets(capture, comb) } else { Vec::new() },
        longest_ns: comb.longest_ns as i64,
    }
}
