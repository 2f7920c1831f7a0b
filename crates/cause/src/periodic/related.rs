//! Causes whose frequencies are fractions of each other's, or of a usual clock's.

use super::PeriodicCause;
use super::levels;
use super::limits::{self, CLOCKS_HZ};
use super::multiples;
use super::wander::WANDERS;

/// Whether a cause may as well be another one that has more events: few events of a clock fit its fractions.
pub(super) fn is_part(one: &PeriodicCause, other: &PeriodicCause, run_ns: i64) -> bool {
    let is_others = |hz: &f64| (hz - other.frequency_hz).abs() * (run_ns as f64) < 1e9;
    one.source != other.source
        && one.events < multiples::FEW as u64
        && one.events < other.events
        && one.aliases_hz.iter().any(is_others)
}

/// Takes note of causes whose occurrences may be every n-th one of a clock, of which the others delay no packets. Usual clocks are
/// clocks of their own.
pub(super) fn relate(causes: &mut [PeriodicCause], run_ns: i64) {
    let all: Vec<(usize, f64)> = causes.iter().map(|one| (one.source, one.frequency_hz)).collect();
    let is_usual = |one: &PeriodicCause| {
        CLOCKS_HZ.iter().any(|hz| (one.frequency_hz / hz - 1.0).abs() < limits::SAME)
    };
    for one in causes.iter_mut().filter(|one| one.every == 1 && !is_usual(one)) {
        let resolved = 1e9 / run_ns as f64 / one.frequency_hz;
        let others = all.iter().filter(|other| other.0 != one.source);
        let known = others.map(|other| (other.1, resolved));
        let usual = CLOCKS_HZ.iter().map(|hz| (*hz, WANDERS));
        one.clock_hz = (2..=levels::LONGEST).find_map(|times| {
            let hz = one.frequency_hz * times as f64;
            let is_it = |(other_hz, near): &(f64, f64)| (hz / other_hz - 1.0).abs() < *near;
            known.clone().chain(usual.clone()).find(is_it).map(|(hz, _)| hz)
        });
    }
}
