//! Periodic causes: what is put into a capture is found in it.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use proptest::prelude::*;
use tailtrim_cause::periodic::explain;
use tailtrim_wire::traffic::{Fraction, Pattern, Schedule};

/// A device that serves a packet in 300 ns (they stay for 3 µs and a little more) and is stopped by interrupts: start of
/// the first one, period, and duration of every n-th one.
struct Interrupts {
    start_ns: i64,
    period_ns: f64,
    durations_ns: Vec<i64>,
}

impl Interrupts {
    /// When the interrupt ends that keeps a packet from being served at this time.
    fn end_ns(&self, at_ns: i64) -> Option<i64> {
        let number = ((at_ns - self.start_ns) as f64 / self.period_ns).floor() as i64;
        let start_ns = self.start_ns + (number as f64 * self.period_ns) as i64;
        let count = self.durations_ns.len() as i64;
        let end_ns = start_ns + self.durations_ns[number.rem_euclid(count) as usize];
        (number >= 0 && at_ns < end_ns).then_some(end_ns)
    }
}

fn run(pattern: &str, interval_ns: u64, run_s: i64, interrupts: &[Interrupts]) -> Vec<(i64, i64)> {
    let interval = Fraction { numerator: u128::from(interval_ns), denominator: 1 };
    let pattern: Pattern = pattern.parse().expect("a pattern");
    let mut free_ns = 0;
    Schedule::new(&pattern, interval, 11)
        .map(|at_ns| at_ns.cast_signed())
        .take_while(|at_ns| *at_ns < run_s * 1_000_000_000)
        .enumerate()
        .map(|(number, at_ns)| {
            let mut served_ns = at_ns.max(free_ns);
            for _ in 0..2 {
                for interrupt in interrupts {
                    served_ns = interrupt.end_ns(served_ns).unwrap_or(served_ns);
                }
            }
            free_ns = served_ns + 300;
            (at_ns, served_ns + 3_000 + (number as i64 * 7919) % 64)
        })
        .collect()
}

#[test]
fn a_tick_and_what_comes_every_third_time() {
    let tick =
        Interrupts { start_ns: 123_456, period_ns: 4e6, durations_ns: vec![5_500, 5_500, 8_200] };
    let found = explain(&run("cbr", 99_921, 30, &[tick]));
    let causes: Vec<(f64, i64, u64)> = found
        .causes
        .iter()
        .map(|cause| (cause.frequency_hz, cause.delay_ns, cause.every))
        .collect();
    let [(tick_hz, tick_ns, 1), (work_hz, work_ns, 3)] = causes[..] else {
        panic!("{causes:?}");
    };
    assert!((tick_hz - 250.0).abs() < 0.01 && (work_hz - 250.0 / 3.0).abs() < 0.01, "{causes:?}");
    assert!((5_000..5_700).contains(&tick_ns) && (7_700..8_400).contains(&work_ns), "{causes:?}");
    assert!(found.causes.iter().all(|cause| cause.sampling.undersampled));
}

#[test]
fn a_cause_that_stands_still_against_the_schedule_is_called_aliased() {
    let tick = Interrupts { start_ns: 398_000, period_ns: 4e6, durations_ns: vec![5_500] };
    let found = explain(&run("cbr", 100_000, 30, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 250.0).abs() < 0.01, "{cause:?}");
    assert!(cause.sampling.aliased && cause.sampling.beat_hz.is_none(), "{cause:?}");
}

#[test]
#[ignore = "simulation: make test runs it"]
fn two_clocks_are_two_causes() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 4e6, durations_ns: vec![9_000] };
    let host = Interrupts { start_ns: 333_333, period_ns: 1e9 / 97.3, durations_ns: vec![30_000] };
    let found = explain(&run("poisson", 50_000, 20, &[tick, host]));
    let mut frequencies: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
    frequencies.sort_by(f64::total_cmp);
    let [slow, fast] = frequencies[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 97.3).abs() < 0.1 && (fast - 250.0).abs() < 0.25, "{frequencies:?}");
}

/// Their common multiple has the same lines: 3,500 and 4,500 Hz were told.
#[test]
#[ignore = "simulation: make test runs it"]
fn commensurable_clocks_are_told_apart() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 4e6, durations_ns: vec![10_000] };
    let other = Interrupts { start_ns: 1_333_333, period_ns: 1e7, durations_ns: vec![20_000] };
    let found = explain(&run("poisson", 100_000, 30, &[tick, other]));
    let mut frequencies: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
    frequencies.sort_by(f64::total_cmp);
    let [slow, fast] = frequencies[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 100.0).abs() < 0.01 && (fast - 250.0).abs() < 0.01, "{frequencies:?}");
}

/// A schedule that stands still against a clock and meets none of its occurrences knows nothing of it.
#[test]
fn a_clock_whose_phases_are_not_met_is_not_covered() {
    let found = explain(&run("cbr", 100_000, 20, &[]));
    let of = |hz: f64| found.limits.iter().find(|limit| limit.frequency_hz == hz).unwrap();
    let tick = of(250.0);
    assert!(tick.longer_than_ns.is_none_or(|ns| ns >= 100_000), "{tick:?}");
    let random = explain(&run("poisson", 100_000, 20, &[]));
    let tick = random.limits.iter().find(|limit| limit.frequency_hz == 250.0).unwrap();
    assert!(tick.longer_than_ns.is_some_and(|ns| ns <= 10_000), "{tick:?}");
}

#[test]
#[ignore = "simulation: make test runs it"]
fn a_residual_tick_of_one_hertz_is_found() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 1e9, durations_ns: vec![700_000] };
    let found = explain(&run("poisson", 100_000, 50, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 1.0).abs() < 0.01, "{cause:?}");
}

#[test]
fn nothing_is_found_in_nothing() {
    assert!(explain(&[]).causes.is_empty());
    assert!(explain(&[(5, 8)]).causes.is_empty());
    assert!(explain(&run("cbr", 100_000, 5, &[])).causes.is_empty());
    // Late packets at random times have no period.
    let mut samples = run("poisson", 100_000, 20, &[]);
    for (number, sample) in samples.iter_mut().enumerate() {
        let chance = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if chance.is_multiple_of(300) {
            sample.1 += (chance % 20_000).cast_signed() + 5_000;
        }
    }
    assert_eq!(explain(&samples).causes, []);
}

/// A random case: the peak of the 41st harmonic was the highest, and only 40 were looked at.
#[test]
#[ignore = "simulation: make test runs it"]
fn a_cause_is_found_by_a_high_harmonic() {
    let hz = 122.542_33;
    let tick = Interrupts { start_ns: 73_968, period_ns: 1e9 / hz, durations_ns: vec![12_046] };
    let found = explain(&run("poisson", 42_117, 10, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz / hz - 1.0).abs() < 1e-3, "{cause:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "simulation: make test runs it"]
    fn any_period_is_found_within_a_thousandth(
        hz in 40.0_f64..2_000.0,
        start_ns in 0_i64..100_000,
        duration_ns in 6_000_i64..25_000,
        pattern in prop::sample::select(vec!["cbr", "poisson", "jitter:0.2"]),
        interval_ns in 30_000_u64..110_000,
    ) {
        let period_ns = 1e9 / hz;
        let tick = Interrupts { start_ns, period_ns, durations_ns: vec![duration_ns] };
        let found = explain(&run(pattern, interval_ns, 10, &[tick]));
        prop_assume!(found.stalls >= 60);
        prop_assume!(!found.causes.iter().any(|cause| cause.sampling.aliased));
        prop_assert!(
            found.causes.iter().any(|cause| (cause.frequency_hz / hz - 1.0).abs() < 1e-3),
            "{hz} Hz in {found:?}"
        );
    }
}
