//! Clocks that wander: a comb whose phase moves over the run.

use super::capture::{Capture, Level};
use super::cluster::window;
use super::comb::{self, BELIEVED_NATS, Comb};
use super::multiples::BETTER;
use super::spectrum::SEARCHED_HZ;

/// Times at which the phase is known, evenly over the run.
const KNOTS: usize = 16;

/// The phase moves by less than this part of the period from one knot to the next.
const STEP: f64 = 0.125;

/// Ends within this part of the period are followed.
const WINDOW: f64 = 0.03;

/// Clocks wander by this part of their frequency: 50 ppm are those of usual crystals, and the other end has one, too.
pub(super) const WANDERS: f64 = 1e-4;

/// A clock that is followed accounts for so many times as many stalls.
pub(super) const MORE: f64 = 1.3;

/// A phase moves if it does by more than so many half widths of the ends.
const MOVED: f64 = 4.0;

/// By how much a comb's occurrences are late, over the run: straight lines between knots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Track {
    knots_ns: [f64; KNOTS],
    step_ns: f64,
}

impl Track {
    /// By how much they are late at a time.
    pub(super) fn at(&self, at_ns: f64) -> f64 {
        let place = (at_ns / self.step_ns - 0.5).clamp(0.0, (KNOTS - 1) as f64);
        let knot = (place as usize).min(KNOTS - 2);
        let [from, to] = [self.knots_ns[knot], self.knots_ns[knot + 1]];
        from + (to - from) * (place - knot as f64)
    }

    /// From the earliest phase to the latest.
    fn range_ns(&self) -> f64 {
        let [low, high] =
            [f64::min, f64::max].map(|pick| self.knots_ns.into_iter().fold(self.knots_ns[0], pick));
        high - low
    }

    /// The largest deviation of the period from its mean, as a part of it.
    pub(super) fn deviation(&self) -> f64 {
        let moves = self.knots_ns.windows(2).map(|pair| (pair[1] - pair[0]).abs() / self.step_ns);
        moves.fold(0.0, f64::max)
    }
}

/// The comb with a phase that moves, if that accounts for more stalls than chance explains.
pub(super) fn followed(capture: &Capture, level: &Level, comb: &Comb) -> Option<Comb> {
    let followed = tracked(capture, level, comb)?;
    let price = KNOTS as f64 * libm::log((STEP * comb.period_ns / followed.width_ns).max(2.0));
    let likelier = followed.nats - price > comb.nats + BELIEVED_NATS;
    let more = followed.hit as f64 > MORE * comb.hit as f64;
    let track = followed.track?;
    let moves = track.range_ns() > MOVED * followed.width_ns && track.deviation() < WANDERS;
    (likelier && more && moves).then_some(followed)
}

/// The multiple or fraction of a wandering comb's period that is likeliest: its phase moves, too.
pub(super) fn fundamental(capture: &Capture, level: &Level, comb: &Comb) -> Comb {
    let Some(middle) = middle(level, comb) else { return *comb };
    let hz = 1e9 / comb.period_ns;
    let parts = (2..=MULTIPLES).map(|times| (hz * f64::from(times), 0));
    let whole = (2..=MULTIPLES).flat_map(|times| {
        (0..times).map(move |occurrence| (hz / f64::from(times), i64::from(occurrence)))
    });
    let merit = |one: &Comb| one.merit(capture.run_ns);
    parts
        .chain(whole)
        .filter_map(|(hz, occurrence)| other(comb, hz, middle + occurrence))
        .filter_map(|one| tracked(capture, level, &one))
        .filter(|one| one.track.is_some_and(|track| track.deviation() < WANDERS))
        .filter(|one| merit(one) > BETTER * merit(comb))
        .max_by(|a, b| merit(a).total_cmp(&merit(b)))
        .unwrap_or(*comb)
}

/// The number of the middle one of a comb's hits.
fn middle(level: &Level, comb: &Comb) -> Option<i64> {
    let hits = comb.hits(level);
    hits.get(hits.len() / 2).map(|(number, _)| *number)
}

/// A comb of another frequency, if it is one that is searched, that ends with an occurrence of a comb.
fn other(comb: &Comb, hz: f64, occurrence: i64) -> Option<Comb> {
    let searched = (SEARCHED_HZ.0..=SEARCHED_HZ.1).contains(&hz);
    let at_ns = comb.end_ns(occurrence);
    searched.then(|| comb::unscored(comb.level, 1e9 / hz, at_ns, comb.width_ns))
}

/// The sums of a wandering comb's frequency with multiples of the packets' rate, each at the threshold that shows it best.
fn sums(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<Comb> {
    let Some(middle) = middle(&levels[comb.level], comb) else { return Vec::new() };
    let hz = 1e9 / comb.period_ns;
    let pattern_hz = capture.pattern_hz.unwrap_or(0.0);
    (-SUMS..=SUMS)
        .map(|times| (hz + f64::from(times) * pattern_hz).abs())
        .filter(|sum_hz| (sum_hz / hz - 1.0).abs() > 1e-6)
        .filter_map(|sum_hz| other(comb, sum_hz, middle))
        .filter_map(|one| at_best_level(capture, levels, &one))
        .collect()
}

/// Other frequencies of which the packets tell as much.
pub(super) fn aliases(capture: &Capture, levels: &[Level], comb: &Comb) -> Vec<Comb> {
    let least = ALIKE * comb.merit(capture.run_ns);
    let mut found = sums(capture, levels, comb);
    found.retain(|one| one.merit(capture.run_ns) > least);
    found
}

/// Combs with at least this part of a comb's merit are aliases of it: the phase of a clock that wanders does not tell
/// them apart well.
const ALIKE: f64 = 0.4;

/// Highest multiple of a wandering comb's period, and of its frequency, at which the true one is looked for.
const MULTIPLES: i32 = 6;

/// Highest multiple of the packets' rate in a sum.
const SUMS: i32 = 8;

/// The same comb at the threshold that shows best how its phase moves, or one of its sums with the packets' rate.
pub(super) fn refined(capture: &Capture, levels: &[Level], comb: &Comb) -> Comb {
    let own = at_best_level(capture, levels, comb).unwrap_or(*comb);
    let own = if own.nats > comb.nats { own } else { *comb };
    let merit = |one: &Comb| one.merit(capture.run_ns);
    let mut all = sums(capture, levels, &own);
    all.push(own);
    let most = all.iter().map(merit).fold(0.0, f64::max);
    // Of those that have about as much merit, the one that delays most of what it could have delayed.
    all.retain(|one| MORE * merit(one) > most);
    all.into_iter().max_by(|a, b| a.purity().total_cmp(&b.purity())).unwrap_or(own)
}

/// A comb whose phase moves, at the threshold that shows it best.
fn at_best_level(capture: &Capture, levels: &[Level], comb: &Comb) -> Option<Comb> {
    let start = Comb { track: None, ..*comb };
    levels
        .iter()
        .enumerate()
        .filter_map(|(number, level)| tracked(capture, level, &Comb { level: number, ..start }))
        .filter(|one| one.track.is_some_and(|track| track.deviation() < WANDERS))
        .max_by(|a, b| a.nats.total_cmp(&b.nats))
}

/// The comb whose phase follows the stalls' ends.
fn tracked(capture: &Capture, level: &Level, comb: &Comb) -> Option<Comb> {
    let step_ns = capture.run_ns as f64 / KNOTS as f64;
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); KNOTS];
    for stall in level.open() {
        let (_, off_ns) = comb.off(stall.end_ns as f64);
        parts[((stall.end_ns as f64 / step_ns) as usize).min(KNOTS - 1)].push(off_ns);
    }
    let window_ns = WINDOW * comb.period_ns;
    let count = |part: &[f64], at_ns: f64| {
        part.iter().filter(|off| (**off - at_ns).abs() <= window_ns / 2.0).count()
    };
    let start = (0..KNOTS).max_by_key(|knot| count(&parts[*knot], 0.0))?;
    let mut knots_ns = [0.0; KNOTS];
    for next in (0..start)
        .rev()
        .map(|knot| (knot + 1, knot))
        .chain((start + 1..KNOTS).map(|knot| (knot - 1, knot)))
    {
        let (from, to) = next;
        knots_ns[to] = densest(&parts[to], knots_ns[from], window_ns, comb.period_ns);
    }
    let mut track = Track { knots_ns, step_ns };
    for _ in 0..3 {
        let mut offs: Vec<Vec<f64>> = vec![Vec::new(); KNOTS];
        for stall in level.open() {
            let at_ns = stall.end_ns as f64;
            let off_ns = comb.off(at_ns).1 - track.at(at_ns);
            if off_ns.abs() <= window_ns / 2.0 {
                offs[((at_ns / step_ns) as usize).min(KNOTS - 1)].push(off_ns);
            }
        }
        for (knot, offs) in track.knots_ns.iter_mut().zip(&mut offs) {
            offs.sort_unstable_by(f64::total_cmp);
            *knot += offs.get(offs.len() / 2).copied().unwrap_or(0.0);
        }
    }
    let followed = Comb { track: Some(track), width_ns: window_ns / 2.0, ..*comb };
    comb::scored(capture, level, &followed)
}

/// The middle of the fullest window near a phase; that phase, where no window is fuller than chance explains.
fn densest(offs: &[f64], near_ns: f64, window_ns: f64, period_ns: f64) -> f64 {
    let reach_ns = STEP * period_ns;
    let mut near: Vec<f64> = offs
        .iter()
        .map(|off| off - near_ns)
        .map(|off| off - libm::round(off / period_ns) * period_ns)
        .filter(|off| off.abs() <= reach_ns)
        .collect();
    near.sort_unstable_by(f64::total_cmp);
    let chance = offs.len() as f64 * window_ns / period_ns;
    let fullest = window(&near, near.len(), window_ns);
    match fullest {
        Some((from, size)) if size as f64 > chance + 4.0 * libm::sqrt(chance + 1.0) => {
            near_ns + near[from + size / 2]
        }
        _ => near_ns,
    }
}
